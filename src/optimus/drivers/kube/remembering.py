"""What has been, as far as a cluster still shows it: work that is over keeps its times until somebody deletes it.

Why: run times of a queue and of a family predict those of newcomers; a controller that starts anew and a command line
that just looks have watched none of them.
Owns: how long work ran, read from its objects, and the past that forecasts draw from.
Must not: count the time in which pods waited: a Job says that it began when it was made.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from optimus.drivers.kube.describing import read_time
from optimus.engine.journal_past import Past, Ran, gathered
from optimus.model.observations import Observation, RunRemembered
from optimus.model.workloads import Workload

if TYPE_CHECKING:
    from optimus.drivers.kube.mirror import Mirror


class Run(Struct, frozen=True):
    workload: Workload
    run_ms: int
    """0: not known."""
    ended_ms: int


def runs(mirror: Mirror) -> list[Run]:
    """Of all that ended well and is still there; the last one last."""
    found = []
    for workload, group in mirror.ended():
        ended_ms = read_time(group.completed)
        began_ms = min(_starts(mirror, workload.id), default=read_time(group.began))
        if ended_ms:
            found.append(Run(workload, max(ended_ms - began_ms, 0) if began_ms else 0, ended_ms))
    return sorted(found, key=lambda run: (run.ended_ms, run.workload.id))


def remembered(ended: list[Run]) -> list[Observation]:
    return [RunRemembered(one.workload.queue, one.run_ms, one.workload.family) for one in ended if one.run_ms]


def past(mirror: Mirror, now_ms: int) -> Past:
    """Who came, and how wrong declared run times were. Reaches back to the oldest object that is left."""
    ended = runs(mirror)
    there = [*mirror.workloads.values(), *(run.workload for run in ended)]
    ran = [*[None] * len(mirror.workloads), *(Ran(run.run_ms, True) if run.run_ms else None for run in ended)]
    declared = [(run.run_ms, run.workload.expected_duration_ms) for run in ended]
    return gathered(
        there,
        [run_ms / expected for run_ms, expected in declared if expected and run_ms],
        begin_ms=min((one.submitted_ms for one in there), default=now_ms),
        now_ms=now_ms,
        ran=ran,
    )


def _starts(mirror: Mirror, workload: str) -> Iterator[int]:
    for uid in mirror.groups.members(workload):
        if uid in mirror.pods and (at_ms := read_time(mirror.pods[uid].status.start_time)):
            yield at_ms
