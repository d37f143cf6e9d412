"""One gang as a record: what its owner declares, what people wrote on it, and the pods that are there.

Why: the index (`groups`) only knows who belongs to whom; this says what it amounts to.
Owns: what a gang remembers between changes, and its record.
Must not: look at any other gang.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from optimus.drivers.kube.grouping.declared import (
    DeclaredRole,
    Template,
    fragile_why,
    is_over,
    is_suspended,
    with_least_members,
)
from optimus.drivers.kube.grouping.expressions import number, place_of
from optimus.drivers.kube.grouping.kinds import Kind, StopHow
from optimus.drivers.kube.grouping.overrides import (
    HOLD,
    KUEUE,
    QUEUE,
    SCHEDULER,
    STOCK_SCHEDULER,
    SUSPENDED,
    Overrides,
    read_overrides,
    word_on,
)
from optimus.drivers.kube.grouping.podgroups import (
    NATIVE,
    Wishes,
    asks_for_no_gang,
    is_pod_group,
    least_members,
    wishes,
)
from optimus.drivers.kube.grouping.records import PART, Group, ObjectRef, RoleInGroup, Stop
from optimus.drivers.kube.grouping.seats import Seats
from optimus.drivers.kube.grouping.unified import job_group
from optimus.drivers.kube.objects import Anything, Meta, Pod, PodSpec
from optimus.model.workloads import Preemptible, WorkloadClass


class Member:
    """A pod, and where it belongs."""

    __slots__ = (
        "api_version",
        "ended",
        "gang_id",
        "index",
        "kind",
        "kind_name",
        "part",
        "pod",
        "pod_group",
        "role",
        "stranded",
        "top",
        "top_uid",
        "via",
    )

    def __init__(self, pod: Pod) -> None:
        self.pod = pod
        self.gang_id = ""
        self.role = ""
        """With its part."""
        self.part = ""
        self.index: int | None = None
        self.ended = False
        self.stranded = False
        self.kind: Kind | None = None
        self.kind_name = ""
        self.pod_group: tuple[str, str, str] | None = None
        """As it is counted in its gang."""
        self.top: tuple[str, str, str] | None = None
        self.api_version = ""
        self.top_uid = ""
        self.via: list[str | tuple[str, str, str]] = []

    @property
    def uid(self) -> str:
        return self.pod.metadata.uid


class Gang:
    __slots__ = ("ended", "id", "pod_groups", "pods", "seats", "uses")

    def __init__(self, gang_id: str) -> None:
        self.id = gang_id
        self.seats: dict[str, Seats] = {}
        self.ended: dict[str, int] = {}
        """By role: pods that have ended well."""
        self.pods: set[str] = set()
        self.pod_groups: dict[tuple[str, str, str] | None, int] = {}
        """PodGroups that its pods name (None: those that name none), with how many do."""
        self.uses = 0
        """By its pods and by its object: at 0 it is gone."""

    def sample(self, members: Mapping[str, Member]) -> Member | None:
        """A pod that speaks for all: the lowest ordinal of the first role."""
        for role in sorted(self.seats):
            if (uid := self.seats[role].lowest()) is not None:
                return members[uid]
        return members[min(self.pods)] if self.pods else None


class NamedPodGroup(Struct, frozen=True):
    """The PodGroup that all pods of a gang name."""

    kind: str
    name: str
    thing: Anything | None
    """None while it does not exist."""
    others: tuple[str, ...] = ()
    """Other gangs that name it."""


def build_group(
    gang: Gang,
    members: Mapping[str, Member],
    sample: Member | None,
    top: tuple[str, str, str] | None,
    kind: Kind | None,
    thing: Anything | None,
    declared: tuple[DeclaredRole, ...],
    pod_group: NamedPodGroup | None,
) -> Group:
    if kind is not None and kind.stop is StopHow.TARGET and thing is not None:
        there = tuple(_finished(role, gang, members) for role in _with_pods(gang, declared))
        return job_group(kind, thing, gang.id, there)
    by_pod_group = top is not None and is_pod_group(top[0])
    said = read_overrides(_who_speaks(thing, declared, pod_group, sample))
    wished = wishes(pod_group.kind, pod_group.thing) if pod_group and pod_group.thing else Wishes()
    roles = _with_pods(gang, declared)
    least = _least_members(said, kind, thing, pod_group)
    together = by_pod_group or top is None
    if together:
        roles = tuple(replace(role, min=0) for role in roles)
        roles = with_least_members(roles, least or 1)
    elif least is not None:
        roles = with_least_members(roles, least)
    stop = _stop(kind, sample.kind_name if sample else "", said)
    spec = sample.pod.spec if sample else _first_template(declared)
    suspended = bool(kind and thing and not by_pod_group and is_suspended(kind, thing))
    admit, problems = _admission(thing) if suspended and thing else (False, ())
    no_preemption = "" if said.preemptible else stop.why
    return Group(
        id=gang.id,
        kind=top[0] if top and by_pod_group else sample.kind_name if sample else top[0] if top else "Pod",
        object=_ref(top, thing, sample),
        roles=tuple(_finished(role, gang, members) for role in roles),
        queue=said.queue,
        workload_class=said.workload_class or (kind.workload_class if kind else WorkloadClass.UNATTENDED),
        priority=_priority(said, wished, sample),
        priority_class=None if sample else spec.priority_class_name or "",
        preemptible=said.preemptible or (Preemptible.NO if no_preemption else Preemptible.DEFAULT),
        not_preemptible_why=no_preemption,
        fragile_why=_fragile(kind, thing, wished, by_pod_group=by_pod_group),
        pools=said.pools,
        topology=replace(said.topology, required=said.topology.required or wished.level),
        checkpoint_grace_ms=said.checkpoint_grace_ms,
        expected_duration_ms=said.expected_duration_ms,
        family=said.family,
        stop=stop,
        suspended=suspended,
        admit=admit,
        suspend_field=kind.suspend.keys if kind and kind.suspend and not by_pod_group else (),
        over=bool(kind and thing and not by_pod_group and is_over(kind.over, thing)),
        began=_status_word(thing, "startTime") if _was_suspended(thing) else "",
        completed=_status_word(thing, "completionTime"),
        incomplete=_incomplete(kind, thing, top, roles, pod_group, least if together else None),
        unsupported=_unsupported(pod_group, wished),
        problems=(*said.problems, *problems),
        created=_created(thing, sample),
        scheduler_name=spec.scheduler_name or "",
        names_nobody=sample is None and all(_names_nobody(role) for role in declared),
    )


def _names_nobody(role: DeclaredRole) -> bool:
    """As the policy of `opting_in` looks at pods."""
    if role.template is None:
        return True
    named = role.template.spec.scheduler_name in (None, "", STOCK_SCHEDULER)
    return named and (role.template.metadata.labels or {}).get(SCHEDULER) != "disabled"


def _who_speaks(
    thing: Anything | None, declared: tuple[DeclaredRole, ...], pod_group: NamedPodGroup | None, sample: Member | None
) -> Iterator[Meta]:
    if thing is not None:
        yield thing.metadata
    for role in declared:
        if role.template is not None:
            yield role.template.metadata
    if pod_group is not None and pod_group.thing is not None:
        yield pod_group.thing.metadata
    if sample is not None:
        yield sample.pod.metadata


def _with_pods(gang: Gang, declared: tuple[DeclaredRole, ...]) -> tuple[DeclaredRole, ...]:
    """Also the roles that nobody declared and that have pods: what is there is what there is."""
    known = {role.name for role in declared}
    rest = []
    for name in sorted({*gang.seats, *gang.ended} - known):
        count = len(gang.seats[name].holders) if name in gang.seats else 0
        least = 0 if declared else count
        total = count + gang.ended.get(name, 0)
        rest.append(DeclaredRole(name=name, min=least, count=count, max=count, total=total))
    return _divided(declared, rest)


def _divided(declared: tuple[DeclaredRole, ...], found: list[DeclaredRole]) -> tuple[DeclaredRole, ...]:
    """Parts of a role that is declared count against it; it gives up its least members last."""
    changed, parts = [], {role.name: role for role in found}
    for role in declared:
        mine = [part for part in found if part.name.rpartition(PART)[0] == role.name]
        count = max(role.count - sum(part.count for part in mine), 0)
        least = min(role.min, count)
        left = role.min - least
        for part in mine:
            parts[part.name] = replace(part, min=min(left, part.count), total=part.total if role.total else 0)
            left -= parts[part.name].min
        taken = sum(part.total for part in mine) if role.total else 0
        most = max(role.max - (role.count - count), 0)
        changed.append(replace(role, min=least, count=count, max=most, total=max(role.total - taken, 0)))
    return (*changed, *parts.values())


def _least_members(
    said: Overrides, kind: Kind | None, thing: Anything | None, pod_group: NamedPodGroup | None
) -> int | None:
    if said.min_members is not None:
        return said.min_members
    if pod_group is not None and pod_group.thing is not None:
        return least_members(pod_group.kind, pod_group.thing)
    if kind is not None and kind.min_members is not None and thing is not None:
        return number(kind.min_members, place_of(thing))
    return None


def _stop(kind: Kind | None, name: str, said: Overrides) -> Stop:
    """Who says that it may be preempted accepts that its pods are deleted."""
    willing = said.preemptible in (Preemptible.YES, Preemptible.SURPLUS)
    if kind is None:
        why = f"{name} is not in the table of kinds: nobody knows whether it creates its pods again"
        if name in ("", "Pod"):
            why = "nobody would create the pod again"
        return Stop(how=StopHow.PODS) if willing else Stop(how=StopHow.NEVER, why=why)
    if kind.stop is StopHow.NEVER:
        return Stop(how=StopHow.PODS) if willing else Stop(how=StopHow.NEVER, why=kind.never_why)
    field = kind.suspend.keys if kind.stop is StopHow.SUSPEND and kind.suspend else ()
    return Stop(how=kind.stop, field=field)


def _admission(thing: Anything) -> tuple[bool, tuple[str, ...]]:
    """Whether suspended work waits for us: it names a queue of ours, or we have suspended it, and nobody holds it."""
    if word_on(thing.metadata, HOLD) == "true":
        return False, ()
    ours = word_on(thing.metadata, QUEUE) is not None or word_on(thing.metadata, SUSPENDED) is not None
    if ours and word_on(thing.metadata, KUEUE) is not None:
        return False, (f"{KUEUE} and {QUEUE} are both there: Kueue starts it, we do not (remove one of the two)",)
    return ours, ()


def _incomplete(
    kind: Kind | None,
    thing: Anything | None,
    top: tuple[str, str, str] | None,
    roles: tuple[DeclaredRole, ...],
    pod_group: NamedPodGroup | None,
    least: int | None,
) -> str:
    waits = pod_group is not None and (pod_group.kind == NATIVE or (top is not None and is_pod_group(top[0])))
    if pod_group is not None and pod_group.thing is None and waits:
        return f"PodGroup {pod_group.name} does not exist"
    if kind is not None and kind.roles_from and thing is not None and not roles:
        return f"its {kind.roles_from.rpartition('/')[2]} is not there yet"
    there = sum(role.total for role in roles)
    return f"{there} of {least} pods are there" if least is not None and there < least else ""


def _unsupported(pod_group: NamedPodGroup | None, wished: Wishes) -> str:
    if pod_group is None:
        return ""
    if asks_for_no_gang(pod_group.kind, pod_group.thing):
        return f"PodGroup {pod_group.name} with a topology for pods that are no gang" if wished.level else ""
    others = ", ".join(name.partition("/")[2] for name in pod_group.others[:3])
    return f"PodGroup {pod_group.name} together with {others}" if others else ""


def _priority(said: Overrides, wished: Wishes, sample: Member | None) -> int | None:
    """As far as it is known from what is there. Templates are not believed a number: only the server writes it, and a
    tenant could write any."""
    if said.priority is not None:
        return said.priority
    if wished.priority is not None or sample is None:
        return wished.priority
    return sample.pod.spec.priority if sample.pod.spec.priority_class_name else None


def _first_template(declared: tuple[DeclaredRole, ...]) -> PodSpec:
    """It speaks for all, as the pod of this role will (`Gang.sample`)."""
    by_name = sorted(declared, key=lambda role: role.name)
    return next((role.template.spec for role in by_name if role.template), PodSpec())


def _fragile(kind: Kind | None, thing: Anything | None, wished: Wishes, *, by_pod_group: bool) -> str:
    if wished.whole:
        return "its PodGroup is stopped as a whole"
    return fragile_why(kind, thing) if kind and thing and not by_pod_group else ""


def _ref(top: tuple[str, str, str] | None, thing: Anything | None, sample: Member | None) -> ObjectRef | None:
    if top is None:
        return None
    version = thing.api_version if thing else sample.api_version if sample else ""
    uid = thing.metadata.uid if thing else sample.top_uid if sample else ""
    return ObjectRef(api_version=version, kind=top[0], namespace=top[1], name=top[2], uid=uid)


def _created(thing: Anything | None, sample: Member | None) -> str:
    meta = thing.metadata if thing else sample.pod.metadata if sample else None
    return (meta.creation_timestamp or "") if meta else ""


def _status_word(thing: Anything | None, name: str) -> str:
    status = thing.status if thing is not None else None
    found = status.get(name) if isinstance(status, dict) else None
    return found if isinstance(found, str) else ""


def _was_suspended(thing: Anything | None) -> bool:
    status = thing.status if thing is not None else None
    found = status.get("conditions") if isinstance(status, dict) else None
    conditions = found if isinstance(found, list) else ()
    return any(isinstance(one, dict) and one.get("type") == "Suspended" for one in conditions)


def _finished(role: DeclaredRole, gang: Gang, members: Mapping[str, Member]) -> RoleInGroup:
    seats = gang.seats.get(role.name)
    lowest = seats.lowest() if seats else None
    return RoleInGroup(
        name=role.name,
        min=role.min,
        count=role.count,
        max=role.max,
        per_copy=role.per_copy,
        sizes=role.sizes,
        total=role.total,
        pods=len(seats.holders) if seats else 0,
        ended=gang.ended.get(role.name, 0),
        template=_unbound(members[lowest].pod.spec) if lowest else _spec_of(role.template),
    )


def _unbound(spec: PodSpec) -> PodSpec:
    return replace(spec, node_name=None) if spec.node_name else spec


def _spec_of(template: Template | None) -> PodSpec | None:
    return template.spec if template else None
