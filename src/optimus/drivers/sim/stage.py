"""The body that plays a scenario: it lets time pass, events happen and plans come true.

Why: a story says what becomes of a plan until the next cycle; somebody has to do it, the same way every time.
Owns: the clock of the story, the book, and the facts that follow from plans (`Between`).
Must not: look into the engine, or be clever. It does what it is told and says what it did.

    pass_time   told to start -> binding -> running      told to stop -> gone      worked long enough -> ended
    happen      events of the file, and what follows from them
    take_up     the plan: who is told to start, to stop, or gets room kept
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from optimus.api.scenario import Between, ExpectedState
from optimus.drivers.sim import happenings as kinds
from optimus.drivers.sim.book import Book, Entry, Key
from optimus.drivers.sim.happenings import Happening
from optimus.model import observations as seen
from optimus.model.observations import Observation, Outcome
from optimus.model.plans import Action, Drop, Evict, Grow, Hold, Plan, Reject, Shrink, Start
from optimus.model.reasons import Reason
from optimus.model.slots import Phase

RETRY_AFTER_MS = 30_000
"""A start that failed is not tried again before this time is over."""

Fact = tuple[int, Observation]
"""When it came true, and what."""
_ENDINGS = {
    Outcome.SUCCEEDED: kinds.FINISHED,
    Outcome.FAILED: kinds.FAILED,
    Outcome.CANCELLED: kinds.CANCELLED,
}


class Stage:
    def __init__(self, between: Between, start_ms: int) -> None:
        self.between = between
        self.book = Book()
        self.now_ms = start_ms
        self.cycle = 1
        """The one that comes next, or is being decided."""

    def open(self, opening: Iterable[Observation]) -> list[Observation]:
        """The world as the story finds it."""
        facts = self.happen(opening)
        for entry in self.book.entries.values():
            end_ms = self._end_ms(entry)
            entry.overran = end_ms is not None and end_ms <= self.now_ms
        return facts

    def pass_time(self, until_ms: int) -> list[Observation]:
        """Everything that comes true until then, in the order of time."""
        facts: list[Fact] = []
        for name, entry in self.book.entries.items():
            facts += self._starts(name, entry, until_ms)
            facts += self._end_by_itself(name, entry, until_ms)
            facts += self._leave(name, entry, until_ms)
        self.now_ms = until_ms
        return [fact for _, fact in sorted(facts, key=lambda pair: pair[0])]

    def happen(self, events: Iterable[Observation]) -> list[Observation]:
        facts: list[Observation] = []
        for event in events:
            if not self._is_too_late(event):
                facts.append(event)
                facts += self._follow(event)
        return facts

    def take_up(self, plan: Plan, failing_starts: Mapping[str, str]) -> None:
        for action in plan.actions:
            entry = self.book.entries[action.workload]
            self._obey(entry, action, failing_starts.get(action.workload, ""))
        self.book.note_plan(plan)

    # -- time -------------------------------------------------------------------------------------------------

    def _starts(self, name: str, entry: Entry, until_ms: int) -> list[Fact]:
        facts: list[Fact] = []
        failed = 0
        for (role, ordinal), replica in list(entry.live.items()):
            if replica.promised or replica.phase is Phase.RUNNING:
                continue
            due_ms = replica.told_ms + self.between.starts_in_ms
            if due_ms > until_ms:
                if replica.phase is Phase.HELD:
                    replica.phase = Phase.BINDING
                    facts.append((replica.told_ms, seen.SlotBinding(name, role, ordinal)))
            elif replica.failure:
                retry_ms = max(0, due_ms + RETRY_AFTER_MS - until_ms)
                facts.append((due_ms, seen.SlotFailed(name, role, ordinal, replica.failure, retry_ms)))
                del entry.live[role, ordinal]
                failed += 1
            else:
                replica.phase = Phase.RUNNING
                devices = replica.devices if replica.exact else ()
                facts.append((due_ms, seen.SlotRunning(name, role, ordinal, replica.node, devices, due_ms)))
                if entry.runs_since_ms is None:
                    entry.runs_since_ms = due_ms
        if failed:
            self._note(entry, kinds.START_FAILED, failed)
        return facts

    def _end_by_itself(self, name: str, entry: Entry, until_ms: int) -> list[Fact]:
        end_ms = self._end_ms(entry) if self.between.ends_on_time and not entry.overran else None
        if end_ms is None or end_ms > until_ms or entry.over:
            return []
        ended = seen.WorkloadEnded(name)
        return [(end_ms, ended), *((end_ms, fact) for fact in self._end(entry, Outcome.SUCCEEDED, end_ms))]

    def _end_ms(self, entry: Entry) -> int | None:
        if entry.runs_since_ms is None or entry.spec.expected_duration_ms is None:
            return None
        return entry.runs_since_ms + max(0, entry.spec.expected_duration_ms - entry.done_ms)

    def _leave(self, name: str, entry: Entry, until_ms: int) -> list[Fact]:
        facts: list[Fact] = []
        for (role, ordinal), replica in list(entry.leaving.items()):
            due_ms = replica.told_ms + (entry.spec.grace_ms if self.between.slow_stop else 0)
            if due_ms <= until_ms:
                del entry.leaving[role, ordinal]
                facts.append((due_ms, seen.SlotGone(name, role, ordinal)))
        return facts

    # -- events -----------------------------------------------------------------------------------------------

    def _is_too_late(self, event: Observation) -> bool:
        """News of work that has finished would bring it back to life."""
        if not isinstance(event, seen.WorkloadSeen):
            return False
        entry = self.book.entries.get(event.workload.id)
        return entry is not None and entry.over is ExpectedState.FINISHED

    def _follow(self, event: Observation) -> list[Observation]:
        """Write the event into the book; returns what the body reports because of it."""
        book = self.book
        match event:
            case seen.NodeSeen(node):
                book.nodes[node.name] = node
            case seen.NodeGone(name):
                for hurt in book.lose_node(name, self.now_ms):
                    self._note(hurt, kinds.LOST)
            case seen.PoolSeen(pool):
                book.pools[pool.name] = pool
            case seen.PoolGone(name):
                book.pools.pop(name, None)
            case seen.QueueSeen(queue):
                book.queues[queue.name] = queue
            case seen.QueueGone(name):
                book.queues.pop(name, None)
            case seen.WorkloadSeen(workload):
                entry = book.entries.setdefault(workload.id, Entry(workload))
                entry.spec = workload
                if not entry.leaving:
                    entry.over = None  # what was refused is submitted again
            case _:
                entry_of = book.entries.get(getattr(event, "workload", ""))
                return self._follow_workload(entry_of, event) if entry_of is not None else []
        return []

    def _follow_workload(self, entry: Entry, event: Observation) -> list[Observation]:
        match event:
            case seen.WorkloadEnded(_, outcome):
                return self._end(entry, outcome, self.now_ms)
            case seen.SlotRunning(_, role, ordinal, node, devices, since_ms):
                self.book.adopt(entry, (role, ordinal), node, devices, self.now_ms if since_ms is None else since_ms)
            case seen.SlotStopping(_, role, ordinal):
                self.book.stop(entry, [(role, ordinal)], self.now_ms)
            case seen.SlotGone(_, role, ordinal):
                if self.book.lose(entry, (role, ordinal), self.now_ms):
                    self._note(entry, kinds.LOST, 1)
        return []

    def _end(self, entry: Entry, outcome: Outcome, at_ms: int) -> list[Observation]:
        """It is over. What has ended by itself is gone; what is cancelled may take its grace."""
        if entry.over is None:
            entry.over = ExpectedState.FINISHED
            self._note(entry, _ENDINGS[outcome], at_ms=at_ms)
        self.book.stop(entry, list(entry.live), at_ms)
        if outcome is Outcome.CANCELLED and self.between.slow_stop:
            return []
        gone = [seen.SlotGone(entry.spec.id, role, ordinal) for role, ordinal in entry.leaving]
        entry.leaving.clear()
        return list(gone)

    # -- plans ------------------------------------------------------------------------------------------------

    def _obey(self, entry: Entry, action: Action, failure: str) -> None:
        book, now_ms = self.book, self.now_ms
        match action:
            case Start() | Grow():
                book.place(entry, action.placements, now_ms, promised=False, failure=failure)
                self._note(entry, kinds.STARTED if isinstance(action, Start) else kinds.GROWN, len(action.placements))
            case Hold():
                book.place(entry, action.placements, now_ms, promised=True)
                self._note(entry, kinds.HELD, len(action.placements))
            case Shrink():
                self._stop(entry, list(action.slots), kinds.SHRUNK, action.cause, action.beneficiary)
            case Evict():
                kind = kinds.MOVED if action.moved else kinds.EVICTED
                self._stop(entry, list(entry.live), kind, action.cause, action.beneficiary)
                if action.final:
                    entry.over = ExpectedState.STOPPED
            case Drop():
                for key in action.slots:
                    entry.live.pop(key, None)
                self._note(entry, kinds.DROPPED, len(action.slots), action.cause)
            case Reject():
                entry.over, entry.cause = ExpectedState.STOPPED, action.cause
                self._note(entry, kinds.REFUSED, 0, action.cause)

    def _stop(self, entry: Entry, keys: list[Key], kind: str, cause: Reason, beneficiary: str) -> None:
        self.book.stop(entry, keys, self.now_ms)
        entry.cause = cause
        self._note(entry, kind, len(keys), cause, beneficiary)

    def _note(
        self,
        entry: Entry,
        kind: str,
        replicas: int = 0,
        cause: Reason | None = None,
        beneficiary: str = "",
        at_ms: int | None = None,
    ) -> None:
        entry.happened.append(
            Happening(
                cycle=self.cycle,
                at_ms=self.now_ms if at_ms is None else at_ms,
                kind=kind,
                replicas=replicas,
                cause=cause,
                beneficiary=beneficiary,
            )
        )
