"""Where everybody stands: the workloads of a state, as the clockwork can take them over.

Why: a dump of the state knows slots, phases and columns; whoever plays on needs to know who sits where and how long
each has run.
Owns: that reading, and the job that a workload is once somebody says how long it runs.
Must not: guess a run time, or play.

A gang may have roles that ask for different things, and the clockwork knows one request per job. So every seat carries
what it takes (`Seat.milli`, all its devices together), and the job itself asks for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.setup import Setup
from optimus.drivers.sim.works.steady import Steady
from optimus.model.gangs import chains, minimum_replicas
from optimus.model.progress import Remaining
from optimus.model.queues import GPU
from optimus.model.slots import Phase
from optimus.model.workloads import Workload, share_milli
from optimus.state.keyframe import WORKLOAD_COLUMNS, Keyframe, SlotFrame, WorkloadFrame


class Place(Struct, frozen=True):
    """One replica that has its room, or is leaving it."""

    role: str
    ordinal: int
    node: str
    milli: int
    """Thousandths of GPUs, all its devices together."""
    phase: Phase

    @property
    def leaving(self) -> bool:
        return self.phase is Phase.RELEASING


class Standing(Struct, frozen=True, kw_only=True):
    workload: Workload
    places: tuple[Place, ...]
    """Without room that is only promised."""
    elapsed_ms: int
    """It has run so long, over all attempts."""
    expected_ms: int | None
    """Declared or predicted."""
    remaining: Remaining | None = None
    """In its own words."""
    over: bool = False
    """It has ended, and only its last replicas are still leaving."""

    @property
    def runs(self) -> bool:
        return any(not place.leaving for place in self.places)


def read_state(state: bytes) -> Keyframe:
    return msgspec.msgpack.decode(state, type=Keyframe)


def standings(
    frame: Keyframe, now_ms: int | None = None, remaining: Mapping[str, Remaining] | None = None
) -> tuple[Standing, ...]:
    """Of every workload that is there, in the order of the dump. `now_ms`: later than the dump."""
    now_ms = frame.now_ms if now_ms is None else max(now_ms, frame.now_ms)
    told = remaining or {}
    places: dict[str, list[SlotFrame]] = {}
    for slot in frame.slots:
        if not slot.promised:
            places.setdefault(slot.workload, []).append(slot)
    return tuple(
        _standing(entry, places.get(entry.workload.id, ()), now_ms, told.get(entry.workload.id))
        for entry in frame.workloads
    )


def _standing(
    entry: WorkloadFrame,
    slots: tuple[SlotFrame, ...] | list[SlotFrame],
    now_ms: int,
    remaining: Remaining | None,
) -> Standing:
    numbers = dict(zip(WORKLOAD_COLUMNS, entry.numbers, strict=True))
    roles = [chain.role.name for chain in chains(entry.workload.gang)]
    running = any(slot.phase == Phase.RUNNING for slot in slots)
    return Standing(
        workload=entry.workload,
        places=tuple(
            Place(roles[slot.role], slot.ordinal, slot.node, slot.milli * len(slot.devices), Phase(slot.phase))
            for slot in slots
        ),
        elapsed_ms=numbers["elapsed"] + (max(now_ms - numbers["counted_at"], 0) if running else 0),
        expected_ms=numbers["expected"] if numbers["expected"] >= 0 else None,
        remaining=remaining,
        over=not numbers["alive"],
    )


def newcomer(workload: Workload) -> Standing:
    """Of work that is still to come."""
    return Standing(workload=workload, places=(), elapsed_ms=0, expected_ms=workload.expected_duration_ms)


def job_of(standing: Standing, at_ms: int, run_ms: float) -> Job:
    """For the clockwork: it is there from `at_ms` on, and runs so long in all at its present size, or its least."""
    workload = standing.workload
    curve, checkpoint = workload.speedup_percent, workload.checkpoint
    live = sum(not place.leaving for place in standing.places)
    return Job(
        name=workload.id,
        submit_ms=at_ms,
        work=Steady(
            duration_ms=max(run_ms, 1.0),
            replicas=live or least_replicas(workload),
            scaling=tuple(percent / 100 for percent in curve),
        ),
        queue=workload.queue,
        gpus=1,
        gpu_milli=0,
        deadline_ms=workload.deadline_ms,
        checkpoint_ms=None if checkpoint is None else checkpoint.interval_ms or 0,
        grace_ms=workload.grace_ms,
        start_ms=workload.restart_cost_ms if standing.elapsed_ms and not live else 0,
        restart_ms=workload.restart_cost_ms,
    )


def least_replicas(workload: Workload) -> int:
    return max(sum(map(len, minimum_replicas(workload.gang).values())), 1)


def least_gpus(workload: Workload, device_memory_mib: int = 0) -> float:
    """GPUs that its smallest gang takes; a share by memory is that of a device of such a size, else a whole one."""
    roles = [chain.role for chain in chains(workload.gang)]
    total = 0
    for index, ordinals in minimum_replicas(workload.gang).items():
        request = roles[index].request
        total += len(ordinals) * request.gpu_count * min(share_milli(request, device_memory_mib), 1000)
    return total / 1000


def setup_of(frame: Keyframe, *, tick_ms: int, coarser_percent: int = 0) -> Setup:
    return Setup(
        nodes=tuple(node for node, _ in frame.nodes),
        pools=frame.pools,
        queues=frame.queues,
        settings=frame.settings,
        tick_ms=tick_ms,
        coarser_percent=coarser_percent,
    )


def guarantees_gpus(setup: Setup) -> dict[str, int]:
    """Queue -> guaranteed GPUs in thousandths, all pools together."""
    return {
        queue.name: sum(pool.resources[GPU].guarantee for pool in queue.quotas if GPU in pool.resources)
        for queue in setup.queues
    }
