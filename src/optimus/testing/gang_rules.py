"""What a gang may look like: sizes, minimums and which replicas must stay together, read from the description.

A replica's place in the tree of groups follows from its ordinal (see `optimus.model.workloads`):
ordinal = ((copy of the outermost group) * max of the next + copy of the next ...) * role.max + number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

from optimus.model.workloads import Group, Request, Role

Present = Mapping[str, Set[int]]
"""Role -> ordinals."""
Part = tuple[int, ...]
"""Which copy of each group on the way down from the root; () is the whole gang."""


@dataclass(frozen=True, slots=True)
class Seat:
    """A replica that is to be placed, and the parts of the tree it belongs to."""

    role: str
    ordinal: int
    request: Request


@dataclass(frozen=True, slots=True)
class Togetherness:
    """Replicas that a required topology level keeps in one domain."""

    level: str
    where: str
    members: frozenset[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class _Line:
    role: Role
    groups: tuple[Group, ...]

    def part(self, ordinal: int) -> Part:
        index = ordinal // self.role.max
        copies: list[int] = []
        for group in reversed(self.groups):
            copies.append(index % group.max)
            index //= group.max
        return tuple(reversed(copies))

    def first(self, part: Part) -> int:
        index = 0
        for group, copy in zip(self.groups, part, strict=True):
            index = index * group.max + copy
        return index * self.role.max

    def capacity(self) -> int:
        total = self.role.max
        for group in self.groups:
            total *= group.max
        return total


def lines(gang: Group) -> dict[str, _Line]:
    """Role name -> the role and the groups around it, outermost first, the root left out."""
    found: dict[str, _Line] = {}

    def walk(group: Group, above: tuple[Group, ...]) -> None:
        for role in group.roles:
            found[role.name] = _Line(role, above)
        for child in group.groups:
            walk(child, (*above, child))

    walk(gang, ())
    return found


def most_replicas(gang: Group) -> dict[str, int]:
    return {name: line.capacity() for name, line in lines(gang).items()}


def minimum_seats(gang: Group) -> list[Seat]:
    """The first replicas of the first copies: the gang at its smallest."""
    return [Seat(name, o, line.role.request) for name, line in lines(gang).items() for o in _minimum_ordinals(line)]


def is_single_role(gang: Group) -> bool:
    return len(lines(gang)) == 1 and not gang.groups


def is_elastic(gang: Group) -> bool:
    return sum(most_replicas(gang).values()) > len(minimum_seats(gang))


def meets_minimum(gang: Group, present: Present) -> bool:
    """Enough whole copies of every group, enough replicas of every role in each of them."""
    return _is_whole(gang, (), (), present, lines(gang))


def faults(gang: Group, present: Present) -> list[str]:
    """What is wrong with this set of replicas, in words; empty for a set that may run."""
    found: list[str] = []
    known = lines(gang)
    for role, ordinals in present.items():
        if role not in known:
            found.append(f"there is no role {role}")
        elif any(not 0 <= o < known[role].capacity() for o in ordinals):
            found.append(f"role {role} has no replica {max(ordinals)}")
    if not found:
        _find_faults(gang, (), (), present, known, found)
    return found


def togetherness(gang: Group, present: Present) -> list[Togetherness]:
    """Every rule of a required level with the replicas it binds."""
    found: list[Togetherness] = []
    known = lines(gang)

    def walk(group: Group, path: tuple[str, ...], part: Part) -> None:
        where = "/".join(f"{n}{c}" for n, c in zip(path, part, strict=True)) or "gang"
        if group.topology.required:
            found.append(Togetherness(group.topology.required, where, _members(path, part, present, known)))
        for role in group.roles:
            if role.topology.required:
                mine = frozenset((role.name, o) for o in _in_part(known[role.name], part, present))
                found.append(Togetherness(role.topology.required, f"{where} role {role.name}", mine))
        for child in group.groups:
            for copy in _copies(child, path, part, present, known):
                walk(child, (*path, child.name), (*part, copy))

    walk(gang, (), ())
    return [rule for rule in found if rule.members]


def _minimum_ordinals(line: _Line) -> Iterator[int]:
    parts: list[Part] = [()]
    for group in line.groups:
        parts = [(*part, copy) for part in parts for copy in range(group.min)]
    for part in parts:
        first = line.first(part)
        yield from range(first, first + line.role.min)


def _in_part(line: _Line, part: Part, present: Present) -> list[int]:
    """Replicas beyond a lowered maximum are in no part."""
    mine = (o for o in present.get(line.role.name, ()) if o < line.capacity())
    return sorted(o for o in mine if line.part(o)[: len(part)] == part)


def _members(
    path: tuple[str, ...], part: Part, present: Present, known: dict[str, _Line]
) -> frozenset[tuple[str, int]]:
    return frozenset(
        (name, o)
        for name, line in known.items()
        if tuple(g.name for g in line.groups[: len(path)]) == path
        for o in _in_part(line, part, present)
    )


def _copies(child: Group, path: tuple[str, ...], part: Part, present: Present, known: dict[str, _Line]) -> list[int]:
    """Copies of the child that have any replica."""
    inner = (*path, child.name)
    return [copy for copy in range(child.max) if _members(inner, (*part, copy), present, known)]


def _is_whole(group: Group, path: tuple[str, ...], part: Part, present: Present, known: dict[str, _Line]) -> bool:
    if any(len(_in_part(known[role.name], part, present)) < role.min for role in group.roles):
        return False
    for child in group.groups:
        inner = (*path, child.name)
        whole = [c for c in range(child.max) if _is_whole(child, inner, (*part, c), present, known)]
        if len(whole) < child.min:
            return False
    return True


def _find_faults(
    group: Group, path: tuple[str, ...], part: Part, present: Present, known: dict[str, _Line], found: list[str]
) -> None:
    where = "/".join(f"{n}{c}" for n, c in zip(path, part, strict=True)) or "gang"
    for role in group.roles:
        count = len(_in_part(known[role.name], part, present))
        if count < role.min:
            found.append(f"{where}: {count} of at least {role.min} replicas of {role.name}")
        elif count > role.max or (role.sizes and count not in role.sizes):
            found.append(f"{where}: {count} replicas of {role.name} is not an allowed size")
    for child in group.groups:
        copies = _copies(child, path, part, present, known)
        if len(copies) < child.min:
            found.append(f"{where}: {len(copies)} of at least {child.min} copies of {child.name}")
        elif child.sizes and len(copies) not in child.sizes:
            found.append(f"{where}: {len(copies)} copies of {child.name} is not an allowed number")
        for copy in copies:
            _find_faults(child, (*path, child.name), (*part, copy), present, known, found)
