"""What is known of elastic work when its size is chosen: which sizes it could have, how fast it would be, what is left.

Speeds are its own as measured so far. A family that has been measured lends its speeds to a newcomer, which so starts
with a size that is worth it instead of doubling its way up.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from optimus.decide.arranging import Member
from optimus.decide.durations import elapsed_ms
from optimus.decide.policies.columns import UNKNOWN, SizeColumns
from optimus.decide.quotas import largest_amount
from optimus.decide.world import World
from optimus.model.nodes import WHOLE_DEVICE_MILLI
from optimus.model.speeds import speed_milli

MOST_HOSTS = 16
"""Up to so many nodes every whole number of them is a size; above, steps become wider."""


class SizeFacts:
    def __init__(self, world: World, rows: Collection[int]) -> None:
        """`rows`: those whose sizes are chosen."""
        self._world = world
        self._rows = rows
        self._family_speeds: dict[str, tuple[int, ...]] | None = None

    def sizes(self, member: Member, grain: int) -> tuple[int, ...]:
        """In replicas, the present size first: what divides a node, whole nodes, or what its owner lists. Work that is
        measured goes no further than that, and than double of what it runs with: beyond, its speed is a guess."""
        world = self._world
        role, measured = member.ask.signature.chains[0].role, len(self.speeds(member.row))
        most = max(measured, 2 * member.now * member.runs, member.least) if measured else role.max
        most = min(most, role.max)
        allowed = largest_amount(world, member.row)
        if allowed is not None:
            most = min(most, allowed // (member.gpus * WHOLE_DEVICE_MILLI))
        sizes = [k for k in role.sizes if k <= most] if role.sizes else _tidy(role.min, most, grain)
        if not role.sizes and most == role.max < grain:
            sizes.append(most)  # it does not divide a node, but nobody is better off if this work stays below
        first = member.now or member.least
        return (first, *(k for k in sorted({*sizes}) if k != first and k >= member.least))

    def columns(self, cases: list[tuple[Member, int]]) -> SizeColumns:
        world, columns, now_ms = self._world, self._world.columns, self._world.now_ms
        facts: dict[int, tuple[int, ...]] = {}
        for member, _ in cases:
            row = member.row
            if row not in facts:
                speed = world.table.speed_now(row)
                passed = max(now_ms - int(columns.counted_at[row]), 0) if columns.running[row] else 0
                worked = (int(columns.worked[row]) + speed * passed) // 1000
                age = max(now_ms - int(columns.submitted[row]), elapsed_ms(world, row))
                running = member.now if member.runs else 0
                facts[row] = (
                    running,
                    speed_milli(running, self.speeds(row)),
                    worked,
                    self._left_ms(row, worked),
                    age,
                    int(columns.restarts[row] + columns.resizes[row]),
                    world.spec(row).restart_cost_ms,
                )
        table = np.array([facts[member.row] for member, _ in cases], dtype=np.int64).T
        sizes = np.array([size for _, size in cases], dtype=np.int64)
        return SizeColumns(
            replicas=sizes,
            size_milli=sizes * np.array([member.gpus * WHOLE_DEVICE_MILLI for member, _ in cases], dtype=np.int64),
            speed_milli=np.array([speed_milli(k, self.speeds(m.row)) for m, k in cases], dtype=np.int64),
            now_replicas=table[0],
            now_speed_milli=table[1],
            worked_ms=table[2],
            left_ms=table[3],
            age_ms=table[4],
            restarts=table[5],
            restart_cost_ms=table[6],
        )

    def speeds(self, row: int) -> tuple[int, ...]:
        """Its own, as measured so far; its family's as long as it knows no more than one size itself."""
        spec = self._world.spec(row)
        if len(spec.speedup_percent) > 1 or not spec.family:
            return spec.speedup_percent
        if self._family_speeds is None:
            self._family_speeds = dict(self._world.snapshot.history.speeds_by_family)
            for other in sorted((self._world.spec(r) for r in self._rows), key=lambda each: each.id):
                if len(other.speedup_percent) > max(len(self._family_speeds.get(other.family, ())), 1):
                    self._family_speeds[other.family] = other.speedup_percent
        return self._family_speeds.get(spec.family, spec.speedup_percent)

    def _left_ms(self, row: int, worked_ms: int) -> int:
        """Of its work, by the mean of its family among work that took longer; a quarter of what was done once it has
        outlived them all."""
        family = self._world.spec(row).family
        times = self._world.snapshot.history.work_by_family.get(family) if family else None
        if times is None:
            return UNKNOWN
        mean = int(times.means_beyond_ms(np.array([worked_ms], dtype=np.int64))[0])
        return mean - worked_ms if mean else worked_ms // 4


def _tidy(least: int, most: int, per_host: int) -> list[int]:
    """The minimum, what divides a node, and whole nodes, in ever wider steps."""
    sizes = {least, *(k for k in range(1, per_host + 1) if per_host % k == 0)}
    hosts = 1
    while hosts * per_host <= most:
        sizes.add(hosts * per_host)
        hosts += max(1, hosts // MOST_HOSTS)
    return sorted(k for k in sizes if least <= k <= most)
