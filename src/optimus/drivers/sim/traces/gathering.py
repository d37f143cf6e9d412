"""Gathering: jobs come together, and what can be wrong only between them is found.

Why: ids given twice, times out of order, and jobs that no cluster can hold look the same in every format.
Owns: these checks, the split of a job over nodes, the order of submission, and the queues of the tenants.
Must not: read files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from msgspec import structs

from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.setup import Setup, uniform_nodes
from optimus.drivers.sim.traces.rows import Problems, Row, RowError, Table
from optimus.drivers.sim.traces.trace import Trace, TraceError, TraceProblem
from optimus.model.nodes import Node
from optimus.model.pools import DEFAULT_POOL
from optimus.model.queues import GPU, PoolQuota, Queue, Quota
from optimus.model.units import LARGEST


class Cluster:
    """What the jobs must fit on; unknown parts fit everything."""

    def __init__(self, gpus: int | None = None, *, per_node: int = 8, model: str = "gpu") -> None:
        if per_node < 1:
            raise TraceError(f"gpus_per_node is {per_node}; a node needs at least one GPU")
        if gpus is not None and (gpus < 1 or gpus % per_node):
            raise TraceError(f"cluster_gpus is {gpus}; expected a multiple of the {per_node} GPUs of a node")
        self.gpus = gpus
        self.per_node = per_node
        self.model = model

    def nodes(self) -> tuple[Node, ...]:
        return uniform_nodes(self.gpus // self.per_node, self.per_node, model=self.model) if self.gpus else ()

    def demand_room(self, gpus: int) -> None:
        if self.gpus is not None and gpus > self.gpus:
            raise RowError(f"asks for {gpus} GPUs, and the cluster has {self.gpus}; it could never start")


def split_gpus(gpus: int, per_node: int) -> tuple[int, int]:
    """(replicas, GPUs of each): as few equal replicas as possible, none larger than a node. 12 on 8 -> 2 of 6."""
    replicas = -(-gpus // per_node)
    while gpus % replicas:
        replicas += 1
    return replicas, gpus // replicas


def equal_queues(names: Iterable[str]) -> tuple[Queue, ...]:
    return tuple(weighted_queue(name, 1) for name in sorted(set(names)))


def weighted_queue(name: str, weight: int) -> Queue:
    """Nothing guaranteed, nothing limited: the cluster is shared by weight among those that want it."""
    return Queue(name=name, quotas=(PoolQuota(pool=DEFAULT_POOL, resources={GPU: Quota(weight=weight)}),))


class Gathering:
    """The jobs of one table."""

    def __init__(self, table: Table, *, in_order: bool = True, from_zero: bool = True) -> None:
        self.table = table
        self.problems: Problems = table.problems
        self.jobs: list[Job] = []
        self._line_of: dict[str, int] = {}
        self._before_ms = -(2**62)
        """Submission of the row above."""
        self._in_order = in_order
        self._from_zero = from_zero

    def take(self, job_of: Callable[[Row], Job]) -> None:
        """Make a job of each row, or say why there is none."""
        self.table.for_each(lambda row: self._add(row.line, job_of(row)))

    def _add(self, line: int, job: Job) -> None:
        if max(abs(job.submit_ms), abs(job.deadline_ms or 0), job.expected_ms or 0) > LARGEST:
            raise RowError("a time of it is beyond all calendars; look for a shifted column or another unit")
        before = self._line_of.setdefault(job.name, line)
        if before != line:
            raise RowError(f"{job.name} is already on line {before}; give each job its own id")
        if job.submit_ms < self._before_ms and self._in_order:
            self.problems.change(line, "submitted before the job above it; it is moved to its place, sort the file")
        self._before_ms = job.submit_ms
        self.jobs.append(job)

    def trace(
        self,
        *,
        nodes: tuple[Node, ...] = (),
        setup: Setup | None = None,
        more: Iterable[TraceProblem] = (),
        endless: bool = False,
    ) -> Trace:
        jobs = sorted(self.jobs, key=lambda job: (job.submit_ms, job.name))
        if self._from_zero and jobs:
            jobs = [moved(job, -jobs[0].submit_ms) for job in jobs]
        if not jobs:
            self.problems.note("no job in it")
        queues = equal_queues(job.queue for job in jobs)
        if setup is None and nodes:
            setup = Setup(nodes=nodes)
        return Trace(
            name=name_of(self.table.path),
            jobs=tuple(jobs),
            rows=self.table.read,
            problems=(*more, *self.problems.found),
            queues=queues,
            setup=structs.replace(setup, queues=queues) if setup else None,
            endless=endless,
            source=self.table.path,
        )


def moved(job: Job, by_ms: int) -> Job:
    """The same job at another time; its deadline moves along."""
    if not by_ms:
        return job
    deadline = None if job.deadline_ms is None else job.deadline_ms + by_ms
    return structs.replace(job, submit_ms=job.submit_ms + by_ms, deadline_ms=deadline)


def name_of(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".csv")
