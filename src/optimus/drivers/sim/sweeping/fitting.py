"""Fitting: jobs that could never run on a cluster, and queues that it does not have.

Why: a job that fits nowhere would wait for ever, and every scheduler would look the same.
Owns: the question whether a job fits on the empty cluster, and what is told about those that do not.
Must not: change a job.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from difflib import get_close_matches

from msgspec import structs

from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.sweeping.clusters import Cluster
from optimus.drivers.sim.sweeping.complaints import Complaint
from optimus.drivers.sim.sweeping.sources import Source, lines_of, without
from optimus.drivers.sim.traces.trace import Trace, TraceProblem, Verdict
from optimus.model.nodes import WHOLE_DEVICE_MILLI, Node
from optimus.model.units import format_cpu, format_memory

_PLENTY = 1 << 30


class Room:
    """How many replicas of a kind an empty cluster holds."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        usable = (node for node in nodes if node.ready and not node.cordoned and not node.taints)
        self._kinds = Counter(
            (tuple(d.model for d in node.devices if d.healthy and not d.mig), node.cpu_milli, node.memory_mib)
            for node in usable
        )
        self._known: dict[tuple[object, ...], int] = {}

    def holds(self, job: Job) -> int:
        models = frozenset(speed.model for speed in job.models)
        key = (job.gpus, job.gpu_milli, models, job.cpu_milli, job.memory_mib)
        if key not in self._known:
            self._known[key] = sum(count * _replicas(job, models, *kind) for kind, count in self._kinds.items())
        return self._known[key]


def _replicas(job: Job, models: frozenset[str], devices: tuple[str, ...], cpu_milli: int, memory_mib: int) -> int:
    most = _PLENTY
    if job.gpus:
        suitable = sum(not models or model in models for model in devices)
        shares = WHOLE_DEVICE_MILLI // job.gpu_milli
        most = suitable * shares // job.gpus if suitable >= job.gpus else 0
    if job.cpu_milli:
        most = min(most, cpu_milli // job.cpu_milli)
    if job.memory_mib:
        most = min(most, memory_mib // job.memory_mib)
    return most


def leave_out_too_large(trace: Trace, nodes: Iterable[Node], source: Source) -> Trace:
    """Without jobs that could never start; each is told, with its line where it can be found."""
    room = Room(nodes)
    large = {job.name: room.holds(job) for job in trace.jobs if room.holds(job) < job.least}
    if not large:
        return trace
    file = trace.source.name if trace.source else trace.name
    lines = dict(lines_of(source, set(large)))
    told = [
        TraceProblem(
            file=file,
            line=lines.get(job.name, 0),
            verdict=Verdict.LEFT_OUT,
            message=f"{job.name} asks for {_asked(job)}, and {_room(large[job.name])}; it could never start",
        )
        for job in trace.jobs
        if job.name in large
    ]
    return structs.replace(without(trace, set(large)), problems=(*trace.problems, *told))


def _asked(job: Job) -> str:
    parts = [f"{job.gpus} GPU{'s' * (job.gpus != 1)}"] if job.gpus else []
    if job.models:
        parts[0] += f" ({' or '.join(speed.model for speed in job.models)})"
    parts += [f"{format_cpu(job.cpu_milli)} CPUs"] * bool(job.cpu_milli)
    parts += [format_memory(job.memory_mib)] * bool(job.memory_mib)
    each = ", ".join(parts) or "nothing"
    return f"{job.least} replicas of {each}" if job.least > 1 else each


def _room(holds: int) -> str:
    return f"the empty cluster holds {holds} of them" if holds else "no node has that"


def missing_queues(trace: Trace, cluster: Cluster) -> list[Complaint]:
    """Queues of jobs that the cluster spec names queues without naming these."""
    parents = {queue.parent for queue in cluster.queues}
    leaves = [queue.name for queue in cluster.queues if queue.name not in parents]
    complaints = []
    for name, jobs in sorted(Counter(job.queue for job in trace.jobs).items()):
        if name in leaves:
            continue
        near = get_close_matches(name, leaves, n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        what = "has queues below it, and only those take jobs" if name in parents else f"is not there{hint}"
        complaints.append(
            f"{trace.name}: {jobs} job{'s' * (jobs != 1)} in queue {name}, which {what} in {cluster.name}"
        )
    if complaints:
        known = ", ".join(leaves[:10])
        complaints.append(
            f"  {cluster.name} has {known}; add the others under queues:, or leave queues: away and those of the trace "
            "share the cluster"
        )
    return [Complaint(message=text) for text in complaints]
