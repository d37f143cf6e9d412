"""The lists of the Gavel and Shockwave set-ups, each on the cluster and with the costs that its artifact documents.

Gavel: rounds of 360 s, three models of GPUs, a job is as fast spread as together, and stopping it costs nothing.
Shockwave: rounds of 120 s, V100 only, and 20 s are lost in every round in which a job runs that did not run before.
`continuous` is drawn here, because the artifact draws it while it plays: Poisson arrivals, kinds at random, 70 % on one
GPU, 10 % on two, 15 % on four, 5 % on eight; 80 % last 10^1.5 to 10^3 minutes on V100, the others up to 10^4.
"""

from __future__ import annotations

import csv
import random
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.setup import Setup
from optimus.drivers.sim.traces.formats import load
from optimus.drivers.sim.traces.throughputs import Throughputs
from optimus.drivers.sim.traces.trace import Trace, TraceError

CONTINUOUS_JOBS, PER_HOUR, SEED = 400, 1.6, 0


class Case(NamedTuple):
    file: str
    """Without its ending; empty: drawn."""
    gpus: int
    """Of each model."""
    first: int | None = None
    shockwave: bool = False
    adapt: bool = False
    """Jobs change their batch size as the list says; else all keep their first one."""

    @property
    def round_ms(self) -> int:
        return 120_000 if self.shockwave else 360_000


CASES = {
    "evaluation": Case("jobs_artifact_evaluation", 2),
    "debug": Case("jobs_debug", 2),
    "medium": Case("jobs_medium_test", 2),
    "msr-6c71a0": Case("jobs_msr_seed0_6c71a0", 36, first=500),
    "msr-b436b2": Case("jobs_msr_seed0_b436b2", 36, first=600),
    "msr-ee9e8c": Case("jobs_msr_seed0_ee9e8c", 36, first=300),
    "continuous": Case("", 36),
    "shockwave-220": Case("jobs_220_p100", 64, shockwave=True),
    "shockwave-460": Case("jobs_460_p100", 128, shockwave=True),
    "shockwave-220-adapting": Case("jobs_220_p100", 64, shockwave=True, adapt=True),
    "shockwave-460-adapting": Case("jobs_460_p100", 128, shockwave=True, adapt=True),
}
MIXED = tuple(name for name, case in CASES.items() if not case.shockwave)


def loaded(traces: Path, name: str, scratch: Path, restart_ms: int | None = None) -> tuple[Setup, list[Job]]:
    """Set-up and jobs; `restart_ms` instead of what the artifact counts for stopping and starting again."""
    case = CASES[name]
    per_node = min(case.gpus, 4)
    if case.shockwave:
        path = _found(traces / "shockwave", case.file)
        trace = load(path, adapt=case.adapt, cluster_gpus=case.gpus, gpus_per_node=per_node)
        costs = {"start_ms": 20_000, "restart_ms": 20_000}
    else:
        table = _found(traces / "gavel", "throughputs_simulation")
        path = _found(traces / "gavel", case.file) if case.file else drawn(table, scratch / "continuous.csv")
        trace = load(
            path,
            throughputs=table,
            gpus_of_each=case.gpus,
            gpus_per_node=per_node,
            spreading=False,
            first_jobs=case.first,
        )
        costs = {"restart_ms": 0}
    if restart_ms is not None:
        costs["restart_ms"] = restart_ms
    return _in_rounds(trace, case.round_ms), [structs.replace(job, **costs) for job in trace.jobs]


def _in_rounds(trace: Trace, round_ms: int) -> Setup:
    assert trace.setup is not None
    return structs.replace(trace.setup, interval_ms=round_ms, tick_ms=round_ms)


def _found(folder: Path, name: str) -> Path:
    for ending in (".csv.gz", ".csv"):
        if (folder / f"{name}{ending}").is_file():
            return folder / f"{name}{ending}"
    raise TraceError(f"{folder / name}.csv[.gz] is missing: give the folder with gavel/ and shockwave/ with --traces")


def drawn(table: Path, path: Path) -> Path:
    """The continuous list, always the same."""
    rates, lots = Throughputs(table), random.Random(SEED)
    kinds = sorted(rates.kinds())
    wide = [kind for kind in kinds if rates.measured(kind, 8) == 8]
    at = 0.0
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["job_id", "job_type", "scale_factor", "total_steps", "priority_weight", "slo", "arrival_s"])
        for number in range(CONTINUOUS_JOBS):
            gpus = lots.choices((1, 2, 4, 8), (70, 10, 15, 5))[0]
            kind = lots.choice(kinds if gpus == 1 else wide)
            exponent = lots.uniform(1.5, 3) if lots.random() < 0.8 else lots.uniform(3, 4)
            steps = round(60 * 10**exponent * rates.rate(kind, gpus, "v100", together=True))
            rows.writerow([number, kind, gpus, max(steps, gpus), 1.0, -1.0, round(at)])
            at += lots.expovariate(PER_HOUR / 3600)
    return path
