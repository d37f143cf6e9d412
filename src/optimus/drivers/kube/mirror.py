"""The cluster as it is, and what of it the brain has been told.

    changes of pods, nodes, owners … ──► mirror ──► `news`: observations, each fact once
                                            ▲
                plan ──► acting ──► `seat`: which pod takes which place

Why: an API server tells the same thing many times, in any order, and from the beginning after every break; the brain
is told only what is new to it.
Owns: every pod and node that matters, which pod is which replica, and the difference between what is and what was told.
Must not: talk to a server, read a clock, or decide.

A replica, as far as the brain knows, by its pod:

    (nothing) ── bound ──► running ── being deleted ──► stopping ── gone ──► (nothing)
                              ├── gone, failed ───────────────────────────► (nothing)       SlotGone
                              └── ended well, and nobody takes its place ──► done           SlotDone
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Set

from msgspec import structs

from optimus.drivers.kube.counting import Counting
from optimus.drivers.kube.describing import DEFAULT_QUEUE, Needs, describe, read_time
from optimus.drivers.kube.first_consumers import SPARE, Shape, claims_of, volume_counts
from optimus.drivers.kube.grouping import Group, Groups, Kinds, ObjectRef, RoleInGroup, Slot
from optimus.drivers.kube.grouping.overrides import QUEUE, SCHEDULER, SLOT, TERM
from optimus.drivers.kube.nodes import read_node, taken_beside
from optimus.drivers.kube.objects import Anything, Meta, Namespace, Pod, PodSpec
from optimus.drivers.kube.objects import Node as KubeNode
from optimus.drivers.kube.places import Places, Seat, Told
from optimus.drivers.kube.pods import PodNeeds, among_others, read_pod, with_at_least, with_counters
from optimus.drivers.kube.remembering import remembered, runs
from optimus.drivers.kube.requests import GPU_NAMES
from optimus.drivers.kube.volumes import Around
from optimus.model.nodes import WHOLE_DEVICE_MILLI, Node
from optimus.model.observations import (
    NodeGone,
    NodeSeen,
    Observation,
    Outcome,
    PoolGone,
    PoolSeen,
    QueueGone,
    QueueSeen,
    SlotDone,
    SlotGone,
    SlotRunning,
    SlotStopping,
    WorkloadEnded,
    WorkloadSeen,
)
from optimus.model.pools import NodePool
from optimus.model.queues import Queue
from optimus.model.reasons import Code, Reason, reason
from optimus.model.workloads import Request, Workload

SCHEDULER_NAME = "optimus"
OUR_NOTES = frozenset({SLOT, TERM})
"""Annotations that a bind leaves on a pod; they say nothing of what it needs."""


class Mirror:
    def __init__(
        self,
        kinds: Kinds,
        *,
        scheduler_name: str = SCHEDULER_NAME,
        gpu_names: tuple[str, ...] = GPU_NAMES,
        default_queue: str = DEFAULT_QUEUE,
    ) -> None:
        self.groups = Groups(kinds)
        self.pods: dict[str, Pod] = {}
        """By uid: ours, and others that take room."""
        self.nodes: dict[str, KubeNode] = {}
        self.queues: dict[str, Queue] = {}
        self.pools: dict[str, NodePool] = {}
        """The last good ones."""
        self.around = Around()
        self.workloads: dict[str, Workload] = {}
        """As the brain knows them."""
        self._scheduler_name, self._gpu_names, self._default_queue = scheduler_name, gpu_names, default_queue
        self._counting = Counting()
        self._counted_version = 0
        self._needs: dict[str, PodNeeds] = {}
        self._drivers: dict[str, dict[str, int]] = {}
        """By node: how many volumes its storage drivers attach there."""
        self._shapes: set[Shape] = set()
        """Volumes that pods of ours have asked for and that must be there already."""
        self._spare: dict[str, dict[str, int]] = {}
        """By node: how many there are of each, as the brain was told."""
        self._look_for_volumes = False
        self._on_node: dict[str, set[str]] = {}
        """By node: uids of pods that take room there."""
        self._places = Places()
        self.held: set[str] = set()
        """Workloads with places that wait for a pod: what the brain knows of them stays as it is."""
        self._known_nodes: dict[str, Node] = {}
        self._empty_nodes: dict[str, tuple[KubeNode, Node]] = {}
        self._namespace_queue: dict[str, str] = {}
        self._opted_in: set[str] = set()
        """Namespaces whose pods the server gives to us (opting_in.yaml)."""
        self._dirty_nodes: set[str] = set()
        self._dirty_pods: set[str] = set()
        self._heard: set[str] = set()
        """Uids of ours of which anything was heard since somebody asked."""
        self._facts: list[Observation] = []
        """Of queues, pools and nodes that went: nothing to compare them with."""
        self._unbound: set[str] = set()
        """Uids of ours that are on no node."""
        self._bound: set[str] = set()
        self._touched: set[str] = set()
        """Uids of ours that came to a node, and nodes that anybody came to or that changed, since somebody asked."""

    # -- what changes -------------------------------------------------------------------------------------------------

    def node(self, node: KubeNode) -> None:
        name = node.metadata.name
        old = self.nodes.get(name)
        if old is None:
            self._dirty_pods |= self._on_node.get(name, set())  # they came first
        elif old.metadata.labels != node.metadata.labels:
            self._look_for_volumes = True
        self.nodes[name] = node
        self._dirty_nodes.add(name)
        self._touched.add(name)

    def node_gone(self, name: str) -> None:
        if self.nodes.pop(name, None) is not None:
            self._dirty_nodes.discard(name)
        self._empty_nodes.pop(name, None)
        self._spare.pop(name, None)
        if self._known_nodes.pop(name, None) is not None:
            self._facts.append(NodeGone(name))
            for uid in sorted(self._on_node.get(name, ())):
                if (seat := self._places.seat(uid)) is not None and seat.node == name:
                    self._stand_up(uid)  # the brain has lost them with the node

    def pod(self, pod: Pod) -> None:
        """It is there, or has changed."""
        uid = pod.metadata.uid
        old = self.pods.get(uid)
        self.pods[uid] = pod
        if self.is_ours(pod):
            self.groups.pod(pod)
            self._dirty_pods.add(uid)
            if pod.spec.node_name and (old is None or not old.spec.node_name):
                self._bound.add(uid)
            (self._unbound.discard if pod.spec.node_name or pod.over else self._unbound.add)(uid)
            self._heard.add(uid)
        self._move(uid, old, pod)

    def pod_gone(self, uid: str) -> None:
        pod = self.pods.pop(uid, None)
        self._unbound.discard(uid)
        if pod is None:
            return
        self._leave_node(uid, pod)
        self._look_for_volumes = True
        self._counting.forget(pod.key)
        self._needs.pop(uid, None)
        self.groups.pod_gone(uid)
        self._places.unplan(uid)
        self._dirty_pods.add(uid)
        self._heard.add(uid)

    def owner(self, thing: Anything) -> None:
        self.groups.owner(thing)

    def owner_gone(self, uid: str) -> None:
        self.groups.owner_gone(uid)

    def owner_absent(self, ref: ObjectRef) -> None:
        self.groups.owner_absent(ref)

    def namespace(self, namespace: Namespace) -> None:
        meta = namespace.metadata
        self._counting.see_namespace(meta.name, meta.labels or {})
        opted_in = (meta.labels or {}).get(SCHEDULER) == "enabled"
        if opted_in != (meta.name in self._opted_in):
            (self._opted_in.add if opted_in else self._opted_in.discard)(meta.name)
            for gang in self.groups.ids():
                if gang.startswith(f"{meta.name}/"):
                    self.look_again(gang)
        queue = _word(meta, QUEUE)
        if queue != self._namespace_queue.get(meta.name, ""):
            self._namespace_queue[meta.name] = queue
            for name, workload in list(self.workloads.items()):
                if workload.namespace == meta.name:
                    self.workloads[name] = structs.replace(workload, queue="")  # looked at again
                    self.look_again(name)

    def namespace_gone(self, name: str) -> None:
        self._counting.see_namespace(name, None)
        self._namespace_queue.pop(name, None)
        self._opted_in.discard(name)

    def surroundings(self, around: Around) -> None:
        """Volumes, claims and classes: pods that wait for one are read again."""
        self.around = around
        self._look_for_volumes = True
        for uid in self._unbound:
            if not self.pods[uid].spec.volumes and not self.pods[uid].spec.resource_claims:
                continue
            self._needs.pop(uid, None)
            self._dirty_pods.add(uid)
            if (gang := self.groups.group_of(uid)) is not None:
                self.look_again(gang)

    def storage_node(self, name: str, limits: dict[str, int]) -> None:
        """How many volumes its drivers attach to a node."""
        if limits != self._drivers.get(name, {}):
            self._drivers[name] = limits
            self._dirty_nodes |= {name} & self.nodes.keys()

    def queue(self, queue: Queue) -> None:
        self.queues[queue.name] = queue
        self._facts.append(QueueSeen(queue))

    def queue_gone(self, name: str) -> None:
        self.queues.pop(name, None)
        self._facts.append(QueueGone(name))

    def pool(self, pool: NodePool) -> None:
        self.pools[pool.name] = pool
        self._facts.append(PoolSeen(pool))

    def pool_gone(self, name: str) -> None:
        self.pools.pop(name, None)
        self._facts.append(PoolGone(name))

    # -- what is new --------------------------------------------------------------------------------------------------

    def news(self) -> list[Observation]:
        """What the brain has not been told yet, in an order in which it can be understood."""
        gangs = self.groups.take_changed()
        for uid in self._dirty_pods:
            if (gang := self.groups.group_of(uid)) is not None:
                gangs.add(gang)
        if self._counting.version != self._counted_version:  # other selectors are in use: others count for others
            self._counted_version = self._counting.version
            gangs |= {gang for uid in self._unbound if (gang := self.groups.group_of(uid)) is not None}
            self._dirty_nodes |= self.nodes.keys()
        facts, self._facts = self._facts, []
        facts += self._nodes_news(self._dirty_nodes - self._known_nodes.keys())  # before those who are on them
        described = [fact for gang in sorted(gangs) for fact in self._gang_news(gang)]
        facts += [fact for fact in described if isinstance(fact, WorkloadSeen)]
        facts += self._pods_news(gangs)
        facts += [fact for fact in described if not isinstance(fact, WorkloadSeen)]
        self._count_volumes()
        facts += self._nodes_news(self._dirty_nodes)  # who is known by now does not count as somebody else
        return facts

    def everything(self) -> list[Observation]:
        """All there is, for a brain that knows nothing."""
        self.take_bound()
        self.held.clear()
        self._known_nodes.clear()
        self._spare.clear()
        self._places.clear()
        self.workloads.clear()
        self._facts = [*map(PoolSeen, self.pools.values()), *map(QueueSeen, self.queues.values())]
        self._facts += remembered(runs(self))
        self._dirty_nodes |= self.nodes.keys()
        self._dirty_pods |= self.pods.keys()
        for gang in self.groups.ids():
            self.look_again(gang)
        return self.news()

    # -- which pod takes which place ----------------------------------------------------------------------------------

    def seat(self, workload: str, slot: Slot) -> Pod | None:
        """The pod for a place that a plan has given: the one with this number, else any of the role that waits. None
        if there is none (yet)."""
        holder = self._places.holder(workload, slot)
        if holder is not None:
            return self.pods.get(holder)
        pod = self.groups.pod_at(workload, slot)
        if pod is None or not self._waits(pod):
            pod = next((one for one in self._members(workload, slot.role) if self._waits(one)), None)
        if pod is not None:
            self._places.plan(pod.metadata.uid, workload, slot)
        return pod

    def outgrown(self, workload: str, slot: Slot, pod: Pod) -> str:
        """Why the pod is not what its place was given for; empty if it is. A template may say less than its pod."""
        known = self.workloads[workload]
        given = next((role.request for role in known.gang.roles if role.name == slot.role), None)
        needs = self.needs_of(pod)
        if given is None:
            return f"there is no role {slot.role} any more"
        if needs.obstacle is not None:
            return needs.obstacle.text()
        asked, there = amounts_of(needs.request), amounts_of(given)
        more = sorted(name for name, amount in asked.items() if amount > there.get(name, 0))
        return f"the pod asks for more {', '.join(more)} than was known when its place was chosen" if more else ""

    def unseat(self, workload: str, slot: Slot) -> None:
        """The place is given up, and nothing runs there."""
        if (uid := self._places.holder(workload, slot)) is not None:
            self._places.unplan(uid)
            self._look_for_volumes = True

    def pods_of(self, workload: str) -> list[Pod]:
        """Those of its pods that are on a node."""
        return [self.pods[uid] for uid in self._places.seats_of(workload) if uid in self.pods]

    def waiting_pods(self, workload: str) -> list[Pod]:
        """Those that are not on a node and are not about to be."""
        pods = (self.pods[uid] for uid in sorted(self.groups.members(workload)) if uid in self.pods)
        return [pod for pod in pods if self._waits(pod)]

    def unbound_pods(self, workload: str) -> list[Pod]:
        """Those that are not on a node, also if they are about to be."""
        pods = (self.pods[uid] for uid in sorted(self.groups.members(workload) & self._unbound))
        return [pod for pod in pods if pod.metadata.deletion_timestamp is None]

    def node_known(self, name: str) -> Node | None:
        """As the brain knows it."""
        return self._known_nodes.get(name)

    def first_pod(self, workload: str) -> Pod | None:
        """The one by which people know it, where nobody owns it."""
        pods = (self.pods[uid] for uid in self.groups.members(workload) if uid in self.pods)
        return min(pods, key=lambda pod: pod.metadata.name, default=None)

    def take_bound(self) -> tuple[set[str], set[str]]:
        """Those of ours that came to a node since the last time, whoever sent them there; and the nodes to which
        anybody came, or which have changed."""
        taken = self._bound, self._touched
        self._bound, self._touched = set(), set()
        return taken

    def roles_seated(self, workload: str) -> list[str]:
        """The role of each of its pods that are on a node and not leaving it."""
        return [seat.slot.role for seat in self._places.seats_of(workload).values() if seat.told is Told.RUNNING]

    def pod_in(self, workload: str, slot: Slot) -> Pod | None:
        uid = self._places.holder(workload, slot)
        return self.pods.get(uid) if uid is not None else None

    def take_heard(self) -> set[str]:
        """Pods of which something was heard since this was asked last."""
        heard, self._heard = self._heard, set()
        return heard

    def is_ours(self, pod: Pod) -> bool:
        return pod.spec.scheduler_name == self._scheduler_name

    def is_for_us(self, group: Group) -> bool:
        """Its pods name us, or will: the server names us on those of a namespace that has opted in. Work that has begun
        without us is not taken over; work that was suspended is, and stays while its first pod is on its way."""
        if group.scheduler_name == self._scheduler_name:
            return True
        opted_in = group.id.partition("/")[0] in self._opted_in and self._scheduler_name == SCHEDULER_NAME
        return opted_in and group.names_nobody and (group.suspended or group.id in self.workloads)

    # -- nodes --------------------------------------------------------------------------------------------------------

    def _nodes_news(self, names: Set[str]) -> list[Observation]:
        facts: list[Observation] = []
        fresh: set[str] = set()
        for name in sorted(names):
            if (node := self.nodes.get(name)) is None:
                continue
            if new := name not in self._known_nodes:  # empty: who of ours is on it is told next, and is nobody else
                fresh.add(name)
            read = self._empty(name, node) if new else self._read_node(name, node)
            if self._known_nodes.get(name) != read:
                self._known_nodes[name] = read
                facts.append(NodeSeen(read))
        self._dirty_nodes -= names - fresh
        return facts

    def _read_node(self, name: str, node: KubeNode) -> Node:
        others: list[Request] = []
        ours: list[tuple[Request, Iterable[str]]] = []
        for uid in sorted(self._on_node.get(name, ())):
            pod, takes = self.pods[uid], self._counting.takes(self.pods[uid].key)
            known = self._request_known(uid)
            if known is None:
                others.append(with_counters(self.needs_of(pod).request, tuple((one, 1) for one in takes)))
            else:
                ours.append((known, takes))
        beside = taken_beside(ours)
        limits = {**self._drivers.get(name, {}), **self._spare.get(name, {})}
        if not others and not beside and not limits:
            return self._empty(name, node)
        return read_node(node, others, beside=beside, attach_limits=limits, gpu_names=self._gpu_names)

    def _empty(self, name: str, node: KubeNode) -> Node:
        """As if only ours were on it; read once for each version of the node."""
        last = self._empty_nodes.get(name)
        if last is None or last[0] is not node:
            last = self._empty_nodes[name] = (node, read_node(node, gpu_names=self._gpu_names))
        return last[1]

    def _count_volumes(self) -> None:
        """Nodes have the volumes that pods of ours ask for and that must be there already."""
        if not self._shapes or not (self._look_for_volumes or self._dirty_nodes - self._spare.keys()):
            return
        self._look_for_volumes = False
        counted: dict[str, set[str]] = {}
        for uid, (workload, slot) in self._places.all_planned():
            known, pod = self.workloads.get(workload), self.pods.get(uid)
            roles = known.gang.roles if known is not None and pod is not None else ()
            request = next((role.request for role in roles if role.name == slot.role), Request())
            taken = {name for name, _ in request.accelerators if name.startswith(SPARE)}
            if taken and pod is not None:
                for claim in claims_of(pod, self.around.claims):
                    counted.setdefault(f"{claim.metadata.namespace}/{claim.metadata.name}", set()).update(taken)
        spare = volume_counts(self._shapes, self.around.volumes.values(), self._known_nodes, counted)
        for name in self._known_nodes:
            now = spare.get(name, {})
            if now != self._spare.get(name):
                self._spare[name] = now
                self._dirty_nodes.add(name)

    def surplus(self, name: str, without: Container[str] = ()) -> dict[str, int]:
        """What is given away of a node beyond what it has: by the pods that are there, but for those that leave and
        `without` these. Empty for a node that is not there: nobody can say."""
        node = self.nodes.get(name)
        if node is None:
            return {}
        has = _capacity(self._empty(name, node))
        given: Counter[str] = Counter()
        for uid in self._on_node.get(name, ()):
            if uid not in without and self.pods[uid].metadata.deletion_timestamp is None:
                given.update(amounts_of(self.needs_of(self.pods[uid]).request))
        return {name: amount - has[name] for name, amount in given.items() if name in has and amount > has[name]}

    def _request_known(self, uid: str) -> Request | None:
        """What the brain counts for the pod; None if it does not know it."""
        seat = self._places.seat(uid)
        workload = self.workloads.get(seat.workload) if seat is not None else None
        if seat is None or workload is None:
            return None
        return next((role.request for role in workload.gang.roles if role.name == seat.slot.role), None)

    def _move(self, uid: str, old: Pod | None, pod: Pod) -> None:
        """Count it on the node it is on."""
        takes_room = bool(pod.spec.node_name) and not pod.over
        if takes_room or (self.is_ours(pod) and not pod.over):
            if old is None or not _same_rules(old, pod):
                self._needs.pop(uid, None)
                self._counting.see(pod.key, self.needs_of(pod).social, to_place=self.is_ours(pod))
        else:
            self._counting.forget(pod.key)
        if takes_room:
            assert pod.spec.node_name
            there = self._on_node.setdefault(pod.spec.node_name, set())
            if uid not in there or (old is not None and not _same_rules(old, pod)):
                there.add(uid)
                self._dirty_nodes.add(pod.spec.node_name)
                self._touched.add(pod.spec.node_name)
        elif old is not None:
            self._leave_node(uid, old)

    def _leave_node(self, uid: str, pod: Pod) -> None:
        name = pod.spec.node_name or ""
        if uid in self._on_node.get(name, ()):
            self._on_node[name].discard(uid)
            self._dirty_nodes.add(name)

    # -- gangs --------------------------------------------------------------------------------------------------------

    def _gang_news(self, gang: str) -> list[Observation]:
        workload, known = self._described(gang), self.workloads.get(gang)
        if workload is None:
            if known is None:
                return []
            del self.workloads[gang]
            return [WorkloadEnded(gang, self._outcome(gang))]
        if workload == known:
            return []
        self.workloads[gang] = workload
        return [WorkloadSeen(workload)]

    def _described(self, gang: str) -> Workload | None:
        """None if there is no such gang, it is not ours, or it is over."""
        group = self.groups.group(gang)
        if group is None or group.over or not group.roles or not self.is_for_us(group):
            return None
        if not group.admit and not any(role.pods for role in group.roles) and any(role.ended for role in group.roles):
            return None  # all have ended, and nobody says that more will come
        if group.object is None and not any(role.pods for role in group.roles):
            return None
        return self._read_group(group)

    def _read_group(self, group: Group) -> Workload:
        queue = self._namespace_queue.get(group.id.partition("/")[0]) or self._default_queue
        return describe(group, lambda role: self._role_needs(group, role), queue)

    def ended(self) -> Iterator[tuple[Workload, Group]]:
        """Work of ours that is over and has not been deleted, as it was."""
        for gang in self.groups.ids():
            group = self.groups.group(gang)
            if group is not None and group.over and group.roles and self.is_for_us(group):
                yield self._read_group(group), group

    def _role_needs(self, group: Group, role: RoleInGroup) -> Needs:
        """Of the pod that speaks for the role: one that waits, since rules matter only to those that are placed; while
        some run, what the brain knows of them stays."""
        known = self.workloads.get(group.id)
        runs = any(seat.slot.role == role.name for seat in self._places.seats_of(group.id).values())
        if known is not None and (runs or group.id in self.held):
            for old in known.gang.roles:
                if old.name == role.name:
                    waiting = next((pod for pod in self._members(group.id, role.name) if self._waits(pod)), None)
                    obstacle = self.needs_of(waiting).obstacle if waiting is not None else None
                    return Needs(old.request, old.where, obstacle)
        members = self._members(group.id, role.name)
        pod = next((one for one in members if self._waits(one)), members[0] if members else None)
        if pod is not None:
            needs, more, obstacle = self._needs_of_all(pod, members)
            request, where = among_others(needs, self._counting)
            return Needs(with_at_least(request, more), where, obstacle)
        namespace = group.id.partition("/")[0]
        made = Pod(metadata=Meta(name=role.name, namespace=namespace), spec=role.template or Pod(metadata=Meta()).spec)
        needs = self._with_shapes(read_pod(made, self.around, self._gpu_names))
        return Needs(needs.request, needs.where, needs.obstacle)

    def _needs_of_all(self, sample: Pod, members: list[Pod]) -> tuple[PodNeeds, Request, Reason | None]:
        """Of pods that differ only in their claims: what the one that speaks for them needs, the most that any of them
        takes, and what stands in their way. Replicas of a role are alike to the brain: it cannot send one here and
        another there."""
        needs = self.needs_of(sample)
        if not claims_of(sample, self.around.claims):
            return needs, needs.request, needs.obstacle
        all_needs = [self.needs_of(one) for one in members if self._waits(one)] or [needs]
        obstacle = next((one.obstacle for one in all_needs if one.obstacle is not None), None)
        most = needs.request
        for one in all_needs:
            most = with_at_least(most, one.request)
        if obstacle is None and len({frozenset(one.where.all_of) for one in all_needs}) > 1:
            instead = "delete the pods and claims that wait, or name a role for each place (optimus.dev/role)"
            obstacle = reason(Code.UNSUPPORTED, feature="volumes in different places for pods alike", instead=instead)
        return needs, most, obstacle

    def _members(self, gang: str, role: str) -> list[Pod]:
        """In the order of their numbers."""
        found = [
            (slot.ordinal, self.pods[uid])
            for uid in self.groups.members(gang)
            if uid in self.pods and (slot := self.groups.slot_of(uid)) is not None and slot.role == role
        ]
        return [pod for _, pod in sorted(found, key=lambda pair: pair[0])]

    def _outcome(self, gang: str) -> Outcome:
        group = self.groups.group(gang)
        ended = sum(role.ended for role in group.roles) if group is not None else 0
        return Outcome.SUCCEEDED if ended else Outcome.CANCELLED

    def look_again(self, gang: str) -> None:
        for uid in self.groups.members(gang):
            self._dirty_pods.add(uid)
        self.groups.look_again(gang)

    # -- replicas -----------------------------------------------------------------------------------------------------

    def _pods_news(self, gangs: Iterable[str]) -> list[Observation]:
        looked_at = self._dirty_pods | {uid for gang in gangs for uid in self.groups.members(gang)}
        self._dirty_pods = set()
        leaving, coming = [], []
        for uid in sorted(looked_at, key=self._age):
            gone, come = self._pod_news(uid)
            leaving += gone
            coming += come
        return [*leaving, *coming]

    def _pod_news(self, uid: str) -> tuple[list[Observation], list[Observation]]:
        pod, old, gang = self.pods.get(uid), self._places.seat(uid), self.groups.group_of(uid)
        slot = self._slot_of(uid)
        there = pod is not None and bool(pod.spec.node_name) and not pod.over and gang in self.workloads
        if old is not None and (not there or (old.workload, old.slot) != (gang, slot)):
            self._stand_up(uid)
            gone = self._gone(old, pod)
            return ([gone], []) if not there else ([gone], self._pod_news(uid)[1])
        if pod is None or not there or gang is None or slot is None:
            return [], []
        node = pod.spec.node_name or ""
        stopping = pod.metadata.deletion_timestamp is not None
        facts: list[Observation] = []
        if old is None or old.node != node:
            if self.nodes.get(node) is None:
                return [], []  # it is told with its node
            since = read_time(pod.status.start_time) or None
            facts.append(SlotRunning(gang, slot.role, slot.ordinal, node, (), since))
        if stopping and (old is None or old.told is Told.RUNNING):
            facts.append(SlotStopping(gang, slot.role, slot.ordinal))
        self._places.sit(uid, Seat(gang, slot, node, Told.STOPPING if stopping else Told.RUNNING))
        self._dirty_nodes.add(node)
        return [], facts

    def _gone(self, seat: Seat, pod: Pod | None) -> Observation:
        where = (seat.workload, seat.slot.role, seat.slot.ordinal)
        if pod is None or pod.status.phase != "Succeeded":
            return SlotGone(*where)
        group = self.groups.group(seat.workload)
        role = next((one for one in group.roles if one.name == seat.slot.role), None) if group else None
        more = role is not None and role.total - role.ended >= role.min > 0
        return SlotGone(*where) if more else SlotDone(*where)

    def _slot_of(self, uid: str) -> Slot | None:
        gang, planned = self.groups.group_of(uid), self._places.planned(uid)
        return planned[1] if planned is not None and planned[0] == gang else self.groups.slot_of(uid)

    def _stand_up(self, uid: str) -> None:
        self._dirty_nodes.add(self._places.stand_up(uid).node)

    def _waits(self, pod: Pod) -> bool:
        planned = self._places.planned(pod.metadata.uid) is not None
        return not (pod.spec.node_name or pod.over or pod.metadata.deletion_timestamp or planned)

    def needs_of(self, pod: Pod) -> PodNeeds:
        uid = pod.metadata.uid
        if uid not in self._needs:
            self._needs[uid] = self._with_shapes(read_pod(pod, self.around, self._gpu_names))
        return self._needs[uid]

    def _with_shapes(self, needs: PodNeeds) -> PodNeeds:
        if not self._shapes.issuperset(needs.shapes):
            self._shapes.update(needs.shapes)
            self._look_for_volumes = True
        return needs

    def _age(self, uid: str) -> tuple[str, str]:
        pod = self.pods.get(uid)
        return (pod.metadata.creation_timestamp or "" if pod is not None else "", uid)


def amounts_of(request: Request) -> dict[str, int]:
    core = {"GPUs": request.gpu_count * request.gpu_milli, "CPU": request.cpu_milli, "memory": request.memory_mib}
    return {**core, **dict(request.accelerators)}


def _capacity(node: Node) -> dict[str, int]:
    core = {"GPUs": WHOLE_DEVICE_MILLI * len(node.devices), "CPU": node.cpu_milli, "memory": node.memory_mib}
    return {**core, **node.accelerators}


def _same_rules(old: Pod, new: Pod) -> bool:
    """Whether nothing has changed that says what it takes, where it may be, or who counts it. To be bound, with a note
    of ours, is no such change; that alone is what most changes are."""
    return (
        (old.spec == new.spec or (not old.spec.node_name and _on_no_node(new.spec) == old.spec))
        and old.metadata.labels == new.metadata.labels
        and (old.metadata.annotations == new.metadata.annotations or _notes(old) == _notes(new))
        and (old.metadata.deletion_timestamp is None) == (new.metadata.deletion_timestamp is None)
        and old.status.container_statuses == new.status.container_statuses
    )


def _on_no_node(spec: PodSpec) -> PodSpec:
    return structs.replace(spec, node_name=None)


def _notes(pod: Pod) -> dict[str, str]:
    return {key: value for key, value in (pod.metadata.annotations or {}).items() if key not in OUR_NOTES}


def _word(meta: Meta, key: str) -> str:
    found: Mapping[str, str] = {**(meta.labels or {}), **(meta.annotations or {})}
    return found.get(key, "")
