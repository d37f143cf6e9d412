"""Shockwave: jobs of Gavel's kinds, with a duration, that change their batch size as they run.

    job_id, job_type, scale_factor, adaptation, total_steps, priority_weight, slo, duration_s, arrival_s

`duration_s` is the authors' estimate for the batch size that the job begins with, and the duration here: how GNS and
Accordion change it on the way is not simulated, and a note says for how many jobs. A job of scale factor 4 is four
replicas of one GPU. With a table of throughputs (see `throughputs`) it is slower, or faster, when it is spread; without
one spreading costs nothing, because the published table says of some jobs that they run twice as fast apart.
The cluster is 32 V100 in nodes of four unless told otherwise.
Source: Zheng et al., NSDI'23, and its artifact.
"""

from __future__ import annotations

from pathlib import Path

from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.traces.gathering import Cluster, Gathering
from optimus.drivers.sim.traces.rows import Row, Table
from optimus.drivers.sim.traces.throughputs import Throughputs
from optimus.drivers.sim.traces.trace import Trace
from optimus.drivers.sim.works.steady import Steady

COLUMNS = ("job_id", "job_type", "scale_factor", "adaptation", "duration_s", "arrival_s")
STATIC = "static"
MODEL = "v100"


def load_shockwave(
    path: Path, *, throughputs: Path | None = None, cluster_gpus: int = 32, gpus_per_node: int = 4
) -> Trace:
    table = Table(path)
    table.demand(*COLUMNS)
    cluster = Cluster(cluster_gpus, per_node=gpus_per_node, model=MODEL)
    rates = Throughputs(throughputs) if throughputs else None
    gathering = Gathering(table)
    adapting = 0

    def job_of(row: Row) -> Job:
        nonlocal adapting
        job = _job(row, cluster, rates)
        adapting += row.text("adaptation") != STATIC
        return job

    gathering.take(job_of)
    if adapting:
        gathering.problems.note(f"{adapting} jobs change their batch size as they run; they keep their first one here")
    return gathering.trace(nodes=cluster.nodes(), more=rates.problems if rates else ())


def _job(row: Row, cluster: Cluster, rates: Throughputs | None) -> Job:
    kind, gpus = row.name("job_type"), row.gpus("scale_factor")
    cluster.demand_room(gpus)
    return Job(
        name=row.name("job_id"),
        submit_ms=row.ms("arrival_s"),
        work=Steady(
            duration_ms=row.duration_ms("duration_s"),
            replicas=gpus,
            speed_by_nodes=_speed_by_nodes(kind, gpus, rates, cluster.per_node),
        ),
        family=kind,
        replicas=gpus,
        gpus=1,
    )


def _speed_by_nodes(kind: str, gpus: int, rates: Throughputs | None, per_node: int) -> tuple[float, ...]:
    if rates is None or gpus == 1 or not rates.knows(kind):
        return ()
    together = rates.rate(kind, gpus, MODEL, together=True)
    spread = rates.rate(kind, gpus, MODEL, together=False)
    if not together or not spread:
        return ()
    return (1.0, spread / together) if gpus <= per_node else (together / spread, 1.0)
