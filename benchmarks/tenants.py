"""Tenants with fair shares on production traces, against native Kubernetes.

Seven cases at a load of 0.9: Philly (virtual clusters are the tenants) and the six ITP clusters of 2021 (they name
nobody, so bursts of jobs are given to six tenants), all jobs of them. A tenant's weight is its part of the
GPU time of the whole trace, as if it had paid for it. Load is the GPU time that jobs would take inside the window, if
each started at once, as part of what there is: a job of a month counts with what of it lies inside. Nodes of eight
GPUs, as many as that load needs and enough that the largest job takes half at most; where that is more than the load
needs, arrivals are brought closer together. Jobs are rigid; nobody is told a run time, ours learns from jobs as they
end. A job that is preempted writes a checkpoint first, and pays 30 s when it starts again.

Ours is the default policy in the real engine; native are the three honest rows: pod by pod with a time-out, all pods or
none, and the same packed. The best of them by average completion time, case by case, is what ours is compared with.
They know no tenants; a KAI-like scheduler, which does, is shown beside them.

    python -m benchmarks.tenants --traces FOLDER             # FOLDER holds philly/ and itp2021/; an hour on two cores
    python -m benchmarks.tenants --traces FOLDER --keep DIR  # the same, and it can be interrupted
    python -m benchmarks.tenants --traces FOLDER --jobs 300  # shorter, for a look; writes nothing

The data is not part of this repository: docs/reference/traces.md says where it comes from.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: small problems, many threads would only spin

import math
import pickle
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from msgspec import structs

from benchmarks import measuring
from optimus.drivers.sim.brain import Brain
from optimus.drivers.sim.clockwork import Clockwork
from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.measuring import Comparison, Measured, compare, measure
from optimus.drivers.sim.peers.registry import peer
from optimus.drivers.sim.setup import Setup, uniform_nodes
from optimus.drivers.sim.traces import filling
from optimus.drivers.sim.traces.formats import load
from optimus.drivers.sim.traces.gathering import weighted_queue
from optimus.drivers.sim.traces.shaping import with_tenants
from optimus.drivers.sim.traces.trace import Trace, setup_on
from optimus.engine.engine import Engine
from optimus.model.queues import Queue

LOAD = 0.9
ROUND_MS = 60_000
PER_NODE = 8
TENANTS = 6
PHILLY = "philly/philly_jobs_until_2017-11-05.csv.gz"
NATIVE = ("native-pods", "native-gang", "native-packed")
FAIR = "kai"
"""Shown beside them: the same shares, first come first served inside a tenant, nobody's run time known or learned."""
OURS = "default"
AT_MOST = 0.6
"""Of the best native row's averages."""
TAIL = 1.0


class Case(NamedTuple):
    name: str
    file: str


def cases(traces: Path) -> list[Case]:
    clusters = sorted((traces / "itp2021").glob("cluster*.csv.gz"))
    return [Case("philly", PHILLY), *(Case(f"itp {path.name[7:9]}", f"itp2021/{path.name}") for path in clusters)]


def scene(traces: Path, case: Case, jobs: int | None) -> tuple[Trace, Setup]:
    """The jobs of a case at the load, and the cluster they share."""
    trace = load(traces / case.file, cluster_gpus=8_192, gpus_per_node=PER_NODE)
    if case.file != PHILLY:
        trace = with_tenants(trace, TENANTS)
    trace = structs.replace(trace, queues=due(trace))
    trace = structs.replace(trace, jobs=trace.jobs[:jobs])
    largest = max(job.replicas * job.gpus for job in trace.jobs)
    nodes = math.ceil(max(inside(trace.jobs, 1.0) / LOAD, 2 * largest) / PER_NODE)
    close, far = 0.01, 1.0  # the rhythm at which the load is met, by halving: closer together is more load
    for _ in range(20):
        middle = (close + far) / 2
        close, far = (middle, far) if inside(trace.jobs, middle) > LOAD * nodes * PER_NODE else (close, middle)
    start = trace.jobs[0].submit_ms
    moved = (structs.replace(job, submit_ms=round((job.submit_ms - start) * far)) for job in trace.jobs)
    trace = structs.replace(trace, jobs=tuple(moved))
    return trace, structs.replace(setup_on(trace, uniform_nodes(nodes, PER_NODE)), interval_ms=ROUND_MS)


