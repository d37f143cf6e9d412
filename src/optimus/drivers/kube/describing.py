"""A gang of pods as a workload of the brain.

Why: grouping knows who belongs together, reading knows what one pod needs; the brain wants one description.
Owns: how the two become a `Workload`, and what keeps a gang from being placed at all (`Workload.obstacle`).
Must not: know which of its replicas run (`mirror` does).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from msgspec import Struct, structs

from optimus.drivers.kube.grouping import Group, RoleInGroup
from optimus.drivers.kube.grouping.kinds import StopHow
from optimus.model.reasons import Code, Reason, counted, reason
from optimus.model.rules import Where
from optimus.model.validation import workload_problems
from optimus.model.workloads import ANY_POOL, Checkpoint, OnLoss, Preemptible, Request, Role, Workload
from optimus.model.workloads import Group as Gang

DEFAULT_QUEUE = "default"
UNIFIED = "optimus.dev/UnifiedJob"
NOBODY = "~"
"""No pod can have this role."""
LOSS_GRACE_MS = 120_000
"""How long a controller may take to create a pod again that was lost, before the gang starts again as a whole."""


class Needs(Struct, frozen=True):
    """Of one replica of a role."""

    request: Request
    where: Where
    obstacle: Reason | None = None
    running: int = 0
    reach: int = 0
    """How many replicas have a place, and the first ordinal above theirs."""
    awaited: bool = False
    """Places wait for pods: whoever has one, or none yet, stays."""


def describe(group: Group, needs_of: Callable[[RoleInGroup], Needs], queue: str) -> Workload:
    """`queue`: that of its namespace, where the group names none."""
    alive = [role for role in group.roles if role.count or role.min or role.pods]
    needs = {role.name: needs_of(role) for role in alive}
    if group.kind == UNIFIED:
        return _describe_job(group, tuple(_role(role, needs[role.name]) for role in alive), needs, queue)
    ends = group.kind == "Pod" or group.stop.how is StopHow.NEVER  # whoever stops it ends it: moved is lost
    roles = tuple(_role(role, needs[role.name]) for role in alive)
    return Workload(
        id=group.id,
        queue=group.queue or queue,
        gang=Gang(topology=group.topology, roles=roles),
        workload_class=group.workload_class,
        priority=group.priority,
        # Nobody would create its pods again: what is its own stays, and only what is lent has an owner who may want it
        # back (ADR 22). To be refused above a guarantee is for those who ask for it.
        preemptible=Preemptible.LENT if group.not_preemptible_why else group.preemptible,
        pools=group.pools or (ANY_POOL,),
        checkpoint=None
        if ends or group.checkpoint_grace_ms is None
        else Checkpoint(grace_ms=group.checkpoint_grace_ms),
        on_loss=OnLoss.REPLACE,
        loss_grace_ms=LOSS_GRACE_MS,
        submitted_ms=read_time(group.created),
        expected_duration_ms=group.expected_duration_ms,
        family=group.family,
        suspended=group.suspended and not group.admit,
        obstacle=_obstacle(group, needs),
    )


def _describe_job(group: Group, roles: tuple[Role, ...], needs: dict[str, Needs], queue: str) -> Workload:
    """As it was written; what its pods need is read from them, or from the template."""
    if group.job is None:
        return stand_in(group.id, group.queue or queue, reason(Code.MALFORMED, problem="; ".join(group.problems)))
    written = group.job.workload
    obstacle = _obstacle(group, needs)
    if obstacle is None and group.backs_off and not any(one.running for one in needs.values()):
        obstacle = reason(Code.NOT_READY, missing=group.backs_off)
    return structs.replace(
        written,
        id=group.id,
        queue=group.queue or queue,
        gang=Gang(topology=written.gang.topology, roles=roles),
        node_selector=(),  # in the template: `Role.where` has it
        tolerations=(),
        priority=group.priority if written.priority is None else written.priority,
        submitted_ms=read_time(group.created),
        suspended=group.suspended,
        obstacle=obstacle,
    )


def _role(role: RoleInGroup, needs: Needs) -> Role:
    """Of which one in the middle was lost, and nobody is too many, has ordinals beyond its number: they are kept."""
    least, most = max(role.min, 0), max(role.count, role.min, 1)
    sizes = role.sizes
    if needs.reach > most >= needs.running:
        sizes = () if needs.awaited else role.sizes or tuple(range(max(least, 1), most + 1))
        most = needs.reach
    return Role(name=role.name, min=least, max=most, sizes=sizes, request=needs.request, where=needs.where)


def stand_in(gang: str, queue: str, why: Reason) -> Workload:
    """In the place of one that cannot be used: people are told why, and nothing of it is placed."""
    nobody = Role(name=NOBODY, min=1, max=1, request=Request())
    return Workload(id=gang, queue=queue, gang=Gang(roles=(nobody,)), obstacle=why)


def usable(workload: Workload) -> Workload:
    """Itself, if the brain can count with it."""
    problems = workload_problems(workload)
    if not problems:
        return workload
    words = f"{problems[0].path} {problems[0].message}".strip()
    return stand_in(workload.id, workload.queue or DEFAULT_QUEUE, reason(Code.MALFORMED, problem=words))


def _obstacle(group: Group, needs: dict[str, Needs]) -> Reason | None:
    """What stands in its way, whatever room there is. A gang that waits to be admitted has no pods yet, and needs
    none."""
    told = next((one.obstacle for one in needs.values() if one.obstacle is not None), None)
    if told is not None or group.admit:
        return told
    if group.unsupported:
        instead = "use the gang policy, and one PodGroup for the pods of one owner"
        return reason(Code.UNSUPPORTED, feature=group.unsupported, instead=instead)
    if group.incomplete:
        return reason(Code.NOT_READY, missing=group.incomplete)
    for role in group.roles:
        if role.pods < role.needed:
            there = f"{role.pods} of {counted(role.needed, 'pod')} of role {role.name}"
            return reason(Code.NOT_READY, missing=f"{there} are there")
    return None


def read_time(text: str | None) -> int:
    """RFC 3339 as milliseconds; 0 if there is none. Operators write what they like where no schema says otherwise."""
    try:
        return int(datetime.fromisoformat(text).astimezone(UTC).timestamp() * 1000) if text else 0
    except (ValueError, OverflowError):
        return 0
