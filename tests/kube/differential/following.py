"""Our side as it really runs: the mirror of the controller, told change by change what a watch would tell, before the
real engine.

Why: `judging` reads each pod afresh and would not notice what the mirror forgets, counts twice or keeps for too long.
Owns: who is ours. Pods that are to be judged name our scheduler; whoever is somebody else's names another.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, structs

from optimus.decide.world import World
from optimus.drivers.kube.grouping import shipped_kinds
from optimus.drivers.kube.mirror import Mirror
from optimus.drivers.kube.objects import Namespace, Node, Pod, VolumeAttachment
from optimus.drivers.kube.volumes import Around
from optimus.engine.engine import Engine
from optimus.model.observations import Observation
from optimus.model.plans import Budget, Start
from optimus.model.pools import NodePool
from optimus.model.queues import Queue

OURS, ANOTHER = "optimus", "another"


class Followed(Struct, frozen=True):
    feasible: frozenset[str]
    start: str
    """Where the plan starts it; empty if it waits."""


class Following:
    def __init__(
        self,
        nodes: Iterable[Node],
        limits: dict[str, dict[str, int]],
        around: Around,
        attachments: Iterable[VolumeAttachment],
        namespaces: Iterable[Namespace],
        *,
        ours: bool,
        two_pools: bool,
    ) -> None:
        """`ours`: whether pods that kube-scheduler has placed are ours from then on."""
        self.mirror, self.engine, self._ours, self._now_ms = Mirror(shipped_kinds()), Engine(), ours, 0
        self.mirror.tenants.queue(Queue(name="default"))
        if two_pools:
            self.mirror.tenants.pool(NodePool(name="two", selector={"pool": "two"}))
        for namespace in namespaces:
            self.mirror.tenants.namespace(namespace)
        self.mirror.surroundings(around)
        for name, counts in limits.items():
            self.mirror.storage_node(name, counts)
        for one in attachments:
            self.mirror.attachment(one.metadata.name, one)
        for node in nodes:
            self.mirror.node(node)
        self._observe(self.mirror.everything())

    def is_there(self, pod: Pod) -> None:
        self.mirror.pod(_of(pod, ANOTHER))
        self._observe(self.mirror.news())

    def judge(self, pod: Pod) -> Followed:
        """It comes. Ends with `placed` or `withdrawn`."""
        self.mirror.pod(_of(pod, OURS))
        self._observe(self.mirror.news())
        name = self.mirror.groups.group_of(pod.metadata.uid) or ""
        workload = self.mirror.workloads[name]
        plan = self.engine.decide(self._now_ms)
        starts = [one.placements[0].node for one in plan.actions if isinstance(one, Start) and one.workload == name]
        feasible = frozenset() if workload.obstacle is not None else self._feasible(name)
        return Followed(feasible, starts[0] if starts else "")

    def placed(self, pod: Pod) -> None:
        if not self._ours:
            self.mirror.pod_gone(pod.metadata.uid)  # to us, it is as if another one had come
        self.mirror.pod(_of(pod, OURS if self._ours else ANOTHER))
        self._observe(self.mirror.news())

    def claims_changed(self) -> None:
        self.mirror.surroundings(self.mirror.around)

    def withdrawn(self, pod: Pod) -> None:
        self.mirror.pod_gone(pod.metadata.uid)
        self._observe(self.mirror.news())

    def _feasible(self, name: str) -> frozenset[str]:
        """By the rooms in which the brain looks for a start."""
        snapshot = self.engine.state.snapshot(self._now_ms)
        world = World(snapshot, self.engine.policy, self._now_ms, Budget())
        ask = world.ask(world.table.row_of[name])
        return frozenset(
            board.view.nodes[index].name
            for board in world.boards
            for index, fits in enumerate(board.starting.fits(ask.shape(board.view.index, 0)).tolist())
            if fits > 0
        )

    def _observe(self, facts: list[Observation]) -> None:
        self._now_ms += 1000
        self.engine.observe(facts, self._now_ms)
        assert self.engine.problems == [], self.engine.problems


def _of(pod: Pod, scheduler: str) -> Pod:
    return structs.replace(pod, spec=structs.replace(pod.spec, scheduler_name=scheduler))
