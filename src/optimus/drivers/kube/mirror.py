"""The cluster as it is, and what of it the brain has been told.

    changes of pods, nodes, owners … ──► mirror ──► `news`: observations, each fact once
                                            ▲
                plan ──► acting ──► `seat`: which pod takes which place

Why: an API server tells the same thing many times, in any order, and from the beginning after every break; the brain
is told only what is new to it.
Owns: every pod that matters, which pod is which replica, and the difference between what is and what was told. Nodes
are in `hosting`.
Must not: talk to a server, read a clock, or decide.

A replica, as far as the brain knows, by its pod:

    (nothing) ── bound ──► running ── being deleted ──► stopping ── gone ──► (nothing)
                              ├── gone, failed ───────────────────────────► (nothing)       SlotGone
                              └── ended well, and nobody takes its place ──► done           SlotDone
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator

from msgspec import structs

from optimus.drivers.kube.aside import Aside, Thing, bare
from optimus.drivers.kube.avoiding import was_refused
from optimus.drivers.kube.claiming import Claims, Users
from optimus.drivers.kube.columns import Columns
from optimus.drivers.kube.counting import Counting
from optimus.drivers.kube.dependents import Dependents
from optimus.drivers.kube.describing import DEFAULT_QUEUE, UNIFIED, Needs, describe, read_time, stand_in, usable
from optimus.drivers.kube.devices import GPU_DRIVERS, Catalog
from optimus.drivers.kube.dividing import Division, shared
from optimus.drivers.kube.endings import outcome_of, seat_left
from optimus.drivers.kube.grouping import Group, Groups, Kinds, ObjectRef, RoleInGroup, Slot
from optimus.drivers.kube.hosting import Hosting
from optimus.drivers.kube.nodes import amounts_of
from optimus.drivers.kube.objects import Anything, Meta, PersistentVolume, Pod, VolumeAttachment
from optimus.drivers.kube.objects import Node as KubeNode
from optimus.drivers.kube.places import Places, Seat, Told
from optimus.drivers.kube.pods import PodNeeds, among_others, read_pod, same_rules
from optimus.drivers.kube.priorities import Priorities
from optimus.drivers.kube.remembering import remembered, runs
from optimus.drivers.kube.requests import GPU_NAMES
from optimus.drivers.kube.tenants import Tenants
from optimus.drivers.kube.volumes import Around
from optimus.model.gangs import same_places
from optimus.model.nodes import Node
from optimus.model.observations import (
    NodeGone,
    Observation,
    SlotRunning,
    SlotStopping,
    WorkloadEnded,
    WorkloadSeen,
)
from optimus.model.reasons import Reason
from optimus.model.workloads import Request, Workload

SCHEDULER_NAME = "optimus"


class Mirror:
    def __init__(
        self,
        kinds: Kinds,
        *,
        scheduler_name: str = SCHEDULER_NAME,
        gpu_names: tuple[str, ...] = GPU_NAMES,
        gpu_drivers: tuple[str, ...] = GPU_DRIVERS,
        default_queue: str = DEFAULT_QUEUE,
        opting_in: bool = False,
    ) -> None:
        """`opting_in`: namespaces that opt in are given to us; to the one called optimus they always are."""
        self.groups = Groups(kinds)
        self.pods: dict[str, Pod] = {}
        """By uid: ours, and others that take room."""
        self.around = Around(devices=Claims(catalog=Catalog(gpu_drivers)))
        self.dependents = Dependents()
        self.priorities = Priorities()
        self.workloads: dict[str, Workload] = {}
        """As the brain knows them."""
        self.steered: set[str] = set()
        """Those of them that are jobs of ours, whose controller follows a number."""
        self.aside = Aside()
        self._columns = Columns()
        self.avoided: dict[str, tuple[str, ...]] = {}
        """By workload: nodes on which it could not start lately."""
        self.refusing: list[tuple[str, str]] = []
        """Workloads, and nodes of which the kubelet has refused a pod of theirs, since somebody took them."""
        self.refused: dict[str, Workload] = {}
        """Gangs that are put aside because the brain could not take them in, as they were then."""
        self._scheduler_name, self._gpu_names, self._default_queue = scheduler_name, gpu_names, default_queue
        self._counting = Counting()
        self.tenants = Tenants(self.aside, self._counting, self._look_at_namespace)
        self._counted_version = 0
        self._needs: dict[str, PodNeeds] = {}
        self._hosting = Hosting(
            self.pods,
            self._counting,
            self.needs_of,
            self._request_known,
            self._broken_node,
            self._node_changed,
            lambda: self.around,
            gpu_names,
            self._columns.asked,
        )
        self.nodes = self._hosting.nodes
        self._spare, self.surplus = self._hosting.spare, self._hosting.surplus
        self._users = Users()
        self._places = Places()
        self._division = Division(self.groups, self.pods, self.needs_of, self._counting)
        self.held: set[str] = set()
        """Workloads with places that wait for a pod: what the brain knows of them stays as it is."""
        self._takes_opted_in = opting_in or scheduler_name == SCHEDULER_NAME
        self._dirty_pods: set[str] = set()
        self._heard: set[str] = set()
        """Uids of ours of which anything was heard since somebody asked."""
        self._facts: list[Observation] = []
        """Of nodes that went: nothing to compare them with."""
        self._unbound: set[str] = set()
        """Uids of ours that are on no node."""
        self.ending: set[str] = set()
        """Uids of ours that have been told to leave their node, and are waited for."""
        self._stranded: set[str] = set()
        """Those of them that are not waited for any more (`stranding`)."""
        self._bound: set[str] = set()
        """Uids of ours that came to a node since somebody asked."""

    # -- what changes -------------------------------------------------------------------------------------------------

    def node(self, node: KubeNode) -> None:
        name = node.metadata.name
        if name not in self.nodes:
            self._dirty_pods |= self._hosting.on(name)  # they came first
        self.aside.take_back(Thing.NODE, name)
        self._hosting.see(node)

    def node_gone(self, name: str) -> None:
        self._facts += self._lose_node(name)
        self.aside.take_back(Thing.NODE, name)

    def _lose_node(self, name: str) -> list[Observation]:
        if not self._hosting.gone(name):
            return []
        for uid in sorted(self._hosting.on(name)):
            if (seat := self._places.seat(uid)) is not None and seat.node == name:
                self._stand_up(uid)  # the brain has lost them with the node
        return [NodeGone(name)]

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        for gang in self._columns.node(old, new):
            self.look_again(gang)

    def _broken_node(self, name: str, error: Exception) -> list[Observation]:
        self.aside.put(Thing.NODE, name, name, error)
        return self._lose_node(name)

    def pod(self, pod: Pod) -> None:
        """It is there, or has changed."""
        uid = pod.metadata.uid
        self.aside.take_back(Thing.POD, uid)
        try:
            self._take(uid, pod)
        except Exception as error:  # noqa: BLE001 - see `aside`
            self.aside.put(Thing.POD, uid, pod.key, error)
            with contextlib.suppress(Exception):
                self.groups.pod_gone(uid)
            self._needs.pop(uid, None)
            self._take(uid, bare(pod))

    def _take(self, uid: str, pod: Pod) -> None:
        old = self.pods.get(uid)
        self.pods[uid] = pod
        if self._users.see(pod):
            self._devices_have_others()
        if self.is_ours(pod):
            self.groups.pod(pod)
            self._dirty_pods.add(uid)
            if pod.spec.node_name and (old is None or not old.spec.node_name):
                self._bound.add(uid)
            if pod.spec.node_name or pod.over:
                self._unbound.discard(uid)
                self.dependents.forget(uid)
            else:
                self._unbound.add(uid)
                self.dependents.see(pod)
            self._heard.add(uid)
            ending = pod.metadata.deletion_timestamp and pod.spec.node_name and not pod.over
            (self.ending.add if ending and uid not in self._stranded else self.ending.discard)(uid)
        self._move(uid, old, pod)

    def pod_gone(self, uid: str) -> None:
        pod = self.pods.pop(uid, None)
        for some in (self._unbound, self.ending, self._stranded):
            some.discard(uid)
        self.dependents.forget(uid)
        if pod is None:
            return
        self.aside.take_back(Thing.POD, uid)
        self._hosting.leave(uid, pod.spec.node_name or "")
        self._spare.leave(pod)
        if self._users.forget(uid):
            self._devices_have_others()
        self._counting.forget(pod.key)
        self._needs.pop(uid, None)
        self.groups.pod_gone(uid)
        self._places.unplan(uid)
        self._dirty_pods.add(uid)
        self._heard.add(uid)

    def _devices_have_others(self) -> None:
        """Other pods than before use a claim."""
        self.dependents.device_changed()
        self._spare.stale = True

    def strand(self, uid: str) -> None:
        """It is told to leave, and its node does not answer: it is no replica any more. Its room stays busy."""
        self.ending.discard(uid)
        self._stranded.add(uid)
        self.groups.strand(uid)
        self._dirty_pods.add(uid)

    def owner(self, thing: Anything) -> None:
        meta = thing.metadata
        self.aside.take_back(Thing.OWNER, meta.uid)
        try:
            self.groups.owner(thing)
        except Exception as error:  # noqa: BLE001 - see `aside`
            self.aside.put(Thing.OWNER, meta.uid, f"{thing.kind} {meta.namespace}/{meta.name}", error)
            with contextlib.suppress(Exception):
                self.groups.owner_gone(meta.uid)

    def owner_gone(self, uid: str) -> None:
        self.aside.take_back(Thing.OWNER, uid)
        self.groups.owner_gone(uid)

    def owner_absent(self, ref: ObjectRef) -> None:
        self.groups.owner_absent(ref)

    def _look_at_namespace(self, name: str) -> None:
        for gang in self.groups.ids():
            if gang.startswith(f"{name}/"):
                self.look_again(gang)

    def surroundings(self, around: Around) -> None:
        """Volumes, devices, claims and classes, all at once: pods that wait for one are read again."""
        self.beside(around)
        self.dependents.all_changed()
        self._hosting.hang(self.nodes.keys())

    def beside(self, around: Around) -> None:
        """One of them has changed; `dependents` are told which."""
        devices = structs.replace(around.devices, users=self._users.of, unbound=self._unbound)
        self.around = structs.replace(around, devices=devices)
        self._spare.stale = True

    def _read_again(self) -> None:
        """Pods whose claims have changed since the last turn, and their gangs; gangs whose priority class has."""
        if self._spare.make_room(self._columns.asked, self._needs.values(), self.around.devices.catalog):
            self.dependents.device_changed()
        stale, gangs = self.dependents.take_stale(self.around), self.dependents.take_thought_of()
        gangs |= self.priorities.take_stale(self.groups)
        for uid in stale:
            self._needs.pop(uid, None)
            if (gang := self.groups.group_of(uid)) is not None:
                gangs.add(gang)
        self._dirty_pods |= stale
        for gang in gangs:
            self.look_again(gang)

    def storage_node(self, name: str, limits: dict[str, int]) -> None:
        """How many volumes its drivers attach to a node."""
        self._hosting.see_drivers(name, limits)

    def attachment(self, name: str, attachment: VolumeAttachment | None) -> None:
        self._hosting.hang(self._hosting.attached.see(name, attachment))

    def claim_changed(self, key: str) -> None:
        self.dependents.claim_changed(key)
        self._hosting.hang(self._hosting.attached.nodes_of_claim(key))

    def volume_changed(self, *versions: PersistentVolume | None) -> None:
        """As it was, and as it is."""
        self.dependents.volume_changed(*versions)
        for one in versions:
            self._hosting.hang(self._hosting.attached.nodes_of_volume(one) if one is not None else set())

    # -- what is new --------------------------------------------------------------------------------------------------

    def news(self) -> list[Observation]:
        """What the brain has not been told yet, in an order in which it can be understood."""
        self._counting.admit()
        self._read_again()
        gangs = self.groups.take_changed() | self._columns.take_refused()
        for uid in self._dirty_pods:
            if (gang := self.groups.group_of(uid)) is not None:
                gangs.add(gang)
        if self._counting.version != self._counted_version:  # other selectors are in use: others count for others
            self._counted_version = self._counting.version
            gangs |= {gang for uid in self._unbound if (gang := self.groups.group_of(uid)) is not None}
            self._hosting.dirty |= self.nodes.keys()
        facts, self._facts = self.tenants.news() + self._facts, []
        facts += self._hosting.news(self._hosting.dirty - self._hosting.known.keys())  # before those who are on them
        for gang in gangs:
            if gang not in self.held:  # who cannot use its place gives it back, and is looked at then
                self._division.divide(gang, self._waits)
        gangs |= self.groups.take_changed()
        described = [fact for gang in sorted(gangs) for fact in self._gang_news(gang)]
        leaving, coming = self._pods_news(gangs)
        facts += leaving  # a role may go with the last of its replicas
        facts += [fact for fact in described if isinstance(fact, WorkloadSeen)]
        facts += coming
        facts += [fact for fact in described if not isinstance(fact, WorkloadSeen)]
        if self._spare.stale or self._hosting.dirty:
            self._hosting.dirty |= self._spare.recount(self._hosting.known, self.around, self._counted())
        facts += self._hosting.news(self._hosting.dirty)  # who is known by now does not count as somebody else
        return facts

    def follow(self) -> None:
        """Nobody leads here: what is new is not kept, since whoever begins to is told everything."""
        self._read_again()
        self.groups.take_changed()
        self._hosting.take_touched()
        self.tenants.news()
        self._facts, self._hosting.dirty, self._dirty_pods = [], set(), set()
        self._heard, self._bound, self.refusing = set(), set(), []

    def everything(self) -> list[Observation]:
        """All there is, for a brain that knows nothing."""
        self.follow()
        for known in (self.held, self._places, self.workloads, self.steered):
            known.clear()
        self._hosting.forget_told()
        self._columns.begin_anew()
        self._spare.begin_anew(self._needs.values())
        self._facts = self.tenants.everything() + remembered(runs(self))
        self._dirty_pods = set(self.pods)
        self.look_at_all()
        return self.news()

    # -- which pod takes which place ----------------------------------------------------------------------------------

    def seat(self, workload: str, slots: Iterable[Slot]) -> dict[Slot, Pod]:
        """Pods for places that a plan has given: for each the one with this number, else any of the role that waits.
        Those for which there is none (yet) are left out."""
        found: dict[Slot, Pod] = {}
        empty = []
        for slot in slots:
            holder = self._places.holder(workload, slot)
            pod = self.groups.pod_at(workload, slot) if holder is None else self.pods.get(holder)
            if holder is None and (pod is None or not self._waits(pod)):
                empty.append(slot)
            elif pod is not None:
                found[slot] = pod
                self._places.plan(pod.metadata.uid, workload, slot)
        waiting = self._members(workload, self._waits) if empty else {}
        for slot in empty:
            if rest := waiting.get(slot.role):
                found[slot] = rest.pop(0)
                self._places.plan(found[slot].metadata.uid, workload, slot)
        return found

    def outgrown(self, workload: str, slot: Slot, pod: Pod, node: str) -> str:
        """Why the pod is not what its place was given for; empty if it is. A template may say less than its pod, and
        nodes change."""
        given, needs = self._request(workload, slot), self.needs_of(pod)
        if given is None:
            return f"there is no role {slot.role} any more"
        if needs.obstacle is not None:
            return needs.obstacle.text()
        asked, there = amounts_of(needs.request), amounts_of(given)
        more = sorted(name for name, amount in asked.items() if amount > there.get(name, 0))
        if more:
            return f"the pod asks for more {', '.join(more)} than was known when its place was chosen"
        there_now = self.node_known(node)
        if there_now is not None and not (needs.where.accepts(there_now) and needs.where.tolerates(there_now)):
            return "the pod may not be there by its node selector, affinity, tolerations or volumes"
        return ""

    def unseat(self, workload: str, slot: Slot) -> None:
        """The place is given up, and nothing runs there."""
        if (uid := self._places.holder(workload, slot)) is not None:
            self._places.unplan(uid)
            self._spare.stale = True
            self.groups.look_again(workload)  # it may be in another part now

    def pods_of(self, workload: str) -> list[Pod]:
        """Those of its pods that are on a node."""
        return [self.pods[uid] for uid in self._places.seats_of(workload) if uid in self.pods]

    def waiting_pods(self, workload: str) -> list[Pod]:
        """Those that are not on a node and are not about to be."""
        return [pod for pod in self._pods_in(workload) if self._waits(pod)]

    def _pods_in(self, gang: str) -> Iterator[Pod]:
        return (self.pods[uid] for uid in sorted(self.groups.members(gang)) if uid in self.pods)

    def unbound_pods(self, workload: str) -> list[Pod]:
        """Those that are not on a node, also if they are about to be."""
        pods = self._pods_in(workload)
        return [pod for pod in pods if pod.metadata.uid in self._unbound and not pod.metadata.deletion_timestamp]

    def node_known(self, name: str) -> Node | None:
        """As the brain knows it."""
        return self._hosting.known.get(name)

    def first_pod(self, workload: str) -> Pod | None:
        """The one by which people know it, where nobody owns it."""
        return min(self._pods_in(workload), key=lambda pod: pod.metadata.name, default=None)

    def take_bound(self) -> tuple[set[str], set[str]]:
        """Those of ours that came to a node since the last time, whoever sent them there; and the nodes to which
        anybody came, or which have changed."""
        bound, self._bound = self._bound, set()
        return bound, self._hosting.take_touched()

    def roles_seated(self, workload: str) -> list[str]:
        """The role of each of its pods that are on a node and not leaving it."""
        return [seat.slot.role for seat in self._places.seats_of(workload).values() if seat.told is Told.RUNNING]

    def seat_of(self, uid: str) -> Seat | None:
        """What the brain knows of it."""
        return self._places.seat(uid)

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
        if group.kind == UNIFIED:  # of several of us, the one called optimus has those that name nobody
            return not group.scheduler_name and self._takes_opted_in
        opted_in = self.tenants.opted_in(group.id.partition("/")[0]) and self._takes_opted_in
        return opted_in and group.names_nobody and (group.suspended or group.id in self.workloads)

    # -- nodes --------------------------------------------------------------------------------------------------------

    def _counted(self) -> Iterator[tuple[Pod, Request]]:
        """Those with a place, and what the brain counts for them."""
        for uid, (workload, slot) in self._places.all_planned():
            pod, request = self.pods.get(uid), self._request(workload, slot)
            if pod is not None and request is not None:
                yield pod, request

    def _request_known(self, uid: str) -> Request | None:
        """What the brain counts for the pod; None if it does not know it."""
        seat = self._places.seat(uid)
        return self._request(seat.workload, seat.slot) if seat is not None else None

    def _request(self, workload: str, slot: Slot) -> Request | None:
        roles = self.workloads[workload].gang.roles if workload in self.workloads else ()
        return next((role.request for role in roles if role.name == slot.role), None)

    def _move(self, uid: str, old: Pod | None, pod: Pod) -> None:
        """Count it on the node it is on."""
        takes_room = bool(pod.spec.node_name) and not pod.over
        changed = old is not None and not same_rules(old, pod)
        if takes_room or (self.is_ours(pod) and not pod.over):
            if old is None or changed:
                self._needs.pop(uid, None)
                self._counting.see(pod.key, self.needs_of(pod).social, to_place=self.is_ours(pod))
        else:
            self._counting.forget(pod.key)
        if takes_room:
            self._hosting.come(uid, pod.spec.node_name or "", changed=changed)
        elif old is not None:
            self._hosting.leave(uid, old.spec.node_name or "")

    # -- gangs --------------------------------------------------------------------------------------------------------

    def _gang_news(self, gang: str) -> list[Observation]:
        workload, known = self._usable(gang), self.workloads.get(gang)
        if workload is None:
            if known is None:
                return []
            self._columns.forget(gang)
            self._spare.left = True
            del self.workloads[gang]
            self.steered.discard(gang)
            return [WorkloadEnded(gang, outcome_of(self.groups.group(gang)))]
        seats = self._places.seats_of(gang).values()
        seated = {seat.slot.role for seat in seats if self._request(gang, seat.slot) is not None}
        if known is not None and seated and not same_places(known.gang, workload.gang, seated):
            # An owner that is gone declares no roles any more: those that are still there keep the places they had.
            workload = structs.replace(workload, gang=known.gang)
        if workload == known:
            return []
        self.workloads[gang] = workload
        if (group := self.groups.group(gang)) is not None and group.kind == UNIFIED:
            self.steered.add(gang)
        self._hosting.ask(self._columns.ask(workload))
        return [WorkloadSeen(workload)]

    def _usable(self, gang: str) -> Workload | None:
        """As it is described, or in name only, with the reason: its pods then count as those of somebody else."""
        try:
            workload = self._described(gang)
        except Exception as error:  # noqa: BLE001 - see `aside`
            return stand_in(gang, self._default_queue, self.aside.put(Thing.GANG, gang, gang, error))
        if workload is None or workload != self.refused.get(gang):
            self.refused.pop(gang, None)
            self.aside.take_back(Thing.GANG, gang)
        if workload is None:
            return None
        runs = any(pod.spec.node_name for pod in self._pods_in(gang))
        why = self.aside.why(Thing.GANG, gang) or self._columns.too_many(workload, runs=runs)
        if why is None and not runs:
            why = self._columns.missing(workload)
        return usable(workload) if why is None else stand_in(gang, workload.queue, why)

    def _described(self, gang: str) -> Workload | None:
        """None if there is no such gang, it is not ours, or it is over."""
        group = self.groups.group(gang)
        if group is None or group.over or not self.is_for_us(group):
            return None
        if not group.roles and not group.problems:
            return None
        if not group.admit and not any(role.pods for role in group.roles) and any(role.ended for role in group.roles):
            return None  # all have ended, and nobody says that more will come
        if group.object is None and not any(role.pods for role in group.roles):
            return None
        return self._read_group(group)

    def _read_group(self, group: Group) -> Workload:
        queue = self.tenants.queue_of(group.id.partition("/")[0]) or self._default_queue
        members = self._members(group.id)
        seated: dict[str, list[int]] = {}
        for uid in self.groups.members(group.id):  # also those of whom the brain will only now be told
            slot = self._slot_of(uid) if self._is_there(uid) and self.pods[uid].spec.node_name else None
            if slot is not None:
                seated.setdefault(slot.role, []).append(slot.ordinal)

        def needs(role: RoleInGroup) -> Needs:
            return self._role_needs(group, role, members.get(role.name, []), seated.get(role.name, []))

        ranked = structs.replace(group, priority=self.priorities.of(group))
        described = structs.replace(describe(ranked, needs, queue), avoids=self.avoided.get(group.id, ()))
        why = self.aside.why_owner(group.kind, group.object.uid if group.object is not None else "")
        return described if why is None else structs.replace(described, obstacle=why)

    def ended(self) -> Iterator[tuple[Workload, Group]]:
        """Work of ours that is over and has not been deleted, as it was."""
        for gang in self.groups.ids():
            group = self.groups.group(gang)
            if group is not None and group.over and group.roles and self.is_for_us(group):
                yield self._read_group(group), group

    def _role_needs(self, group: Group, role: RoleInGroup, members: list[Pod], seated: list[int]) -> Needs:
        """Of the pod that speaks for the role: one that waits, since rules matter only to those that are placed; while
        some run, what the brain knows of them stays."""
        known = self.workloads.get(group.id)
        waiting = [pod for pod in members if self._waits(pod)]
        obstacle = next((one for pod in waiting if (one := self._obstacle(pod)) is not None), None)
        running, reach, awaited = len(seated), max(seated, default=-1) + 1, group.id in self.held
        if known is not None and (seated or awaited):
            for old in known.gang.roles:
                if old.name == role.name:
                    return Needs(old.request, old.where, obstacle, running, reach, awaited)
        if members:
            pod = (waiting or members)[0]
            needs = self.needs_of(pod)
            request, where = among_others(needs, self._counting)
            obstacle = obstacle or self._obstacle(pod) or shared(needs, len(waiting))
            return Needs(request, where, obstacle, running, reach)
        if role.template is not None and role.template.resource_claims:
            self.dependents.think_of(group.id)
        namespace = group.id.partition("/")[0]
        made = Pod(metadata=Meta(name=role.name, namespace=namespace), spec=role.template or Pod(metadata=Meta()).spec)
        needs = self._spare.see(read_pod(made, self.around, self._gpu_names))
        return Needs(needs.request, needs.where, needs.obstacle or self.priorities.missing(role.template))

    def _obstacle(self, pod: Pod) -> Reason | None:
        return self.needs_of(pod).obstacle or self._counting.full(pod.key)

    def _members(self, gang: str, wanted: Callable[[Pod], bool] = lambda _pod: True) -> dict[str, list[Pod]]:
        """By role, in the order of their numbers."""
        found: dict[str, list[tuple[int, Pod]]] = {}
        for uid in self.groups.members(gang):
            pod, slot = self.pods.get(uid), self.groups.slot_of(uid)
            if pod is not None and slot is not None and wanted(pod):
                found.setdefault(slot.role, []).append((slot.ordinal, pod))
        return {role: [pod for _, pod in sorted(pairs, key=lambda pair: pair[0])] for role, pairs in found.items()}

    def avoid(self, gang: str, nodes: tuple[str, ...]) -> None:
        """From now on, other places come first."""
        self.avoided.pop(gang, None)
        if nodes:
            self.avoided[gang] = nodes
        self.look_again(gang)

    def look_again(self, gang: str) -> None:
        for uid in self.groups.members(gang):
            self._dirty_pods.add(uid)
        self.groups.look_again(gang)

    def look_at_all(self) -> None:
        for gang in self.groups.ids():
            self.look_again(gang)

    # -- replicas -----------------------------------------------------------------------------------------------------

    def _pods_news(self, gangs: Iterable[str]) -> tuple[list[Observation], list[Observation]]:
        """Of those that leave, and of those that come."""
        looked_at = self._dirty_pods | {uid for gang in gangs for uid in self.groups.members(gang)}
        self._dirty_pods = set()
        leaving: list[Observation] = []
        coming: list[Observation] = []
        for uid in sorted(looked_at, key=self._division.age):
            gone, come = self._pod_news(uid)
            leaving += gone
            coming += come
        return leaving, coming

    def _pod_news(self, uid: str) -> tuple[list[Observation], list[Observation]]:
        pod, old, gang = self.pods.get(uid), self._places.seat(uid), self.groups.group_of(uid)
        slot = self._slot_of(uid)
        known = slot is not None and self._request(gang or "", slot) is not None
        there = pod is not None and bool(pod.spec.node_name) and self._is_there(uid) and known
        if old is not None and (not there or (old.workload, old.slot) != (gang, slot)):
            self._stand_up(uid)
            if pod is not None and was_refused(pod):
                self.refusing.append((old.workload, old.node))
            gone = seat_left(old, pod, self.groups.group(old.workload))
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
        self._hosting.dirty.add(node)
        return [], facts

    def _slot_of(self, uid: str) -> Slot | None:
        gang, planned = self.groups.group_of(uid), self._places.planned(uid)
        return planned[1] if planned is not None and planned[0] == gang else self.groups.slot_of(uid)

    def _stand_up(self, uid: str) -> None:
        seat = self._places.stand_up(uid)
        self._hosting.dirty.add(seat.node)
        if not self._places.seats_of(seat.workload):
            self.groups.look_again(seat.workload)  # its roles may be others by now

    def _is_there(self, uid: str) -> bool:
        pod = self.pods.get(uid)
        return pod is not None and not pod.over and uid not in self._stranded

    def _waits(self, pod: Pod) -> bool:
        planned = self._places.planned(pod.metadata.uid) is not None
        return not (pod.spec.node_name or pod.over or pod.metadata.deletion_timestamp or planned)

    def needs_of(self, pod: Pod) -> PodNeeds:
        uid = pod.metadata.uid
        if uid not in self._needs:
            needs = self._spare.see(read_pod(pod, self.around, self._gpu_names))
            if (why := self.aside.why(Thing.POD, uid)) is not None:
                needs = structs.replace(needs, obstacles=(why, *needs.obstacles))
            self._needs[uid] = needs
        return self._needs[uid]
