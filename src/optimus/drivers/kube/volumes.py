"""Volumes: where they let a pod be, and what must happen before it can be anywhere.

Why: a volume that is bound may be reachable from some nodes only; one that is not bound may still be bound to any.
Owns: what a claim says about nodes, in the sense of kube-scheduler: affinity of the volume, zone labels, volumes for
one pod only, how many volumes a driver attaches to a node.
Must not: bind or provision anything. What a claim that waits for its first consumer asks for is known elsewhere
(`first_consumers`), and done elsewhere (`preparing`).
"""

from __future__ import annotations

from msgspec import Struct, field

from optimus.drivers.kube.attaching import disks_of, is_untold
from optimus.drivers.kube.capacities import Capacities
from optimus.drivers.kube.claiming import Claims
from optimus.drivers.kube.first_consumers import ZONE_SEPARATOR, Shape, consumed_by, waits_for_consumer
from optimus.drivers.kube.objects import (
    PersistentVolume,
    Pod,
    StorageClass,
    StorageNode,
    Volume,
    VolumeClaim,
)
from optimus.drivers.kube.rules import NodeTerms, node_terms
from optimus.model.reasons import Code, Reason, reason
from optimus.model.rules import ATTACH, NodeRequirement, Operator

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
_OLD_NAMES = {
    "failure-domain.beta.kubernetes.io/zone": ZONE,
    "failure-domain.beta.kubernetes.io/region": REGION,
}
_ZONE_LABELS = (*_OLD_NAMES, ZONE, REGION)
_BOUND = "pv.kubernetes.io/bind-completed"


class Around(Struct, frozen=True, kw_only=True):
    """What pods refer to, by `namespace/name` or name."""

    claims: dict[str, VolumeClaim] = {}
    volumes: dict[str, PersistentVolume] = {}
    classes: dict[str, StorageClass] = {}
    capacities: Capacities = field(default_factory=Capacities)
    devices: Claims = Claims()


class Attached(Struct, frozen=True, kw_only=True):
    """What follows from the volumes of one pod."""

    all_of: tuple[NodeTerms, ...] = ()
    sole_claims: tuple[str, ...] = ()
    attached: tuple[tuple[str, int], ...] = ()
    """Counters of drivers, and of volumes that a node must have to spare."""
    shapes: tuple[Shape, ...] = ()
    """Of the latter."""
    obstacles: tuple[Reason, ...] = ()


def attached_to(pod: Pod, around: Around) -> Attached:
    """Raises MalformedError."""
    pins: list[NodeTerms] = []
    sole: list[str] = []
    obstacles: list[Reason] = []
    waiting: list[VolumeClaim] = []
    for volume in pod.spec.volumes or ():
        obstacles += _old_disk(volume)
        name = _claim_name(pod, volume)
        if name is None:
            continue
        claim = around.claims.get(f"{pod.metadata.namespace}/{name}")
        hindered = _hindered(pod, volume, name, claim, around)
        obstacles += hindered
        if claim is None:
            continue
        undecided = not hindered and not pod.spec.node_name  # on a node, nothing is left to be chosen
        if undecided and claim not in waiting and waits_for_consumer(claim, around.classes):
            waiting.append(claim)
        if "ReadWriteOncePod" in (claim.spec.access_modes or ()):
            sole.append(name)
        bound = around.volumes.get(claim.spec.volume_name or "")
        if bound is not None and not hindered:
            pins += _pins(bound)
    drivers = [driver for driver, _ in disks_of(pod, around.claims, around.volumes, around.classes)]
    counters = tuple((ATTACH + driver, drivers.count(driver)) for driver in sorted(set(drivers)))
    consumed = consumed_by(waiting, around.volumes, around.classes, around.capacities)
    return Attached(
        all_of=tuple(dict.fromkeys((*pins, *consumed.all_of))),
        sole_claims=tuple(dict.fromkeys(sole)),
        attached=(*counters, *consumed.counters),
        shapes=consumed.shapes,
        obstacles=(*obstacles, *consumed.obstacles),
    )


def attach_limits(node: StorageNode | None) -> dict[str, int]:
    """How many volumes drivers attach to a node, as counters."""
    drivers = (node.spec.drivers if node else None) or ()
    return {ATTACH + d.name: d.allocatable.count for d in drivers if d.allocatable and d.allocatable.count is not None}


# -- volumes ----------------------------------------------------------------------------------------------------------


def _claim_name(pod: Pod, volume: Volume) -> str | None:
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.metadata.name}-{volume.name}" if volume.ephemeral is not None else None


def _hindered(pod: Pod, volume: Volume, name: str, claim: VolumeClaim | None, around: Around) -> list[Reason]:
    """Why a claim cannot be used yet."""
    if claim is None:
        made = "has not been made yet" if volume.ephemeral is not None else "does not exist"
        return [_not_ready(f"volume claim {name} {made}")]
    if claim.metadata.deletion_timestamp is not None:
        return [_not_ready(f"volume claim {name} is being deleted")]
    if claim.status.phase == "Lost":
        return [_not_ready(f"volume claim {name} has lost its volume {claim.spec.volume_name}")]
    owners = claim.metadata.owner_references or ()
    if volume.ephemeral is not None and not any(one.uid == pod.metadata.uid for one in owners):
        return [_not_ready(f"volume claim {name} belongs to somebody else")]
    if claim.spec.volume_name and _BOUND in (claim.metadata.annotations or {}):
        if claim.spec.volume_name not in around.volumes:
            return [_not_ready(f"volume {claim.spec.volume_name} of claim {name} does not exist")]
        return []
    if waits_for_consumer(claim, around.classes):
        return []
    return [_not_ready(f"volume claim {name} is not bound to a volume")]


def _pins(volume: PersistentVolume) -> list[NodeTerms]:
    affinity = volume.spec.node_affinity
    found = [node_terms(affinity.required, fields=False)] if affinity and affinity.required else []
    labels = volume.metadata.labels or {}
    for key in _ZONE_LABELS:
        zones = tuple(sorted({zone.strip() for zone in labels.get(key, "").split(ZONE_SEPARATOR)}))
        if all(zones):  # one that is not there, or cannot be read, says nothing
            found.append(_in_zone(key, zones))
    return found


def _in_zone(key: str, zones: tuple[str, ...]) -> NodeTerms:
    """A node without any label of zone or region is everywhere."""
    anywhere = tuple(NodeRequirement(label, Operator.DOES_NOT_EXIST) for label in _ZONE_LABELS)
    terms = [anywhere, (NodeRequirement(key, Operator.IN, zones),)]
    if key in _OLD_NAMES:
        without_old = NodeRequirement(key, Operator.DOES_NOT_EXIST)
        terms.append((without_old, NodeRequirement(_OLD_NAMES[key], Operator.IN, zones)))
    return tuple(terms)


def _old_disk(volume: Volume) -> list[Reason]:
    kinds = {
        "awsElasticBlockStore": volume.aws_elastic_block_store,
        "gcePersistentDisk": volume.gce_persistent_disk,
        "iscsi": volume.iscsi,
        "rbd": volume.rbd,
    }
    instead = "claim it as a PersistentVolume"
    if is_untold(volume):
        told = f"volume {volume.name} of kind azureDisk that is not managed"
        return [reason(Code.UNSUPPORTED, feature=told, instead="use a managed disk")]
    return [
        reason(Code.UNSUPPORTED, feature=f"volume {volume.name} of kind {kind} in the pod itself", instead=instead)
        for kind, there in kinds.items()
        if there is not None
    ]


def _not_ready(missing: str) -> Reason:
    return reason(Code.NOT_READY, missing=missing)
