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

from optimus.drivers.kube.counting import Counting, Social
from optimus.drivers.kube.first_consumers import Shape
from optimus.drivers.kube.objects import Pod
from optimus.drivers.kube.requests import GPU_NAMES, MalformedError, request_of
from optimus.drivers.kube.rules import affinity_of, gates_of, social_of, tolerations_of, unsupported_by_rules
from optimus.drivers.kube.volumes import Around, attached_to
from optimus.model.reasons import Code, Reason, reason
from optimus.model.rules import PODS, Where, is_counter
from optimus.model.workloads import Request


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
    request, where = Request(accelerators=((PODS, 1),)), Where()
    social = Social(namespace=pod.metadata.namespace, labels=tuple(sorted((pod.metadata.labels or {}).items())))
    try:
        request = request_of(pod, gpu_names)
        attached = attached_to(pod, around)
        request, shapes = with_counters(request, attached.attached), attached.shapes
        social = social_of(pod, attached.sole_claims)
        where = Where(any_of=affinity_of(pod), all_of=attached.all_of, tolerations=tolerations_of(pod))
        obstacles += [*unsupported_by_rules(pod), *attached.obstacles]
    except MalformedError as error:
        obstacles.append(reason(Code.MALFORMED, problem=str(error)))
    obstacles += gates_of(pod)
    return PodNeeds(
        pod=pod.key,
        request=request,
        where=where,
        social=social,
        shapes=shapes,
        priority=pod.spec.priority or 0,
        obstacles=tuple(sorted(obstacles, key=lambda one: _ORDER.index(one.code))),
    )


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


def with_at_least(request: Request, other: Request) -> Request:
    """With as much of each counter as the other has."""
    taken = dict(request.accelerators)
    for name, amount in other.accelerators:
        if is_counter(name):
            taken[name] = max(taken.get(name, 0), amount)
    return structs.replace(request, accelerators=tuple(sorted(taken.items())))
