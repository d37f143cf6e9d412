"""Devices for pods that have a place: claims are allocated there, and reserved for their pods.

    allocate on the node ──► finalizer ──► status: allocation and reservedFor, together ──► the watch shows it: ready
    allocated already    ───────────────► status: reservedFor, one more
    a draft elsewhere    ───────────────► status: nothing, and then as above

Why: DRA has no controller that allocates; whoever places a pod writes which devices its claims get, before the bind.
Owns: what was written and is not seen yet, and drafts: claims that are allocated for pods of ours that are on no node.
A draft of a pod that got its place there is kept; the draft of one that waits again is taken back after DRAFT_S, also
if another leader wrote it.
Must not: touch a claim that anybody else uses. When its pods are gone, Kubernetes' resourceclaim controller takes the
reservation and the allocation away.

The server does not count: what keeps a device from being given twice is that one leads, and that every write names the
version of the claim on which it was decided. What others (kube-scheduler) give at the same moment is seen with the next
watch event; a claim of ours that has a device of an older one is taken back while its pod is not bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Coroutine, Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct, structs

from optimus.drivers.kube.claiming import (
    ClaimError,
    claims_named,
    configs_of,
    is_draft,
    read_ask,
    tolerations_of,
)
from optimus.drivers.kube.device_objects import PODS, ResourceClaim
from optimus.drivers.kube.devices import Ask, Chosen, allocate, written
from optimus.drivers.kube.mirror import Mirror
from optimus.drivers.kube.objects import Pod
from optimus.drivers.kube.rules import node_terms
from optimus.drivers.kube.watching import RESOURCE_CLAIMS
from optimus.kube import Done, Outcome, Refused, Unknown, Writer
from optimus.model.nodes import Node
from optimus.model.rules import Where

FINALIZER = "resource.kubernetes.io/delete-protection"
CONFIRM_S = 10.0
"""What was written and is not shown by the watch so long after the server's answer is written again, if it is still
wanted, and its devices are anybody's."""
DRAFT_S = 5.0
"""A bind that a former leader has sent may still land; after this time it has."""


class Asked(Struct, frozen=True):
    devices: frozenset[str]
    """Keys. Until the watch shows them, they are nobody else's."""
    version: str
    """Of the claim, before."""
    at: float = math.inf
    """When the server answered, or had no time to."""


