"""Workloads as rows: what they are, since when, and what they have had so far.

Workloads that ask for the same thing share a *signature* (gang, pools, selector, class, nodes to avoid): feasibility,
scores and refusals are worked out once per signature, not once per workload.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from optimus.model import gangs
from optimus.model.gangs import Chain
from optimus.model.speeds import speed_milli
from optimus.model.workloads import Preemptible, Workload, gives_turns
from optimus.state.arrays import Columns
from optimus.state.resources import CPU_COLUMN, GPU_COLUMN, ResourceIndex

CPU_MILLI_PER_GPU = 8
"""CPU-only work is as large as a GPU for every eight cores it takes, so that it has a size at all."""
PREEMPTIBLE_CODE = {p: i for i, p in enumerate(Preemptible)}


def size_milli(gpu_milli: int, cpu_milli: int) -> int:
    return gpu_milli if gpu_milli else cpu_milli // CPU_MILLI_PER_GPU


class Signature:
    """What all workloads of one shape have in common."""

    def __init__(self, key: Hashable, workload: Workload) -> None:
        self.key = key
        self.workload = workload
        self.users = 0
        self.chains: tuple[Chain, ...] = gangs.chains(workload.gang)
        self.role_index = {chain.role.name: i for i, chain in enumerate(self.chains)}
        self.minimum = gangs.minimum_replicas(workload.gang)
        self.minimum_count = sum(len(ordinals) for ordinals in self.minimum.values())
        self.elastic = gangs.is_elastic(workload.gang)
        self.capacity = gangs.maximum_replicas(workload.gang)
        """By role."""
        self.plain = len(self.chains) == 1 and not self.chains[0].groups
        """One role and no groups: counting replicas tells everything."""
        self.any_will_do = self.plain and not any(c.role.sizes for c in self.chains)
        """Above the minimum it can give up any replica."""
        self.can_break = any(c.role.sizes or c.groups for c in self.chains)
        """After a loss it may have a number of replicas, or a copy of a group, that is not allowed."""

    def is_whole(self, present: gangs.Present) -> bool:
        """Whether every part has its minimum. What is beyond a lowered maximum is to go and does not count."""
        if self.plain:
            return sum(ordinal < self.capacity[0] for ordinal in present.get(0, ())) >= self.minimum_count
        return gangs.is_whole(self.workload.gang, present)


class WorkloadTable:
    def __init__(self, resources: ResourceIndex) -> None:
        self.resources = resources
        self.row_of: dict[str, int] = {}
        self.specs: list[Workload | None] = []
        self.names: list[str] = []
        """By row. A vacant one has that of its last workload."""
        self.slots: list[dict[tuple[int, int], int]] = []
        """By row: (role index, ordinal) -> slot row, all phases but releasing."""
        self.leaving: list[dict[tuple[int, int], int]] = []
        """The same for slots that are being released; a moved replica is in both."""
        self.signatures: list[Signature | None] = []
        self._signature_of: dict[Hashable, int] = {}
        self._vacant_signatures: list[int] = []
        self.families: list[str] = [""]
        """By the number in its column; they are few and stay."""
        self._family_of: dict[str, int] = {"": 0}
        self.failures: dict[int, str] = {}
        self.pending: dict[int, None] = {}
        """Rows without any slot: an ordered set."""
        self.elastic: dict[int, None] = {}
        self.oversized: dict[int, None] = {}
        """Rows that have, or had, replicas beyond their maximum."""
        self.columns = Columns(
            alive=0,
            queue=-1,
            pool=-1,
            signature=-1,
            priority=0,
            preemptible=0,
            suspended=0,
            obstructed=0,
            submitted=0,
            started=-1,  # this attempt: when its minimum was first running
            resized=-1,
            lost_since=-1,
            retry_at=0,
            stays_until=0,  # somebody refused to stop it
            held=0,  # slots held, binding or running on free room
            promised=0,
            releasing=0,
            running=0,
            minimum=0,
            checkpoint_at=-1,
            saves_in_time=0,
            busy_at=-1,
            expected=-1,
            max_runtime=-1,
            restart_cost=0,
            checkpoint_interval=-1,
            deadline=-1,
            family=0,
            gives_turns=0,
            attained=0,  # size x time up to `counted_at`
            worked=0,  # speed x time: what one replica would have needed as long for
            elapsed=0,
            counted_at=0,
            rate=0,  # size of running replicas
            restarts=0,
            resizes=0,  # over all attempts: each is a restart, too
            amount=(0, resources.count),  # held + promised, by resource
        )

    def put(self, workload: Workload) -> int:
        row = self.row_of.get(workload.id)
        columns = self.columns
        if row is None:
            row = columns.add()
            self.row_of[workload.id] = row
            if row == len(self.specs):
                self.specs.append(workload)
                self.names.append(workload.id)
                self.slots.append({})
                self.leaving.append({})
            self.pending[row] = None
            columns.alive[row] = 1
            columns.submitted[row] = workload.submitted_ms
        else:
            self._leave_signature(row)
        self.specs[row] = workload
        self.names[row] = workload.id
        signature = self._join_signature(workload)
        columns.signature[row] = signature
        shape = self.signatures[signature]
        assert shape is not None
        columns.minimum[row] = shape.minimum_count
        columns.priority[row] = workload.effective_priority
        columns.preemptible[row] = PREEMPTIBLE_CODE[workload.preemptible]
        columns.suspended[row] = int(workload.suspended)
        columns.obstructed[row] = int(workload.obstacle is not None)
        if columns.expected[row] < 0 or workload.expected_duration_ms is not None:
            columns.expected[row] = -1 if workload.expected_duration_ms is None else workload.expected_duration_ms
        columns.max_runtime[row] = -1 if workload.max_runtime_ms is None else workload.max_runtime_ms
        columns.restart_cost[row] = workload.restart_cost_ms
        interval = workload.checkpoint.interval_ms if workload.checkpoint is not None else None
        columns.checkpoint_interval[row] = -1 if interval is None else interval
        columns.deadline[row] = -1 if workload.deadline_ms is None else workload.deadline_ms
        columns.family[row] = self._family(workload.family)
        columns.gives_turns[row] = int(gives_turns(workload))
        if shape.elastic:
            self.elastic[row] = None
        else:
            self.elastic.pop(row, None)
        return row

    def _family(self, name: str) -> int:
        number = self._family_of.get(name)
        if number is None:
            number = self._family_of[name] = len(self.families)
            self.families.append(name)
        return number

    def remove(self, row: int) -> None:
        workload = self.specs[row]
        assert workload is not None
        assert not self.slots[row] and not self.leaving[row]
        self._leave_signature(row)
        del self.row_of[workload.id]
        self.specs[row] = None
        self.failures.pop(row, None)
        self.pending.pop(row, None)
        self.elastic.pop(row, None)
        self.oversized.pop(row, None)
        self.columns.free(row)

    def spec(self, row: int) -> Workload:
        workload = self.specs[row]
        assert workload is not None
        return workload

    def signature(self, row: int) -> Signature:
        found = self.signatures[int(self.columns.signature[row])]
        assert found is not None
        return found

    def count_service(self, row: int, now_ms: int) -> None:
        """Add up the service received until now; called before the number of running replicas changes."""
        columns = self.columns
        passed = now_ms - int(columns.counted_at[row])
        if passed > 0:
            columns.attained[row] += int(columns.rate[row]) * passed
            if columns.running[row] > 0:
                columns.worked[row] += self.speed_now(row) * passed
                columns.elapsed[row] += passed
        columns.counted_at[row] = now_ms

    def speed_now(self, row: int) -> int:
        """Of its running replicas; 1000 is one. Where roles or groups differ, nobody has measured: as one."""
        if not self.signature(row).plain:
            return 1000
        return speed_milli(int(self.columns.running[row]), self.spec(row).speedup_percent)

    def replica_size(self, amount: np.ndarray) -> int:
        return size_milli(int(amount[GPU_COLUMN]), int(amount[CPU_COLUMN]))

    def _join_signature(self, workload: Workload) -> int:
        key = (
            workload.gang,
            workload.pools,
            workload.node_selector,
            workload.tolerations,
            workload.workload_class,
            workload.avoids,
        )
        index = self._signature_of.get(key)
        if index is None:
            signature = Signature(key, workload)
            for chain in signature.chains:
                for name, _ in chain.role.request.accelerators:
                    self.resources.column(name)
                for rule in chain.role.where.neighbours:
                    self.resources.column(rule.counter)
            self.columns.widen("amount", self.resources.count)
            if self._vacant_signatures:
                index = self._vacant_signatures.pop()
            else:
                index = len(self.signatures)
                self.signatures.append(None)
            self.signatures[index] = signature
            self._signature_of[key] = index
        found = self.signatures[index]
        assert found is not None
        found.users += 1
        return index

    def _leave_signature(self, row: int) -> None:
        index = int(self.columns.signature[row])
        signature = self.signatures[index]
        assert signature is not None
        signature.users -= 1
        if not signature.users:
            del self._signature_of[signature.key]
            self.signatures[index] = None
            self._vacant_signatures.append(index)
