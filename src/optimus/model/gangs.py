"""The shape of a gang: which replicas exist at its minimum, which may be added next, which go first.

Pure arithmetic on a `Group` tree and the set of replicas that exist. The ordinals of a role run through the
copies of its groups in order, so a replica's place in the tree follows from its ordinal:

    role worker (max 8) in tensor (max 2) in stage (max 4):  ordinal = (stage * 2 + tensor) * 8 + i

A *part* is one copy of a group with what is in it; the root part is the gang. Parts are what topology rules bind.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set

from msgspec import Struct

from optimus.model.workloads import Group, Role, Topology

PartKey = tuple[tuple[str, int], ...]
"""(group name, copy) from the outermost group inwards; () is the gang itself."""
Present = Mapping[int, Set[int]]
"""Role index -> ordinals that exist."""


class Chain(Struct, frozen=True):
    """A role with its enclosing groups, outermost first (root excluded)."""

    role: Role
    groups: tuple[Group, ...]

    @property
    def capacity(self) -> int:
        """How many ordinals the role can have: all copies, all replicas."""
        total = self.role.max
        for group in self.groups:
            total *= group.max
        return total

    def part_of(self, ordinal: int) -> PartKey:
        """Of an ordinal beyond the capacity: a copy that is one too many."""
        index = ordinal // self.role.max
        key: list[tuple[str, int]] = []
        for group in reversed(self.groups[1:]):
            index, copy = divmod(index, group.max)
            key.append((group.name, copy))
        if self.groups:
            key.append((self.groups[0].name, index))
        return tuple(reversed(key))

    def first_ordinal(self, part: PartKey) -> int:
        index = 0
        for group, (_, copy) in zip(self.groups, part, strict=True):
            index = index * group.max + copy
        return index * self.role.max


class Cell(Struct, frozen=True):
    """Replicas of one role in one part."""

    role_index: int
    ordinals: tuple[int, ...]


class Part(Struct, frozen=True):
    """A piece of a gang that is placed as one: its rule, its replicas, the pieces inside it."""

    key: PartKey
    topology: Topology
    cells: tuple[Cell, ...] = ()
    parts: tuple[Part, ...] = ()

    def replicas(self) -> int:
        return sum(len(cell.ordinals) for cell in self.cells) + sum(part.replicas() for part in self.parts)

    def required_levels(self) -> set[str]:
        """Of this part and of all inside it."""
        inner = {level for part in self.parts for level in part.required_levels()}
        return inner | ({self.topology.required} if self.topology.required else set())

    def all_cells(self) -> tuple[Cell, ...]:
        return (*self.cells, *(cell for part in self.parts for cell in part.all_cells()))


def chains(gang: Group) -> tuple[Chain, ...]:
    """Roles in the order of the description, each with its enclosing groups."""
    found: list[Chain] = []

    def walk(group: Group, above: tuple[Group, ...]) -> None:
        found.extend(Chain(role, above) for role in group.roles)
        for child in group.groups:
            walk(child, (*above, child))

    walk(gang, ())
    return tuple(found)


def minimum(gang: Group) -> Part:
    """The smallest gang that may start."""
    return _part_at_minimum(gang, (), _indices(gang))


def minimum_replicas(gang: Group) -> dict[int, tuple[int, ...]]:
    """Role index -> ordinals that must all exist."""
    ordinals: dict[int, tuple[int, ...]] = {}
    for cell in minimum(gang).all_cells():
        ordinals[cell.role_index] = (*ordinals.get(cell.role_index, ()), *cell.ordinals)
    return ordinals


def maximum_replicas(gang: Group) -> tuple[int, ...]:
    """By role: how many replicas may exist."""
    return tuple(chain.capacity for chain in chains(gang))


def same_places(old: Group, new: Group, roles: Collection[str]) -> bool:
    """Whether replicas of these roles of the old gang have the same place in the new one. Requests and groups must be
    the same, and all sizes by which ordinals are counted: all but the outermost."""
    before, after = ({chain.role.name: chain for chain in chains(gang)} for gang in (old, new))
    for name in roles:
        was, now = before[name], after.get(name)
        if now is None or _names(was) != _names(now):
            return False
        sizes = list(zip(_sizes(was), _sizes(now), strict=True))
        while sizes and sizes[0] == (1, 1):
            sizes.pop(0)
        if any(x != y for x, y in sizes[1:]):
            return False
    return True


def _names(chain: Chain) -> tuple[object, ...]:
    return (chain.role.name, chain.role.request, [group.name for group in chain.groups])


def _sizes(chain: Chain) -> list[int]:
    return [*(group.max for group in chain.groups), chain.role.max]


def beyond_maximum(gang: Group, present: Present) -> tuple[Cell, ...]:
    """Replicas that are too many since the maximum was lowered."""
    extra = [(i, tuple(sorted(o for o in present.get(i, ()) if o >= c.capacity))) for i, c in enumerate(chains(gang))]
    return tuple(Cell(index, ordinals) for index, ordinals in extra if ordinals)


def is_elastic(gang: Group) -> bool:
    return any(chain.role.max > chain.role.min or any(g.max > g.min for g in chain.groups) for chain in chains(gang))


def is_whole(gang: Group, present: Present) -> bool:
    """Whether the minimum is there: every role of a part, and enough whole copies of every group in it."""
    return _is_whole(gang, (), present, _indices(gang))


def missing(gang: Group, present: Present) -> tuple[Part, ...]:
    """What lacks to the minimum, part by part. A part without any replica left keeps its own rule; where others of
    it are left, they say where it is."""
    indices = _indices(gang)
    gaps: list[Part] = []
    for key, group in _existing_parts(gang, present, indices):
        cells = []
        for role in group.roles:
            index, chain = indices[role.name]
            first = chain.first_ordinal(key)
            mine = [o for o in range(first, first + role.max) if o in present.get(index, ())]
            if len(mine) < role.min:
                free = [o for o in range(first, first + role.max) if o not in mine][: role.min - len(mine)]
                cell = Cell(index, tuple(free))
                if mine or role.topology == Topology():
                    cells.append(cell)
                else:
                    gaps.append(Part(key, role.topology, (cell,)))
        if cells:
            alone = not _cells_inside(key, present, indices)
            gaps.append(Part(key, group.topology if alone else Topology(), tuple(cells)))
        for child in group.groups:
            copies = _copies(child, key, present, indices)
            absent = [c for c in range(child.max) if c not in copies][: max(child.min - len(copies), 0)]
            gaps.extend(_part_at_minimum(child, (*key, (child.name, c)), indices) for c in absent)
    return tuple(gaps)


def growth_steps(gang: Group, present: Present) -> list[Part]:
    """The smallest next steps up, in order of preference: a new copy of a group at its minimum before more
    replicas in old copies, the emptiest copy first. Each step is a part to be placed inside `step.key`'s parents."""
    indices = _indices(gang)
    new_copies: list[Part] = []
    more_replicas: list[tuple[int, int, Part]] = []
    for part_key, group in _existing_parts(gang, present, indices):
        for child in group.groups:
            existing = _copies(child, part_key, present, indices)
            target = next_size(len(existing), child.min, child.max, child.sizes)
            if target is not None:
                absent = [c for c in range(child.max) if c not in existing][: target - len(existing)]
                copies = tuple(_part_at_minimum(child, (*part_key, (child.name, c)), indices) for c in absent)
                new_copies.append(copies[0] if len(copies) == 1 else Part(part_key, Topology(), (), copies))
        for role in group.roles:
            index, chain = indices[role.name]
            first = chain.first_ordinal(part_key)
            have = present.get(index, frozenset())
            mine = [o for o in range(first, first + role.max) if o in have]
            target = next_size(len(mine), role.min, role.max, role.sizes)
            if target is not None:
                free = [o for o in range(first, first + role.max) if o not in have][: target - len(mine)]
                step = Part(part_key, role.topology, (Cell(index, tuple(free)),))
                more_replicas.append((len(mine) - role.min, index, step))
    return new_copies + [step for _, _, step in sorted(more_replicas, key=lambda item: item[:2])]


