"""Which driver attaches a volume to a node, and how many it has attached there: for pods, and for nobody any more.

    claim ──► volume ──► its driver and handle           bound
          └─► class ──► its provisioner                  not yet: one more of that driver
    awsElasticBlockStore, kubernetes.io/aws-ebs … ──► the driver that has taken over from them

Why: a node takes so many volumes of a driver (`CSINode`), whatever they are written as. A volume that two pods of a
node share is there once; one whose pod has gone is there until it is detached.
Owns: what a disk is called, in the sense of kube-scheduler; which nodes a claim, a volume or an attachment concerns.
Must not: know limits, or decide who may go where: it counts, and the brain has the room.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import structs

from optimus.drivers.kube.first_consumers import ZONE_SEPARATOR, claim_names, class_of
from optimus.drivers.kube.objects import (
    PersistentVolume,
    Pod,
    StorageClass,
    Volume,
    VolumeAttachment,
    VolumeClaim,
    VolumeSpec,
)
from optimus.model.rules import ATTACH
from optimus.model.workloads import Request

Disk = tuple[str, str]
"""A driver, and what it calls the volume."""
EBS, GCE, AZURE = "ebs.csi.aws.com", "pd.csi.storage.gke.io", "disk.csi.azure.com"
CINDER, PORTWORX = "cinder.csi.openstack.org", "pxd.portworx.com"
_TAKEN_OVER = {
    "kubernetes.io/aws-ebs": EBS,
    "kubernetes.io/gce-pd": GCE,
    "kubernetes.io/azure-disk": AZURE,
    "kubernetes.io/cinder": CINDER,
    "kubernetes.io/portworx-volume": PORTWORX,
}
"""Provisioners of old, and the drivers that do their work in every Kubernetes that we know."""
_NO_PROVISIONER = "kubernetes.io/no-provisioner"
_ZONE_LABELS = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
_ANY = "UNSPECIFIED"
_EBS_ID = re.compile(r"aws://[^/]*/+(vol-[^/]*)/*")


def driver_of(provisioner: str) -> str:
    return _TAKEN_OVER.get(provisioner, provisioner)


def disk_of_volume(volume: PersistentVolume) -> Disk | None:
    """None: nobody attaches it, or it is no disk of a driver."""
    if volume.spec.csi is not None:
        return volume.spec.csi.driver, volume.spec.csi.volume_handle
    return _old_disk(volume.spec, _zones(volume))


def disk_of_claim(
    claim: VolumeClaim, volumes: Mapping[str, PersistentVolume], classes: Mapping[str, StorageClass]
) -> Disk | None:
    """Of one that is not bound: what its class will make."""
    bound = volumes.get(claim.spec.volume_name or "")
    if bound is not None:
        return disk_of_volume(bound)
    kind = classes.get(class_of(claim))
    if kind is None or kind.provisioner in ("", _NO_PROVISIONER):
        return None
    return driver_of(kind.provisioner), f"{claim.metadata.namespace}/{claim.metadata.name}"


def disks_of(
    pod: Pod,
    claims: Mapping[str, VolumeClaim],
    volumes: Mapping[str, PersistentVolume],
    classes: Mapping[str, StorageClass],
) -> set[Disk]:
    found = {_old_disk(one, []) for one in pod.spec.volumes or ()}
    for name in claim_names(pod):
        if (claim := claims.get(f"{pod.metadata.namespace}/{name}")) is not None:
            found.add(disk_of_claim(claim, volumes, classes))
    return {one for one in found if one is not None}


def is_untold(volume: Volume) -> bool:
    """A disk of Azure outside of what the driver has taken over: nobody can say what it counts."""
    return volume.azure_disk is not None and not _is_managed(volume.azure_disk)


def _old_disk(written: VolumeSpec | Volume, zones: list[str]) -> Disk | None:
    """As people wrote disks before there were drivers."""
    if written.aws_elastic_block_store is not None:
        return _named(EBS, _ebs(str(written.aws_elastic_block_store.get("volumeID", ""))))
    if written.gce_persistent_disk is not None:
        return _named(GCE, _gce(str(written.gce_persistent_disk.get("pdName", "")), zones))
    if written.azure_disk is not None and _is_managed(written.azure_disk):
        return _named(AZURE, str(written.azure_disk.get("diskURI", "")))
    if written.cinder is not None:
        return _named(CINDER, str(written.cinder.get("volumeID", "")))
    if written.portworx_volume is not None:
        return _named(PORTWORX, str(written.portworx_volume.get("volumeID", "")))
    return None


def _named(driver: str, handle: str) -> Disk | None:
    return (driver, handle) if handle else None


def _is_managed(azure: Mapping[str, Any]) -> bool:
    return str(azure.get("kind") or "Managed").lower() == "managed"


def _ebs(written: str) -> str:
    """`aws://eu-1a/vol-1` is `vol-1`."""
    if not written.startswith("aws://"):
        return written
    found = _EBS_ID.fullmatch(written)
    return found[1] if found else ""


def _gce(name: str, zones: list[str]) -> str:
    if len(zones) < 2:
        return f"projects/{_ANY}/zones/{zones[0] if zones and zones[0] else _ANY}/disks/{name}"
    regions = {zone.rpartition("-")[0] for zone in zones}
    return f"projects/{_ANY}/regions/{regions.pop()}/disks/{name}" if len(regions) == 1 else ""


def _zones(volume: PersistentVolume) -> list[str]:
    labels = volume.metadata.labels or {}
    return next((labels[key].split(ZONE_SEPARATOR) for key in _ZONE_LABELS if labels.get(key)), [])


# -- on nodes ---------------------------------------------------------------------------------------------------------


class Attached:
    """What hangs on which node."""

    def __init__(self) -> None:
        self._attachments: dict[str, tuple[str, str, str]] = {}
        """By name: node, driver, volume."""
        self._on: dict[str, set[str]] = {}
        """By node: names of attachments."""
        self._of: dict[str, set[str]] = {}
        """The same by volume."""
        self._pods: dict[str, tuple[str, list[str]]] = {}
        """By uid of a pod on a node: where, and its claims."""
        self._users: dict[str, Counter[str]] = {}
        """By claim: how many such pods are on each node."""

    def see(self, name: str, attachment: VolumeAttachment | None) -> set[str]:
        """It is there, or has gone (None). The nodes that are concerned."""
        concerned = set()
        if (old := self._attachments.pop(name, None)) is not None:
            concerned.add(old[0])
            _discard(self._on, old[0], name)
            _discard(self._of, old[2], name)
        spec = attachment.spec if attachment is not None else None
        if spec is not None and spec.attacher and spec.source.persistent_volume_name:
            node, volume = spec.node_name, spec.source.persistent_volume_name
            self._attachments[name] = (node, spec.attacher, volume)
            self._on.setdefault(node, set()).add(name)
            self._of.setdefault(volume, set()).add(name)
            concerned.add(node)
        return concerned

    def come(self, pod: Pod, node: str) -> None:
        self.leave(pod.metadata.uid)
        if claims := [f"{pod.metadata.namespace}/{name}" for name in claim_names(pod)]:
            self._pods[pod.metadata.uid] = (node, claims)
            for claim in claims:
                self._users.setdefault(claim, Counter())[node] += 1

    def leave(self, uid: str) -> None:
        node, claims = self._pods.pop(uid, ("", []))
        for claim in claims:
            users = self._users[claim]
            users[node] -= 1
            if not users[node]:
                del users[node]
            if not users:
                del self._users[claim]

    def nodes_of_claim(self, claim: str) -> set[str]:
        return set(self._users.get(claim, ()))

    def nodes_of_volume(self, volume: PersistentVolume) -> set[str]:
        ref = volume.spec.claim_ref
        users = self.nodes_of_claim(f"{ref.namespace}/{ref.name}") if ref is not None else set()
        return users | {self._attachments[name][0] for name in self._of.get(volume.metadata.name, ())}

    def disks_on(self, node: str, volumes: Mapping[str, PersistentVolume]) -> set[Disk]:
        """By attachments, of volumes that are there and of a driver."""
        found = set()
        for name in self._on.get(node, ()):
            _, driver, volume = self._attachments[name]
            known = volumes.get(volume)
            if known is not None and known.spec.csi is not None:
                found.add((driver, known.spec.csi.volume_handle))
        return found


def disks_beside(limits: Iterable[str], disks: Iterable[Disk], known: Iterable[Request]) -> dict[str, int]:
    """For a node with these limits (counters): how many disks hang there beyond what the brain counts for its pods."""
    hanging = Counter(ATTACH + driver for driver, _ in disks)
    for request in known:
        hanging.subtract({name: amount for name, amount in request.accelerators if name.startswith(ATTACH)})
    return {name: hanging[name] for name in limits if hanging[name]}


def without_disks(request: Request) -> Request:
    """Where they are counted one by one."""
    if not any(name.startswith(ATTACH) for name, _ in request.accelerators):
        return request
    left = tuple(one for one in request.accelerators if not one[0].startswith(ATTACH))
    return structs.replace(request, accelerators=left)


def _discard(index: dict[str, set[str]], key: str, name: str) -> None:
    index[key].discard(name)
    if not index[key]:
        del index[key]
