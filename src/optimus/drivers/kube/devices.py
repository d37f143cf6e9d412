"""Devices that drivers publish, and which of them meet what a claim asks for.

    slices ──► pools, complete and of one generation ──► `Offered` devices, and who reaches them
    classes, requests ──► `Kind`s of devices ──► matching devices ──► `allocate`: the choice on one node

Why: a claim says which devices it wants in expressions, constraints and numbers; whoever places its pod chooses them.
Owns: in the sense of kube-scheduler: which pools count, which devices match, and one choice of them on a node. Which
devices are GPUs of the brain.
Must not: know pods (`claiming`), count (`spare`) or write (`allocating`).

Whole devices only. Those that consume counters of others, may be shared, or have conditions before a bind are not
offered (`special`): half of a rule would be a wrong place.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Set
from typing import Any
from zlib import crc32

import msgspec
from msgspec import Struct

from optimus.drivers.kube.device_objects import Attribute, Device, DeviceClass, ResourceSlice
from optimus.drivers.kube.objects import NodeSelector
from optimus.drivers.kube.requests import MalformedError
from optimus.drivers.kube.rules import NodeTerms, node_terms
from optimus.drivers.kube.selecting import SelectorError, Selectors, qualified, weight
from optimus.model.nodes import Node, Taint, Toleration
from optimus.model.rules import DEVICE, NAME_FIELD, Where

GPU_DRIVERS = ("gpu.nvidia.com=gpu", "gpu.amd.com")
"""Drivers whose devices are GPUs; after the equal sign, only those whose attribute `type` says so."""
MOST_IN_A_CLAIM = 32
MOST_STEPS = 20_000
"""Of one search: what is not found by then is not there."""
MOST_EXPRESSIONS, MOST_OF_ONE = 256, 64
"""Of all kinds together, and of those that pods of one namespace were the first to ask for: each expression is asked of
every device there is. One with a loop counts as several."""
_KEEPS_AWAY = ("NoSchedule", "NoExecute")


class Offered(Struct, frozen=True, kw_only=True):
    driver: str
    pool: str
    device: Device
    node: str
    """The only one that reaches it; empty: `reach` says which do."""
    reach: NodeTerms = ()
    selector: NodeSelector | None = None
    """As it is written, of which `reach` is the reading."""

    @property
    def key(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device.name}"


class Kind(Struct, frozen=True):
    """Of devices: what a request wants of each."""

    device_class: str
    expressions: tuple[str, ...]
    tolerations: tuple[Toleration, ...] = ()

    @property
    def weight(self) -> int:
        """What it costs to know which devices it means."""
        return max(sum(map(weight, self.expressions)), 1)

    @property
    def counter(self) -> str:
        return f"{DEVICE}{self.device_class}/{crc32(msgspec.json.encode(self)):08x}"


class Wanted(Struct, frozen=True):
    """One way to meet a request."""

    request: str
    """Its name, `name/alternative` where there are several."""
    kind: Kind
    count: int
    """0: all that there are."""


class Alike(Struct, frozen=True):
    """All devices of these requests have the same value of an attribute."""

    requests: tuple[str, ...]
    """Empty: all."""
    attribute: str

    def is_about(self, request: str) -> bool:
        return not self.requests or request in self.requests or request.partition("/")[0] in self.requests


class Ask(Struct, frozen=True):
    """Of one claim."""

    requests: tuple[tuple[Wanted, ...], ...]
    """For each, the ways to meet it, the best first."""
    alike: tuple[Alike, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Its numbers say all."""
        return not self.alike and all(len(ways) == 1 and ways[0].count for ways in self.requests)


class Chosen(Struct, frozen=True):
    wanted: Wanted
    offered: Offered


# -- what there is ----------------------------------------------------------------------------------------------------


