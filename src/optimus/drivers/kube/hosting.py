"""Nodes and who is on them: what the brain has been told of each, and what is new.

Why: a node changes with every pod that comes or goes, whoever sent it; the brain is told once a turn what is left.
Owns: every node, who takes room there, which volumes it has to spare, and how the brain knows it.
Must not: know gangs, or which pod is which replica (`mirror` does, and says what the brain counts for a pod).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence, Set

from msgspec import structs

from optimus.drivers.kube.attaching import Attached, Disk, disks_beside, disks_of, without_disks
from optimus.drivers.kube.counting import Counting
from optimus.drivers.kube.devices import Offered
from optimus.drivers.kube.nodes import beyond, read_node, taken_beside
from optimus.drivers.kube.objects import Node as KubeNode
from optimus.drivers.kube.objects import Pod
from optimus.drivers.kube.pods import PodNeeds, with_counters, without_devices
from optimus.drivers.kube.spare import Spare
from optimus.drivers.kube.volumes import Around
from optimus.model.nodes import Node
from optimus.model.observations import NodeSeen, Observation
from optimus.model.rules import NEAR, PORT
from optimus.model.workloads import Request

_IF_ASKED = (PORT, NEAR)
"""Counters that every node has: what others take of them matters only to those who ask."""


class Hosting:
    def __init__(
        self,
        pods: Mapping[str, Pod],
        counting: Counting,
        needs_of: Callable[[Pod], PodNeeds],
        request_known: Callable[[str], Request | None],
        broken: Callable[[str, Exception], list[Observation]],
        changed: Callable[[Node | None, Node | None], None],
        around: Callable[[], Around],
        gpu_names: tuple[str, ...],
        asked: Container[str],
    ) -> None:
        """`pods`: by uid. `request_known`: what the brain counts for a pod; None if it does not know it. `broken`: what
        follows from a node that cannot be read. `changed`: how it was known, and how it is.
        `around`: what pods refer to. `asked`: counters that work of ours asks for."""
        self.nodes: dict[str, KubeNode] = {}
        self.known: dict[str, Node] = {}
        """As the brain knows them."""
        self.dirty: set[str] = set()
        self.spare = Spare()
        self._pods, self._counting = pods, counting
        self._needs_of, self._request_known, self._gpu_names = needs_of, request_known, gpu_names
        self._broken, self._changed, self._around, self._asked = broken, changed, around, asked
        self.attached = Attached()
        self._untold: dict[str, set[str]] = {}
        """By node: counters of which others take some, and which nobody asks for."""
        self._on: dict[str, set[str]] = {}
        """By node: uids of pods that take room there."""
        self._touched: set[str] = set()
        """Nodes that anybody came to, or that changed, since somebody asked."""
        self._drivers: dict[str, dict[str, int]] = {}
        """By node: how many volumes its storage drivers attach there."""
        self._empty_nodes: dict[str, tuple[KubeNode, Sequence[Offered], Node]] = {}

    # -- what changes -------------------------------------------------------------------------------------------------

    def see(self, node: KubeNode) -> None:
        name = node.metadata.name
        old = self.nodes.get(name)
        if old is not None and old.metadata.labels != node.metadata.labels:
            self.spare.stale = True
        self.nodes[name] = node
        self.dirty.add(name)
        self._touched.add(name)

    def gone(self, name: str) -> bool:
        """Whether the brain knew it."""
        if self.nodes.pop(name, None) is not None:
            self.dirty.discard(name)
        self._empty_nodes.pop(name, None)
        self._untold.pop(name, None)
        self.spare.forget(name)
        known = self.known.pop(name, None)
        if known is not None:
            self._changed(known, None)
        return known is not None

    def see_drivers(self, name: str, limits: dict[str, int]) -> None:
        """How many volumes they attach to the node."""
        if limits != self._drivers.pop(name, {}):
            self.dirty |= {name} & self.nodes.keys()
        if limits:
            self._drivers[name] = limits

    def hang(self, names: Set[str]) -> None:
        """Other volumes than before may be attached to these nodes; it matters where their number is limited."""
        self.dirty |= names & self._drivers.keys() & self.nodes.keys()

    def come(self, uid: str, name: str, *, changed: bool) -> None:
        """A pod takes room there; `changed`: other room than before."""
        there = self._on.setdefault(name, set())
        if uid not in there:
            self.attached.come(self._pods[uid], name)
        if uid not in there or changed:
            there.add(uid)
            self.dirty.add(name)
            self._touched.add(name)

    def leave(self, uid: str, name: str) -> None:
        if uid in self._on.get(name, ()):
            self.attached.leave(uid)
            self._on[name].discard(uid)
            if not self._on[name]:
                del self._on[name]
            self.dirty.add(name)

    def ask(self, counters: Set[str]) -> None:
        """They are asked for from now on: who takes some of them matters."""
        self.dirty |= {name for name, untold in self._untold.items() if not untold.isdisjoint(counters)}

    def forget_told(self) -> None:
        """For a brain that knows nothing."""
        self.known.clear()
        self.spare.clear()
        self.dirty |= self.nodes.keys()

    # -- questions ----------------------------------------------------------------------------------------------------

    def on(self, name: str) -> Set[str]:
        return self._on.get(name, frozenset())

    def take_touched(self) -> set[str]:
        touched, self._touched = self._touched, set()
        return touched

    def surplus(self, name: str, without: Container[str] = ()) -> dict[str, int]:
        """What is given away of a node beyond what it has: by the pods that are there, but for those that leave and
        `without` these. Empty for a node that is not there: nobody can say."""
        node = self.nodes.get(name)
        if node is None:
            return {}
        pods = (self._pods[uid] for uid in self.on(name) if uid not in without)
        staying = (self._needs_of(pod).request for pod in pods if pod.metadata.deletion_timestamp is None)
        return beyond(self._empty(name, node), staying)

    # -- what is new --------------------------------------------------------------------------------------------------

    def news(self, names: Set[str]) -> list[Observation]:
        facts: list[Observation] = []
        fresh: set[str] = set()
        for name in sorted(names):
            if (node := self.nodes.get(name)) is None:
                continue
            if new := name not in self.known:  # empty: who of ours is on it is told next, and is nobody else
                fresh.add(name)
            try:
                read = self._empty(name, node) if new else self._read(name, node)
            except Exception as error:  # noqa: BLE001 - see `aside`
                facts += self._broken(name, error)
                continue
            if self.known.get(name) != read:
                self._changed(self.known.get(name), read)
                self.known[name] = read
                facts.append(NodeSeen(read))
        self.dirty -= names - fresh
        return facts

    def _read(self, name: str, node: KubeNode) -> Node:
        others: list[Request] = []
        ours: list[tuple[Request, Iterable[str]]] = []
        for uid in sorted(self.on(name)):
            pod, takes = self._pods[uid], self._counting.takes(self._pods[uid].key)
            known = self._request_known(uid)
            if known is None:
                request = without_devices(self._needs_of(pod).request)  # those are counted by claim
                others.append(with_counters(request, tuple((one, 1) for one in takes)))
            else:
                ours.append((known, takes))
        beside = taken_beside(ours)
        if limited := self._drivers.get(name):
            others = [without_disks(request) for request in others]
            beside |= disks_beside(limited, self._disks(name), (request for request, _ in ours))
        untold = {one for request in others for one, _ in request.accelerators} | beside.keys()
        untold = {one for one in untold if one.startswith(_IF_ASKED) and one not in self._asked}
        self._untold.pop(name, None)
        if untold:
            self._untold[name] = untold
            others = [_without(request, untold) for request in others]
            beside = {one: amount for one, amount in beside.items() if one not in untold}
        limits = {**self._drivers.get(name, {}), **self.spare.counters(name)}
        gpus = self.spare.gpus(name)
        if not others and not beside and not limits and not gpus.taken:
            return self._empty(name, node)
        return read_node(
            node,
            others,
            beside=beside,
            attach_limits=limits,
            gpu_names=self._gpu_names,
            claimed=gpus.offered,
            claimed_by_others=gpus.taken,
        )

    def _disks(self, name: str) -> set[Disk]:
        """All that hang there, for whomever; each of them once."""
        around = self._around()
        found = self.attached.disks_on(name, around.volumes)
        for uid in self.on(name):
            found |= disks_of(self._pods[uid], around.claims, around.volumes, around.classes)
        return found

    def _empty(self, name: str, node: KubeNode) -> Node:
        """As if only ours were on it; read once for each version of the node."""
        last, gpus = self._empty_nodes.get(name), self._around().devices.catalog.offer.gpus.get(name, ())
        if last is None or last[0] is not node or last[1] is not gpus:
            last = self._empty_nodes[name] = (node, gpus, read_node(node, gpu_names=self._gpu_names, claimed=gpus))
        return last[2]


def _without(request: Request, counters: Set[str]) -> Request:
    left = tuple([one for one in request.accelerators if one[0] not in counters])
    return request if len(left) == len(request.accelerators) else structs.replace(request, accelerators=left)
