"""Our side: the same objects, read by `optimus.drivers.kube`, before the real engine.

Pods that are there are somebody else's, or ours: then they run in the engine, with the counters they took when they
came, and what has changed since is counted beside them. That is what a body does, too.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec import Struct

from optimus.decide.world import World
from optimus.drivers.kube.attaching import Attached, Disk, disks_beside, disks_of, without_disks
from optimus.drivers.kube.claiming import Users
from optimus.drivers.kube.counting import Counting
from optimus.drivers.kube.nodes import read_node, taken_beside
from optimus.drivers.kube.objects import Node as KubeNode
from optimus.drivers.kube.objects import Pod
from optimus.drivers.kube.pods import PodNeeds, among_others, read_pod, with_counters, without_devices
from optimus.drivers.kube.spare import Spare
from optimus.drivers.kube.volumes import Around
from optimus.engine.engine import Engine
from optimus.model.nodes import Node
from optimus.model.observations import (
    NodeSeen,
    Observation,
    PoolSeen,
    QueueSeen,
    SlotRunning,
    WorkloadEnded,
    WorkloadSeen,
)
from optimus.model.plans import Budget, Start
from optimus.model.pools import NodePool
from optimus.model.queues import Queue
from optimus.model.reasons import Reason
from optimus.model.workloads import Group, Request, Role, Workload

ROLE = "pod"
QUEUE = "q"


class Judgement(Struct, frozen=True):
    feasible: frozenset[str]
    """Nodes on which the brain finds room and keeps all rules."""
    start: str
    """Where it would start it; empty if it would wait."""
    why: Reason | None
    needs: PodNeeds


@dataclass
class Mirror:
    nodes: dict[str, KubeNode]
    limits: dict[str, dict[str, int]]
    """By node: counters of volumes."""
    around: Around
    attached: Attached
    ours: bool
    counting: Counting = field(default_factory=Counting)
    engine: Engine = field(default_factory=Engine)
    others: dict[str, tuple[PodNeeds, str]] = field(default_factory=dict)
    running: dict[str, tuple[Request, str, tuple[int, ...]]] = field(default_factory=dict)
    """Ours, with the request that the brain knows, and where."""
    pods: dict[str, Pod] = field(default_factory=dict)
    """All that are on nodes."""
    over: list[Pod] = field(default_factory=list)
    """Those that have ended there."""
    spare: Spare = field(default_factory=Spare)
    users: Users = field(default_factory=Users)
    unbound: set[str] = field(default_factory=set)
    now_ms: int = 0
    _seen: dict[str, Node] = field(default_factory=dict)

    def open(self, *, two_pools: bool) -> None:
        pools = [PoolSeen(NodePool(name="two", selector={"pool": "two"}))] if two_pools else []
        self._observe([*pools, QueueSeen(Queue(name=QUEUE))])

    def is_there(self, pod: Pod) -> None:
        """Somebody else's pod on a node."""
        self.users.see(pod)
        needs = read_pod(pod, self.around)
        self.pods[pod.key] = pod
        self.counting.see(pod.key, needs.social, to_place=False)
        self.others[pod.key] = (needs, pod.spec.node_name or "")

    def judge(self, pod: Pod) -> Judgement:
        """What the brain would do with it. Ends with `placed` or `withdrawn`."""
        self.users.see(pod)
        self.unbound.add(pod.metadata.uid)
        self.spare.stale = True
        needs = self.spare.see(read_pod(pod, self.around))
        self.counting.see(pod.key, needs.social)
        request, where = among_others(needs, self.counting)
        role = Role(name=ROLE, request=request, where=where)
        workload = Workload(id=pod.key, queue=QUEUE, gang=Group(roles=(role,)), obstacle=needs.obstacle)
        self._observe([*self._nodes_changed(), WorkloadSeen(workload)])
        plan = self.engine.decide(self.now_ms)
        starts = [a.placements[0].node for a in plan.actions if isinstance(a, Start) and a.workload == pod.key]
        why = next((wait.reason for wait in plan.waiting if wait.workload == pod.key), None)
        feasible = frozenset() if needs.obstacle else self._feasible(pod.key)
        return Judgement(feasible, starts[0] if starts else "", why, needs)

    def placed(self, pod: Pod, needs: PodNeeds, node: str) -> None:
        self.pods[pod.key] = pod
        self.unbound.discard(pod.metadata.uid)
        if self.ours:
            spec = self.engine.state.workloads.spec(self.engine.state.workloads.row_of[pod.key])
            request = spec.gang.roles[0].request
            devices = self._free_devices(node, request.gpu_count)
            self.running[pod.key] = (request, node, devices)
            self._observe([SlotRunning(pod.key, ROLE, 0, node, devices, self.now_ms)])
        else:
            self._observe([WorkloadEnded(pod.key)])
            self.counting.see(pod.key, needs.social, to_place=False)
            self.others[pod.key] = (needs, node)

    def withdrawn(self, pod: Pod) -> None:
        self.users.forget(pod.metadata.uid)
        self.unbound.discard(pod.metadata.uid)
        self._observe([WorkloadEnded(pod.key)])
        self.counting.forget(pod.key)

    # -- the brain ----------------------------------------------------------------------------------------------------

    def _feasible(self, pod: str) -> frozenset[str]:
        """By the rooms in which the brain looks for a start."""
        snapshot = self.engine.state.snapshot(self.now_ms)
        world = World(snapshot, self.engine.policy, self.now_ms, Budget())
        ask = world.ask(world.table.row_of[pod])
        return frozenset(
            board.view.nodes[index].name
            for board in world.boards
            for index, fits in enumerate(board.starting.fits(ask.shape(board.view.index, 0)).tolist())
            if fits > 0
        )

    def _nodes_changed(self) -> list[Observation]:
        changed: list[Observation] = []
        offered = self.around.devices.catalog.offer.gpus
        plain = {name: read_node(node, claimed=offered.get(name, ())) for name, node in self.nodes.items()}
        self.spare.recount(plain, self.around, [(self.pods[pod], known) for pod, (known, _, _) in self.running.items()])
        for name, node in self.nodes.items():
            limits = self.limits.get(name, {})
            requests = {pod: needs.request for pod, (needs, there) in self.others.items() if there == name}
            requests = {pod: without_disks(one) if limits else one for pod, one in requests.items()}
            taken = [
                with_counters(without_devices(one), tuple((counter, 1) for counter in self.counting.takes(pod)))
                for pod, one in requests.items()
            ]
            beside = taken_beside(
                (known, self.counting.takes(pod)) for pod, (known, there, _) in self.running.items() if there == name
            )
            running = [known for known, there, _ in self.running.values() if there == name]
            beside |= disks_beside(limits, self._disks(name), running)
            gpus = self.spare.gpus(name)
            read = read_node(
                node,
                taken,
                beside=beside,
                attach_limits={**self.limits.get(name, {}), **self.spare.counters(name)},
                claimed=gpus.offered,
                claimed_by_others=gpus.taken,
            )
            if self._seen.get(name) != read:
                self._seen[name] = read
                changed.append(NodeSeen(read))
        return changed

    def _disks(self, name: str) -> set[Disk]:
        around = self.around
        found = self.attached.disks_on(name, around.volumes)
        for pod in self.pods.values():
            if pod.spec.node_name == name:
                found |= disks_of(pod, around.claims, around.volumes, around.classes)
        return found

    def _free_devices(self, node: str, count: int) -> tuple[int, ...]:
        taken = {index for _, there, devices in self.running.values() if there == node for index in devices}
        taken |= self._seen[node].foreign.gpu_milli.keys()
        free = [one.index for one in self._seen[node].devices if one.index not in taken]
        return tuple(free[:count])

    def _observe(self, facts: list[Observation]) -> None:
        self.now_ms += 1000
        self.engine.observe(facts, self.now_ms)
        assert self.engine.problems == [], self.engine.problems
