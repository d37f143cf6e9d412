"""Phases: where a job is, in one word.

    Pending ──► Admitted ──► Starting ──► Running ⇄ Rescaling
       ▲                        │            │
       │                        │            ├──► Checkpointing ──► Preempted ──► Admitted …
       │                        │            │        (or Stopping, where it has nothing to save)
       └── retry after a failure ┴────────────┤
                                             └──► Succeeded | Failed | Cancelled
    Suspended from any of them that is not the end, by way of Checkpointing or Stopping where it runs. Resumed, it is
    what it was before it rested: Preempted where the scheduler had taken its room, Pending otherwise.

Why: people and scripts ask for one word; conditions and reasons say the rest.
Owns: the words, and which follows from what is known.
Must not: keep anything: a phase is derived, so it cannot be wrong for long.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from optimus.lives.life import LeavingCause, Life, Outcome, Replica
from optimus.model.gangs import chains, minimum_replicas
from optimus.model.workloads import Workload


class JobPhase(StrEnum):
    PENDING = "Pending"
    ADMITTED = "Admitted"
    STARTING = "Starting"
    RUNNING = "Running"
    RESCALING = "Rescaling"
    CHECKPOINTING = "Checkpointing"
    STOPPING = "Stopping"
    PREEMPTED = "Preempted"
    SUSPENDED = "Suspended"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELLED = "Cancelled"

    @property
    def final(self) -> bool:
        return self in _ENDS.values()


_ENDS = {
    Outcome.SUCCEEDED: JobPhase.SUCCEEDED,
    Outcome.FAILED: JobPhase.FAILED,
    Outcome.CANCELLED: JobPhase.CANCELLED,
}


_MAY_SAVE = (LeavingCause.PREEMPTED, LeavingCause.SUSPENDED)


def phase_of(workload: Workload, life: Life, replicas: Sequence[Replica], *, promised: bool = False) -> JobPhase:
    """`promised`: the brain keeps room for it that others are still leaving."""
    live = [replica for replica in replicas if replica.live]
    if life.outcome is not None:
        return JobPhase.STOPPING if live else _ENDS[life.outcome]
    if life.leaving is not None:
        if life.leaving.cause is LeavingCause.RESIZED:
            return JobPhase.RESCALING
        saves = workload.checkpoint is not None and life.leaving.cause in _MAY_SAVE
        return JobPhase.CHECKPOINTING if saves else JobPhase.STOPPING
    if not life.places and not live:
        return _waiting(workload, life, promised)
    return _running(workload, life, live)


def _waiting(workload: Workload, life: Life, promised: bool) -> JobPhase:
    if workload.suspended:
        return JobPhase.SUSPENDED
    if promised:
        return JobPhase.ADMITTED
    return JobPhase.PREEMPTED if life.last_leaving is LeavingCause.PREEMPTED else JobPhase.PENDING


def _running(workload: Workload, life: Life, live: Sequence[Replica]) -> JobPhase:
    there = {replica.slot for replica in live if replica.started_ms is not None} | life.done
    if not live and not life.done:
        return JobPhase.ADMITTED
    roles = [chain.role.name for chain in chains(workload.gang)]
    least = {
        (roles[index], ordinal) for index, numbers in minimum_replicas(workload.gang).items() for ordinal in numbers
    }
    if not least <= there:
        return JobPhase.STARTING
    asked = any(replica.asked_ms is not None for replica in live)
    return JobPhase.RESCALING if asked or there != {place.slot for place in life.places} else JobPhase.RUNNING
