"""Claims of devices: what follows from them for a pod.

    allocated        the pod goes where its devices are, and has them already
    not allocated    nodes that have so many devices of these kinds to spare, as counters; GPUs count as GPUs
    a draft          allocated for pods of ours that are on no node: written by whoever led before, or given up since.
                     It is nobody's yet, and read as if it were not there; `allocating` keeps it or takes it back

Why: a claim may come before its pod or with it, be one pod's or many's, be allocated by us or by others.
Owns: reading claims, classes and templates; what is not supported, with words; which pod counts a claim.
Must not: choose devices (`devices`), count what nodes have (`spare`) or write (`allocating`).

A claim that several pods share is counted by the first of them alone; for the others a node must only be able to have
its devices.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any
from zlib import crc32

import msgspec
from msgspec import Struct

from optimus.drivers.kube.device_objects import (
    API_VERSION,
    ClaimTemplate,
    DeviceRequest,
    DeviceSelector,
    ResourceClaim,
    ResourceClaimSpec,
    SubRequest,
)
from optimus.drivers.kube.devices import MOST_IN_A_CLAIM, Alike, Ask, Catalog, Kind, Wanted
from optimus.drivers.kube.objects import Pod, PodClaim
from optimus.drivers.kube.rules import NodeTerms, node_terms, read_toleration
from optimus.model.reasons import Code, Reason, reason
from optimus.model.rules import DEVICE, TOGETHER

MOST_CONSUMERS = 256
"""Of one claim."""
MOST_EXPRESSIONS = 16
"""Of one device, its class included."""
LONGEST_SHOWN = 200
EXACT, ALL = "ExactCount", "All"
UNSERVED = f"this server does not serve {API_VERSION}, as Kubernetes does from 1.34 on"


class Claims(Struct, frozen=True, kw_only=True):
    """What there is, by `namespace/name`."""

    claims: dict[str, ResourceClaim] = {}
    templates: dict[str, ClaimTemplate] = {}
    catalog: Catalog = msgspec.field(default_factory=Catalog)
    users: Mapping[str, list[str]] = {}
    """By claim: uids of pods that name it, the oldest first."""
    unbound: Container[str] = frozenset()
    """Uids of pods of ours that are on no node."""
    served: bool = True
    """Whether the server has claims of the version that is read. If not, that none is there says nothing."""


class Together(Struct, frozen=True):
    """What claims of a pod ask for, where numbers do not say all of it."""

    asks: tuple[Ask, ...]
    shared: bool
    """By pods: however many, one choice is enough."""

    @property
    def counter(self) -> str:
        return f"{DEVICE}{_classes(self.asks)}/{crc32(msgspec.json.encode(self)):08x}{TOGETHER}"


class Claimed(Struct, frozen=True, kw_only=True):
    """What follows for a pod."""

    all_of: tuple[NodeTerms, ...] = ()
    gpus: int = 0
    counters: tuple[tuple[str, int], ...] = ()
    kinds: tuple[Kind, ...] = ()
    together: tuple[Together, ...] = ()
    """Of the counters."""
    meant: tuple[Kind, ...] = ()
    """All that were looked for, whatever came of it."""
    shared_gpus: tuple[str, ...] = ()
    """Names of claims that others use, too, and whose devices are GPUs."""
    obstacles: tuple[Reason, ...] = ()


class ClaimError(ValueError):
    """A claim asks for what cannot be had like this."""

    def __init__(self, code: Code, **facts: str) -> None:
        super().__init__(str(facts))
        self.reason = reason(code, **facts)


def claimed_by(pod: Pod, around: Claims) -> Claimed:
    """Raises MalformedError."""
    if not pod.spec.resource_claims:
        return Claimed()
    if not around.served:
        return Claimed(obstacles=(reason(Code.UNSUPPORTED, feature="a resource claim", instead=UNSERVED),))
    pins: list[NodeTerms] = []
    obstacles: list[Reason] = []
    shared_gpus: list[str] = []
    own: list[Ask] = []
    shared: list[Ask] = []
    gpus = 0
    seen: set[str] = set()
    meant: dict[Kind, None] = {}

    def admit(kind: Kind) -> str:
        full = around.catalog.admit(kind, pod.metadata.namespace)
        meant.update({} if full else {kind: None})
        return full

    for wanted in pod.spec.resource_claims:
        try:
            claim, spec = _found(pod, wanted, around)
            if (claim is None and spec is None) or (claim is not None and claim.key in seen):
                continue
            seen |= {claim.key} if claim is not None else set()
            users = around.users.get(claim.key, []) if claim is not None else []
            carries = len(users) < 2 or users[0] == pod.metadata.uid
            if claim is not None and is_given(claim, around):
                selector = claim.status.allocation.node_selector if claim.status.allocation else None
                pins += [node_terms(selector)] if selector else []
                found = sum(1 for one in claim.given if around.catalog.is_gpu_key(one.driver, one.key))
                obstacles += _full(pod, claim)
            elif pod.spec.node_name:  # on a node, nothing is left to be chosen
                continue
            else:
                assert spec is not None
                name = claim.metadata.name if claim else wanted.name
                ask, found = read_ask(spec, name, around.catalog, admit)
                if ask.requests:
                    (own if len(users) < 2 else shared).append(ask)
            gpus += found if carries else 0
            shared_gpus += [claim.metadata.name] if claim is not None and found and len(users) > 1 else []
        except ClaimError as error:
            obstacles.append(error.reason)
    kinds, counters = _numbers(own)
    together = [Together((*own, *shared), shared=True)] if shared else []
    if not all(one.is_plain for one in own) or _overlap(kinds, around.catalog):
        together.append(Together(tuple(own), shared=False))
    counters |= {one.counter: 1 for one in together}
    return Claimed(
        all_of=tuple(dict.fromkeys(pins)),
        gpus=gpus,
        counters=tuple(sorted(counters.items())),
        kinds=kinds,
        together=tuple(together),
        meant=tuple(meant),
        shared_gpus=tuple(shared_gpus),
        obstacles=tuple(obstacles),
    )


def _found(pod: Pod, wanted: PodClaim, around: Claims) -> tuple[ResourceClaim | None, ResourceClaimSpec | None]:
    """The claim and what it asks for; of a pod that is only thought of, what its template asks for. Neither: it asks
    for nothing. Raises ClaimError."""
    name = wanted.resource_claim_name or _made_name(pod, wanted)
    if name is None:
        if pod.metadata.uid:
            if any(one.name == wanted.name for one in pod.status.resource_claim_statuses or ()):
                return None, None
            missing = f"resource claim {wanted.name} has not been made from its template yet"
            raise ClaimError(Code.NOT_READY, missing=missing)
        template = around.templates.get(f"{pod.metadata.namespace}/{wanted.resource_claim_template_name}")
        if template is None:
            missing = f"resource claim template {wanted.resource_claim_template_name} does not exist"
            raise ClaimError(Code.NOT_READY, missing=missing)
        return None, template.spec.spec
    claim = around.claims.get(f"{pod.metadata.namespace}/{name}")
    if claim is None:
        raise ClaimError(Code.NOT_READY, missing=f"resource claim {name} does not exist")
    if claim.metadata.deletion_timestamp is not None and not pod.spec.node_name:
        raise ClaimError(Code.NOT_READY, missing=f"resource claim {name} is being deleted")
    owners = claim.metadata.owner_references or ()
    if wanted.resource_claim_name is None and not any(one.uid == pod.metadata.uid for one in owners):
        raise ClaimError(Code.NOT_READY, missing=f"resource claim {name} belongs to somebody else")
    return claim, claim.spec


def _made_name(pod: Pod, wanted: PodClaim) -> str | None:
    made = (one for one in pod.status.resource_claim_statuses or () if one.name == wanted.name)
    return next((one.resource_claim_name for one in made), None)


def claims_named(pod: Pod) -> list[str]:
    """Of all that it uses, where the name is known: `namespace/name`."""
    names = [one.resource_claim_name or _made_name(pod, one) for one in pod.spec.resource_claims or ()]
    return [f"{pod.metadata.namespace}/{name}" for name in dict.fromkeys(names) if name]


def is_given(claim: ResourceClaim, around: Claims) -> bool:
    return claim.status.allocation is not None and not is_draft(claim, around)


def is_draft(claim: ResourceClaim, around: Claims) -> bool:
    """One that several pods name is none: they have to come together where it is."""
    consumers = claim.consumers
    if claim.status.allocation is None or not consumers or len(around.users.get(claim.key, ())) > 1:
        return False
    return all(uid in around.unbound for uid in consumers)


def _full(pod: Pod, claim: ResourceClaim) -> list[Reason]:
    if len(claim.consumers) < MOST_CONSUMERS or pod.metadata.uid in claim.consumers:
        return []
    told = f"resource claim {claim.metadata.name} is in use by {MOST_CONSUMERS} pods"
    return [reason(Code.NOT_READY, missing=told)]


class Users:
    """Who names which claim, of pods that are not over."""

    def __init__(self) -> None:
        self.of: dict[str, list[str]] = {}
        """Uids, the oldest first."""
        self._names: dict[str, tuple[str, list[str]]] = {}

    def see(self, pod: Pod) -> bool:
        """Whether others have to be read again."""
        uid, born = pod.metadata.uid, pod.metadata.creation_timestamp or ""
        names = [] if pod.over or not pod.spec.resource_claims else claims_named(pod)
        if names == self._names.get(uid, ("", []))[1]:
            return False
        self.forget(uid)
        self._names[uid] = (born, names)
        for name in names:
            self.of[name] = sorted([*self.of.get(name, ()), uid], key=lambda one: (self._names[one][0], one))
        return True

    def forget(self, uid: str) -> bool:
        _, names = self._names.pop(uid, ("", []))
        for name in names:
            self.of[name].remove(uid)
            if not self.of[name]:
                del self.of[name]
        return bool(names)


# -- what a claim asks for --------------------------------------------------------------------------------------------


def read_ask(
    spec: ResourceClaimSpec, name: str, catalog: Catalog, admit: Callable[[Kind], str] = lambda _kind: ""
) -> tuple[Ask, int]:
    """With the number of GPUs in it. `admit`: says why no more kinds are counted. Raises ClaimError."""
    requests = []
    gpus = 0
    for request in spec.devices.requests or ():
        told = f"resource claim {name}, request {request.name}"
        ways = tuple(_way(told, request, one, catalog) for one in ways_of(request))
        for way in ways:
            if full := admit(way.kind):
                raise ClaimError(
                    Code.NOT_READY, missing=f"{told}: {full}; select them as others do, or wait until others end"
                )
        if not ways:
            raise _unsupported(f"{told}: a kind of request that is not known", "ask for exactly so many of a class")
        of_way = [_gpus(told, one, catalog) for one in ways]
        if len(set(of_way)) > 1:
            raise _unsupported(f"{told}: ways that take different numbers of GPUs", "ask for one number of them")
        gpus += of_way[0]
        requests.append(ways)
    if sum(min(way.count for way in ways) for ways in requests) > MOST_IN_A_CLAIM:
        problem = f"resource claim {name} asks for more than {MOST_IN_A_CLAIM} devices; use several claims"
        raise ClaimError(Code.MALFORMED, problem=problem)
    alike = []
    for rule in spec.devices.constraints or ():
        if rule.match_attribute is None:
            instead = "leave it out, or use matchAttribute"
            raise _unsupported(f"resource claim {name}: a constraint other than matchAttribute", instead)
        alike.append(Alike(tuple(rule.requests or ()), rule.match_attribute))
    return Ask(tuple(requests), tuple(alike)), gpus


def ways_of(request: DeviceRequest) -> list[SubRequest]:
    return [request.exactly] if request.exactly is not None else list(request.first_available or ())


def _way(told: str, request: DeviceRequest, way: SubRequest, catalog: Catalog) -> Wanted:
    if way.admin_access:
        raise _unsupported(f"{told}: adminAccess", "ask for devices of one's own")
    if way.capacity:
        raise _unsupported(f"{told}: a part of a device (capacity)", "ask for whole devices")
    found = catalog.classes.get(way.device_class_name)
    if found is None:
        raise ClaimError(Code.NOT_READY, missing=f"{told}: device class {way.device_class_name} does not exist")
    mode = way.allocation_mode or EXACT
    if mode not in (EXACT, ALL):
        raise _unsupported(f"{told}: allocationMode {mode}", f"use {EXACT} or {ALL}")
    expressions = [*_expressions(told, found.spec.selectors), *_expressions(told, way.selectors)]
    if len(expressions) > MOST_EXPRESSIONS:
        number = f"{len(expressions)} expressions for one device, its class included; at most {MOST_EXPRESSIONS}"
        raise ClaimError(Code.MALFORMED, problem=f"{told}: {number} are read: write several as one, with &&")
    for text in expressions:
        if trouble := catalog.selectors.trouble(text):
            shown = text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"
            raise _unsupported(f"{told}: the expression {shown!r} ({trouble})", "write it in another way")
    tolerations = tuple(x for one in way.tolerations or () if (x := read_toleration(one)) is not None)
    kind = Kind(way.device_class_name, tuple(expressions), tolerations)
    return Wanted(
        f"{request.name}/{way.name}" if request.exactly is None else request.name,
        kind,
        max(1 if way.count is None else way.count, 1) if mode == EXACT else 0,
    )


def _expressions(told: str, selectors: list[DeviceSelector] | None) -> list[str]:
    if any(one.cel is None for one in selectors or ()):
        raise _unsupported(f"{told}: a selector that is no CEL expression", "write one")
    return [one.cel.expression for one in selectors or () if one.cel is not None]


def _gpus(told: str, way: Wanted, catalog: Catalog) -> int:
    """How many GPUs it takes: queues count them. Raises ClaimError."""
    matching = catalog.matching(way.kind)
    if not matching:
        for why in catalog.unanswered(way.kind).values():
            raise ClaimError(Code.MALFORMED, problem=f"{told}: {why}")
        if special := catalog.special_for(way.kind):
            raise _unsupported(f"{told}: {special}", "ask for whole devices")
        return 0
    offered = catalog.offer.devices
    are = {catalog.is_gpu(one.driver, one.device) for one in (offered[key] for key in matching)}
    if len(are) > 1:
        raise _unsupported(f"{told}: both GPUs and other devices", "select one kind of them")
    if are == {True} and not way.count:
        raise _unsupported(f"{told}: all GPUs of a node", "ask for a number of them: queues count GPUs")
    return way.count if are == {True} else 0


def _unsupported(feature: str, instead: str) -> ClaimError:
    return ClaimError(Code.UNSUPPORTED, feature=feature, instead=instead)


def _numbers(asks: list[Ask]) -> tuple[tuple[Kind, ...], dict[str, int]]:
    """Kinds of which it is known how many are needed, whatever is chosen."""
    counters: dict[str, int] = {}
    kinds: dict[Kind, None] = {}
    for ask in asks:
        for ways in ask.requests:
            if len(ways) == 1 and ways[0].count:
                kinds[ways[0].kind] = None
                counters[ways[0].kind.counter] = counters.get(ways[0].kind.counter, 0) + ways[0].count
    return tuple(kinds), counters


def _overlap(kinds: tuple[Kind, ...], catalog: Catalog) -> bool:
    """Whether a device could be counted twice."""
    seen: set[str] = set()
    for kind in kinds:
        matching = catalog.matching(kind)
        if seen & matching:
            return True
        seen |= matching
    return False


def _classes(asks: tuple[Ask, ...]) -> str:
    names = (way.kind.device_class for ask in asks for ways in ask.requests for way in ways)
    return ", ".join(dict.fromkeys(names))


# -- an allocation's configuration ------------------------------------------------------------------------------------


def configs_of(claim: ResourceClaim, chosen: list[Wanted], catalog: Catalog) -> list[dict[str, Any]]:
    """Of the classes first, each once; then the claim's own that are about what was chosen."""
    by_class: dict[str, list[str]] = {}
    for one in chosen:
        names = by_class.setdefault(one.kind.device_class, [])
        names += [] if one.request in names else [one.request]
    found: list[dict[str, Any]] = []
    for name, requests in by_class.items():
        device_class = catalog.classes.get(name)
        of_class = (device_class.spec.config if device_class else None) or ()
        found += [{**config, "source": "FromClass", "requests": requests} for config in of_class]
    about = {one.request for one in chosen} | {one.request.partition("/")[0] for one in chosen}
    for config in claim.spec.devices.config or ():
        if not config.get("requests") or about & set(config["requests"]):
            found += [{**config, "source": "FromClaim"}]
    return found


def tolerations_of(claim: ResourceClaim) -> dict[str, list[dict[str, Any]]]:
    """By request, as they are written."""
    found = {}
    for request in claim.spec.devices.requests or ():
        for way in ways_of(request):
            name = f"{request.name}/{way.name}" if request.exactly is None else request.name
            found[name] = [msgspec.to_builtins(one) for one in way.tolerations or ()]
    return found
