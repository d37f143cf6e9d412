"""Playing a scenario from its opening to its last expectation.

Why: the command line, tests, the terminal story and bug reports all play the same way.
Owns: the order of things in a cycle, and the record of what came of it.
Must not: print, or forgive: what the engine raises passes through.

    outcome = play_files("story.yaml")
    for failure in outcome.failures: print(failure)

    play = Play(load_files("story.yaml").scenario)      # step by step
    for moment in play: draw(play.stage.book, moment.plan)
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from optimus.api.loading import Loaded, load_files
from optimus.api.scenario import Cycle, Scenario
from optimus.decide.policies import DEFAULT
from optimus.drivers.sim.book import Entry
from optimus.drivers.sim.checking import Checker
from optimus.drivers.sim.outcome import (
    CycleTold,
    Failure,
    Happened,
    Outcome,
    QueueTold,
    Why,
    WorkloadTold,
    clock_of,
)
from optimus.drivers.sim.stage import Stage
from optimus.drivers.sim.telling import tell_cycle, tell_events, tell_facts, tell_replica, tell_reservation
from optimus.engine.engine import Engine
from optimus.engine.journal import JournalError, JournalSettings, JournalWriter
from optimus.engine.policy_loading import PolicyError
from optimus.engine.policy_loading import load as load_policy
from optimus.model.observations import Observation
from optimus.model.plans import Plan
from optimus.model.queues import Quota
from optimus.model.units import format_time_ms


class Moment(Struct, frozen=True, kw_only=True):
    """A cycle that has just been decided and taken up."""

    cycle: Cycle
    plan: Plan
    told: CycleTold
    failures: tuple[Failure, ...]


class Play:
    """Iterate to play on, cycle by cycle; `outcome` tells how it stands."""

    def __init__(self, scenario: Scenario, *, folder: Path | None = None, journal: Path | None = None) -> None:
        """`folder`: where a policy file that the scenario names is looked for first. Raises `PolicyError`.

        `journal`: a folder in which every cycle is recorded. Raises `JournalError` when it cannot be, now or later."""
        self.scenario = scenario
        self.engine = Engine(
            policy=_policy_reference(scenario.policy, folder),
            settings=scenario.settings,
            budget=scenario.budget,
            seed=scenario.seed,
            on_notice=_refuse,
        )
        self.journal: JournalWriter | None = None
        if journal is not None:
            keep_all = JournalSettings(keep_bytes=None)
            self.journal = JournalWriter(
                journal,
                dump=self.engine.dump,
                policy=self.engine.policy_reference,
                seed=scenario.seed,
                settings=keep_all,
                on_notice=_refuse,
            )
            self.engine.keep_journal(self.journal, scenario.start_ms)
        self.stage = Stage(scenario.between, scenario.start_ms)
        self.checker = Checker(self.stage.book)
        self.told: list[CycleTold] = []
        self.plan: Plan | None = None

    def __iter__(self) -> Iterator[Moment]:
        waiting_facts = self.stage.open(self.scenario.opening)
        try:
            for cycle in self.scenario.cycles:
                yield self._play(cycle, waiting_facts)
                waiting_facts = []
        finally:
            if self.journal is not None:
                self.journal.close()
        if self.plan is not None:
            self.checker.check(self.scenario.expect, self.plan, len(self.told))

    def _play(self, cycle: Cycle, waiting_facts: list[Observation]) -> Moment:
        stage = self.stage
        stage.cycle = cycle.number
        facts = stage.pass_time(cycle.at_ms)
        events = (*tell_facts(facts), *tell_events(cycle.events, stage.book))
        facts = [*waiting_facts, *facts, *stage.happen(cycle.events)]
        self.plan = plan = self.engine.step(facts, cycle.at_ms)
        told = tell_cycle(
            cycle.number,
            cycle.at_ms,
            plan,
            stage.book,
            self._clock,
            events=events,
            problems=self.engine.problems,
            note=cycle.note,
        )
        self.told.append(told)
        stage.take_up(plan, cycle.failing_starts)
        failures = self.checker.check(cycle.expect, plan, cycle.number)
        return Moment(cycle=cycle, plan=plan, told=told, failures=tuple(failures))

    def outcome(self, loaded: Loaded | None = None, files: tuple[str, ...] = ()) -> Outcome:
        """The record so far; with what was wrong with the files, if they are given."""
        errors = loaded.errors if loaded is not None else ()
        unexpected = loaded.unexpected if loaded is not None else ()
        return Outcome(
            name=self.scenario.name,
            description=self.scenario.description,
            files=files,
            policy=self.engine.policy.name,
            ok=not self.checker.failures and not unexpected,
            cycles=tuple(self.told),
            workloads=tuple(self._workload(entry) for entry in self.stage.book.entries.values()),
            queues=tuple(self._queues()),
            checked=self.checker.checked,
            failures=tuple(self.checker.failures),
            errors=errors,
            set_aside=loaded.set_aside if loaded is not None else (),
        )

    # -- the record -------------------------------------------------------------------------------------------

    def _workload(self, entry: Entry) -> WorkloadTold:
        placed = entry.placed()
        return WorkloadTold(
            name=entry.spec.id,
            queue=entry.spec.queue,
            workload_class=str(entry.spec.workload_class),
            priority=entry.spec.effective_priority,
            state=str(entry.state),
            pool=self.stage.book.pool_of(placed[0].node) if placed else "",
            replicas=tuple(map(tell_replica, placed)),
            reason=Why.of(entry.reason),
            cause=Why.of(entry.cause),
            reservation=tell_reservation(entry.reservation, self._clock),
            started=entry.cycles("started"),
            grown=entry.cycles("grown"),
            shrunk=entry.cycles("shrunk"),
            moved=entry.cycles("moved"),
            evicted=entry.cycles("evicted"),
            happened=tuple(
                Happened(
                    cycle=event.cycle,
                    clock=self._clock(event.at_ms),
                    time=format_time_ms(event.at_ms),
                    kind=event.kind,
                    replicas=event.replicas,
                    cause=Why.of(event.cause),
                    beneficiary=event.beneficiary,
                )
                for event in entry.happened
            ),
        )

    def _queues(self) -> Iterator[QueueTold]:
        """Everything that a quota names or a plan counts."""
        shares = {(s.queue, s.pool, s.resource): s for s in self.plan.shares} if self.plan is not None else {}
        for name, queue in self.stage.book.queues.items():
            quotas = {(q.pool, resource): quota for q in queue.quotas for resource, quota in q.resources.items()}
            counted = [(pool, resource) for of, pool, resource in shares if of == name]
            for pool, resource in dict.fromkeys([*quotas, *counted]):
                quota = quotas.get((pool, resource), Quota(weight=0))
                share = shares.get((name, pool, resource))
                yield QueueTold(
                    queue=name,
                    parent=queue.parent,
                    pool=pool,
                    resource=resource,
                    guarantee=quota.guarantee,
                    limit=quota.limit,
                    share=share.share if share else 0,
                    allocated=share.allocated if share else 0,
                    demand=share.demand if share else 0,
                )

    def _clock(self, at_ms: int) -> str:
        return clock_of(at_ms, self.scenario.start_ms)


def nothing_right(loaded: Loaded) -> bool:
    """Whether the files are wrong, and hold neither nodes nor work: a file of another kind, or no YAML."""
    world = loaded.scenario
    there = world.nodes or world.workloads or any(cycle.events for cycle in world.cycles)
    return bool(loaded.unexpected) and not there


def play(loaded: Loaded, *, files: tuple[str, ...] = (), journal: Path | None = None) -> Outcome:
    """Play everything that is right in the files; if that is no world at all, nothing."""
    empty = nothing_right(loaded)
    folder = Path(files[-1]).parent if files else None
    performance = Play(loaded.scenario, folder=folder, journal=None if empty else journal)
    for _ in () if empty else performance:
        pass
    return performance.outcome(loaded, files)


def play_files(*paths: str | Path) -> Outcome:
    """Read the files as one world and play it."""
    return play(load_story(*paths), files=tuple(map(str, paths)))


def load_story(*paths: str | Path) -> Loaded:
    """Read the files as one world; a policy that cannot be used is one more error, and the default one is played."""
    folder = Path(paths[-1]).parent if paths else None

    def what_is_wrong(policy: str) -> str:
        try:
            load_policy(_policy_reference(policy, folder))
        except PolicyError as error:
            return str(error)
        return ""

    return load_files(*paths, check_policy=what_is_wrong)


def _policy_reference(policy: str, folder: Path | None) -> str:
    """A relative `file.py:name` is first looked for beside the scenario."""
    path, colon, name = policy.rpartition(":")
    if folder is not None and colon and path.endswith(".py") and (folder / path).is_file():
        return f"{folder / path}:{name}"
    return policy or DEFAULT.name


def _refuse(notice: str) -> None:
    """A scheduler goes on without its journal; a story that was to leave one has failed."""
    raise JournalError(notice)