class Catalog:
    """Slices and classes as they are; what follows from them is found out once for each change."""

    def __init__(self, gpu_drivers: Iterable[str] = GPU_DRIVERS) -> None:
        self.slices: dict[str, ResourceSlice] = {}
        self.classes: dict[str, DeviceClass] = {}
        self.selectors = Selectors()
        self._gpu_drivers = dict(_driver_and_type(one) for one in gpu_drivers)
        self.refused = False
        """Somebody was told that there are too many expressions."""
        self._offer: _Offer | None = None
        self._first: dict[Kind, str] = {}
        """Kinds that are in use, by the namespace that was the first to ask."""
        self._by_slice: dict[Kind, dict[str, tuple[ResourceSlice, _Judged]]] = {}
        """What was found out, by the name of a slice, and about which version of it."""
        self._judged: dict[Kind, _Judged] = {}
        """Of all slices together."""

    def changed(self) -> None:
        """A slice is another one. What was found out about all others stays."""
        self._offer = None
        self._judged.clear()

    def admit(self, kind: Kind, namespace: str) -> str:
        """From now on it is counted; text: why it cannot be."""
        if kind in self._first:
            return ""
        every = sum(one.weight for one in self._first)
        own = sum(one.weight for one, first in self._first.items() if first == namespace)
        if own + kind.weight <= MOST_OF_ONE and every + kind.weight <= MOST_EXPRESSIONS:
            self._first[kind] = namespace
            return ""
        self.refused = True
        told = f"too many expressions select devices: namespace {namespace} has {own} of at most {MOST_OF_ONE}"
        return f"{told}, all have {every} of {MOST_EXPRESSIONS}"

    def keep_only(self, kinds: Set[Kind]) -> bool:
        """Those that somebody asks for. Whether one of those that were refused could be taken in now."""
        gone = self._first.keys() - kinds
        for kind in gone:
            for known in (self._first, self._by_slice, self._judged):
                known.pop(kind, None)
        if gone:
            self.selectors.keep_only({text for kind in self._first for text in kind.expressions})
        freed, self.refused = self.refused and bool(gone), self.refused and not gone
        return freed

    @property
    def offer(self) -> _Offer:
        if self._offer is None:
            self._offer = _offer(self.slices.values(), self.is_gpu)
        return self._offer

    def reached_from(self, node: Node) -> list[Offered]:
        """In the order in which kube-scheduler takes them."""
        offer = self.offer
        here = offer.on_node.get(node.name, [])
        more = [one for one in offer.elsewhere if not one.reach or Where(any_of=one.reach).accepts(node)]
        return sorted((*here, *more), key=offer.order) if more else here

    def is_whole(self, node: Node) -> bool:
        """Whether every pool that it reaches is known as a whole: else nobody can say what all of its devices are."""
        return not any(
            one.node == node.name if one.node else not one.reach or Where(any_of=one.reach).accepts(node)
            for one in self.offer.pending
        )

    def matching(self, kind: Kind) -> frozenset[str]:
        """Keys of offered devices that its expressions select, whatever their taints."""
        return self._found(kind).selected

    def usable(self, kind: Kind) -> frozenset[str]:
        """Those of them whose taints it tolerates."""
        return self._found(kind).usable

    def unanswered(self, kind: Kind) -> dict[str, str]:
        """Of those for which an expression has no answer: why. They are not selected."""
        return self._found(kind).unanswered

    def special_for(self, kind: Kind) -> str:
        """Why a device that it selects is not offered; empty if there is none."""
        return self._found(kind).special

    def _found(self, kind: Kind) -> _Judged:
        if (found := self._judged.get(kind)) is None:
            before, now = self._by_slice.get(kind, {}), dict[str, tuple[ResourceSlice, _Judged]]()
            for part, devices in self.offer.parts:
                known = before.get(part.metadata.name)
                is_same = known is not None and (known[0] is part or known[0].spec == part.spec)
                now[part.metadata.name] = known if known and is_same else (part, self._judge(kind, devices))
            self._by_slice[kind] = now
            found = self._judged[kind] = _together([judged for _, judged in now.values()])
        return found

    def _judge(self, kind: Kind, devices: Iterable[tuple[Offered, str]]) -> _Judged:
        """`devices`: each with why it is not offered."""
        selected: list[Offered] = []
        unanswered: dict[str, str] = {}
        special = ""
        for one, why in devices:
            try:
                if (not why or not special) and self._selects(kind, one):
                    selected += [] if why else [one]
                    special = special or (f"device {one.key}, which {why}" if why else "")
            except SelectorError as error:
                unanswered |= {} if why else {one.key: str(error)}
        usable = frozenset(one.key for one in selected if tolerates(kind, one.device))
        return _Judged(frozenset(one.key for one in selected), usable, unanswered, special)

    def is_gpu(self, driver: str, device: Device | None) -> bool:
        """`device`: None if nobody publishes it any more."""
        if driver not in self._gpu_drivers:
            return False
        kind = self._gpu_drivers[driver]
        if not kind or device is None:
            return True
        return any(
            qualified(name, driver) == (driver, "type") and value.text == kind
            for name, value in (device.attributes or {}).items()
        )

    def is_gpu_key(self, driver: str, key: str) -> bool:
        found = self.offer.devices.get(key)
        return self.is_gpu(driver, found.device if found else None)

    def _selects(self, kind: Kind, one: Offered) -> bool:
        try:
            return all(self.selectors.accepts(text, one.driver, one.device) for text in kind.expressions)
        except SelectorError as error:
            raise SelectorError(f"class {kind.device_class}, device {one.key}: {error}") from None


