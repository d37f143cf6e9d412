"""Which devices of a node: NVLink groups and NUMA nodes kept whole, shares where they leave the most useful gap.

Works on plain lists: a node has few devices, and a loop over eight numbers beats an array of eight.
"""

from __future__ import annotations

from collections.abc import Sequence

from optimus.decide.placement.shapes import Shape

GapValues = Sequence[int]
"""Value of a device with 0, 10, 20 … 1000 thousandths left, in thousandths."""


def pick_whole(
    free: Sequence[bool], group: Sequence[int], numa: Sequence[int], count: int, replicas: int
) -> list[tuple[int, ...]]:
    """Whole devices for several replicas of `count` devices each; the caller has checked that they fit by number."""
    available = [d for d, is_free in enumerate(free) if is_free]
    if count == 1:
        if len(available) > replicas:  # the most broken groups first: whole groups stay whole
            size: dict[int, int] = {}
            for d in available:
                size[group[d]] = size.get(group[d], 0) + 1
            available.sort(key=lambda d: (size[group[d]], group[d], numa[d], d))
        return [(d,) for d in sorted(available[:replicas])]
    picked: list[tuple[int, ...]] = []
    for _ in range(replicas):
        by_group: dict[int, list[int]] = {}
        for d in available:
            by_group.setdefault(group[d], []).append(d)
        enough = [members for members in by_group.values() if len(members) >= count]
        if enough:
            members = min(enough, key=len)  # the most broken group that is enough: whole groups stay whole
            chosen = _same_numa(members, numa, count)
        else:
            chosen = []
            for members in sorted(by_group.values(), key=len, reverse=True):
                chosen.extend(members[: count - len(chosen)])
        picked.append(tuple(sorted(chosen)))
        available = [d for d in available if d not in chosen]
    return picked


def _same_numa(members: list[int], numa: Sequence[int], count: int) -> list[int]:
    by_numa: dict[int, list[int]] = {}
    for d in members:
        by_numa.setdefault(numa[d], []).append(d)
    enough = [group for group in by_numa.values() if len(group) >= count]
    if enough:
        return min(enough, key=len)[:count]
    ordered = sorted(by_numa.values(), key=len, reverse=True)
    return [d for group in ordered for d in group][:count]


def pick_shares(
    shape: Shape, left: list[int], share: Sequence[int], activity: list[int], gap: GapValues, replicas: int
) -> list[tuple[int, ...]] | None:
    """Shared devices: each replica takes `gpu_count` different ones, where the loss of value is least; among equals
    the quietest neighbours. None when interference or several devices per replica leave no place."""
    picked: list[tuple[int, ...]] = []
    limit = shape.interference_limit_milli
    for _ in range(replicas):
        able = [
            d
            for d in range(len(left))
            if left[d] >= share[d]
            and not (limit and shape.activity_milli and activity[d] + shape.activity_milli > limit)
        ]
        if len(able) < shape.gpu_count:
            return None
        able.sort(key=lambda d: (gap[left[d] // 10] - gap[(left[d] - share[d]) // 10], activity[d], left[d], d))
        if shape.gpu_count > 1:  # keep the fullest-fitting devices free for the replicas to come
            able.sort(key=lambda d: -(left[d] // share[d]))
        chosen = able[: shape.gpu_count]
        for d in chosen:
            left[d] -= share[d]
            activity[d] += shape.activity_milli
        picked.append(tuple(sorted(chosen)))
    return picked