def surplus_step(gang: Group, present: Present) -> tuple[Cell, ...]:
    """The smallest next step down: what the gang can lose first and still be whole. Empty at the minimum."""
    indices = _indices(gang)
    fullest: tuple[int, tuple[Cell, ...]] | None = None
    last_copy: tuple[Cell, ...] = ()
    for part_key, group in _existing_parts(gang, present, indices):
        for role in group.roles:
            index, chain = indices[role.name]
            first = chain.first_ordinal(part_key)
            mine = [o for o in range(first, first + role.max) if o in present.get(index, ())]
            target = previous_size(len(mine), role.min, role.sizes)
            if target is not None and (fullest is None or len(mine) - role.min >= fullest[0]):
                fullest = (len(mine) - role.min, (Cell(index, tuple(mine[target:])),))
        for child in group.groups:
            existing = _copies(child, part_key, present, indices)
            target = previous_size(len(existing), child.min, child.sizes)
            if target is not None:
                last_copy = tuple(
                    cell
                    for copy in existing[target:]
                    for cell in _cells_inside((*part_key, (child.name, copy)), present, indices)
                )
    return fullest[1] if fullest else last_copy


def next_size(current: int, least: int, most: int, sizes: tuple[int, ...]) -> int | None:
    """The next larger allowed count, or None at the top."""
    if current < least:
        return least
    if not sizes:
        return current + 1 if current < most else None
    return next((size for size in sizes if current < size <= most), None)


