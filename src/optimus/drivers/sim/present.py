"""The present: a state of the engine with all that is needed to play on from it.

Why: a forecast and a what-if both ask what comes next. A live engine, a journal and a scenario file give the same
record, so that whoever asks need not know where it came from.
Owns: the record, and reading it from a journal or a scenario.
Must not: play, or know what will happen. What a file lets happen later is told apart (`coming`).
"""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from optimus.api.scenario import Scenario
from optimus.decide.policies import DEFAULT
from optimus.engine.copying import EngineCopy
from optimus.engine.engine import Engine, ReplayEngine
from optimus.engine.journal import JournalError, Moment
from optimus.model import observations as seen
from optimus.model.plans import Budget
from optimus.model.progress import Remaining
from optimus.model.workloads import Workload


class Present(Struct, frozen=True, kw_only=True):
    name: str
    """Of the file or folder it was read from."""
    state: bytes
    """A dump of the engine's state (`Engine.dump`)."""
    now_ms: int
    policy: str = DEFAULT.name
    seed: int = 0
    budget: Budget = Budget()
    remaining: dict[str, Remaining] = {}
    """By workload: what running work says of the rest of it."""
    coming: tuple[tuple[int, Workload], ...] = ()
    """Submissions that are known to come, with their times."""
    notes: tuple[str, ...] = ()
    """What was left away."""


def of_engine(engine: Engine, now_ms: int, name: str = "") -> Present:
    """What a body that lives would ask about."""
    return Present(
        name=name,
        state=engine.dump(),
        now_ms=now_ms,
        policy=engine.policy_reference,
        seed=engine.seed,
        budget=engine.budget,
    )


def of_copy(copied: EngineCopy, name: str) -> Present:
    """What a live scheduler has handed out."""
    return Present(
        name=name,
        state=copied.state,
        now_ms=copied.now_ms,
        policy=copied.policy,
        seed=copied.seed,
        budget=copied.budget,
        remaining=copied.remaining,
    )


def of_moment(moment: Moment, name: str = "") -> Present:
    """Right after the moment's last cycle. JournalError if nothing was decided by then."""
    if not moment.cycles:
        raise JournalError(f"{name}: nothing was decided by then, so nothing is known that could go on")
    replaying = ReplayEngine()
    replaying.restore(bytes(moment.keyframe.state))
    for cycle in moment.cycles:
        replaying.follow(cycle)
    last = moment.cycles[-1]
    return Present(
        name=name,
        state=replaying.engine.dump(),
        now_ms=last.now_ms,
        policy=last.policy,
        seed=last.seed,
        budget=last.budget,
        notes=tuple(str(flaw) for flaw in moment.flaws),
    )


def of_scenario(scenario: Scenario, folder: Path | None = None) -> Present:
    """As the story opens. Later submissions are known to come; what else it lets happen is noted and left away."""
    engine = Engine(policy=DEFAULT, settings=scenario.settings)
    engine.observe(scenario.opening, scenario.start_ms)
    notes = [str(problem) for problem in engine.problems]
    there = {workload.id for workload in scenario.workloads}
    coming: list[tuple[int, Workload]] = []
    for cycle in scenario.cycles:
        for event in cycle.events:
            if isinstance(event, seen.WorkloadSeen) and event.workload.id not in there:
                there.add(event.workload.id)
                coming.append((cycle.at_ms, event.workload))
            else:
                notes.append(f"cycle {cycle.number}: {type(event).__name__} is not played; only submissions are")
    return Present(
        name=scenario.name,
        state=engine.dump(),
        now_ms=scenario.start_ms,
        policy=_beside(scenario.policy, folder) or DEFAULT.name,
        seed=scenario.seed,
        budget=scenario.budget,
        coming=tuple(coming),
        notes=tuple(dict.fromkeys(notes)),
    )


def _beside(policy: str, folder: Path | None) -> str:
    """A relative `file.py:name` is first looked for beside the scenario."""
    path, colon, name = policy.rpartition(":")
    if folder is not None and colon and path.endswith(".py") and (folder / path).is_file():
        return f"{folder / path}:{name}"
    return policy
