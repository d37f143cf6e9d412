"""Gangs that are named by a PodGroup: three APIs that say the same thing in three ways.

    native (1.36, alpha)    pod spec.schedulingGroup.podGroupName       PodGroup spec.schedulingPolicy.gang.minCount
    Volcano                 annotation scheduling.k8s.io/group-name      PodGroup spec.minMember
    scheduler-plugins       label scheduling.x-k8s.io/pod-group          PodGroup spec.minMember

The native one is Kubernetes' own word, and says more: its pods wait until it is there, whoever owns them; with the
policy `basic` it asks for no gang; it may have a priority, a level to stay inside and a wish to be stopped as a whole.

Why: each of them changes with its releases; the rest of this package sees a name and what was asked for.
Owns: one adapter for each.
Must not: take over queues of others: they are not ours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from optimus.drivers.kube.grouping.expressions import Path, look, place_of
from optimus.drivers.kube.grouping.overrides import LARGEST_NUMBER
from optimus.drivers.kube.objects import Anything, Pod
from optimus.model.pools import HOST_LEVEL

NATIVE = "scheduling.k8s.io/PodGroup"
_BASIC = Path(("spec", "schedulingPolicy", "basic"))
_TOPOLOGY = Path(("spec", "schedulingConstraints", "topology"))
_HOSTNAME = "kubernetes.io/hostname"


class PodGroupApi(Struct, frozen=True):
    kind: str
    of_pod: Callable[[Pod], str | None]
    """The name of its PodGroup, in the same namespace."""
    least: Path
    """Where the PodGroup says how many pods have to be there."""


class Wishes(Struct, frozen=True, kw_only=True):
    """What a native PodGroup asks for beside a number."""

    priority: int | None = None
    level: str = ""
    """All of it inside one domain of this label."""
    whole: bool = False
    """It is stopped as a whole, or not at all."""


def _native(pod: Pod) -> str | None:
    return pod.spec.scheduling_group.pod_group_name if pod.spec.scheduling_group else None


def _volcano(pod: Pod) -> str | None:
    return (pod.metadata.annotations or {}).get("scheduling.k8s.io/group-name")


def _scheduler_plugins(pod: Pod) -> str | None:
    labels = pod.metadata.labels or {}
    return labels.get("scheduling.x-k8s.io/pod-group") or labels.get("pod-group.scheduling.sigs.k8s.io")


APIS = (
    PodGroupApi(NATIVE, _native, Path(("spec", "schedulingPolicy", "gang", "minCount"))),
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


def asks_for_no_gang(kind: str, thing: Anything | None) -> bool:
    """The basic policy of the native API: pods one by one, as if nobody had named it."""
    return kind == NATIVE and thing is not None and look(_BASIC, place_of(thing)) is not None


def least_members(kind: str, thing: Anything) -> int | None:
    """How many pods have to be there; None where it does not say."""
    if asks_for_no_gang(kind, thing):
        return 1
    found = look(_BY_KIND[kind].least, place_of(thing))
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else None


def wishes(kind: str, thing: Anything) -> Wishes:
    spec = thing.spec if kind == NATIVE and isinstance(thing.spec, dict) else {}
    priority = spec.get("priority") if spec.get("priorityClassName") else None
    return Wishes(
        priority=priority if isinstance(priority, int) and abs(priority) <= LARGEST_NUMBER else None,
        level=_level(look(_TOPOLOGY, place_of(thing)) if spec else None),
        whole=_stopped_as_a_whole(spec.get("disruptionMode")),
    )


def _stopped_as_a_whole(mode: Any) -> bool:
    return mode == "PodGroup" or (isinstance(mode, dict) and "all" in mode)  # 1.36, and as 1.37 writes it


def _level(written: Any) -> str:
    found = [one.get("key") for one in written if isinstance(one, dict)] if isinstance(written, list) else []
    keys = [key for key in found if isinstance(key, str)]
    return HOST_LEVEL if keys[:1] == [_HOSTNAME] else next(iter(keys), "")
