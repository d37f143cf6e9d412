"""One pod as the brain sees it: what it takes, where it may be, how important it is, and what stands in its way.

Why: grouping puts pods together into gangs; each of them is read here, once per change.
Owns: how the readings are put together, and that whatever cannot be followed becomes a reason, never a place.
Must not: group, place or talk to a server.

    needs = read_pod(pod, around)                    of the pod alone
    counting.see(pod.key, needs.social)              it is one of many
    request, where = among_others(needs, counting)   with the counters it takes and the rules that bind it
"""

from __future__ import annotations

from msgspec import Struct, structs

from optimus.drivers.kube.claiming import Claimed, claimed_by
from optimus.drivers.kube.counting import MOST_TERMS, Counting, Social, coarse
from optimus.drivers.kube.first_consumers import Shape
from optimus.drivers.kube.grouping.overrides import SLOT, TERM
from optimus.drivers.kube.objects import Pod, PodSpec, PodStatus
from optimus.drivers.kube.requests import GPU_NAMES, RESIZE_PENDING, WHOLE_GPU, MalformedError, read_request
from optimus.drivers.kube.rules import affinity_of, gates_of, social_of, tolerations_of, unsupported_by_rules
from optimus.drivers.kube.volumes import Around, attached_to
from optimus.model.reasons import Code, Reason, reason
from optimus.model.rules import DEVICE, Where
from optimus.model.workloads import Request

OUR_NOTES = frozenset({SLOT, TERM})
"""Annotations that a bind leaves on a pod; they say nothing of what it needs."""


class PodNeeds(Struct, frozen=True, kw_only=True):
    pod: str
    """`namespace/name`."""
    request: Request
    """Without counters of neighbours."""
    where: Where
    """Without neighbours."""
    social: Social
    shapes: tuple[Shape, ...] = ()
    """Of volumes that a node must have to spare for it."""
    devices: Claimed = Claimed()
    priority: int = 0
    obstacles: tuple[Reason, ...] = ()
    """What cannot be read comes first, then what is not supported, then what it waits for."""

    @property
    def obstacle(self) -> Reason | None:
        """The one that people are told (`Workload.obstacle`)."""
        return self.obstacles[0] if self.obstacles else None


def read_pod(pod: Pod, around: Around, gpu_names: tuple[str, ...] = GPU_NAMES) -> PodNeeds:
    """Never raises: a pod that cannot be read has an obstacle, and takes what can be read of it."""
    obstacles: list[Reason] = []
    shapes: tuple[Shape, ...] = ()
    devices = Claimed()
    asked, where = read_request(pod, gpu_names), Where()
    request = asked.request
    if asked.problem:
        obstacles.append(reason(Code.MALFORMED, problem=asked.problem))
    social = Social(namespace=pod.metadata.namespace, labels=tuple(sorted((pod.metadata.labels or {}).items())))
    try:
        attached = attached_to(pod, around)
        devices = claimed_by(pod, around.devices)
        request, shapes = with_counters(request, attached.attached), attached.shapes
        request = _with_devices(request, devices)
        social = social_of(pod, attached.sole_claims)
        if (terms := len(social.near) + len(social.apart) + len(social.spread)) > MOST_TERMS:
            told = f"{terms} required terms of pod affinity, anti-affinity and topology spread; at most {MOST_TERMS}"
            obstacles.append(reason(Code.MALFORMED, problem=f"{told} are read: select more pods with one term"))
            social = coarse(social)
        where = Where(
            any_of=affinity_of(pod), all_of=(*attached.all_of, *devices.all_of), tolerations=tolerations_of(pod)
        )
        obstacles += [*unsupported_by_rules(pod), *attached.obstacles, *devices.obstacles]
    except MalformedError as error:
        obstacles.append(reason(Code.MALFORMED, problem=str(error)))
    obstacles += gates_of(pod)
    return PodNeeds(
        pod=pod.key,
        request=request,
        where=where,
        social=social,
        shapes=shapes,
        devices=devices,
        priority=pod.spec.priority or 0,
        obstacles=tuple(sorted(obstacles, key=lambda one: _ORDER.index(one.code))),
    )


def _with_devices(request: Request, devices: Claimed) -> Request:
    """GPUs that are claimed are GPUs as any."""
    if devices.gpus and request.gpu_count and (request.gpu_milli < WHOLE_GPU or request.gpu_memory_mib):
        raise MalformedError("a resource claim asks for whole GPUs, and an annotation for a part of one; choose one")
    request = with_counters(request, devices.counters)
    return structs.replace(request, gpu_count=request.gpu_count + devices.gpus) if devices.gpus else request


_OUR_NOTES = frozenset({SLOT, TERM})
"""Annotations that a bind leaves on a pod; they say nothing of what it needs."""
_ORDER = (Code.MALFORMED, Code.UNSUPPORTED, Code.NOT_READY)


def among_others(needs: PodNeeds, counting: Counting) -> tuple[Request, Where]:
    """The pod must have been seen by `counting` as one to place."""
    counters = tuple((name, 1) for name in counting.takes(needs.pod))
    rules = counting.rules(needs.pod)
    return with_counters(needs.request, counters), structs.replace(needs.where, neighbours=rules)


def with_counters(request: Request, counters: tuple[tuple[str, int], ...]) -> Request:
    if not counters:
        return request
    taken = dict(request.accelerators)
    for name, amount in counters:
        taken[name] = taken.get(name, 0) + amount
    return structs.replace(request, accelerators=tuple(sorted(taken.items())))


def same_rules(old: Pod, new: Pod) -> bool:
    """Whether nothing has changed that says what it takes, where it may be, or who counts it. To be bound, with a note
    of ours, is no such change; that alone is what most changes are."""
    return (
        (old.spec == new.spec or (not old.spec.node_name and _on_no_node(new.spec) == old.spec))
        and old.metadata.labels == new.metadata.labels
        and (old.metadata.annotations == new.metadata.annotations or _notes(old) == _notes(new))
        and (old.metadata.deletion_timestamp is None) == (new.metadata.deletion_timestamp is None)
        and (old.status == new.status or _given(old.status) == _given(new.status))
    )


def _given(status: PodStatus) -> tuple[object, ...]:
    """All of it that says what the pod takes, or that names its claims (`requests.effective`, `claiming`)."""
    of_containers = [
        [(one.name, one.resources, one.allocated_resources) for one in some or ()]
        for some in (status.container_statuses, status.init_container_statuses)
    ]
    pending = [one.reason for one in status.conditions or () if one.type == RESIZE_PENDING]
    whole_pod = (status.resources, status.allocated_resources)
    return (*of_containers, whole_pod, pending, status.resource_claim_statuses)


def _on_no_node(spec: PodSpec) -> PodSpec:
    return structs.replace(spec, node_name=None)


def _notes(pod: Pod) -> dict[str, str]:
    return {key: value for key, value in (pod.metadata.annotations or {}).items() if key not in OUR_NOTES}


def without_devices(request: Request) -> Request:
    if not any(name.startswith(DEVICE) for name, _ in request.accelerators):
        return request
    left = tuple((name, amount) for name, amount in request.accelerators if not name.startswith(DEVICE))
    return structs.replace(request, accelerators=left)
