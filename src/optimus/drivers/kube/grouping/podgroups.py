"""Gangs that are named by a PodGroup: three APIs that say the same thing in three ways.

    native (1.36, alpha)    pod spec.schedulingGroup.podGroupName       PodGroup spec.schedulingPolicy.gang.minCount
    Volcano                 annotation scheduling.k8s.io/group-name      PodGroup spec.minMember
    scheduler-plugins       label scheduling.x-k8s.io/pod-group          PodGroup spec.minMember

Why: each of them changes with its releases; the rest of this package sees a name and a number.
Owns: one adapter for each.
Must not: take over queues of others: they are not ours.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from optimus.drivers.kube.grouping.expressions import Path, look, place_of
from optimus.drivers.kube.objects import Anything, Pod


class PodGroupApi(Struct, frozen=True):
    kind: str
    of_pod: Callable[[Pod], str | None]
    """The name of its PodGroup, in the same namespace."""
    least: Path
    """Where the PodGroup says how many pods have to be there."""


def _native(pod: Pod) -> str | None:
    return pod.spec.scheduling_group.pod_group_name if pod.spec.scheduling_group else None


def _volcano(pod: Pod) -> str | None:
    return (pod.metadata.annotations or {}).get("scheduling.k8s.io/group-name")


def _scheduler_plugins(pod: Pod) -> str | None:
    labels = pod.metadata.labels or {}
    return labels.get("scheduling.x-k8s.io/pod-group") or labels.get("pod-group.scheduling.sigs.k8s.io")


APIS = (
    PodGroupApi("scheduling.k8s.io/PodGroup", _native, Path(("spec", "schedulingPolicy", "gang", "minCount"))),
    PodGroupApi("scheduling.volcano.sh/PodGroup", _volcano, Path(("spec", "minMember"))),
    PodGroupApi("scheduling.x-k8s.io/PodGroup", _scheduler_plugins, Path(("spec", "minMember"))),
)
_BY_KIND = {api.kind: api for api in APIS}


def named_by(pod: Pod) -> tuple[str, str] | None:
    """(kind, name) of the PodGroup that a pod names."""
    for api in APIS:
        if name := api.of_pod(pod):
            return api.kind, name
    return None


def is_pod_group(kind: str) -> bool:
    return kind in _BY_KIND


def least_members(kind: str, thing: Anything) -> int | None:
    """How many pods have to be there; None where it asks for no gang (the basic policy of the native API)."""
    found = look(_BY_KIND[kind].least, place_of(thing))
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else None
