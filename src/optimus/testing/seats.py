"""Can this gang be seated in this room? Tried out, exactly, for small worlds.

A gang of one role without a rule of togetherness is counted: nodes do not influence each other. Anything else is
searched for by trying every node and every different choice of devices, up to a budget; beyond it the answer is
"not known", and whoever asked must leave the case alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from optimus.model.pools import NVLINK_LEVEL, NodePool
from optimus.model.workloads import Request, Workload
from optimus.testing.amounts import is_whole, scalars
from optimus.testing.gang_rules import Seat, Togetherness, minimum_seats, togetherness
from optimus.testing.spaces import Space, Spaces, domain, may_use, most_fitting, usable_devices

BUDGET = 4_000


@dataclass(frozen=True, slots=True)
class Taken:
    """One replica with a place."""

    seat: Seat
    node: str
    devices: tuple[int, ...]
    gpu_milli: int


class OutOfBudget(Exception):  # noqa: N818 - an answer, not a fault
    """The search was given up."""


def fits(workload: Workload, pool: NodePool, room: Spaces, budget: int = BUDGET) -> bool | None:
    """Whether the gang at its minimum fits; None when that is not known."""
    seats = minimum_seats(workload.gang)
    rules = _rules(workload, seats)
    if len({seat.role for seat in seats}) == 1 and not rules:
        fitting = sum(most_fitting(space, workload, seats[0].request) for space in room.values())
        return fitting >= len(seats)
    for role in {seat.role for seat in seats}:  # each role alone must fit, or all together cannot
        mine = [seat for seat in seats if seat.role == role]
        if sum(most_fitting(space, workload, mine[0].request) for space in room.values()) < len(mine):
            return False
    try:
        return find_seats(workload, pool, room, seats, budget) is not None
    except OutOfBudget:
        return None


def is_counted(workload: Workload) -> bool:
    """Whether `fits` is exact without searching, as the brain's own answer must be."""
    seats = minimum_seats(workload.gang)
    return len({seat.role for seat in seats}) == 1 and not _rules(workload, seats)


def find_seats(
    workload: Workload, pool: NodePool, room: Spaces, seats: list[Seat], budget: int = BUDGET
) -> list[Taken] | None:
    """Places for all seats, or None. The room is left as it was."""
    search = _Search(workload, pool, room, _rules(workload, seats), budget)
    ordered = sorted(seats, key=lambda s: (-s.request.gpu_count, -s.request.cpu_milli, s.role, s.ordinal))
    return list(search.taken) if search.place(ordered, 0) else None


def _rules(workload: Workload, seats: list[Seat]) -> list[Togetherness]:
    present: dict[str, set[int]] = {}
    for seat in seats:
        present.setdefault(seat.role, set()).add(seat.ordinal)
    return togetherness(workload.gang, present)


class _Search:
    def __init__(
        self, workload: Workload, pool: NodePool, room: Spaces, rules: list[Togetherness], budget: int
    ) -> None:
        self.workload = workload
        self.pool = pool
        self.room = room
        self.rules = rules
        self.left = budget
        self.taken: list[Taken] = []
        self.fixed: dict[int, list[object]] = {}
        """Rule number -> domains of the members placed so far (all equal)."""

    def place(self, seats: list[Seat], at: int) -> bool:
        if at == len(seats):
            return True
        seat = seats[at]
        same = at > 0 and seats[at - 1].role == seat.role and self._same_rules(seats[at - 1], seat)
        previous = self.taken[-1].node if same else ""
        for name in sorted(self.room):
            if name < previous:
                continue  # replicas that are alike need not be tried in every order
            space = self.room[name]
            for devices, milli in self._choices(space, seat.request):
                self.left -= 1
                if self.left < 0:
                    raise OutOfBudget
                bound = self._bind(seat, space, devices)
                if bound is None:
                    continue
                space.take(scalars(seat.request), devices, milli, seat.request.activity_milli)
                self.taken.append(Taken(seat, name, devices, milli))
                try:
                    done = self.place(seats, at + 1)
                finally:
                    space.take(scalars(seat.request), devices, milli, seat.request.activity_milli, -1)
                if done:
                    return True
                self.taken.pop()
                for number in bound:
                    self.fixed[number].pop()
        return False

    def _choices(self, space: Space, request: Request) -> Iterator[tuple[tuple[int, ...], int]]:
        if not may_use(self.workload, request, space.node):
            return
        if any(space.free.get(name, 0) < number for name, number in scalars(request).items()):
            return
        if not request.gpu_count:
            yield (), 0
            return
        usable = usable_devices(space, request)
        if space.countable is not None and space.countable < request.gpu_count:
            return
        described = {d.index: (d.model, d.nvlink_group) for d in space.node.devices}
        tried = set()
        for devices in combinations(sorted(usable), request.gpu_count):
            kind = tuple(sorted((*described[d], usable[d], space.gpus[d], space.activity.get(d, 0)) for d in devices))
            if kind not in tried:
                tried.add(kind)
                yield devices, usable[devices[0]]
            if space.countable is not None and is_whole(request):
                return  # somebody else picks: no choice to make

    def _bind(self, seat: Seat, space: Space, devices: tuple[int, ...]) -> list[int] | None:
        """Numbers of the rules that now have one member more; None if one of them would be broken."""
        bound: list[int] = []
        for number, rule in enumerate(self.rules):
            if (seat.role, seat.ordinal) not in rule.members:
                continue
            where = _domain_of(space, devices, rule.level, self.pool)
            others = self.fixed.setdefault(number, [])
            if where is None or any(not _same_domain(where, other) for other in others):
                for earlier in bound:
                    self.fixed[earlier].pop()
                return None
            others.append(where)
            bound.append(number)
        return bound

    def _same_rules(self, one: Seat, other: Seat) -> bool:
        return all(
            ((one.role, one.ordinal) in r.members) == ((other.role, other.ordinal) in r.members) for r in self.rules
        )


def _domain_of(space: Space, devices: tuple[int, ...], level: str, pool: NodePool) -> object | None:
    if level != NVLINK_LEVEL:
        return domain(space.node, level, pool)
    groups = {d.nvlink_group for d in space.node.devices if d.index in devices}
    if not space.node.assignable and devices:
        groups = {d.nvlink_group for d in space.node.devices}  # nobody knows which devices it will be
    if len(groups) > 1 or all(d.mig for d in space.node.devices):
        return None
    return (space.node.name, next(iter(groups), None))


def _same_domain(one: object, other: object) -> bool:
    """NVLink domains are (node, group); a replica without devices has no group of its own."""
    if isinstance(one, tuple) and isinstance(other, tuple) and None in (one[-1], other[-1]):
        return bool(one[0] == other[0])
    return one == other
