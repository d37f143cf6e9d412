"""Shockwave: jobs of Gavel's kinds, with a duration, that change their batch size as they run.

    job_id, job_type, scale_factor, adaptation, total_steps, priority_weight, slo, duration_s, arrival_s

A job of scale factor 4 is four replicas of one GPU. Two models of the same list:

    as it stands   `duration_s`, the authors' estimate for the batch size that the job begins with; a note says how many
                   jobs would change theirs. With a table of throughputs a job is slower, or faster, when it is spread;
                   without one spreading costs nothing, because the published table says of some jobs that they run
                   twice as fast apart.
    adapting       `total_steps` at the rates of the table, and GNS and Accordion change the batch size on the way (see
                   `works.adapting`). Spreading costs nothing, as in the artifact's simulator.

The cluster is 32 V100 in nodes of four unless told otherwise.
Source: Zheng et al., NSDI'23, and its artifact.
"""

from __future__ import annotations

from pathlib import Path

from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.traces.batch_sizes import ADAPTATIONS, FAMILIES, STATIC, change_of, model_and_batch
from optimus.drivers.sim.traces.gathering import Cluster, Gathering
from optimus.drivers.sim.traces.gavel import find_table
from optimus.drivers.sim.traces.rows import Row, RowError, Table, shown
from optimus.drivers.sim.traces.throughputs import Throughputs
from optimus.drivers.sim.traces.trace import Trace
from optimus.drivers.sim.works import Work
from optimus.drivers.sim.works.adapting import Adapting, adapting
from optimus.drivers.sim.works.steady import Steady

COLUMNS = ("job_id", "job_type", "scale_factor", "adaptation", "duration_s", "arrival_s")
TABLES = ("throughputs_v100_tacc.csv.gz", "throughputs_v100_tacc.csv")
MODEL = "v100"


def load_shockwave(
    path: Path,
    *,
    throughputs: Path | None = None,
    adapt: bool = False,
    cluster_gpus: int = 32,
    gpus_per_node: int = 4,
) -> Trace:
    """`adapt`: jobs change their batch size; the table is then needed, beside the list or named."""
    table = Table(path)
    table.demand(*COLUMNS, *(["total_steps"] if adapt else []))
    cluster = Cluster(cluster_gpus, per_node=gpus_per_node, model=MODEL)
    rates = Throughputs(throughputs or find_table(path, TABLES)) if throughputs or adapt else None
    gathering = Gathering(table)
    keeping = 0

    def job_of(row: Row) -> Job:
        nonlocal keeping
        kind, gpus = row.name("job_type"), row.gpus("scale_factor")
        cluster.demand_room(gpus)
        if row.text("adaptation") not in ADAPTATIONS:
            raise RowError(f"adaptation is {shown(row.text('adaptation'))}; it is one of {', '.join(ADAPTATIONS)}")
        if adapt:
            assert rates is not None
            work: Work = _adapting(row, kind, gpus, rates)
        else:
            work = _steady(row, kind, gpus, rates, cluster.per_node)
            keeping += row.text("adaptation") != STATIC
        name, submit_ms = row.name("job_id"), row.ms("arrival_s")
        return Job(name=name, submit_ms=submit_ms, work=work, family=kind, replicas=gpus, gpus=1)

    gathering.take(job_of)
    if keeping:
        gathering.problems.note(f"{keeping} jobs change their batch size as they run; they keep their first one here")
    return gathering.trace(nodes=cluster.nodes(), more=rates.problems if rates else ())


def _steady(row: Row, kind: str, gpus: int, rates: Throughputs | None, per_node: int) -> Steady:
    duration_ms = row.duration_ms("duration_s")
    return Steady(
        duration_ms=duration_ms,
        replicas=gpus,
        speed_by_nodes=_speed_by_nodes(kind, gpus, rates, per_node),
        steps_per_s=row.number_or("total_steps", 0.0) / duration_ms * 1000 or 1.0,
    )


def _speed_by_nodes(kind: str, gpus: int, rates: Throughputs | None, per_node: int) -> tuple[float, ...]:
    if rates is None or gpus == 1 or not rates.knows(kind):
        return ()
    together = rates.rate(kind, gpus, MODEL, together=True)
    spread = rates.rate(kind, gpus, MODEL, together=False)
    if not together or not spread:
        return ()
    return (1.0, spread / together) if gpus <= per_node else (together / spread, 1.0)


def _adapting(row: Row, kind: str, gpus: int, rates: Throughputs) -> Adapting:
    known = model_and_batch(kind)
    if known is None or not rates.knows(kind):
        raise RowError(f"nothing is known of the epochs and rates of {kind}; load the list without adapt")
    model, batch = known
    steps = row.whole("total_steps")
    if steps < 1:
        raise RowError(f"total_steps is {steps}; a job that has nothing to do says nothing")
    by_batch = {}
    size = batch
    while size <= FAMILIES[model].most:
        other = f"{model} (batch size {size})"
        rate = rates.rate(other, gpus, MODEL, together=True) if rates.knows(other) else 0.0
        if rate:
            by_batch[size] = rate
        size *= 2
    if batch not in by_batch:
        raise RowError(f"{kind} does not run on {gpus} {MODEL}; leave it out")
    change = change_of(model, batch, gpus, row.text("adaptation"))
    return adapting(Adapting(steps=steps, batch=batch, samples=FAMILIES[model].samples, rates=by_batch, change=change))
