"""The body: one turn after the other, jobs, brain and processes are brought in step.

    what happened ──► lives ──► reconcile ──► facts ──► engine.step ──► plan ──► lives ──► reconcile
                                                                                              │
                          processes are started, asked, killed ◄── the store has it all ◄─────┘

Why: there is one place in which things happen, in one order, and it can be stopped between any two of them.
Owns: what is known of every job now, and the order: first written down, then done.
Must not: wait for anything, decide who runs, or talk to people (`desk`).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from msgspec import structs

from optimus.drivers.local.clusters import Gone, left_behind, with_old_numbers, with_what_is_left
from optimus.drivers.local.hands import Ask, Hands, Spawn
from optimus.drivers.local.holding import as_counted, limits_of
from optimus.drivers.local.journaling import Recalled
from optimus.drivers.local.store import Happening, Run, Store, StoreError, Submitted
from optimus.drivers.local.surroundings import environment, from_where
from optimus.drivers.local.undone import Asked, Undone
from optimus.drivers.local.unwritten import Unwritten
from optimus.engine.engine import Engine
from optimus.engine.kept_room import Kept, by_workload, held_in
from optimus.lives import Changes, Ended, Life, Outcome, Place, Replica, reconcile
from optimus.lives.reconciling import end, grant, take_away, told_to_leave
from optimus.model.jobs import job_of_workload
from optimus.model.nodes import Node
from optimus.model.observations import (
    NodeGone,
    NodeSeen,
    Observation,
    PoolGone,
    PoolSeen,
    QueueGone,
    QueueSeen,
    RunRemembered,
    SavesInTime,
    SlotBinding,
    SlotDone,
    SlotRunning,
    SlotStopping,
    WorkloadEnded,
    WorkloadSeen,
)
from optimus.model.plans import Drop, Evict, Grow, Hold, Placement, Plan, Reject, Shrink, Start
from optimus.model.pools import NodePool
from optimus.model.progress import Remaining
from optimus.model.queues import Queue
from optimus.model.reasons import Code, Reason, counted
from optimus.model.workloads import Workload

CHECKPOINTS = "checkpoints"
"""A folder of the store."""
TICK_MS = 2_000
"""Without news the brain is asked again after this time, as long as something waits."""


class Body:
    def __init__(self, store: Store, engine: Engine, hands: Hands, nodes: Iterable[Node]) -> None:
        self.store = store
        self.engine = engine
        self.hands = hands
        self.cluster = tuple(nodes)
        """As it was named."""
        self.nodes = {node.name: node for node in self.cluster}
        self.gone: Gone = {}
        """Of these nodes, what is no longer part of the cluster: it stays until what runs on it has ended."""
        self.queues: dict[str, Queue] = {}
        self.pools: dict[str, NodePool] = {}
        self.jobs: dict[str, Submitted] = {}
        self.lives: dict[str, Life] = {}
        self.replicas: dict[str, dict[str, Replica]] = {}
        """By workload and start."""
        self.waiting: dict[str, Reason] = {}
        """Why each that waits does so, from the last plan."""
        self.progress: dict[str, dict[str, Any]] = {}
        """By workload: what it says of itself."""
        self.remaining: dict[str, Remaining] = {}
        """By workload that runs: what it says of the rest of it."""
        self.overdue: set[str] = set()
        """Those that were killed because they did not leave within their grace, whatever they say of themselves."""
        self.held: dict[str, list[Kept]] = {}
        """By workload that waits: room that is kept for it while others leave, after the last plan."""
        self.changed: set[str] = set()
        """Jobs of which something else is to be shown; whoever shows them empties it."""
        self.plan: Plan | None = None
        self.trouble = ""
        """Why nothing new is begun now; empty if it may be."""
        self.unwritten = False
        """The last turn could not be written down; it is tried again."""
        self.limits = ""
        """For people: what processes are held to on this machine."""
        self.machine = ""
        """For people, where nodes are virtual: what this machine really has."""
        self.now_ms = 0
        """When the brain was last asked."""
        self.version = 0
        """Counts turns in which something changed."""
        self._parts: dict[str, list[str]] = {}
        """By job: the names of its workloads."""
        self._open_parts: dict[str, int] = {}
        """By job: how many of them are not over."""
        self._workloads: dict[str, tuple[Submitted, Workload]] = {}
        self._workload_of_start: dict[str, str] = {}
        self._facts: list[Observation] = []
        self._binding: list[Observation] = []
        """Starts that were asked for: from then on a process may be there, and whoever gets its place must wait until
        it is gone. The brain has to know before it decides again; it need not decide because of it."""
        self._touched: set[str] = set()
        self._again: list[tuple[int, str]] = []
        self._unwritten = Unwritten()
        self._undone = Undone()
        self._next_tick_ms = 0

    # -- what happens ---------------------------------------------------------------------------------------------

    def open(self) -> list[str]:
        """Take over what the store has. Returns the starts that were not known to have ended: the hands find out what
        became of them, and then everybody can `stand_again`."""
        self.look_for_trouble()
        kept = self.store.read()
        former = kept.cluster.former() if kept.cluster is not None else {}
        self.cluster = with_old_numbers(self.cluster, former)
        self.nodes, self.gone = with_what_is_left(self.cluster, former, kept.lives)
        self._facts += [NodeSeen(node) for node in self.nodes.values()]
        for pool in kept.pools:
            self.put_pool(pool, new=False)
        for queue in kept.queues:
            self.put_queue(queue, new=False)
        self._facts += [RunRemembered(run.queue, run.run_ms, run.family, run.work_ms) for run in kept.runs]
        self.jobs = {one.job.id: one for one in kept.jobs}
        self.lives = {life.workload: life for life in kept.lives}
        for one in kept.jobs:
            self._count(one)
        for workload, replica in kept.replicas:
            self.replicas.setdefault(workload, {})[replica.start] = replica
            self._workload_of_start[replica.start] = workload
        for life in self.lives.values():
            self._touched.add(life.workload)
            if not life.over:
                self._facts.append(WorkloadSeen(self.workload(life.workload)))
        return list(self._workload_of_start)

    def stand_again(self, recalled: Recalled | None = None) -> None:
        """After the hands have said what became of the replicas: the brain learns who still has which place, and what
        each had received before. Of those who ended meanwhile that is not known well enough to learn from."""
        for life in self.lives.values():
            for done in (place for place in life.places if place.slot in life.done):
                self._facts.append(SlotRunning(life.workload, *done.slot, done.node, done.devices))
                self._facts.append(SlotDone(life.workload, *done.slot))
            self._find_again(life, [one for one in self.replicas.get(life.workload, {}).values() if one.live])
        if recalled is not None:
            self._facts += [fact for at_ms, fact in recalled.service if self._goes_on(fact.workload, at_ms)]
            self._facts += [use for use in recalled.uses if use.queue in self.queues]

    def _find_again(self, life: Life, live: Sequence[Replica]) -> None:
        """Also those whose place was taken back, or whose job is over: nobody gets it before they have left."""
        if life.over and live:
            self._facts.append(WorkloadSeen(self.workload(life.workload)))
        for replica in live:
            place = life.place(replica.slot)
            node, devices = (replica.node, replica.devices) if place is None else (place.node, place.devices)
            if replica.asked_ms is not None:
                self._undone.asks.append(replica.start)
            if node:
                self._facts.append(SlotRunning(life.workload, *replica.slot, node, devices, replica.started_ms))
            if node and place is None:
                self._facts.append(SlotStopping(life.workload, *replica.slot))
        if life.outcome is not None and live:
            self._facts.append(WorkloadEnded(life.workload, life.outcome))

    def _goes_on(self, workload: str, submitted_ms: int) -> bool:
        life = self.lives.get(workload)
        if life is None or life.over or self.workload(workload).submitted_ms != submitted_ms:
            return False
        return all(replica.live for replica in self.replicas.get(workload, {}).values())

    def accept(self, several: Sequence[Submitted]) -> None:
        """All of them or, where they cannot be written down, none: who was refused must not find it running later. One
        that is over makes room for another of its name in the same breath."""
        replaced = [one.job.id for one in several if one.job.id in self.jobs]
        with self.store.turn():
            self._drop(replaced)
            self.store.put_jobs((one, None) for one in several)
            self.store.put_lives((one.job.id, Life(workload=w.id)) for one in several for w in one.job.workloads())
        self._forgotten(replaced)
        for one in several:
            self.submit(one)

    def submit(self, one: Submitted) -> None:
        self.jobs[one.job.id] = one
        self.changed.add(one.job.id)
        self._unwritten.jobs.add(one.job.id)
        for workload in one.job.workloads():
            self.lives[workload.id] = Life(workload=workload.id)
            self._unwritten.lives.add(workload.id)
            self._touched.add(workload.id)
            self._facts.append(WorkloadSeen(self.workload(workload.id)))
        self._count(one)
        self.happened(one.submitted_ms, one.job.id, "Submitted", f"to queue {one.job.workload.queue}")

    def change(self, one: Submitted) -> None:
        """The same job, asked for in another way: suspended, resumed, another size."""
        self.jobs[one.job.id] = one
        self.changed.add(one.job.id)
        self._unwritten.jobs.add(one.job.id)
        for life in self.lives_of(one.job.id):
            if not life.over:
                self._facts.append(WorkloadSeen(self.workload(life.workload)))

    def forget(self, jobs: Sequence[str]) -> None:
        """Jobs that are over are not remembered any longer."""
        if not jobs:
            return
        with self.store.turn():
            self._drop(jobs)
        self._forgotten(jobs)

    def _drop(self, jobs: Iterable[str]) -> None:
        for job in jobs:
            self.store.drop_job(job, checkpoints_of(self.jobs[job]))

    def _forgotten(self, jobs: Iterable[str]) -> None:
        for job in jobs:
            for life in self.lives_of(job):
                del self.lives[life.workload]
                self.progress.pop(life.workload, None)
                self.overdue.discard(life.workload)
                self._workloads.pop(life.workload, None)
                for start in self.replicas.pop(life.workload, {}):
                    self._workload_of_start.pop(start, None)
            del self.jobs[job], self._parts[job], self._open_parts[job]
            self.changed.add(job)

    def cancel(self, job: str, text: str, now_ms: int) -> None:
        for life in self.lives_of(job):
            self._end(life, Outcome.CANCELLED, text, now_ms)

    def put_queue(self, queue: Queue, *, new: bool = True) -> None:
        self.queues[queue.name] = queue
        self._facts.append(QueueSeen(queue))
        if new:
            with self.store.turn():
                self.store.put_queue(queue)

    def put_pool(self, pool: NodePool, *, new: bool = True) -> None:
        self.pools[pool.name] = pool
        self._facts.append(PoolSeen(pool))
        if new:
            with self.store.turn():
                self.store.put_pool(pool)

    def drop_queue(self, name: str) -> None:
        with self.store.turn():
            self.store.drop_thing("queue", name)
        del self.queues[name]
        self._facts.append(QueueGone(name))

    def drop_pool(self, name: str) -> None:
        with self.store.turn():
            self.store.drop_thing("pool", name)
        del self.pools[name]
        self._facts.append(PoolGone(name))

    def saw_start(self, start: str, at_ms: int, unlimited: str = "") -> None:
        """`unlimited`: which of its limits nobody keeps, and why."""
        workload, replica = self._replica(start)
        if replica is None or replica.started_ms is not None:
            return
        if unlimited:
            text = f"replica {replica.role}-{replica.ordinal} is not held to its limits: {unlimited}"
            self.happened(at_ms, workload, "NotLimited", text)
        self._put_replica(workload, structs.replace(replica, started_ms=at_ms))
        self._facts.append(SlotRunning(workload, *replica.slot, since_ms=at_ms))

    def saw_end(self, start: str, ended: Ended) -> None:
        workload, replica = self._replica(start)
        if replica is None or not replica.live:
            return
        if ended.error and not ended.lost and self.store.trouble():  # a full disk is nobody's failure
            ended = structs.replace(ended, lost=True)
        self._put_replica(workload, structs.replace(replica, ended=ended))

    def saw_trouble_saving(self, start: str, at_ms: int, text: str) -> None:
        workload, replica = self._replica(start)
        if replica is not None:
            self.happened(at_ms, workload, "SaverFailed", f"replica {replica.role}-{replica.ordinal}: {text}")

    def learned(self, fact: Observation) -> None:
        self._facts.append(fact)

    def happened(self, at_ms: int, who: str, code: str, text: str) -> None:
        """To a job, to one part of it, or to something else."""
        job = job_of_workload(who)
        self._unwritten.happenings.append(Happening(at_ms, job, code, text, who.removeprefix(job).removeprefix("/")))

    # -- a turn -------------------------------------------------------------------------------------------------------

    def turn(self, now_ms: int) -> None:
        """Bring everything in step. What cannot be written down is not done, and tried again in the next turn."""
        while self._again and self._again[0][0] <= now_ms:
            self._touched.add(heapq.heappop(self._again)[1])
        self._reconcile(now_ms)
        if self.trouble:  # nobody is asked to leave for work that cannot begin
            self._next_tick_ms = now_ms + TICK_MS
        elif self._facts or now_ms >= self._next_tick_ms:
            self._think(now_ms)
            self._reconcile(now_ms)
        if self.gone:
            self._let_go()
        self.unwritten = not self._write()
        if not self.unwritten:
            self.look_for_trouble()
            self._act(now_ms)

    def look_for_trouble(self) -> None:
        self.trouble = self.store.trouble()

    def next_turn_ms(self) -> int:
        """When there is something to do although nothing happens."""
        due = [self._again[0][0]] if self._again else []
        return min([*due, self._next_tick_ms])

    @property
    def restless(self) -> bool:
        """Whether something is to be done at once."""
        return bool(self._facts or self._touched)

    def _let_go(self) -> None:
        """Of what is gone, all that is empty by now."""
        nodes, gone = with_what_is_left(self.cluster, self.nodes, self.lives.values())
        if gone == self.gone:
            return
        self._facts += [NodeSeen(nodes[name]) for name in self.gone if name in nodes]
        self._facts += [NodeGone(name) for name in self.gone if name not in nodes]
        self.nodes, self.gone = nodes, gone

    def _think(self, now_ms: int) -> None:
        facts, self._binding, self._facts = [*self._binding, *self._facts], [], []
        self.plan = plan = self.engine.step(facts, now_ms)
        self.now_ms = now_ms
        self._next_tick_ms = now_ms + TICK_MS
        for problem in self.engine.problems:
            self.happened(now_ms, "brain", "Problem", str(problem))
        for action in plan.actions:
            life = self.lives.get(action.workload)
            if life is None or life.over:
                continue
            match action:
                case Start(_, pool, placements):
                    self._put_life(grant(life, _places(placements)))
                    self.happened(now_ms, life.workload, "Admitted", f"to pool {pool}")
                case Grow(_, placements):
                    self._put_life(grant(life, _places(placements)))
                    more = f"by {counted(len(placements), 'replica')}"
                    self.happened(now_ms, life.workload, "Grown", more)
                case Evict():
                    self._evict(life, action, now_ms)
                case Shrink(_, slots, cause):
                    self._put_life(take_away(life, slots))
                    self.happened(now_ms, life.workload, str(cause.code), cause.text())
                case Reject():
                    self._end(life, Outcome.FAILED, action.cause.text(), now_ms)
                case Hold() | Drop():
                    pass  # nothing runs there: what is held is looked up below
        self.held, kept = by_workload(held_in(self.engine.state, now_ms)), self.held
        self.waiting, waited = {wait.workload: wait.reason for wait in plan.waiting}, self.waiting
        for workload in waited.keys() | self.waiting.keys() | kept.keys() | self.held.keys():
            if waited.get(workload) != self.waiting.get(workload) or kept.get(workload) != self.held.get(workload):
                self.changed.add(job_of_workload(workload))
        self.version += 1

    def _evict(self, life: Life, action: Evict, now_ms: int) -> None:
        text = action.cause.text()
        if action.cause.code is not Code.SUSPENDED:  # that was told when somebody wished it
            self.happened(now_ms, life.workload, str(action.cause.code), text)
        if action.final:
            self._end(life, Outcome.FAILED, text, now_ms)
        else:
            self._put_life(told_to_leave(life, action.cause, now_ms))

    def _end(self, life: Life, outcome: Outcome, text: str, now_ms: int) -> None:
        after, facts = end(life, outcome, text, now_ms)
        self._facts += facts
        self._put_life(after)
        self._note_end(life, after, now_ms)

    def _reconcile(self, now_ms: int) -> None:
        touched, self._touched = sorted(self._touched), set()
        for workload in touched:
            before = self.lives.get(workload)
            one = self.jobs.get(job_of_workload(workload))
            if before is None or one is None:
                continue
            replicas = list(self.replicas.get(workload, {}).values())
            self._take(reconcile(one.job, self.workload(workload), before, replicas, now_ms), before, one, now_ms)

    def _take(self, changes: Changes, before: Life, one: Submitted, now_ms: int) -> None:
        life, workload = changes.life, changes.life.workload
        self._facts += changes.facts
        if life != before:
            self.changed.add(one.job.id)
            self.lives[workload] = life
            self._unwritten.lives.add(workload)
            self._note_end(before, life, now_ms)
        for replica in changes.forget:
            del self.replicas[workload][replica.start]
            self._workload_of_start.pop(replica.start, None)
            self._unwritten.drop(replica.start)
        for place in changes.start:
            part = f"{part_of(life)}-" if one.job.array else ""
            start = f"{one.uid}-{part}{life.attempt}-{place.role}-{place.ordinal}-{now_ms}"
            made = Replica(start=start, role=place.role, ordinal=place.ordinal, node=place.node, devices=place.devices)
            self._put_replica(workload, made, touch=False)
            self._undone.spawns.append((start, place, workload))
            self._binding.append(SlotBinding(workload, place.role, place.ordinal))
        for replica in changes.ask:
            self._put_replica(workload, structs.replace(replica, asked_ms=now_ms), touch=False)
            self._undone.asks.append(replica.start)
        for replica in changes.kill:
            self._put_replica(workload, structs.replace(replica, killed=True), touch=False)
            self._undone.kills.append(replica.start)
            if not replica.ordinal and workload not in self.overdue:  # the first saves for all
                self.overdue.add(workload)
                self._facts.append(SavesInTime(workload, yes=False))
        if changes.look_again_ms is not None:
            heapq.heappush(self._again, (changes.look_again_ms, workload))

    def _note_end(self, before: Life, life: Life, now_ms: int) -> None:
        if life.leaving is not None and before.leaving is None:
            self.happened(now_ms, life.workload, life.leaving.cause.capitalize(), life.leaving.text)
        elif _left_in_one_step(before, life) and life.last_leaving is not None:
            self.happened(now_ms, life.workload, life.last_leaving.capitalize(), life.last_text)
        if before.over and life.ended_ms != before.ended_ms:  # it was cancelled, and is gone only now
            self._unwritten.jobs.add(job_of_workload(life.workload))
        if life.outcome is None or before.over:
            return
        self.happened(life.ended_ms or now_ms, life.workload, life.outcome.capitalize(), life.ended_text)
        self._open_parts[job_of_workload(life.workload)] -= 1
        if not self._open_parts[job_of_workload(life.workload)]:
            self._unwritten.jobs.add(job_of_workload(life.workload))
        workload = self.workload(life.workload)
        if life.outcome is Outcome.SUCCEEDED and life.ran_ms:  # nothing is learned where a clock was set back
            self._unwritten.runs.append(Run(workload.queue, workload.family, life.ran_ms, 0))

    # -- writing down and doing ---------------------------------------------------------------------------------------

    def _write(self) -> bool:
        if not self._unwritten:
            return True
        try:
            self._unwritten.write(self.store, self.jobs, self._ended_ms, self.lives, self.replicas)
        except StoreError as error:
            self.trouble = str(error)
            return False
        self.version += 1
        return True

    def _act(self, now_ms: int) -> None:
        held_back = bool(self.trouble)
        for start in self._undone.do(self.hands, self._spawn_of, self._ask_of, held_back=held_back):
            self.saw_end(start, Ended(at_ms=now_ms, lost=True))

    def _spawn_of(self, asked: Asked, life: Life | None = None) -> Spawn:
        start, place, workload = asked
        one = self.jobs[job_of_workload(workload)]
        folder, part = self.folder_of(start), workload.removeprefix(one.job.id).removeprefix("/")
        checkpoints = self.store.folder / CHECKPOINTS / checkpoints_of(one) / part
        return Spawn(
            start=start,
            job=one.uid,
            folder=folder,
            command=one.job.template.command,
            environment=environment(
                one, life or self.lives[workload], place, folder, checkpoints, self.nodes[place.node]
            ),
            workdir=from_where(one, one.job.template.workdir) or one.where,
            limits=limits_of(one.job, place.role),
        )

    def _ask_of(self, start: str) -> Ask | None:
        workload, replica = self._replica(start)
        if replica is None:
            return None
        saving = self.jobs[job_of_workload(workload)].job.saving
        if not saving.command or replica.started_ms is None or replica.node not in self.nodes:  # nothing to save yet
            return Ask(start=start, signal=saving.signal)
        # as it was started: its place may have been taken back since
        there = [_place_of(one) for one in self.replicas[workload].values() if one.live]
        life = structs.replace(self.lives[workload], places=tuple(there))
        begun = self._spawn_of((start, _place_of(replica), workload), life)
        return Ask(
            start=start,
            signal=saving.signal,
            command=saving.command,
            environment=begun.environment,
            workdir=begun.workdir,
        )

    # -- looking up ---------------------------------------------------------------------------------------------------

    def workload(self, name: str) -> Workload:
        """As the brain sees it: a part of an array has its own name."""
        one = self.jobs[job_of_workload(name)]
        known = self._workloads.get(name)
        if known is None or known[0] is not one:
            family = one.job.workload.family or (one.job.id if one.job.array else "")
            workload = structs.replace(
                as_counted(one.job.workload), id=name, submitted_ms=one.submitted_ms, family=family
            )
            known = self._workloads[name] = (one, workload)
        return known[1]

    def lives_of(self, job: str) -> list[Life]:
        return [self.lives[name] for name in self._parts.get(job, ())]

    def left_behind(self, life: Life) -> list[str]:
        """Where it is on something that is no longer part of the cluster."""
        return left_behind(life, self.nodes, self.gone) if self.gone else []

    def is_live(self, start: str) -> bool:
        """It was asked for, and its end is not known."""
        _, replica = self._replica(start)
        return replica is not None and replica.live

    def speaker(self, start: str) -> str | None:
        """Its workload, if it is live and the one that speaks for all of them: the first."""
        workload, replica = self._replica(start)
        return workload if replica is not None and replica.live and not replica.ordinal else None

    def folder_of(self, start: str) -> Path:
        return self.store.folder / "runs" / start

    def _ended_ms(self, job: str) -> int | None:
        if self._open_parts[job]:
            return None
        return max((life.ended_ms for life in self.lives_of(job) if life.ended_ms is not None), default=None)

    def _count(self, one: Submitted) -> None:
        names = [workload.id for workload in one.job.workloads()]
        self._parts[one.job.id] = names = [name for name in names if name in self.lives]
        self._open_parts[one.job.id] = sum(not self.lives[name].over for name in names)

    def _put_life(self, life: Life) -> None:
        self.changed.add(job_of_workload(life.workload))
        self.lives[life.workload] = life
        self._unwritten.lives.add(life.workload)
        self._touched.add(life.workload)

    def _put_replica(self, workload: str, replica: Replica, *, touch: bool = True) -> None:
        self.changed.add(job_of_workload(workload))
        self.replicas.setdefault(workload, {})[replica.start] = replica
        self._workload_of_start[replica.start] = workload
        self._unwritten.replicas[replica.start] = workload
        if touch:
            self._touched.add(workload)

    def _replica(self, start: str) -> tuple[str, Replica | None]:
        workload = self._workload_of_start.get(start, "")
        return workload, self.replicas.get(workload, {}).get(start)


def checkpoints_of(one: Submitted) -> str:
    """Its folder, below that of all."""
    return one.checkpoints or one.job.id


def part_of(life: Life) -> str:
    """Its number in an array; empty if it is none."""
    return life.workload.removeprefix(job_of_workload(life.workload)).removeprefix("/")


def _left_in_one_step(before: Life, life: Life) -> bool:
    """It failed or was lost, all of it, and waits again: nobody has seen it leaving."""
    return before.leaving is None and before.since_ms is not None and life.since_ms is None and not life.over


def _place_of(replica: Replica) -> Place:
    return Place(role=replica.role, ordinal=replica.ordinal, node=replica.node, devices=replica.devices)


def _places(placements: Iterable[Placement]) -> list[Place]:
    return [
        Place(role=p.role, ordinal=p.ordinal, node=p.node, devices=p.devices, gpu_milli=p.gpu_milli) for p in placements
    ]
