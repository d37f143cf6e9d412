"""A gang of pods as a workload of the brain.

Why: grouping knows who belongs together, reading knows what one pod needs; the brain wants one description.
Owns: how the two become a `Workload`, and what keeps a gang from being placed at all (`Workload.obstacle`).
Must not: know which of its replicas run (`mirror` does).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from msgspec import Struct

from optimus.drivers.kube.grouping import Group, RoleInGroup
from optimus.drivers.kube.grouping.kinds import StopHow
from optimus.model.reasons import Code, Reason, counted, reason
from optimus.model.rules import Where
from optimus.model.workloads import ANY_POOL, Checkpoint, OnLoss, Preemptible, Request, Role, Workload
from optimus.model.workloads import Group as Gang

DEFAULT_QUEUE = "default"
LOSS_GRACE_MS = 120_000
"""How long a controller may take to create a pod again that was lost, before the gang starts again as a whole."""


class Needs(Struct, frozen=True):
    """Of one replica of a role."""

    request: Request
    where: Where
    obstacle: Reason | None = None


def describe(group: Group, needs_of: Callable[[RoleInGroup], Needs], queue: str) -> Workload:
    """`queue`: that of its namespace, where the group names none."""
    needs = {role.name: needs_of(role) for role in group.roles}
    ends = group.kind == "Pod" or group.stop.how is StopHow.NEVER  # whoever stops it ends it: moved is lost
    roles = tuple(
        Role(
            name=role.name,
            min=max(role.min, 0),
            max=max(role.count, role.min, 1),
            request=needs[role.name].request,
            where=needs[role.name].where,
        )
        for role in group.roles
        if role.count or role.min
    )
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
    """RFC 3339 as milliseconds; 0 if there is none."""
    if not text:
        return 0
    return int(datetime.fromisoformat(text).astimezone(UTC).timestamp() * 1000)