def due(trace: Trace) -> tuple[Queue, ...]:
    """The tenants, each with a weight by the GPU time that it takes in the whole trace."""
    taken: dict[str, float] = {}
    for job in trace.jobs:
        taken[job.queue] = taken.get(job.queue, 0.0) + job.replicas * job.gpus * job.work.ideal_ms()
    whole = sum(taken.values())
    return tuple(weighted_queue(name, max(round(1000 * taken[name] / whole), 1)) for name in sorted(taken))


def inside(jobs: Sequence[Job], rhythm: float) -> float:
    """GPUs in use on average from the first submission to the last, if every job started at once."""
    gpus = np.array([job.total_gpus for job in jobs])
    runs = np.array([job.work.ideal_ms() for job in jobs], dtype=np.float64)
    return filling.inside(gpus, runs, np.array([job.submit_ms for job in jobs]) * rhythm)


def play(traces: Path, jobs: int | None, run: tuple[Case, str]) -> tuple[Measured, float]:
    """What came of it, and how many seconds of a processor it took."""
    case, who = run
    trace, setup = scene(traces, case, jobs)
    scheduler = Brain(Engine()) if who == OURS else peer(who).make()
    before = time.process_time()
    record = Clockwork(setup, trace.jobs).play(scheduler)
    return measure(record, trace.jobs, setup), time.process_time() - before


def kept(folder: Path | None, traces: Path, jobs: int | None, run: tuple[Case, str]) -> tuple[Measured, float]:
    """Played once: what lies in the folder is not played again."""
    if folder is None:
        return play(traces, jobs, run)
    file = folder / f"{run[0].name.replace(' ', '-')}-{run[1]}-{jobs or 'all'}.pickle"
    if file.is_file():
        before: tuple[Measured, float] = pickle.loads(file.read_bytes())
        return before
    got = play(traces, jobs, run)
    folder.mkdir(parents=True, exist_ok=True)
    file.write_bytes(pickle.dumps(got))
    return got


def row(case: Case, who: str, found: Measured, seconds: float) -> dict[str, Any]:
    metrics, (average, wait, p99) = found.metrics, _figures(found)
    return {
        "case": case.name,
        "who": who,
        "jobs": metrics.jobs,
        "average_s": round(average),
        "wait_s": round(wait),
        "p99_s": round(p99),
        "longest_wait_s": round(metrics.longest_wait_ms / 1000),
        "preemptions": metrics.preemptions,
        "decisions": metrics.decisions,
        "simulated_in_s": round(seconds, 1),
    }


def _figures(found: Measured) -> tuple[float, float, float]:
    """Average completion time, average time without resources and 99th percentile of completion times, in seconds."""
    spreads = (found.metrics.jct_ms.average, found.metrics.wait_ms.average, found.metrics.jct_ms.p99)
    average, wait, p99 = ((value or 0.0) / 1000 for value in spreads)
    return average, wait, p99


