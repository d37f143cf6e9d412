"""Endings: what it means for the brain that a pod has left its place, or that a gang is over.

    it ended well, and nobody takes its place     done: the rest of its gang goes on without it
    it was asked to leave, failed, or is gone     gone: somebody may come to the place again

Why: a gang of which one member has finished is whole; one of which a member was lost is not.
Owns: the difference.
Must not: remember anything.
"""

from __future__ import annotations

from optimus.drivers.kube.grouping import Group
from optimus.drivers.kube.objects import Pod
from optimus.drivers.kube.places import Seat
from optimus.model.observations import Outcome, SlotDone, SlotGone


def seat_left(seat: Seat, pod: Pod | None, group: Group | None) -> SlotDone | SlotGone:
    where = (seat.workload, seat.slot.role, seat.slot.ordinal)
    if pod is None or pod.status.phase != "Succeeded":
        return SlotGone(*where)
    if group is not None and group.job is not None:
        # Who was asked to leave, and left in order, is not done; and the next part of an array takes its place.
        return SlotDone(*where) if pod.done and not group.job.array else SlotGone(*where)
    role = next((one for one in group.roles if one.name == seat.slot.role), None) if group else None
    more = role is not None and role.total - role.ended >= role.min > 0
    return SlotGone(*where) if more else SlotDone(*where)


def outcome_of(group: Group | None) -> Outcome:
    ended = sum(role.ended for role in group.roles) if group is not None else 0
    return Outcome.SUCCEEDED if ended else Outcome.CANCELLED
