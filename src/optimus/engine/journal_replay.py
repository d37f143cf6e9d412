"""Replaying: the same observations through the same code, and the plans compared.

Why: a decision that cannot be reproduced cannot be explained, and a change of `decide` shows here what it changes.
Owns: feeding a journal to an engine and judging each plan against the recorded one.
Must not: know the engine beyond two methods, or forgive a difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from optimus.engine.journal_difference import difference
from optimus.engine.journal_reading import Journal
from optimus.engine.journal_records import Cycle, Flaw, FlawKind, JournalError, Keyframe, Opened
from optimus.model.observations import Observation
from optimus.model.plans import Budget, Plan


class Replayable(Protocol):
    def restore(self, state: bytes) -> None:
        """Forget everything and be what `state`, a dump of an engine's state, says."""

    def step(
        self, observations: tuple[Observation, ...], now_ms: int, *, budget: Budget, policy: str, seed: int
    ) -> Plan:
        """One cycle: take the observations, decide, assume the plan, return it."""


Engine = TypeVar("Engine", bound=Replayable)


class Replayed(NamedTuple):
    cycle: Cycle
    """As recorded."""
    plan: Plan
    """As decided now."""
    equal: bool
    difference: str
    """The first one, in words; empty if equal."""


def stop_at_damage(flaw: Flaw) -> None:
    """A torn end and a gap are honest; anything else means that the journal is not what was written."""
    if flaw.kind not in (FlawKind.TORN, FlawKind.GAP):
        raise JournalError(f"{flaw}; pass on_flaw to go on with the next segment")


def go_on(engine: Replayable, cycle: Cycle) -> Plan:
    """Decide again and go on from what was decided now."""
    return engine.step(cycle.observations, cycle.now_ms, budget=cycle.budget, policy=cycle.policy, seed=cycle.seed)


def replay(
    folder: Path,
    make_engine: Callable[[], Engine],
    decide: Callable[[Engine, Cycle], Plan] = go_on,
    *,
    from_sequence: int = 0,
    restore_each_keyframe: bool = True,
    on_flaw: Callable[[Flaw], None] = stop_at_damage,
) -> Iterator[Replayed]:
    """Decide every recorded cycle again, from the keyframe before `from_sequence` on.

    `restore_each_keyframe=False` restores only where the recorded engine itself started anew (a start, a gap, a flaw),
    which also proves that stepping leads to the states the keyframes hold.

    `decide` takes a cycle and returns the plan to compare. Under another policy the facts no longer follow from the
    plans; then it should go on from the recorded plan (`ReplayEngine.judge`).
    """
    engine: Engine | None = None
    continues = False
    for record in Journal(folder).read(from_sequence):
        if isinstance(record, Flaw):
            on_flaw(record)
            engine = None
        elif isinstance(record, Opened):
            continues = record.continues
        elif isinstance(record, Keyframe):
            if engine is None or restore_each_keyframe or not continues:
                engine = engine or make_engine()
                engine.restore(bytes(record.state))
        elif engine is not None:
            plan = decide(engine, record)
            if record.sequence >= from_sequence:
                text = difference(record.plan, plan)
                yield Replayed(record, plan, not text, text)
