"""Philly: jobs of a Microsoft cluster in 2017, as a list.

    job_id, submit_time (2017-09-04 10:30:41, local), duration_s, num_gpus, vc

A job is rigid and runs for `duration_s`, wherever it is. A virtual cluster (`vc`) becomes a queue, all of equal weight.
Source: Jeon et al., ATC'19, in the form the Pollux artifact (OSDI'21) gave it. There is no model name and no user, so
there is no family; failed and killed jobs count as if they had been completed.
"""

from __future__ import annotations

from pathlib import Path

from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.traces.gathering import Cluster, Gathering, split_gpus
from optimus.drivers.sim.traces.rows import Row, Table
from optimus.drivers.sim.traces.trace import Trace
from optimus.drivers.sim.works.steady import Steady

COLUMNS = ("job_id", "submit_time", "duration_s", "num_gpus", "vc")


def load_philly(path: Path, *, cluster_gpus: int | None = None, gpus_per_node: int = 8) -> Trace:
    table = Table(path)
    table.demand(*COLUMNS)
    cluster = Cluster(cluster_gpus, per_node=gpus_per_node)
    gathering = Gathering(table)
    gathering.take(lambda row: _job(row, cluster))
    return gathering.trace(nodes=cluster.nodes())


def _job(row: Row, cluster: Cluster) -> Job:
    total = row.gpus("num_gpus")
    cluster.demand_room(total)
    replicas, gpus = split_gpus(total, cluster.per_node)
    return Job(
        name=row.name("job_id"),
        submit_ms=row.date_ms("submit_time"),
        work=Steady(duration_ms=row.duration_ms("duration_s"), replicas=replicas),
        queue=row.text("vc") or "default",
        replicas=replicas,
        gpus=gpus,
    )
