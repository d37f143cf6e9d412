"""Trying: one thing is changed in a copy of the live state, the engine decides once, and the change is taken back.

Why: whether something helps is decided by the rules themselves, all of them, and not by a second opinion about them.
Owns: the copy, the changes, and how many decisions an explanation may cost.
Must not: assume a plan, or leave anything changed behind.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, structs

from optimus.engine.engine import Engine
from optimus.lives import Loss, loss_of
from optimus.model.observations import Observation, QueueSeen, WorkloadSeen
from optimus.model.plans import Evict, Hold, Plan, Shrink, Start
from optimus.model.queues import Queue
from optimus.model.workloads import Workload

DECISIONS = 60
"""At most so many for one explanation."""


class Change(Struct, frozen=True, kw_only=True):
    workloads: tuple[Workload, ...] = ()
    """As they would be."""
    queues: tuple[Queue, ...] = ()
    anew: bool = False
    """The job would have to be submitted anew: it comes now, behind those of its rank that wait already."""


class Outcome(Struct, frozen=True, kw_only=True, rename="camel"):
    """It gets its room."""

    pool: str
    replicas: int
    held: bool
    """Others have to leave first; the room is held for it until then."""
    stopped: tuple[str, ...] = ()
    """Others that would be stopped for it; they wait again."""
    moved: tuple[str, ...] = ()
    """Others that would go on elsewhere."""
    shrunk: tuple[str, ...] = ()
    """Others that would go on with fewer replicas."""
    waits_for: tuple[str, ...] = ()
    """Of a hold: who leaves, also those that were told to before."""
    losses: tuple[Loss, ...] = ()
    """Of those that would be stopped or moved and run now: what each loses."""

    @property
    def disturbs(self) -> int:
        return len(self.stopped) + len(self.moved) + len(self.shrunk)


class Trials:
    def __init__(self, engine: Engine, names: Sequence[str], now_ms: int, most: int = DECISIONS) -> None:
        """`names`: the workloads that are asked about, those of one job."""
        self.engine = engine
        self.names = tuple(names)
        self.now_ms = now_ms
        self.decisions = 0
        self._most = most
        engine.pass_time(now_ms)
        self.plan = engine.decide(now_ms)
        """Nothing changed."""

    @property
    def left(self) -> int:
        return self._most - self.decisions

    def workloads(self) -> tuple[Workload, ...]:
        """Those asked about, as they are."""
        table = self.engine.state.workloads
        return tuple(table.spec(table.row_of[name]) for name in self.names)

    def outcome(self, change: Change) -> Outcome | None:
        """What one of them gets; None: nothing, or there is no decision left to try it."""
        if self.left <= 0:
            return None
        self.decisions += 1
        table, queues = self.engine.state.workloads, self.engine.state.queues
        back: list[Observation] = [WorkloadSeen(table.spec(table.row_of[one.id])) for one in change.workloads]
        back += [QueueSeen(queues[one.name]) for one in change.queues]
        submitted = {one.id: int(table.columns.submitted[table.row_of[one.id]]) for one in change.workloads}
        try:
            self._observe([*map(WorkloadSeen, change.workloads), *map(QueueSeen, change.queues)])
            if self.engine.problems:
                return None
            if change.anew:
                self._submit(dict.fromkeys(submitted, self.now_ms))
            return self._priced(granted(self.engine.decide(self.now_ms), self.names))
        finally:
            self._observe(back)
            self._submit(submitted)

    def _priced(self, outcome: Outcome | None) -> Outcome | None:
        if outcome is None:
            return None
        table = self.engine.state.workloads
        losses = [loss_of(table, name, self.now_ms) for name in (*outcome.stopped, *outcome.moved)]
        return structs.replace(outcome, losses=tuple(loss for loss in losses if loss is not None))

    def _observe(self, facts: Sequence[Observation]) -> None:
        self.engine.observe(facts, self.now_ms)

    def _submit(self, at: dict[str, int]) -> None:
        table = self.engine.state.workloads
        for name, submitted_ms in at.items():
            table.columns.submitted[table.row_of[name]] = submitted_ms


def granted(plan: Plan, names: Sequence[str]) -> Outcome | None:
    """What the plan gives to the first of them that gets anything; a start before a hold."""
    mine = [action for action in plan.actions if isinstance(action, Start | Hold) and action.workload in names]
    if not mine:
        return None
    chosen = min(mine, key=lambda action: (isinstance(action, Hold), names.index(action.workload)))
    asked = [
        action
        for action in plan.actions
        if isinstance(action, Evict | Shrink) and action.beneficiary == chosen.workload
    ]
    evicted = [action for action in asked if isinstance(action, Evict)]
    return Outcome(
        pool=chosen.pool,
        replicas=len(chosen.placements),
        held=isinstance(chosen, Hold),
        stopped=tuple(action.workload for action in evicted if not action.moved),
        moved=tuple(action.workload for action in evicted if action.moved),
        shrunk=tuple(dict.fromkeys(action.workload for action in asked if isinstance(action, Shrink))),
        waits_for=chosen.waits_for if isinstance(chosen, Hold) else (),
    )
