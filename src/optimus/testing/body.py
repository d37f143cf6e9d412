"""A pretend body: carries out plans in pretend time, with delays and mishaps, and keeps its own book.

Why: the invariants must hold while the world changes under the brain, and somebody independent must know the truth.
Owns: a virtual clock, the events that follow from plans (binds, confirmations, ends of evictions) and the ledger.
Must not: read the engine's state. What it knows it has said or been told.

    step:  time passes -> what is due happens -> mishaps happen -> the engine decides -> the plan is carried out
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush

from optimus.engine.engine import Engine
from optimus.model import observations as seen
from optimus.model.plans import Evict, Grow, Plan, Shrink, Start
from optimus.model.problems import Problem
from optimus.testing.drawing import Draw
from optimus.testing.gang_rules import meets_minimum
from optimus.testing.ledger import Key, Ledger, Record, Stage
from optimus.testing.mishaps import Mishaps
from optimus.testing.worlds import World


@dataclass(frozen=True, slots=True)
class Cycle:
    """One step: what was seen, what was true before the plan, the plan, and what is true once it is decided."""

    seed: int
    number: int
    now_ms: int
    observations: tuple[seen.Observation, ...]
    before: Ledger
    plan: Plan
    after: Ledger
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Manner:
    """How the body behaves."""

    mishaps: bool = True
    ends: bool = False
    """Work ends after its true duration; without this it runs until a mishap ends it."""
    bind_delays_ms: tuple[int, ...] = (0, 0, 2_000, 20_000)
    bind_failure_percent: int = 0
    late_bind_percent: int = 0
    """Binds that take longer than the room is held."""
    late_end_percent: int = 10
    """Evicted replicas that take longer than their grace."""


MILD = Manner(mishaps=False)
ROUGH = Manner(bind_failure_percent=8, late_bind_percent=3)
FINITE = Manner(mishaps=False, ends=True)


@dataclass(order=True, slots=True)
class _Due:
    at_ms: int
    order: int
    what: str = field(compare=False)
    workload: str = field(compare=False)
    key: Key = field(compare=False)
    attempt: int = field(compare=False)


class PretendBody:
    def __init__(
        self,
        world: World,
        manner: Manner = ROUGH,
        *,
        engine: Engine | None = None,
        work_ms: dict[str, int] | None = None,
    ) -> None:
        self.world = world
        self.manner = manner
        self.engine = engine or Engine(
            policy=world.policy, settings=world.settings, budget=world.budget, seed=world.seed
        )
        self.ledger = Ledger(world.settings)
        self.now_ms = world.now_ms
        self.draw = Draw(world.seed, "body")
        self.number = 0
        self.work_ms = dict(work_ms or {})
        """Workload -> run time it still needs, where work ends."""
        self.first_start_ms: dict[str, int] = {}
        self._inbox: list[seen.Observation] = []
        self._due: list[_Due] = []
        self._order = 0
        self._attempt: dict[tuple[str, Key], int] = {}
        self._mishaps = Mishaps(world, Draw(world.seed, "mishaps"))
        for fact in world.observations():
            self.tell(fact)
        self._note_starts()

    # -- facts ------------------------------------------------------------------------------------------------

    def tell(self, fact: seen.Observation) -> None:
        """Something happened: write it down and put it into the next message to the engine."""
        self.ledger.observe(fact, self.now_ms)
        self._inbox.append(fact)

    def step(self, advance_ms: int) -> Cycle:
        self._happen_until(self.now_ms + advance_ms)
        if self.manner.mishaps and self.number:
            for fact in self._mishaps.strike(self.ledger, self.now_ms):
                self.tell(fact)
            self._schedule_after_mishaps()
        self._note_starts()
        facts, self._inbox = tuple(self._inbox), []
        before = self.ledger.copy()
        plan = self.engine.step(facts, self.now_ms)
        problems = tuple(self.engine.problems)
        self.ledger.carry_out(plan, self.now_ms)
        self._carry_out(plan, before)
        self.number += 1
        after = self.ledger.copy()
        return Cycle(self.world.seed, self.number, self.now_ms, facts, before, plan, after, problems)

    def next_event_ms(self) -> int | None:
        """When the next thing is due; None when nothing is."""
        while self._due and not self._is_current(self._due[0]):
            heappop(self._due)
        return self._due[0].at_ms if self._due else None

    # -- carrying out -----------------------------------------------------------------------------------------

    def _carry_out(self, plan: Plan, before: Ledger) -> None:
        for action in plan.actions:
            if isinstance(action, Start | Grow):
                for placement in action.placements:
                    self._bind(action.workload, (placement.role, placement.ordinal))
            elif isinstance(action, Evict | Shrink):
                grace = action.grace_ms if isinstance(action, Evict) else 0
                record = before.records.get(action.workload)
                self._lost_work(record)
                still_there = self.ledger.records.get(action.workload)
                for key in still_there.leaving if still_there is not None else ():
                    self._leave(action.workload, key, grace)

    def _bind(self, workload: str, key: Key) -> None:
        attempt = self._attempt[workload, key] = self._attempt.get((workload, key), 0) + 1
        delay = self.draw.pick(self.manner.bind_delays_ms)
        if self.draw.chance(self.manner.bind_failure_percent):
            self._later(delay, "fail", workload, key, attempt)
            return
        if self.draw.chance(self.manner.late_bind_percent):
            delay = self.world.settings.hold_ms + 5_000
        if self.draw.chance(50):
            self._later(delay // 2, "bind", workload, key, attempt)
        self._later(delay, "run", workload, key, attempt)

    def _leave(self, workload: str, key: Key, grace_ms: int) -> None:
        slow = 40_000 if self.draw.chance(self.manner.late_end_percent) else 0
        early = self.draw.pick((1, 2))  # some need their whole grace to write a checkpoint, some do not
        self._later(grace_ms // early + slow, "gone", workload, key, -1)

    def _later(self, delay_ms: int, what: str, workload: str, key: Key, attempt: int) -> None:
        self._order += 1
        heappush(self._due, _Due(self.now_ms + delay_ms, self._order, what, workload, key, attempt))

    def _schedule_after_mishaps(self) -> None:
        """Replicas that somebody else has told to stop need an end, too."""
        for name, record in self.ledger.records.items():
            for key in record.leaving:
                if not any(d.what == "gone" and d.workload == name and d.key == key for d in self._due):
                    self._leave(name, key, 0)

    # -- happening --------------------------------------------------------------------------------------------

    def _happen_until(self, until_ms: int) -> None:
        self.now_ms = max(self.now_ms, until_ms)  # the engine hears of everything at the time of the step
        while self._due and self._due[0].at_ms <= until_ms:
            due = heappop(self._due)
            if self._is_current(due):
                self._happen(due)

    def _is_current(self, due: _Due) -> bool:
        record = self.ledger.records.get(due.workload)
        if record is None:
            return False
        if due.what == "end":
            return record.started_ms is not None and self._attempt.get((due.workload, due.key)) == due.attempt
        if due.what == "gone":
            return due.key in record.leaving
        replica = record.live.get(due.key)
        waiting = replica is not None and replica.stage in (Stage.HELD, Stage.BINDING)
        return waiting and self._attempt.get((due.workload, due.key)) == due.attempt

    def _happen(self, due: _Due) -> None:
        role, ordinal = due.key
        match due.what:
            case "bind":
                self.tell(seen.SlotBinding(due.workload, role, ordinal))
            case "fail":
                retry = self.draw.pick((0, 0, 10_000, 120_000))
                self.tell(seen.SlotFailed(due.workload, role, ordinal, "no luck", retry))
            case "run":
                self.tell(seen.SlotRunning(due.workload, role, ordinal, *self._real_place(due)))
                self._expect_end(due.workload)
            case "gone":
                self.tell(seen.SlotGone(due.workload, role, ordinal))
            case "end":
                self.work_ms[due.workload] = 0
                self._end(due.workload)

    def _end(self, workload: str) -> None:
        self.tell(seen.WorkloadEnded(workload))
        record = self.ledger.records.get(workload)
        for role, ordinal in list(record.leaving) if record is not None else ():
            self.tell(seen.SlotGone(workload, role, ordinal))

    def _real_place(self, due: _Due) -> tuple[str, tuple[int, ...]]:
        """Where it runs; on a node whose devices are only counted somebody has picked them by now."""
        replica = self.ledger.records[due.workload].live[due.key]
        node = self.ledger.nodes.get(replica.node)
        if node is None or node.assignable or not replica.devices:
            return replica.node, replica.devices
        taken: set[int] = set()
        for record in self.ledger.records.values():
            for other in (*record.live.values(), *record.leaving.values()):
                if other.node == replica.node and other.certain:
                    taken.update(other.devices)
        able = [d.index for d in node.devices if d.healthy and not d.mig and not node.foreign.gpu_milli.get(d.index)]
        free = [index for index in self.draw.shuffled(able) if index not in taken]
        if len(free) < len(replica.devices):
            return replica.node, replica.devices
        return replica.node, tuple(sorted(free[: len(replica.devices)]))

    # -- work that ends -----------------------------------------------------------------------------------------

    def _note_starts(self) -> None:
        for name, record in self.ledger.records.items():
            if record.started_ms is not None:
                self.first_start_ms.setdefault(name, record.started_ms)
                if self.manner.ends and not any(d.what == "end" and d.workload == name for d in self._due):
                    self._expect_end(name)

    def _expect_end(self, workload: str) -> None:
        record = self.ledger.records[workload]
        if not self.manner.ends or record.started_ms is None or not meets_minimum(record.spec.gang, record.present()):
            return
        key: Key = ("", 0)
        attempt = self._attempt[workload, key] = self._attempt.get((workload, key), 0) + 1
        left = self.work_ms.setdefault(workload, 60_000) - max(0, self.now_ms - record.started_ms)
        self._later(max(left, 0), "end", workload, key, attempt)

    def _lost_work(self, record: Record | None) -> None:
        """A workload that stops with a checkpoint has done what it ran; without one it begins again."""
        if record is None or record.started_ms is None or record.spec.id not in self.work_ms:
            return
        stopped = record.spec.id not in self.ledger.records or self.ledger.records[record.spec.id].started_ms is None
        if record.spec.checkpoint is not None and stopped:
            done = self.now_ms - record.started_ms
            self.work_ms[record.spec.id] = max(1, self.work_ms[record.spec.id] - done)
