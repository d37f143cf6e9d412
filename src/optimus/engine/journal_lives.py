"""Lives by a journal: who came, ran and ended, as far as it was observed.

Why: the past of a machine is asked for as jobs to play again, and as what may come tomorrow.
Owns: the reading of observations, and the time in which each workload worked.
Must not: believe predictions, or look at plans: only what was observed counts.
"""

from __future__ import annotations

import msgspec

from optimus.engine.journal_records import Keyframe
from optimus.model import observations as seen
from optimus.model.gangs import maximum_replicas, minimum_replicas
from optimus.model.nodes import Node
from optimus.model.pools import NodePool
from optimus.model.queues import Queue
from optimus.model.workloads import Workload
from optimus.state.keyframe import Keyframe as StateFrame


class Life:
    """One workload, as far as it was observed."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.running: dict[tuple[str, int], str] = {}
        """Replica -> its node, where that was told."""
        self.since_ms = 0
        """Work is counted up to here."""
        self.worked_ms = 0.0
        self.ran = False

    @property
    def least(self) -> int:
        return sum(map(len, minimum_replicas(self.workload.gang).values()))

    @property
    def most(self) -> int:
        return max(sum(maximum_replicas(self.workload.gang)), self.least)

    def pass_until(self, now_ms: int) -> None:
        if now_ms > self.since_ms:
            if len(self.running) >= self.least:
                self.worked_ms += (now_ms - self.since_ms) * self._speed(len(self.running))
            self.since_ms = now_ms

    def _speed(self, replicas: int) -> float:
        """Relative to its smallest size."""
        curve = self.workload.speedup_percent
        if not curve:
            return replicas / self.least
        return curve[min(replicas, len(curve)) - 1] / curve[min(self.least, len(curve)) - 1]


Moving = seen.SlotRunning | seen.SlotGone | seen.SlotFailed | seen.WorkloadEnded


class Recording:
    """The journal up to where it was read: who lived, and on what."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.gone: set[str] = set()
        self.pools: dict[str, NodePool] = {}
        self.queues: dict[str, Queue] = {}
        self.lives: dict[str, Life] = {}
        self.over: list[Life] = []
        self.older: set[str] = set()
        """Workloads that were there before the journal begins."""

    def begin(self, frame: Keyframe) -> None:
        """What was there before the first cycle; how long it had run by then is not known."""
        state = msgspec.msgpack.decode(frame.state, type=StateFrame)
        self.nodes = {node.name: node for node, _ in state.nodes}
        self.pools = {pool.name: pool for pool in state.pools}
        self.queues = {queue.name: queue for queue in state.queues}
        self.older = {entry.workload.id for entry in state.workloads}

    def observe(self, fact: seen.Observation, now_ms: int) -> None:
        match fact:
            case seen.NodeSeen(node):
                self.nodes[node.name] = node
            case seen.NodeGone(name):
                self._lose_node(name, now_ms)
            case seen.PoolSeen(pool):
                self.pools[pool.name] = pool
            case seen.QueueSeen(queue):
                self.queues[queue.name] = queue
            case seen.WorkloadSeen(workload):
                self._see(workload)
            case seen.SlotRunning() | seen.SlotGone() | seen.SlotFailed() | seen.WorkloadEnded():
                life = self.lives.get(fact.workload)
                if life is not None:
                    self._move(life, fact, now_ms)
            case _:
                pass

    def _see(self, workload: Workload) -> None:
        if workload.id in self.lives:
            self.lives[workload.id].workload = workload
        elif workload.id not in self.older:
            self.lives[workload.id] = Life(workload)

    def _move(self, life: Life, fact: Moving, now_ms: int) -> None:
        match fact:
            case seen.SlotRunning(_, role, ordinal, node, _, since_ms):
                if (role, ordinal) not in life.running:
                    life.pass_until(now_ms if since_ms is None else min(since_ms, now_ms))
                    life.running[role, ordinal] = node
                    life.ran = True
            case seen.SlotGone(_, role, ordinal) | seen.SlotFailed(_, role, ordinal):
                life.pass_until(now_ms)
                life.running.pop((role, ordinal), None)
            case seen.WorkloadEnded(name):
                life.pass_until(now_ms)
                self.over.append(self.lives.pop(name))

    def _lose_node(self, name: str, now_ms: int) -> None:
        self.gone.add(name)
        for life in self.lives.values():
            lost = [key for key, node in life.running.items() if node == name]
            if lost:
                life.pass_until(now_ms)
                for key in lost:
                    del life.running[key]