def previous_size(current: int, least: int, sizes: tuple[int, ...]) -> int | None:
    """The next smaller allowed count, or None at the bottom."""
    if current <= least:
        return None
    if not sizes:
        return current - 1
    return max((size for size in sizes if least <= size < current), default=None)


def misfit_step(gang: Group, present: Present) -> tuple[Cell, ...]:
    """Replicas to give up after a loss, because a copy above the minimum is broken or their number is not an allowed
    size; empty if all is well."""
    indices = _indices(gang)
    for key, group in _existing_parts(gang, present, indices):
        for role in group.roles:
            index, chain = indices[role.name]
            first = chain.first_ordinal(key)
            mine = [o for o in range(first, first + role.max) if o in present.get(index, ())]
            if role.sizes and len(mine) > role.min and len(mine) not in role.sizes:
                return (Cell(index, tuple(mine[previous_size(len(mine), role.min, role.sizes) or role.min :])),)
        for child in group.groups:
            existing = _copies(child, key, present, indices)
            broken = [c for c in existing if not _is_whole(child, (*key, (child.name, c)), present, indices)]
            if broken and len(existing) - len(broken) >= child.min:
                return _cells_inside((*key, (child.name, broken[-1])), present, indices)
            if child.sizes and len(existing) > child.min and len(existing) not in child.sizes:
                target = previous_size(len(existing), child.min, child.sizes) or child.min
                return tuple(
                    cell
                    for copy in existing[target:]
                    for cell in _cells_inside((*key, (child.name, copy)), present, indices)
                )
    return ()


def _is_whole(group: Group, key: PartKey, present: Present, indices: _Indices) -> bool:
    for role in group.roles:
        index, chain = indices[role.name]
        first = chain.first_ordinal(key)
        have = present.get(index, frozenset())
        if sum(o in have for o in range(first, first + role.max)) < role.min:
            return False
    for child in group.groups:
        copies = _copies(child, key, present, indices)
        if sum(_is_whole(child, (*key, (child.name, c)), present, indices) for c in copies) < child.min:
            return False
    return True


_Indices = dict[str, tuple[int, Chain]]


def _indices(gang: Group) -> _Indices:
    return {chain.role.name: (index, chain) for index, chain in enumerate(chains(gang))}


def _part_at_minimum(group: Group, key: PartKey, indices: _Indices) -> Part:
    cells = []
    rules = []
    for role in group.roles:
        index, chain = indices[role.name]
        first = chain.first_ordinal(key)
        cell = Cell(index, tuple(range(first, first + role.min)))
        if role.min == 0:
            continue
        if role.topology == Topology():
            cells.append(cell)
        else:  # a rule of the role binds its replicas alone: they are a part of their own
            rules.append(Part(key, role.topology, (cell,)))
    inner = [
        _part_at_minimum(child, (*key, (child.name, copy)), indices)
        for child in group.groups
        for copy in range(child.min)
    ]
    return Part(key, group.topology, tuple(cells), (*rules, *inner))


def _existing_parts(gang: Group, present: Present, indices: _Indices) -> list[tuple[PartKey, Group]]:
    found: list[tuple[PartKey, Group]] = []

    def walk(group: Group, key: PartKey) -> None:
        found.append((key, group))
        for child in group.groups:
            for copy in _copies(child, key, present, indices):
                walk(child, (*key, (child.name, copy)))

    walk(gang, ())
    return found


def _copies(child: Group, parent: PartKey, present: Present, indices: _Indices) -> list[int]:
    """Copies of `child` in `parent` that have any replica."""
    return [copy for copy in range(child.max) if _cells_inside((*parent, (child.name, copy)), present, indices)]


def _cells_inside(part: PartKey, present: Present, indices: _Indices) -> tuple[Cell, ...]:
    inside = []
    for index, chain in indices.values():
        ordinals = tuple(sorted(o for o in present.get(index, ()) if chain.part_of(o)[: len(part)] == part))
        if ordinals:
            inside.append(Cell(index, ordinals))
    return tuple(inside)
