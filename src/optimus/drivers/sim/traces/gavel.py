"""Gavel: jobs as so many steps of a model, and how fast these go on three models of GPUs.

    job_id, job_type, scale_factor, total_steps, priority_weight, slo, arrival_s        a list of jobs
    throughputs_simulation.csv, see `throughputs`                                       beside it, or named

A job of scale factor 4 is four replicas of one GPU: on one node it runs at the consolidated rate, spread over several
at the other one. Its duration is `total_steps` at the rate of the reference model (V100). Schedulers are told the
relative speeds of the models, as in the paper. `slo` is a deadline in multiples of the duration; -1 is none.
The cluster is that of the paper's simulations: 36 GPUs each of V100, P100 and K80, here in nodes of four.
Source: Narayanan et al., OSDI'20, and its artifact.
"""

from __future__ import annotations

from pathlib import Path

from msgspec import structs

from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.setup import uniform_nodes
from optimus.drivers.sim.traces.gathering import Gathering
from optimus.drivers.sim.traces.rows import Row, RowError, Table, positive_ms
from optimus.drivers.sim.traces.throughputs import PlacedSteady, Throughputs
from optimus.drivers.sim.traces.trace import Trace, TraceError
from optimus.model.nodes import Node
from optimus.model.workloads import ModelSpeed

COLUMNS = ("job_id", "job_type", "scale_factor", "total_steps", "arrival_s")
TABLES = ("throughputs_simulation.csv.gz", "throughputs_simulation.csv")
GPUS_OF_EACH = 36


def load_gavel(
    path: Path,
    *,
    throughputs: Path | None = None,
    reference: str = "v100",
    gpus_of_each: int = GPUS_OF_EACH,
    gpus_per_node: int = 4,
    spreading: bool = True,
) -> Trace:
    """`spreading`: a job is slower, or faster, when it is spread; without it, as fast as on one node, whatever its
    size, as in the artifact's simulator."""
    table = Table(path)
    table.demand(*COLUMNS)
    rates = Throughputs(throughputs or find_table(path))
    if reference not in rates.models:
        raise TraceError(f"{rates.path}: no rate for {reference}; it has {', '.join(rates.models)}")
    nodes = _nodes(rates.models, gpus_of_each, gpus_per_node)
    gathering = Gathering(table)
    unequal = 0

    def job_of(row: Row) -> Job:
        nonlocal unequal
        gpus = row.gpus("scale_factor")
        if gpus > gpus_of_each:
            raise RowError(
                f"asks for {gpus} GPUs of one model, and the cluster has {gpus_of_each}; it could never start"
            )
        job = _job(row, rates, reference, gpus_per_node if spreading else 0)
        known = rates.measured(job.family, gpus)
        if known != gpus:
            message = f"no rate of {job.family} on {gpus} GPUs was measured; {gpus / known:g} times that of {known}"
            gathering.problems.change(row.line, f"{message} is taken")
        unequal += row.number_or("priority_weight", 1.0) != 1
        return job

    gathering.take(job_of)
    if unequal:
        gathering.problems.note(f"priority_weight of {unequal} jobs is not 1; weights of single jobs are not used")
    return gathering.trace(nodes=nodes, more=rates.problems)


def _nodes(models: tuple[str, ...], gpus_of_each: int, per_node: int) -> tuple[Node, ...]:
    if per_node < 1 or gpus_of_each < 1 or gpus_of_each % per_node:
        raise TraceError(f"gpus_of_each is {gpus_of_each}; expected a multiple of the {per_node} GPUs of a node")
    return tuple(n for model in models for n in uniform_nodes(gpus_of_each // per_node, per_node, model=model))


def _job(row: Row, rates: Throughputs, reference: str, per_node: int) -> Job:
    """`per_node` 0: wherever its GPUs are, it is as fast as on one node."""
    kind, gpus = row.name("job_type"), row.gpus("scale_factor")
    if not rates.knows(kind):
        raise RowError(f"no rate of {kind} in {rates.path.name}; add it or choose the table that goes with the list")
    steps = row.number("total_steps")
    if steps <= 0:
        raise RowError(f"total_steps is {steps:g}; a job that has nothing to do says nothing")
    submit_ms = row.ms("arrival_s")
    fits = gpus <= per_node or not per_node
    most = rates.rate(kind, gpus, reference, together=fits)
    if most <= 0:
        raise RowError(f"{kind} does not run on {gpus} {reference}, the reference; choose another reference")
    work = PlacedSteady(
        duration_ms=positive_ms("total_steps", steps / most * 1000),
        replicas=gpus,
        speed_by_model={m: rates.rate(kind, gpus, m, together=True) / most for m in rates.models},
        speed_spread={m: rates.rate(kind, gpus, m, together=not per_node) / most for m in rates.models},
        steps_per_s=most,
    )
    best = work.speed_by_model if fits else work.speed_spread
    slo = row.number_or("slo", -1.0)
    return Job(
        name=row.name("job_id"),
        submit_ms=submit_ms,
        work=work,
        family=kind,
        replicas=gpus,
        gpus=1,
        models=tuple(ModelSpeed(m, max(round(100 * best[m]), 1)) for m in rates.models if best[m] > 0),
        deadline_ms=submit_ms + round(slo * work.duration_ms) if slo > 0 else None,
    )


def without_speeds(trace: Trace) -> Trace:
    """The same jobs, and schedulers are not told how fast they are on which model; where they can run is known."""
    return structs.replace(
        trace,
        jobs=tuple(
            structs.replace(job, models=tuple(ModelSpeed(speed.model) for speed in job.models)) for job in trace.jobs
        ),
    )


def find_table(path: Path, names: tuple[str, ...] = TABLES) -> Path:
    for name in names:
        if (path.parent / name).exists():
            return path.parent / name
    raise TraceError(f"{path}: no {names[0]} beside it; name the table of throughputs that goes with the list")
