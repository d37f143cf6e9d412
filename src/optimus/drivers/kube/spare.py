"""What nodes have to spare for claims: volumes that must be there already, devices that drivers publish.

Why: a claim that is met when its pod is placed asks for what a node has besides its resources; the brain counts it as
it counts everything: how much there is, and who has some of it.
Owns: those numbers, node by node, as the brain was told them last.
Must not: choose (`first_consumers`, `devices`); read pods.

A node has of a counter what is free, and what pods that the brain counts have got of it: they take it there. Where all
GPUs of a node are of a kind there is no end of that kind: they are counted as GPUs.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from msgspec import Struct

from optimus.drivers.kube.claiming import Claims, Together, is_draft
from optimus.drivers.kube.device_objects import ResourceClaim
from optimus.drivers.kube.devices import Catalog, Kind, Offered, allocate
from optimus.drivers.kube.first_consumers import SPARE, Shape, claim_names, claims_of, volume_counts
from optimus.drivers.kube.objects import Pod
from optimus.drivers.kube.pods import PodNeeds
from optimus.drivers.kube.volumes import Around
from optimus.model.nodes import Node
from optimus.model.rules import DEVICE, PLENTY
from optimus.model.workloads import Request

FEW = 4
Counted = Iterable[tuple[Pod, Request]]
"""Pods with a place, and what the brain counts for each."""


class Gpus(Struct, frozen=True):
    """Of a node, by slices."""

    offered: tuple[Offered, ...] = ()
    taken: int = 0
    """By claims of which the brain knows no pod."""


class Spare:
    def __init__(self) -> None:
        self.stale = False
        """Something has changed that was counted."""
        self._shapes: set[Shape] = set()
        self._kinds: set[Kind] = set()
        self._together: set[Together] = set()
        self.left = False
        """Somebody who may have asked for some of it has gone."""
        self._most = FEW
        """So many are kept before it is asked whether anybody still means them."""
        self._told: dict[str, tuple[dict[str, int], Gpus]] = {}

    def see(self, needs: PodNeeds) -> PodNeeds:
        """What a pod asks for is counted from now on."""
        devices = needs.devices
        self.stale |= not (
            self._shapes.issuperset(needs.shapes)
            and self._kinds.issuperset(devices.kinds)
            and self._together.issuperset(devices.together)
        )
        self._shapes.update(needs.shapes)
        self._kinds.update(devices.kinds)
        self._together.update(devices.together)
        return needs

    def leave(self, pod: Pod) -> None:
        """It has gone, and with it what it asked for; most have nothing of what is counted here."""
        if pod.spec.resource_claims or (self._shapes and claim_names(pod)):
            self.stale = self.left = True

    def make_room(self, asked: Container[str], all_needs: Iterable[PodNeeds], catalog: Catalog) -> bool:
        """Where much has come together, what nobody asks for is forgotten: `asked` are counters that the brain knows
        from work, `all_needs` are of pods. Whether those who were refused a kind of devices may try again."""
        if not (catalog.refused and self.left) and self._count() <= self._most:
            return False
        before = self._shapes, self._kinds, self._together
        self._shapes, self._kinds, self._together = (
            {one for one in before[0] if one.counter in asked},
            {one for one in before[1] if one.counter in asked},
            {one for one in before[2] if one.counter in asked},
        )
        meant: set[Kind] = set()
        for needs in all_needs:
            meant.update(self.see(needs).devices.meant)
        self._most, self.left = 2 * self._count() + FEW, False
        parts = (way.kind for one in self._together for ask in one.asks for ways in ask.requests for way in ways)
        return catalog.keep_only({*self._kinds, *parts, *meant})

    def _count(self) -> int:
        return len(self._shapes) + len(self._kinds) + len(self._together)

    def begin_anew(self, all_needs: Iterable[PodNeeds]) -> None:
        """For a brain that knows nothing: only what somebody still asks for is counted."""
        self._shapes, self._kinds, self._together = set(), set(), set()
        self.clear()
        for needs in all_needs:
            self.see(needs)
        self.stale = self.left = True

    def forget(self, node: str) -> None:
        self._told.pop(node, None)

    def clear(self) -> None:
        self._told.clear()

    def counters(self, node: str) -> dict[str, int]:
        return self._told.get(node, ({}, Gpus()))[0]

    def gpus(self, node: str) -> Gpus:
        return self._told.get(node, ({}, Gpus()))[1]

    def recount(self, nodes: Mapping[str, Node], around: Around, counted: Counted) -> set[str]:
        """The names of those that have something else to spare now."""
        if not self.stale and nodes.keys() <= self._told.keys():
            return set()
        self.stale = False
        pods = list(counted)
        volumes = self._volumes(nodes, around, pods)
        held = _held(around.devices, pods)
        usable = [(kind.counter, around.devices.catalog.usable(kind)) for kind in self._kinds]
        changed = set()
        for name, node in nodes.items():
            counters, gpus = self._devices(node, around.devices, held, usable)
            now = ({**volumes.get(name, {}), **counters}, gpus)
            if now != self._told.get(name, ({}, Gpus())):
                changed.add(name)
            self._told[name] = now
        return changed

    def _volumes(self, nodes: Mapping[str, Node], around: Around, pods: Counted) -> dict[str, dict[str, int]]:
        if not self._shapes:
            return {}
        counted: dict[str, set[str]] = {}
        for pod, request in pods:
            taken = {name for name, _ in request.accelerators if name.startswith(SPARE)}
            for claim in claims_of(pod, around.claims) if taken else ():
                counted.setdefault(f"{claim.metadata.namespace}/{claim.metadata.name}", set()).update(taken)
        return volume_counts(self._shapes, around.volumes.values(), nodes, counted)

    def _devices(
        self, node: Node, around: Claims, held: _Held, usable: list[tuple[str, frozenset[str]]]
    ) -> tuple[dict[str, int], Gpus]:
        """`usable`: counters, and the devices that each counts, wherever they are."""
        catalog = around.catalog
        gpus = tuple(catalog.offer.gpus.get(node.name, ()))
        found: dict[str, int] = {}
        told = Gpus(gpus, sum(1 for one in gpus if held.by.get(one.key) in held.without_gpus))
        if not self._kinds and not self._together:
            return found, told
        here = catalog.reached_from(node)
        free = [one for one in here if one.key not in held.by]
        keys, free_keys = {one.key for one in here}, {one.key for one in free}
        all_gpus = {one.key for one in gpus} if len(gpus) == len(node.devices) else set()
        for counter, everywhere in usable:
            if not (matching := keys & everywhere):
                continue
            plenty = all_gpus and all_gpus <= matching
            found[counter] = PLENTY if plenty else len(matching & free_keys) + held.kept(matching, counter)
        for asks in self._together:
            if fitting := _fitting(asks, node, here, free, held, around):
                found[asks.counter] = fitting
        return found, told


class _Held(Struct, frozen=True):
    by: dict[str, str]
    """Device -> uid of the pod that the brain counts for it; empty: of nobody it knows."""
    known: dict[str, dict[str, int]]
    """By uid: how much of each counter the brain counts for it."""
    without_gpus: set[str]
    """Those of them for which it counts no GPUs."""

    def kept(self, usable: Iterable[str], counter: str) -> int:
        """How much of the counter pods take by having some of these devices."""
        having: dict[str, int] = {}
        for key in usable:
            if (uid := self.by.get(key)) and uid in self.known:
                having[uid] = having.get(uid, 0) + 1
        return sum(min(number, self.known[uid].get(counter, 0)) for uid, number in having.items())


def _held(around: Claims, counted: Counted) -> _Held:
    pods = {pod.metadata.uid: request for pod, request in counted}
    by: dict[str, str] = {}
    for claim in around.claims.values():
        if claim.status.allocation is None:
            continue
        holders = [uid for uid in claim.consumers if uid in pods]
        if not holders and is_draft(claim, around):
            continue  # it is taken back, or kept by the pod that gets its place
        holder = max(holders, key=lambda uid: pods[uid].gpu_count, default="") or _waiting(claim, around)
        by |= {one.key: holder for one in claim.given}
    known = {uid: {n: a for n, a in one.accelerators if n.startswith(DEVICE)} for uid, one in pods.items()}
    return _Held(by, known, {"", *(uid for uid, one in pods.items() if not one.gpu_count)})


def _waiting(claim: ResourceClaim, around: Claims) -> str:
    """The pod of ours for which these devices are kept already, and which is on no node yet: nobody else can have them,
    and it must not find its own taken."""
    users = around.users.get(claim.key, [])
    ours = users[:1] if all(uid in around.unbound for uid in (*users, *claim.consumers)) else []
    return next(iter(ours), "")


def _fitting(asks: Together, node: Node, here: list[Offered], free: list[Offered], held: _Held, around: Claims) -> int:
    """How many pods that ask for all of this find it here."""
    keys = {one.key for one in here}
    kept = {uid for key, uid in held.by.items() if key in keys and held.known.get(uid, {}).get(asks.counter)}
    taken = keys - {one.key for one in free}
    found = len(kept)
    while (chosen := allocate(asks.asks, node, taken, around.catalog)) is not None:
        if asks.shared or not any(chosen):
            return PLENTY
        found += 1
        taken |= {one.offered.key for claim in chosen for one in claim}
    return PLENTY if asks.shared and kept else found
