"""Claims that are bound only when their first pod is placed: where that may be, and to which volume.

    provisioned for them        any node of the topologies that the class allows; whoever places the pod names the node
    one of those there are      nodes with a free volume that fits; whoever places the pod picks it, the smallest first

Why: such a claim (`WaitForFirstConsumer`) asks the scheduler to choose for it; the same rules say where a pod may be
and what is chosen there, in the sense of kube-scheduler.
Owns: which volumes fit a claim, how many of them a node reaches (a counter: a gang needs one for each of its pods), and
the choice on one node.
Must not: write (`preparing`); know how much room a storage driver has left (`capacities`).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from zlib import crc32

import msgspec
from msgspec import Struct

from optimus.drivers.kube.capacities import Capacities
from optimus.drivers.kube.objects import PersistentVolume, Pod, StorageClass, VolumeClaim
from optimus.drivers.kube.quantities import QuantityError, whole
from optimus.drivers.kube.requests import MalformedError
from optimus.drivers.kube.rules import NO_NODE, NodeTerms, node_terms
from optimus.drivers.kube.selectors import Selector, read_selector
from optimus.model.nodes import Node
from optimus.model.reasons import Code, Reason, reason
from optimus.model.rules import COUNTER, NAME_FIELD, NodeRequirement, Operator, Where

SELECTED_NODE = "volume.kubernetes.io/selected-node"
SPARE = COUNTER + "volume/"
_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
_HOSTNAME = "kubernetes.io/hostname"
_NO_PROVISIONER = "kubernetes.io/no-provisioner"
ZONE_SEPARATOR = "__"
"""Between the zones of a label of a volume that is in several."""


class Shape(Struct, frozen=True):
    """What a claim asks of a volume, wherever that is."""

    storage_class: str
    size: int
    modes: tuple[str, ...]
    block: str
    attributes: str
    selector: Selector | None

    @property
    def counter(self) -> str:
        return f"{SPARE}{self.storage_class}-{crc32(msgspec.json.encode(self)):08x}"

    def fits(self, volume: PersistentVolume) -> bool:
        spec = volume.spec
        return (
            class_of_volume(volume) == self.storage_class
            and volume.metadata.deletion_timestamp is None
            and _size(spec.capacity) >= self.size
            and (spec.volume_mode or "Filesystem") == self.block
            and (spec.volume_attributes_class_name or "") == self.attributes
        )

    def accepts(self, volume: PersistentVolume) -> bool:
        """Also what does not matter for one that somebody has meant for the claim."""
        labels = volume.metadata.labels or {}
        return (
            self.fits(volume)
            and set(self.modes) <= set(volume.spec.access_modes or ())
            and (self.selector is None or self.selector.accepts(labels))
        )


class Consumed(Struct, frozen=True, kw_only=True):
    """What follows for a pod from its claims that wait for it."""

    all_of: tuple[NodeTerms, ...] = ()
    counters: tuple[tuple[str, int], ...] = ()
    shapes: tuple[Shape, ...] = ()
    """Of the counters."""
    obstacles: tuple[Reason, ...] = ()


class Choice(Struct, frozen=True):
    claim: VolumeClaim
    volume: PersistentVolume | None
    """None: it is to be provisioned."""


def class_of(claim: VolumeClaim) -> str:
    return (claim.metadata.annotations or {}).get(_OLD_CLASS) or claim.spec.storage_class_name or ""


def class_of_volume(volume: PersistentVolume) -> str:
    return (volume.metadata.annotations or {}).get(_OLD_CLASS) or volume.spec.storage_class_name or ""


def waits_for_consumer(claim: VolumeClaim, classes: Mapping[str, StorageClass]) -> bool:
    found = classes.get(class_of(claim))
    return not claim.spec.volume_name and found is not None and found.volume_binding_mode == "WaitForFirstConsumer"


def claim_names(pod: Pod) -> list[str]:
    """Of volumes, as it or its template names them."""
    names = []
    for volume in pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            names.append(volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None:
            names.append(f"{pod.metadata.name}-{volume.name}")
    return list(dict.fromkeys(names))


def claims_of(pod: Pod, claims: Mapping[str, VolumeClaim]) -> list[VolumeClaim]:
    """Those that are there."""
    found = (claims.get(f"{pod.metadata.namespace}/{name}") for name in claim_names(pod))
    return [claim for claim in found if claim is not None]


# -- where it may be --------------------------------------------------------------------------------------------------


def consumed_by(
    waiting: Iterable[VolumeClaim],
    volumes: Mapping[str, PersistentVolume],
    classes: Mapping[str, StorageClass],
    capacities: Capacities,
) -> Consumed:
    """Raises MalformedError."""
    pins: list[NodeTerms] = []
    obstacles: list[Reason] = []
    counted: list[Shape] = []
    for claim in waiting:
        kind = classes[class_of(claim)]
        selected = (claim.metadata.annotations or {}).get(SELECTED_NODE)
        topologies, shape = _topologies(kind), shape_of(claim)
        room = capacities.room(kind, shape.size) if topologies != NO_NODE else ()
        if selected is not None:
            pins.append(((NodeRequirement(NAME_FIELD, Operator.IN, (selected,)),),))
            pins += [one for one in (topologies, room) if one != ()]
            obstacles += [_no_room(claim, kind)] if room == NO_NODE else []
            continue
        own = [one for one in volumes.values() if is_of(one, claim) and shape.fits(one)]
        free = own or [one for one in volumes.values() if is_free(one) and shape.accepts(one)]
        if own or topologies != NO_NODE:
            reached = [_reach(one) for one in free]
            made = _both(topologies, room)
            if made != () and () not in reached:
                pins.append(tuple(dict.fromkeys(term for terms in (*reached, made) for term in terms)))
                obstacles += [_no_room(claim, kind)] if room == NO_NODE and not free else []
            continue
        counted.append(shape)
        if not free:
            told = f"no volume of class {shape.storage_class} is free for claim {claim.metadata.name}"
            obstacles.append(reason(Code.NOT_READY, missing=told))
    return Consumed(
        all_of=tuple(pins),
        counters=tuple(sorted((one.counter, _at_least(one, counted)) for one in set(counted))),
        shapes=tuple(dict.fromkeys(counted)),
        obstacles=tuple(obstacles),
    )


def _both(one: NodeTerms, other: NodeTerms) -> NodeTerms:
    """Where both hold; empty is everywhere."""
    if () in (one, other):
        return one or other
    return tuple((*term, *more) for term in one for more in other)


def _no_room(claim: VolumeClaim, kind: StorageClass) -> Reason:
    size = ((claim.spec.resources and claim.spec.resources.requests) or {}).get("storage", 0)
    told = f"{kind.provisioner} has room for a volume of {size} of class {kind.metadata.name} on no node"
    return reason(Code.NOT_READY, missing=f"{told} (claim {claim.metadata.name})")


def volume_counts(
    shapes: Iterable[Shape],
    volumes: Iterable[PersistentVolume],
    nodes: Mapping[str, Node],
    counted: Mapping[str, Container[str]],
) -> dict[str, dict[str, int]]:
    """By node and counter: how many volumes there are for each shape. `counted`: claims (`namespace/name`) of pods that
    take a counter, with the counters. What they got or are getting is taken already, and still there for them."""
    found: dict[str, dict[str, int]] = {}
    by_host: dict[str, list[Node]] = {}
    for node in nodes.values():
        by_host.setdefault(node.labels.get(_HOSTNAME, ""), []).append(node)
    all_volumes = list(volumes)
    for shape in shapes:
        counter = shape.counter
        for one in all_volumes:
            if (is_free(one) or counter in counted.get(_claimed(one), ())) and shape.accepts(one):
                near, where = _near(_reach(one), by_host), Where(any_of=_reach(one))
                for node in nodes.values() if near is None else near:
                    if where.accepts(node):
                        here = found.setdefault(node.name, {})
                        here[counter] = here.get(counter, 0) + 1
    return found


def _near(reach: NodeTerms, by_host: Mapping[str, list[Node]]) -> list[Node] | None:
    """The nodes to look at: most volumes that are there are on one host. None: all."""
    if len(reach) != 1:
        return None
    hosts = [one for one in reach[0] if one.key == _HOSTNAME and one.operator is Operator.IN]
    return [node for host in hosts[0].values for node in by_host.get(host, ())] if hosts else None


def _at_least(shape: Shape, others: Iterable[Shape]) -> int:
    """Volumes that are large enough for it are taken by larger claims of the same pod, too."""
    alike = (msgspec.structs.replace(one, size=shape.size) for one in others if one.size >= shape.size)
    return sum(1 for one in alike if one == shape)


# -- the choice on one node -------------------------------------------------------------------------------------------


def choose(
    waiting: Iterable[VolumeClaim],
    node: Node,
    volumes: Mapping[str, PersistentVolume],
    classes: Mapping[str, StorageClass],
    capacities: Capacities,
    taken: Container[str],
) -> list[Choice] | str:
    """For claims that nothing has been chosen for yet; text: why it cannot be there. `taken`: volumes that others are
    getting at this moment."""
    found: list[Choice] = []
    used: set[str] = set()
    for claim in sorted(waiting, key=lambda one: (shape_of(one).size, one.metadata.name)):
        shape = shape_of(claim)
        own = [one for one in volumes.values() if is_of(one, claim) and shape.fits(one)]
        free = [] if own else [one for one in volumes.values() if is_free(one) and shape.accepts(one)]
        near = [
            one
            for one in (*own, *free)
            if reaches(one, node) and one.metadata.name not in used and (one in own or one.metadata.name not in taken)
        ]
        if near:
            volume = min(near, key=lambda one: (_size(one.spec.capacity), one.metadata.name))
            used.add(volume.metadata.name)
            found.append(Choice(claim, volume))
            continue
        kind = classes[class_of(claim)]
        topologies = _topologies(kind)
        if topologies and not Where(any_of=topologies).accepts(node):
            return f"no volume for claim {claim.metadata.name} can be on {node.name}"
        if not Where(any_of=capacities.room(kind, shape.size)).accepts(node):
            return f"{kind.provisioner} has no room for claim {claim.metadata.name} on {node.name}"
        found.append(Choice(claim, None))
    return found


def reaches(volume: PersistentVolume, node: Node) -> bool:
    return Where(any_of=_reach(volume)).accepts(node)


def is_free(volume: PersistentVolume) -> bool:
    return volume.spec.claim_ref is None and volume.status.phase == "Available"


def is_of(volume: PersistentVolume, claim: VolumeClaim) -> bool:
    """Somebody, perhaps we, has meant it for this claim."""
    meta, ref = claim.metadata, volume.spec.claim_ref
    return ref is not None and (ref.namespace, ref.name) == (meta.namespace, meta.name) and ref.uid in ("", meta.uid)


def shape_of(claim: VolumeClaim) -> Shape:
    """Raises MalformedError."""
    spec = claim.spec
    try:
        size = _size(spec.resources.requests if spec.resources else None)
    except QuantityError as error:
        raise MalformedError(f"volume claim {claim.metadata.name}: {error}") from None
    return Shape(
        class_of(claim),
        size,
        tuple(sorted(spec.access_modes or ())),
        spec.volume_mode or "Filesystem",
        spec.volume_attributes_class_name or "",
        read_selector(spec.selector),
    )


def _claimed(volume: PersistentVolume) -> str:
    ref = volume.spec.claim_ref
    return f"{ref.namespace}/{ref.name}" if ref else ""


def _size(amounts: Mapping[str, str | int | float] | None) -> int:
    return whole((amounts or {}).get("storage", 0))


def _reach(volume: PersistentVolume) -> NodeTerms:
    """Empty: every node."""
    affinity = volume.spec.node_affinity
    return node_terms(affinity.required, fields=False) if affinity and affinity.required else ()


def _topologies(kind: StorageClass) -> NodeTerms:
    """Where volumes of the class are made; empty: everywhere."""
    if kind.provisioner in ("", _NO_PROVISIONER):
        return NO_NODE
    if not kind.allowed_topologies:
        return ()
    terms = [
        tuple(NodeRequirement(one.key, Operator.IN, tuple(one.values or ())) for one in term.match_label_expressions)
        for term in kind.allowed_topologies
        if term.match_label_expressions
    ]
    return tuple(terms) or NO_NODE
