"""ITP: jobs of six Microsoft clusters in 2021, and how they scale (ElasticFlow).

    job_id, submit_s, duration_s, num_gpus, model_name, batch_size, num_iteration, deadline_s      a list of jobs
    model, global_batch_size, num_gpus, iterations_per_s                                           throughputs

Times, durations and GPUs are real; model, batch size, iterations and deadline were made up by the authors, so that
`num_iteration` at the measured speed on `num_gpus` takes `duration_s`. Without throughputs (`itp2021`) a job is rigid;
with them (`elasticflow`) it runs on any measured number of GPUs, and its global batch size stays what it is.
Half of the deadlines cannot be met on the GPUs asked for: they are meant for elastic jobs.
Source: Gu et al., ASPLOS'23.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from msgspec import Struct

from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.traces.gathering import Cluster, Gathering, split_gpus
from optimus.drivers.sim.traces.rows import Problems, Row, RowError, Table
from optimus.drivers.sim.traces.trace import Trace, TraceProblem
from optimus.drivers.sim.works.steady import Steady

COLUMNS = ("job_id", "submit_s", "duration_s", "num_gpus", "model_name")
THROUGHPUT_COLUMNS = ("model", "global_batch_size", "num_gpus", "iterations_per_s")


class Curve(Struct, frozen=True):
    """Speed by number of GPUs, for one model and global batch size."""

    sizes: tuple[int, ...]
    """Those that were measured."""
    speeds: tuple[float, ...]
    """With 1, 2, 3 … GPUs relative to one; on a straight line between two sizes that were measured."""
    percent: tuple[int, ...]
    """The same as schedulers are told it."""


def load_itp(path: Path, *, cluster_gpus: int | None = None, gpus_per_node: int = 8, deadlines: bool = False) -> Trace:
    table = Table(path)
    table.demand(*COLUMNS, *(("deadline_s",) if deadlines else ()))
    cluster = Cluster(cluster_gpus, per_node=gpus_per_node)
    gathering = Gathering(table)
    gathering.take(lambda row: _rigid(row, cluster, deadlines=deadlines))
    return gathering.trace(nodes=cluster.nodes())


def load_elasticflow(
    path: Path,
    *,
    throughputs: Path,
    cluster_gpus: int | None = None,
    gpus_per_node: int = 8,
    deadlines: bool = True,
    told: bool = True,
) -> Trace:
    """`told`: schedulers know the measured speeds, as they do in the paper."""
    table = Table(path)
    table.demand(*COLUMNS, "batch_size", *(("deadline_s",) if deadlines else ()))
    curves, more = load_curves(throughputs)
    cluster = Cluster(cluster_gpus, per_node=gpus_per_node)
    gathering = Gathering(table)

    def elastic(row: Row) -> Job:
        curve = curves.get((row.text("model_name"), row.whole("batch_size")))
        return _elastic(row, cluster, curve, gathering.problems, deadlines=deadlines, told=told)

    gathering.take(elastic)
    return gathering.trace(nodes=cluster.nodes(), more=more)


def _rigid(row: Row, cluster: Cluster, *, deadlines: bool) -> Job:
    total = row.gpus("num_gpus")
    cluster.demand_room(total)
    replicas, gpus = split_gpus(total, cluster.per_node)
    return Job(
        name=row.name("job_id"),
        submit_ms=row.ms("submit_s"),
        work=Steady(duration_ms=row.duration_ms("duration_s"), replicas=replicas),
        family=row.text("model_name"),
        replicas=replicas,
        gpus=gpus,
        deadline_ms=row.ms("deadline_s") if deadlines else None,
    )


def _elastic(
    row: Row, cluster: Cluster, curve: Curve | None, problems: Problems, *, deadlines: bool, told: bool
) -> Job:
    total = row.gpus("num_gpus")
    if curve is None or total not in curve.sizes:
        job = _rigid(row, cluster, deadlines=deadlines)
        what = f"{row.text('model_name')} with batch size {row.text('batch_size')}"
        problems.change(row.line, f"no speed of {what} on {total} GPUs was measured; the job cannot change its size")
        return job
    cluster.demand_room(total)
    sizes = tuple(size for size in curve.sizes if cluster.gpus is None or size <= cluster.gpus)
    return Job(
        name=row.name("job_id"),
        submit_ms=row.ms("submit_s"),
        work=Steady(duration_ms=row.duration_ms("duration_s"), replicas=total, scaling=curve.speeds),
        family=row.text("model_name"),
        replicas=total,
        min_replicas=sizes[0],
        max_replicas=sizes[-1],
        sizes=sizes,
        gpus=1,
        speedup_percent=curve.percent[: sizes[-1]] if told else (),
        deadline_ms=row.ms("deadline_s") if deadlines else None,
    )


def load_curves(path: Path) -> tuple[dict[tuple[str, int], Curve], list[TraceProblem]]:
    table = Table(path)
    table.demand(*THROUGHPUT_COLUMNS)
    measured: dict[tuple[str, int], dict[int, float]] = {}

    def measure(row: Row) -> None:
        speed = row.number("iterations_per_s")
        if speed <= 0:
            raise RowError(f"iterations_per_s is {speed:g}; leave a size that does not run out of the table")
        key = (row.name("model"), row.whole("global_batch_size"))
        gpus = row.gpus("num_gpus")
        measured.setdefault(key, {})[gpus] = speed

    table.for_each(measure)
    return {key: _curve(speeds) for key, speeds in measured.items()}, table.problems.found


def _curve(measured: dict[int, float]) -> Curve:
    sizes = tuple(sorted(measured))
    if sizes[0] != 1:  # unknown below the first: in proportion, so that every size has a speed
        measured = {1: measured[sizes[0]] / sizes[0], **measured}
    known = sorted(measured)
    speeds = [1.0]
    for low, high in pairwise(known):
        step = (measured[high] - measured[low]) / (high - low)
        speeds += [(measured[low] + step * (gpus - low)) / measured[1] for gpus in range(low + 1, high + 1)]
    return Curve(sizes, tuple(speeds), tuple(round(100 * speed) for speed in speeds))
