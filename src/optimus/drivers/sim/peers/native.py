"""Native Kubernetes: kube-scheduler as it comes, in four honest rows.

    native-pods      pod by pod; a gang that has only a part of its pods holds their GPUs until a time-out, then all its
                     pods are deleted and it comes back after a back-off, behind everybody else
    native-gang      the same, but all pods of a job or none (what coscheduling plugins add)
    native-packed    as native-gang, with MostAllocated on GPUs instead of LeastAllocated on CPU and memory
    native-strict    as native-gang, but nobody passes the head of the line: strict FIFO, which Kubernetes is not

Source: kube-scheduler's defaults: priority, then arrival; what does not fit is skipped; no reservation; LeastAllocated
on CPU and memory (pods that ask for nothing count as 100 milli-CPU and 200 MiB); GPUs are not scored; equal nodes are
chosen from at random. The back-off is that of the Job controller: 10 s, doubled each time, at most 6 minutes.
Who does not fit preempts running jobs of lower priority, never of equal priority.
Differences: every pod is looked at after every event, without the unschedulable queue's own back-off; of the scores
only the resource ones; victims are whole jobs, of the lowest priority and the newest first, and leave at once. The
time-out (5 minutes) is that of common gang plugins and launchers; Kubernetes itself has none and would let partial
gangs block each other for ever.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from optimus.drivers.sim.clockwork import Clockwork, News, Run
from optimus.drivers.sim.peers.lines import Key, LineScheduler
from optimus.drivers.sim.peers.room import (
    UNSAID_CPU_MILLI,
    UNSAID_MEMORY_MIB,
    Ints,
    Need,
    Room,
    need_of,
    refuse_impossible,
    seats_on,
)
from optimus.model.workloads import CLASS_PRIORITY

TIMEOUT_MS = 300_000
BACK_OFF_MS, MOST_BACK_OFF_MS = 10_000, 360_000
NEVER_MS = 1 << 62

Score = Callable[[Room, Need, Ints], Ints]
"""Of these nodes for one pod, 0 to 100."""


def least_allocated(room: Room, need: Need, nodes: Ints) -> Ints:
    cpu = _left(room.cpu_of[nodes], room.asked_cpu[nodes] + (need.cpu_milli or UNSAID_CPU_MILLI))
    memory = _left(room.memory_of[nodes], room.asked_memory[nodes] + (need.memory_mib or UNSAID_MEMORY_MIB))
    return (cpu + memory) // 2


def _left(capacity: Ints, asked: Ints) -> Ints:
    free: Ints = np.maximum(capacity - asked, 0) * 100 // np.maximum(capacity, 1)
    return free


def most_allocated_gpus(room: Room, need: Need, nodes: Ints) -> Ints:
    of = room.gpus_of[nodes]
    used: Ints = (of - room.gpus[nodes] + need.gpus) * 100 // np.maximum(of, 1)
    return used


def best_node(room: Room, need: Need, score: Score, random: np.random.Generator) -> int:
    """For one pod; -1 where it does not fit."""
    nodes = np.flatnonzero(room.counts(need))
    if not len(nodes):
        return -1
    scores = score(room, need, nodes)
    best = nodes[scores == scores.max()]
    return int(best[random.integers(len(best))])


class _ByScore:
    """Pod by pod, each on the best node."""

    def __init__(self, score: Score) -> None:
        self._score = score

    def __call__(self, room: Room, need: Need, replicas: int, random: np.random.Generator) -> list[int]:
        nodes = []
        for _ in range(replicas):
            nodes.append(best_node(room, need, self._score, random))
            room.move(need, nodes[-1])
        return nodes


def priority_of(run: Run) -> int:
    priority = run.job.priority
    return CLASS_PRIORITY[run.job.workload_class] if priority is None else priority


def priority_then_arrival(run: Run) -> Key:
    return (-priority_of(run), run.index)


class Native(LineScheduler):
    """All pods of a job or none."""

    def __init__(self, name: str, score: Score, *, strict: bool = False, seed: int = 0) -> None:
        super().__init__(name, priority_then_arrival, _ByScore(score), strict=strict, seed=seed)

    def open(self, clock: Clockwork) -> None:
        super().open(clock)
        self._lowest = min((priority_of(run) for run in clock.runs), default=0)

    def wait(self, run: Run) -> None:
        """A lane of its own for each priority: where one does not fit, a higher one may have somebody to preempt."""
        lane = (need_of(run.job), run.job.replicas, priority_of(run))
        self.line.add(lane, priority_then_arrival(run), run.index)

    def _start(self, clock: Clockwork, index: int) -> bool:
        return super()._start(clock, index) or (
            self.preempt(clock, clock.runs[index], clock.runs[index].job.replicas) and super()._start(clock, index)
        )

    def preempt(self, clock: Clockwork, run: Run, replicas: int) -> bool:
        """Stop as many jobs of lower priority as so many of its replicas need; nobody where that does not help."""
        mine, need = priority_of(run), need_of(run.job)
        if mine <= self._lowest:  # most traces know one priority only
            return False
        lower = [clock.runs[i] for i in self.placed if i in clock.running and priority_of(clock.runs[i]) < mine]
        victims: list[Run] = []
        for victim in sorted(lower, key=lambda other: (priority_of(other), -other.index)):
            if self.room.holds(need, replicas):
                break
            self._shift(victim, -1)
            victims.append(victim)
        if not self.room.holds(need, replicas):
            for victim in victims:
                self._shift(victim, 1)
            return False
        for victim in victims[::-1]:  # the last ones made the difference; some before them may not have been needed
            self._shift(victim, 1)
            if self.room.holds(need, replicas):
                continue
            self._shift(victim, -1)
            del self.placed[victim.index]
            clock.place(victim.index, {})
            self.wait(victim)
        return True

    def _shift(self, run: Run, sign: int) -> None:
        for node in self.placed[run.index]:
            self.room.move(need_of(run.job), node, sign)


class NativePods(Native):
    """Pods are bound one by one. A lane is a kind of pod, and its head may be a job that has some of its pods."""

    def __init__(self, name: str, *, timeout_ms: int = TIMEOUT_MS, seed: int = 0) -> None:
        super().__init__(name, least_allocated, seed=seed)
        self._timeout_ms = timeout_ms

    def open(self, clock: Clockwork) -> None:
        super().open(clock)
        self._created = 0
        self._give_up_at: dict[int, int] = {}
        """Of jobs that have a part of their pods."""
        self._back_at: dict[int, int] = {}
        """Of jobs whose pods were deleted."""
        self._deleted: dict[int, int] = {}
        """How often that happened."""

    def decide(self, clock: Clockwork, news: News) -> None:
        self.take_back(clock, news)
        for index in news.reminded:
            if self._give_up_at.get(index, NEVER_MS) <= clock.now_ms:  # a rhythm of decisions may come a little later
                self._delete(clock, index)
            elif self._back_at.get(index, NEVER_MS) <= clock.now_ms:
                del self._back_at[index]
                self.wait(clock.runs[index])
        for index in news.arrived:
            if not refuse_impossible(clock, self.room, index):
                self.wait(clock.runs[index])
        self.line.serve(lambda index: self._bind(clock, index))

    def wait(self, run: Run) -> None:
        """Its pods are created now, so they are behind all that are there."""
        self._created += 1
        self.line.add(self._lane(run), (-priority_of(run), self._created), run.index)

    def _lane(self, run: Run) -> tuple[Need, int]:
        return (need_of(run.job), priority_of(run))

    def _bind(self, clock: Clockwork, index: int) -> bool:
        """As many of its pods as fit; whether it has all."""
        job = clock.runs[index].job
        need, nodes = need_of(job), self.placed.get(index, [])
        had = len(nodes)
        while len(nodes) < job.replicas:
            node = best_node(self.room, need, least_allocated, self._random)
            if node < 0 and self.preempt(clock, clock.runs[index], 1):
                node = best_node(self.room, need, least_allocated, self._random)
            if node < 0:
                break
            self.room.move(need, node)
            nodes.append(node)
        if len(nodes) == job.replicas:
            self._give_up_at.pop(index, None)
            self.placed[index] = nodes
            clock.place(index, seats_on(nodes))
            return True
        if len(nodes) > had:
            self.placed[index] = nodes
            clock.hold(index, seats_on(nodes))
            if index not in self._give_up_at:
                self._give_up_at[index] = clock.now_ms + self._timeout_ms
                clock.remind(index, self._give_up_at[index])
        return False

    def _delete(self, clock: Clockwork, index: int) -> None:
        """All pods of a gang that did not get the rest of them in time."""
        del self._give_up_at[index]
        need = need_of(clock.runs[index].job)
        for node in self.placed.pop(index):
            self.room.move(need, node, -1)
        clock.hold(index, {})
        self.line.remove(self._lane(clock.runs[index]), index)
        self.line.open_all()
        times = self._deleted[index] = self._deleted.get(index, 0) + 1
        self._back_at[index] = clock.now_ms + min(BACK_OFF_MS << min(times - 1, 20), MOST_BACK_OFF_MS)
        clock.remind(index, self._back_at[index])

    def take_back(self, clock: Clockwork, news: News) -> None:
        partial = sorted({index for index, _ in news.gone} & self._give_up_at.keys())
        for index in partial:  # a node with some of its pods is lost; the others stay bound
            need, run = need_of(clock.runs[index].job), clock.runs[index]
            for node in self.placed.pop(index):
                self.room.move(need, node, -1)
            for seat in run.held.values():
                self.room.move(need, seat.node)
            if run.held:
                self.placed[index] = [seat.node for seat in run.held.values()]
            else:
                del self._give_up_at[index]
        whole = [(index, ordinal) for index, ordinal in news.gone if index not in partial]
        super().take_back(clock, News(ended=news.ended, gone=whole, nodes_down=news.nodes_down, nodes_up=news.nodes_up))


def native_pods(seed: int = 0) -> NativePods:
    return NativePods("native-pods", seed=seed)


def native_gang(seed: int = 0) -> Native:
    return Native("native-gang", least_allocated, seed=seed)


def native_packed(seed: int = 0) -> Native:
    return Native("native-packed", most_allocated_gpus, seed=seed)


def native_strict(seed: int = 0) -> Native:
    return Native("native-strict (strict FIFO)", least_allocated, strict=True, seed=seed)