class Allocating:
    def __init__(
        self,
        mirror: Mirror,
        writer: Writer,
        go: Callable[[Coroutine[Any, Any, None]], object],
        clock: Callable[[], float],
    ) -> None:
        """`go`: begins a write."""
        self._mirror, self._writer, self._go, self._clock = mirror, writer, go, clock
        self._began = clock()
        self._asked: dict[str, Asked] = {}
        """By uid of a claim: a new one with the same name is another one."""
        self._refused: dict[str, str] = {}
        """The same -> why its write was refused."""
        self._drafts: dict[str, float] = {}
        """Claims that are drafts of pods without a place -> since when."""
        self._given: dict[str, list[str]] = {}
        """Device -> claims that have it."""

    def is_needed(self, pod: Pod) -> bool:
        return bool(pod.spec.resource_claims)

    def begin_turn(self) -> None:
        pass

    def look(self, pod: Pod, place: str) -> tuple[str, str]:
        node = self._mirror.node_known(place)
        assert node is not None
        fresh: list[ResourceClaim] = []
        waits: list[str] = []
        for key in claims_named(pod):
            claim = self._claims.get(key)
            if claim is None or claim.metadata.deletion_timestamp is not None:
                return "", f"resource claim {key.partition('/')[2]} is gone"
            if why := self._refused.pop(claim.metadata.uid, ""):
                return "", why
            if self._is_under_way(claim):
                waits.append(claim.metadata.name)
            elif claim.status.allocation is None:
                fresh.append(claim)
            elif not is_reached(claim, node):
                if not is_draft(claim, self._mirror.around.devices):
                    return "", f"the devices of resource claim {claim.metadata.name} cannot be reached from {place}"
                if self._clock() - self._began >= DRAFT_S:
                    self._take_back(claim)
                waits.append(claim.metadata.name)
            elif twice := next((one.key for one in claim.given if len(self._given.get(one.key, ())) > 1), ""):
                if is_draft(claim, self._mirror.around.devices):
                    self._take_back(claim)
                return "", f"device {twice} was given to somebody else at the same moment"
            elif pod.metadata.uid not in claim.consumers:
                self._reserve(claim, pod)
                waits.append(claim.metadata.name)
        if fresh:
            if why := self._allocate(fresh, pod, node):
                return "", why
            waits += [claim.metadata.name for claim in fresh]
        return (f"devices for resource claim {', '.join(waits)} on {place}", "") if waits else ("", "")

    def sweep(self, has_a_place: Callable[[str], bool]) -> None:
        """Once a turn, first of all: drafts of pods that have no place any more are taken back. What was written for a
        pod that is gone is not kept: nobody looks for it."""
        now, around = self._clock(), self._mirror.around.devices
        self._forget_the_past()
        self._given = {}
        for claim in around.claims.values():
            for one in claim.given:
                self._given.setdefault(one.key, []).append(claim.key)
        found = [
            claim
            for claim in around.claims.values()
            if claim.status.allocation is not None
            and is_draft(claim, around)
            and not any(map(has_a_place, claim.consumers))
        ]
        self._drafts = {claim.key: self._drafts.get(claim.key, now) for claim in found}
        for claim in found:
            if now - self._drafts[claim.key] >= DRAFT_S and not self._is_under_way(claim):
                self._take_back(claim)

    def _forget_the_past(self) -> None:
        if not self._asked and not self._refused:
            return
        there = {claim.metadata.uid: claim for claim in self._claims.values()}
        for uid in list(self._asked):
            if uid not in there:
                del self._asked[uid]
            else:
                self._is_under_way(there[uid])
        for uid in self._refused.keys() - there.keys():
            del self._refused[uid]

    @property
    def unsettled(self) -> int:
        return len(self._drafts)

    # -- choosing -----------------------------------------------------------------------------------------------------

    @property
    def _claims(self) -> dict[str, ResourceClaim]:
        return self._mirror.around.devices.claims

    def _is_under_way(self, claim: ResourceClaim) -> bool:
        """Written, and not seen yet; otherwise it is forgotten."""
        uid = claim.metadata.uid
        asked = self._asked.get(uid)
        if asked is None:
            return False
        shown = claim.metadata.resource_version != asked.version and not (asked.devices - _keys(claim))
        if shown or self._clock() - asked.at > CONFIRM_S:
            del self._asked[uid]
            return False
        return True

    def _allocate(self, fresh: list[ResourceClaim], pod: Pod, node: Node) -> str:
        """Why it cannot be; empty: it is under way."""
        catalog, names = self._mirror.around.devices.catalog, ", ".join(one.metadata.name for one in fresh)
        taken = self._given.keys() | {key for asked in self._asked.values() for key in asked.devices}
        try:
            asks: list[Ask] = [read_ask(one.spec, one.metadata.name, catalog)[0] for one in fresh]
            chosen = allocate(asks, node, taken, catalog)
            later = chosen is None and allocate(asks, node, taken - self._coming_back(), catalog) is not None
        except ClaimError as error:
            return error.reason.text()
        if chosen is None:
            if self._drafts or later:
                return ""  # what others have comes back first
            return f"no devices are free on {node.name} for resource claim {names}"
        for claim, devices in zip(fresh, chosen, strict=True):
            self._note(claim, frozenset(one.offered.key for one in devices))
            configs = configs_of(claim, _once(devices), catalog)
            allocation = {"allocationTimestamp": _now(), **written(devices, configs, tolerations_of(claim))}
            self._go(self._write(claim, {"allocation": allocation, "reservedFor": [_consumer(pod)]}, protect=True))
        return ""

    def _coming_back(self) -> set[str]:
        """Devices of claims whose pods are gone: Kubernetes takes them back, and takes its time."""
        pods = self._mirror.pods
        left = (
            claim
            for claim in self._claims.values()
            if all(one.resource == "pods" and one.uid not in pods for one in claim.status.reserved_for or ())
        )
        return {one.key for claim in left for one in claim.given}

    def _reserve(self, claim: ResourceClaim, pod: Pod) -> None:
        self._note(claim, _keys(claim))
        others = [
            {"apiGroup": one.api_group, "resource": one.resource, "name": one.name, "uid": one.uid}
            for one in claim.status.reserved_for or ()
        ]
        others = [{key: value for key, value in one.items() if value} for one in others]
        self._go(self._write(claim, {"reservedFor": [*others, _consumer(pod)]}))

    def _take_back(self, claim: ResourceClaim) -> None:
        self._note(claim, frozenset())
        self._go(self._write(claim, {"allocation": None, "reservedFor": None, "devices": None}))

    def _note(self, claim: ResourceClaim, devices: frozenset[str]) -> None:
        self._asked[claim.metadata.uid] = Asked(devices, claim.metadata.resource_version)

    # -- writes -------------------------------------------------------------------------------------------------------

    async def _write(self, claim: ResourceClaim, status: dict[str, Any], *, protect: bool = False) -> None:
        uid = claim.metadata.uid
        try:
            self._answered(claim, await self._send(claim, status, protect=protect))
        finally:  # whatever came of it: nothing is waited for without end
            if (asked := self._asked.get(uid)) is not None:
                self._asked[uid] = structs.replace(asked, at=self._clock())

    async def _send(self, claim: ResourceClaim, status: dict[str, Any], *, protect: bool) -> Outcome:
        meta = claim.metadata
        version = meta.resource_version
        if protect and FINALIZER not in (meta.finalizers or ()):
            outcome = await self._writer.patch(
                RESOURCE_CLAIMS,
                meta.name,
                {"metadata": {"uid": meta.uid, "finalizers": [*(meta.finalizers or ()), FINALIZER]}},
                namespace=meta.namespace,
                resource_version=version,
            )
            if not isinstance(outcome, Done):
                return outcome
            version = msgspec.json.decode(outcome.answer, type=ResourceClaim).metadata.resource_version
        return await self._writer.patch(
            RESOURCE_CLAIMS,
            meta.name,
            {"metadata": {"uid": meta.uid}, "status": status},
            namespace=meta.namespace,
            subresource="status",
            resource_version=version,
        )

    def _answered(self, claim: ResourceClaim, outcome: Outcome) -> None:
        uid = claim.metadata.uid
        match outcome:
            case Done():
                pass  # the watch shows it
            case Unknown():
                pass  # it shows it, or it is written again
            case Refused(why, message):
                self._asked.pop(uid, None)
                self._refused[uid] = f"resource claim {claim.metadata.name}: {why}: {message}"
            case _:
                self._asked.pop(uid, None)  # another version, or gone: chosen again, on what the watch shows then


def is_reached(claim: ResourceClaim, node: Node) -> bool:
    """Raises MalformedError."""
    selector = claim.status.allocation.node_selector if claim.status.allocation else None
    return selector is None or Where(any_of=node_terms(selector)).accepts(node)


def _keys(claim: ResourceClaim) -> frozenset[str]:
    return frozenset(one.key for one in claim.given)


def _once(chosen: Iterable[Chosen]) -> list[Any]:
    return list(dict.fromkeys(one.wanted for one in chosen))


def _now() -> str:
    """Whoever reserves a claim would add it otherwise, and may not: an allocation stays as it is."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _consumer(pod: Pod) -> dict[str, str]:
    return {"resource": PODS, "name": pod.metadata.name, "uid": pod.metadata.uid}