class _Judged(Struct, frozen=True):
    """What is known of a kind of devices."""

    selected: frozenset[str]
    """Keys of those that its expressions select."""
    usable: frozenset[str]
    """Those of them whose taints it tolerates."""
    unanswered: dict[str, str]
    special: str


def _together(parts: list[_Judged]) -> _Judged:
    return _Judged(
        frozenset().union(*(one.selected for one in parts)),
        frozenset().union(*(one.usable for one in parts)),
        {key: why for one in parts for key, why in one.unanswered.items()},
        next((one.special for one in parts if one.special), ""),
    )


class _Offer(Struct, frozen=True):
    parts: list[tuple[ResourceSlice, list[tuple[Offered, str]]]]
    """Slices of pools that are whole; each device with why it is not offered."""
    devices: dict[str, Offered]
    """By key."""
    on_node: dict[str, list[Offered]]
    elsewhere: list[Offered]
    """Reached from several nodes."""
    gpus: dict[str, list[Offered]]
    """On a node; also of pools that are being published anew, of which none can be had now: who runs on them does."""
    unfinished: list[str]
    """Pools of which not all is known."""
    pending: list[Offered]
    """What is known of them."""
    order: Callable[[Offered], int]


def _offer(slices: Iterable[ResourceSlice], is_gpu: Callable[[str, Device | None], bool]) -> _Offer:
    pools: dict[tuple[str, str], list[ResourceSlice]] = {}
    for one in slices:
        pools.setdefault((one.spec.driver, one.spec.pool.name), []).append(one)
    whole: list[tuple[ResourceSlice, list[tuple[Offered, str]]]] = []
    devices: dict[str, Offered] = {}
    unfinished: list[str] = []
    known: dict[str, Offered] = {}
    """Of pools that are unfinished, all generations."""
    for (driver, pool), parts in sorted(pools.items()):
        newest = max(one.spec.pool.generation for one in parts)
        current = [one for one in parts if one.spec.pool.generation == newest]
        of_slices = [(one, list(_devices_of([one]))) for one in sorted(current, key=lambda one: one.metadata.name)]
        found = [pair for _, pairs in of_slices for pair in pairs]
        wrong = ""
        if len(current) != current[0].spec.pool.resource_slice_count:
            wrong = f"{len(current)} of {current[0].spec.pool.resource_slice_count} slices"
        elif len({one.device.name for one, _ in found}) < len(found):
            wrong = "a name is there twice"
        if wrong:
            unfinished.append(f"pool {pool} of {driver} ({wrong})")
            before = _devices_of(sorted(parts, key=lambda one: one.spec.pool.generation))
            known |= {one.key: one for one, why in before if not why}
        else:
            whole += of_slices
            devices |= {one.key: one for one, why in found if not why}
    ranks = {key: rank for rank, key in enumerate(devices)}
    on_node: dict[str, list[Offered]] = {}
    for offered in devices.values():
        if offered.node:
            on_node.setdefault(offered.node, []).append(offered)
    gpus: dict[str, list[Offered]] = {}
    for offered in (*devices.values(), *known.values()):
        if offered.node and is_gpu(offered.driver, offered.device):
            gpus.setdefault(offered.node, []).append(offered)
    return _Offer(
        whole,
        devices,
        on_node,
        [one for one in devices.values() if not one.node],
        gpus,
        unfinished,
        list(known.values()),
        lambda one: ranks[one.key],
    )


def _devices_of(slices: Iterable[ResourceSlice]) -> Iterator[tuple[Offered, str]]:
    """Each with why it is not offered."""
    for one in slices:
        spec, reach, why = one.spec, NodeTerms(), ""
        if spec.per_device_node_selection:
            why = "has nodes of its own"
        elif spec.node_selector is not None:
            try:
                reach = node_terms(spec.node_selector)
            except MalformedError:
                why = "has a node selector that cannot be read"
        elif not spec.node_name and not spec.all_nodes:
            why = "does not say which nodes reach it"
        for device in spec.devices or ():
            offered = Offered(
                driver=spec.driver,
                pool=spec.pool.name,
                device=device,
                node=spec.node_name or "",
                reach=reach,
                selector=spec.node_selector,
            )
            yield offered, why or _special(device)


def _special(device: Device) -> str:
    if device.consumes_counters:
        return "is a part of another one (consumesCounters)"
    if device.allow_multiple_allocations:
        return "may be given to several claims (allowMultipleAllocations)"
    return "has conditions before a pod is bound (bindingConditions)" if device.binding_conditions else ""


def _driver_and_type(written: str) -> tuple[str, str]:
    driver, _, kind = written.partition("=")
    return driver, kind


def tolerates(kind: Kind, device: Device) -> bool:
    """Effects that are not known keep nobody away."""
    taints = [Taint(one.key, one.value or "", one.effect) for one in device.taints or () if one.effect in _KEEPS_AWAY]
    return all(any(one.accepts(taint) for one in kind.tolerations) for taint in taints)