def main(arguments: list[str] | None = None) -> int:
    parser = measuring.parser("tenants", __doc__)
    parser.add_argument("--traces", type=Path, required=True, help="the folder with philly/ and itp2021/")
    parser.add_argument("--jobs", type=int, help="of each case; all, if not given")
    parser.add_argument("--only", nargs="+", default=[], metavar="CASE", help="cases whose name begins so")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="a folder of runs: what it has is not played again")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    chosen = parser.parse_args(arguments)
    if not (chosen.traces / PHILLY).is_file() or not (chosen.traces / "itp2021").is_dir():
        print(f"{chosen.traces} has no {PHILLY} or no itp2021/: give the folder with --traces", file=sys.stderr)
        return 2
    wanted = [c for c in cases(chosen.traces) if not chosen.only or c.name.startswith(tuple(chosen.only))]
    runs = [(case, who) for case in wanted for who in (*NATIVE, FAIR, OURS)]
    found: dict[tuple[str, str], Measured] = {}
    rows = []
    with ProcessPoolExecutor(chosen.processes) as pool:
        longest_first = sorted(runs, key=lambda run: run[1] != OURS)
        under_way = {pool.submit(kept, chosen.keep, chosen.traces, chosen.jobs, run): run for run in longest_first}
        for done in as_completed(under_way):
            (case, who), (got, seconds) = under_way[done], done.result()
            found[case.name, who] = got
            rows.append(row(case, who, got, seconds))
            print(_line(rows[-1]), flush=True)
    in_order = {(case.name, who): number for number, (case, who) in enumerate(runs)}
    rows.sort(key=lambda told: in_order[told["case"], told["who"]])
    best = [min((found[c.name, who] for who in NATIVE), key=lambda m: _figures(m)[0]) for c in wanted]
    ours = [found[c.name, OURS] for c in wanted]
    each = [_against(case, *pair) for case, *pair in zip(wanted, best, ours, strict=True)]
    whole = compare(best, ours)
    summary = _summary(each, whole)
    print("\n".join(["", *(_told(one) for one in each), "", summary["says"]]))
    if chosen.jobs is None and not chosen.only:
        content = {"what": "seconds; jobs at load 0.9", "runs": rows, "against the best native row": each}
        measuring.write("tenants", {**content, "summary": summary})
    return 0 if summary["met"] else 1


def _against(case: Case, native: Measured, ours: Measured) -> dict[str, Any]:
    ratios = [mine / max(theirs, 0.001) for mine, theirs in zip(_figures(ours), _figures(native), strict=True)]
    starved = compare(native, ours).starvation
    return {
        "case": case.name,
        "best native": native.name,
        **{name: round(ratio, 3) for name, ratio in zip(("average", "wait", "p99"), ratios, strict=True)},
        "starved": starved.unfinished + starved.waited,
    }


def _summary(each: Sequence[dict[str, Any]], whole: Comparison) -> dict[str, Any]:
    """Means over cases of ratios, and the interval of the paired difference over cases."""
    average, wait, p99 = (sum(one[key] for one in each) / len(each) for key in ("average", "wait", "p99"))
    met = average <= AT_MOST and wait <= AT_MOST and p99 <= TAIL and whole.starvation.nobody
    low, high = (round((bound or 0.0) / 1000) for bound in (whole.jct_ms.low, whole.jct_ms.high))
    says = (
        f"against the best native row, mean of {len(each)} cases: average completion {average:.3f} x, "
        f"waiting {wait:.3f} x (at most {AT_MOST}), p99 {p99:.3f} x (at most {TAIL:g}), "
        f"starved {sum(one['starved'] for one in each)}; "
        f"completion {low:,} to {high:,} s (95 %): {'met' if met else 'MISSED'}"
    )
    ratios = {"average": round(average, 3), "wait": round(wait, 3), "p99": round(p99, 3)}
    return {**ratios, "completion_s_95": [low, high], "met": met, "says": says}


def _line(told: dict[str, Any]) -> str:
    return (
        f"{told['case']:<9} {told['who']:<14} {told['jobs']:>6,} jobs  average {told['average_s']:>8,} s  "
        f"wait {told['wait_s']:>8,} s  p99 {told['p99_s']:>9,} s  longest wait {told['longest_wait_s']:>9,} s  "
        f"{told['preemptions']:>6,} preemptions  {told['simulated_in_s']:>8,.1f} s"
    )


def _told(one: dict[str, Any]) -> str:
    return (
        f"{one['case']:<9} against {one['best native']:<14} average {one['average']:.3f} x  wait {one['wait']:.3f} x  "
        f"p99 {one['p99']:.3f} x  starved {one['starved']}"
    )


if __name__ == "__main__":
    sys.exit(main())
