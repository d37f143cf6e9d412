"""What a replay finds: the record that `optimus replay` shows or dumps.

Why: people read it as sentences and a table, programs as JSON.
Owns: the comparison of two policies on one journal, and the telling of one recorded cycle.
Must not: print, or stop at damage: what can be read is replayed, the rest is in `flaws`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from optimus.cli.moments import END, describe_moment
from optimus.cli.showing import tracked
from optimus.drivers.sim.book import Book
from optimus.drivers.sim.book_of_state import book_of
from optimus.drivers.sim.outcome import CycleTold, Line
from optimus.drivers.sim.telling import tell_cycle, tell_events, tell_facts
from optimus.engine.engine import ReplayEngine
from optimus.engine.journal import Flaw, FlawKind, Journal, Moment, Replayed, difference
from optimus.engine.journal import replay as replay_journal
from optimus.engine.journal_replay import go_on
from optimus.engine.policy_loading import load
from optimus.model import observations as seen
from optimus.model.observations import Observation
from optimus.model.plans import Evict, Grow, Plan, QueueShare, Reject, Shrink, Start

VERSION = 1


class Difference(Struct, frozen=True, kw_only=True, rename="camel"):
    cycle: int
    clock: str
    at_ms: int
    text: str


class Tally(Struct, kw_only=True, rename="camel"):
    """What one policy decided, over all cycles."""

    policy: str
    starts: int = 0
    grows: int = 0
    shrinks: int = 0
    evictions: int = 0
    """Without those that are moved."""
    moves: int = 0
    refused: int = 0
    waiting: int = 0
    """Workloads that waited, summed over the cycles."""

    def add(self, plan: Plan) -> None:
        moves = sum(isinstance(action, Evict) and action.moved for action in plan.actions)
        self.starts += _count(plan, Start)
        self.grows += _count(plan, Grow)
        self.shrinks += _count(plan, Shrink)
        self.evictions += _count(plan, Evict) - moves
        self.moves += moves
        self.refused += _count(plan, Reject)
        self.waiting += len(plan.waiting)


class ReplayTold(Struct, frozen=True, kw_only=True, rename="camel"):
    version: int = VERSION
    folder: str
    ok: bool
    """Nothing is damaged, and under the recorded policy every plan is the recorded one."""
    policy: str
    """The one it was replayed under; empty: as recorded."""
    policies: tuple[str, ...]
    """As recorded."""
    cycles: int
    equal: int
    first: int
    last: int
    begins: str
    ends: str
    differences: tuple[Difference, ...]
    tallies: tuple[Tally, ...]
    """As recorded, and as decided now."""
    flaws: tuple[Flaw, ...]


class MomentTold(Struct, frozen=True, kw_only=True, rename="camel"):
    version: int = VERSION
    ok: bool
    """Under the recorded policy the plan is the recorded one."""
    policy: str
    seed: int
    cycle: CycleTold
    shares: tuple[QueueShare, ...]
    difference: str
    """Between the recorded plan and the one decided now; empty if there is none."""
    other_policy: str = ""
    other: CycleTold | None = None
    """What the other policy would have decided."""
    flaws: tuple[Flaw, ...] = ()


class Replay:
    """A whole journal, decided once more."""

    def __init__(self, folder: Path, policy: str) -> None:
        self._folder = folder
        self._policy = policy
        self._flaws: list[Flaw] = []

    def told(self) -> ReplayTold:
        recorded: dict[str, Tally] = {}
        now = Tally(policy=self._policy)
        differences: list[Difference] = []
        cycles: list[tuple[int, int]] = []
        for cycle, plan, equal, text in self._replayed():
            cycles.append((cycle.sequence, cycle.now_ms))
            recorded.setdefault(cycle.policy, Tally(policy=cycle.policy)).add(cycle.plan)
            now.add(plan)
            if not equal:
                clock = describe_moment(cycle.now_ms)
                differences.append(Difference(cycle=cycle.sequence, clock=clock, at_ms=cycle.now_ms, text=text))
        damaged = any(flaw.kind in (FlawKind.DAMAGED, FlawKind.FOREIGN) for flaw in self._flaws)
        first, last = (cycles[0], cycles[-1]) if cycles else ((0, 0), (-1, 0))
        return ReplayTold(
            folder=str(self._folder),
            ok=not damaged and bool(self._policy or not differences),
            policy=self._policy,
            policies=tuple(recorded),
            cycles=len(cycles),
            equal=len(cycles) - len(differences),
            first=first[0],
            last=last[0],
            begins=describe_moment(first[1]),
            ends=describe_moment(last[1]),
            differences=tuple(differences),
            tallies=(*recorded.values(), *([now] if self._policy else [])),
            flaws=tuple(self._flaws),
        )

    def _replayed(self) -> Iterator[Replayed]:
        total = Journal(self._folder).seek(sequence=END).sequence + 1
        replayed = replay_journal(
            self._folder,
            lambda: ReplayEngine(self._policy or None),
            ReplayEngine.judge if self._policy else go_on,
            on_flaw=self._flaws.append,
        )
        return tracked(replayed, total, "cycles", lambda item: f"cycle {item.cycle.sequence}")


def tell_moment(moment: Moment, policy: str) -> MomentTold:
    """The last cycle of the moment, told from the situation it was decided in."""
    *before, cycle = moment.cycles
    replaying = ReplayEngine()
    engine = replaying.engine
    replaying.restore(bytes(moment.keyframe.state))
    for earlier in before:
        replaying.follow(earlier)
    events = tuple(_events(cycle.observations, book_of(engine.state)))
    plan = replaying.look(cycle)
    problems, book = engine.problems, book_of(engine.state)
    otherwise = None
    if policy:
        engine.policy = load(policy)
        otherwise = engine.decide(cycle.now_ms)
    text = difference(cycle.plan, plan)
    return MomentTold(
        ok=not text,
        policy=cycle.policy,
        seed=cycle.seed,
        cycle=tell_cycle(
            cycle.sequence, cycle.now_ms, cycle.plan, book, describe_moment, events=events, problems=problems
        ),
        shares=cycle.plan.shares,
        difference=text,
        other_policy=policy,
        other=tell_cycle(cycle.sequence, cycle.now_ms, otherwise, book, describe_moment) if otherwise else None,
        flaws=moment.flaws,
    )


def _events(observations: Sequence[Observation], book: Book) -> Iterator[Line]:
    """What a reader would want to know of; not that work which was told to leave, or has ended, is gone."""
    ended = {fact.workload for fact in observations if isinstance(fact, seen.WorkloadEnded)}
    told = [
        fact
        for fact in observations
        if not isinstance(fact, seen.SlotGone)
        or not (fact.workload in ended or (fact.role, fact.ordinal) in _leaving(book, fact.workload))
    ]
    yield from tell_events(told, book)
    yield from tell_facts(fact for fact in observations if isinstance(fact, seen.SlotFailed))


def _leaving(book: Book, workload: str) -> set[tuple[str, int]]:
    return set(book.entries[workload].leaving) if workload in book.entries else set()


def _count(plan: Plan, kind: type) -> int:
    return sum(isinstance(action, kind) for action in plan.actions)