# -- the choice on one node -------------------------------------------------------------------------------------------


def allocate(asks: Iterable[Ask], node: Node, taken: Container[str], catalog: Catalog) -> list[list[Chosen]] | None:
    """For each claim of a pod; None: there is no way."""
    wanted = list(asks)
    if any(not way.count for ask in wanted for ways in ask.requests for way in ways) and not catalog.is_whole(node):
        return None
    return _Search(wanted, catalog.reached_from(node), taken, catalog).run()


class _Search:
    def __init__(self, asks: list[Ask], here: list[Offered], taken: Container[str], catalog: Catalog) -> None:
        self._asks, self._here, self._catalog = asks, here, catalog
        self._free = [one for one in here if one.key not in taken]
        self._used: set[str] = set()
        self._chosen: list[list[Chosen]] = [[] for _ in asks]
        self._steps = 0

    def run(self) -> list[list[Chosen]] | None:
        return self._chosen if self._claim(0, 0) else None

    def _claim(self, claim: int, request: int) -> bool:
        if claim == len(self._asks):
            return True
        ask = self._asks[claim]
        if request == len(ask.requests):
            return self._claim(claim + 1, 0)
        return any(self._way(claim, request, way) for way in ask.requests[request])

    def _way(self, claim: int, request: int, way: Wanted) -> bool:
        matching, usable = self._catalog.matching(way.kind), self._catalog.usable(way.kind)
        free = [one for one in self._free if one.key in usable]
        unanswered = self._catalog.unanswered(way.kind)
        if not way.count and any(one.key in unanswered for one in self._here):
            return False  # nobody can say what all of them are
        count = way.count or sum(1 for one in self._here if one.key in matching)
        if not count or len(self._chosen[claim]) + count > MOST_IN_A_CLAIM:
            return False
        return len(free) >= count and self._pick(claim, request, way, free, 0, count)

    def _pick(self, claim: int, request: int, way: Wanted, free: list[Offered], first: int, count: int) -> bool:
        if not count:
            return self._claim(claim, request + 1)
        for at in range(first, len(free) - count + 1):
            one = free[at]
            self._steps += 1
            if self._steps > MOST_STEPS:
                return False
            if one.key in self._used or not self._is_alike(claim, way, one):
                continue
            self._used.add(one.key)
            self._chosen[claim].append(Chosen(way, one))
            if self._pick(claim, request, way, free, at + 1, count - 1):
                return True
            self._used.discard(one.key)
            self._chosen[claim].pop()
        return False

    def _is_alike(self, claim: int, way: Wanted, one: Offered) -> bool:
        for rule in self._asks[claim].alike:
            if not rule.is_about(way.request):
                continue
            value = attribute_of(one, rule.attribute)
            if value is None:
                return False
            others = [x for x in self._chosen[claim] if rule.is_about(x.wanted.request)]
            if others and attribute_of(others[0].offered, rule.attribute) != value:
                return False
        return True


def attribute_of(offered: Offered, name: str) -> Attribute | None:
    """By its full name. The driver may leave its own domain out."""
    attributes = offered.device.attributes or {}
    if name in attributes:
        return attributes[name]
    domain, _, word = name.partition("/")
    return attributes.get(word) if domain == offered.driver else None


# -- an allocation, as it is written ----------------------------------------------------------------------------------


def written(chosen: list[Chosen], configs: list[dict[str, Any]], tolerations: Mapping[str, Any]) -> dict[str, Any]:
    """`tolerations`: of each request, as its claim has them."""
    results = []
    for one in chosen:
        offered, request = one.offered, one.wanted.request
        result = {"request": request, "driver": offered.driver, "pool": offered.pool, "device": offered.device.name}
        results.append({**result, **({"tolerations": tolerations[request]} if tolerations.get(request) else {})})
    where = _reached_together(chosen)
    return {
        "devices": {"results": results, **({"config": configs} if configs else {})},
        **({"nodeSelector": {"nodeSelectorTerms": [where]}} if where else {}),
    }


def _reached_together(chosen: list[Chosen]) -> dict[str, Any]:
    """One term for all nodes that reach all of them; empty: every node does."""
    for one in chosen:
        if one.offered.node:
            return {"matchFields": [{"key": NAME_FIELD, "operator": "In", "values": [one.offered.node]}]}
    selectors = dict.fromkeys(msgspec.json.encode(x) for one in chosen if (x := one.offered.selector) is not None)
    found: dict[str, list[Any]] = {}
    for text in selectors:
        for term in msgspec.json.decode(text).get("nodeSelectorTerms", ()):  # the server takes one of them
            for kind, requirements in term.items():
                found.setdefault(kind, []).extend(requirements)
    return found
