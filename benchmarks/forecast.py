"""Forecasts beside what came: how often work starts by the P50 and by the P90 that it was told.

A trace is played under the default policy. At many moments the state is taken, and the waiting work is forecast from
nothing but that state and what was seen until then. Counted is how many forecasts were kept: near 50 % and 90 % is what
they claim. Moments lie in the first half of a trace, so that people go on coming while the forecasts come true.

    nobody     the quantiles as they are drawn, if nobody else comes
    newcomers  others come as often as in the day before, which is what `optimus forecast` does on a journal
    widened    either of them, each forecast as wide as earlier ones of the same trace make it; only outcomes that were
               known at the moment are used
    waits      no simulation, the rule of thumb to beat: work of this queue that had waited as long as this one waited
               so much longer (Kaplan-Meier, of everybody who came before the moment)

Public traces keep their own clock, so that their days are days: some hundred jobs from the middle of each list, on as
many GPUs as make the load 1. Of Philly the largest virtual clusters are taken, each as a cluster of its own.

    python -m benchmarks.forecast                                   # synthetic, about half an hour on two cores
    python -m benchmarks.forecast --seeds 0 --philly FOLDER --itp FOLDER --moments 8   # docs/reference/traces.md
    python -m benchmarks.forecast --moments 6 --samples 5 --seeds 1 # a minute, to see that it works
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: small problems, many threads would only spin

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from math import ceil
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct, structs

from benchmarks import measuring
from optimus.drivers.sim.brain import Brain
from optimus.drivers.sim.clockwork import Clockwork, News
from optimus.drivers.sim.forecasting import Asked, Forecast, Past, Quantiles
from optimus.drivers.sim.forecasting.arrivals import gathered
from optimus.drivers.sim.forecasting.foreseeing import HORIZON_MS, foresee
from optimus.drivers.sim.forecasting.judging import coverage, judge, widened
from optimus.drivers.sim.forecasting.lifetimes import Lifetimes
from optimus.drivers.sim.forecasting.widening import Judged
from optimus.drivers.sim.jobs import workload_of
from optimus.drivers.sim.present import Present, of_engine
from optimus.drivers.sim.setup import uniform_nodes
from optimus.drivers.sim.traces import formats, shaping, synthetic
from optimus.drivers.sim.traces.trace import Trace, TraceError, setup_on
from optimus.engine.engine import Engine
from optimus.model.plans import Start
from optimus.model.workloads import Workload

JOBS = 1200
GPUS = 64
LOAD = 1.0
LISTS = 3
"""Of ITP the first clusters, of Philly the largest virtual ones."""
WINDOW = 400
"""Jobs of a public list, around its middle."""
WINDOW_HORIZON_MS = 2 * 86_400_000
"""Of their forecasts: they wait for hours. "Beyond" is judged as if it said this moment."""
DRAWS = 400
WARM_UP = 0.15
"""Of the time in which jobs are submitted: nothing has ended yet, and nobody could forecast."""


class Case(Struct, frozen=True, kw_only=True):
    name: str
    trace: str
    """`synthetic`, or a file."""
    queue: str = ""
    """Of the file, only those."""
    seed: int = 0
    sigma: float | None = None
    """Schedulers and forecasts are told run times with this error."""


class Snapshots(Brain):
    """The real engine, and somebody who takes the state at given moments in which something waits."""

    def __init__(self, engine: Engine, moments: Sequence[int]) -> None:
        super().__init__(engine)
        self.taken: list[tuple[Present, Past]] = []
        self.starts: dict[str, list[int]] = {}
        self._moments = list(reversed(moments))

    def decide(self, clock: Clockwork, news: News) -> None:
        super().decide(clock, news)
        assert self.plan is not None
        for action in self.plan.actions:
            if isinstance(action, Start):
                self.starts.setdefault(action.workload, []).append(clock.now_ms)
        if self._moments and clock.now_ms >= self._moments[-1] and len(clock.active) > len(clock.running):
            while self._moments and clock.now_ms >= self._moments[-1]:
                self._moments.pop()
            self.taken.append((of_engine(self.engine, clock.now_ms), self._past(clock)))

    def _past(self, clock: Clockwork) -> Past:
        came = [run for run in clock.runs if run.arrived]
        over = [run for run in came if run.record.end_ms is not None]
        errors = [run.record.run_ms / run.job.expected_ms for run in over if run.job.expected_ms]
        workloads = [workload_of(run.job) for run in came]
        return gathered(workloads, errors, begin_ms=clock.runs[0].job.submit_ms, now_ms=clock.now_ms)


def trace_of(case: Case) -> Trace:
    if case.trace == "synthetic":
        trace = synthetic.generate(synthetic.Mix(jobs=JOBS, gpus=GPUS, load=LOAD, seed=case.seed))
    else:
        trace = window_of(formats.load(case.trace), case.queue)
    return trace if case.sigma is None else shaping.with_predictions(trace, case.sigma, case.seed)


def window_of(trace: Trace, queue: str) -> Trace:
    """At its own times, on as many nodes of eight as its work fills."""
    jobs = [job for job in trace.jobs if not queue or job.queue == queue]
    middle = max(len(jobs) // 2 - WINDOW // 2, 0)
    chosen = tuple(jobs[middle : middle + WINDOW])
    gpus = max(shaping.offered_load(chosen, 1) / LOAD, *(job.total_gpus for job in chosen))
    return structs.replace(trace, jobs=chosen, setup=setup_on(trace, uniform_nodes(ceil(gpus / 8), 8)))


def measure(case: Case, moments: int, samples: int) -> dict[str, list[Judged]]:
    trace = trace_of(case)
    assert trace.setup is not None
    first, last = trace.jobs[0].submit_ms, trace.jobs[-1].submit_ms
    begin = first + round((last - first) * WARM_UP)
    half = first + (last - first) // 2
    planned = [begin + (half - begin) * i // moments for i in range(moments)]
    brain = Snapshots(Engine(), planned)
    record = Clockwork(trace.setup, trace.jobs).play(brain)
    found: dict[str, list[Judged]] = {"nobody": [], "newcomers": []}
    waits: list[Judged] = []
    came = [workload_of(job) for job in trace.jobs]
    for present, past in brain.taken:
        told: Forecast | None = None
        for kind, judged in found.items():
            known = past.usable() if kind == "newcomers" else Past(errors=past.errors)
            horizon_ms = HORIZON_MS if case.trace == "synthetic" else WINDOW_HORIZON_MS
            told = foresee(Asked(present=present, samples=samples, seed=case.seed, past=known, horizon_ms=horizon_ms))
            judged.extend(judge(told, brain.starts, record.end_ms))
        assert told is not None
        waits += judge(by_waits(told, came, brain.starts), brain.starts, record.end_ms)
    wider = {f"{kind}, widened": widened(judged) for kind, judged in found.items()}
    return found | wider | {"waits": waits}


def by_waits(told: Forecast, came: Sequence[Workload], starts: Mapping[str, Sequence[int]]) -> Forecast:
    """The same question, answered from how long others of its queue have waited."""
    now_ms = told.now_ms
    started: dict[str, list[float]] = {}
    waiting: dict[str, list[float]] = {}
    for one in came:
        first = starts.get(one.id, [now_ms + 1])[0]
        if one.submitted_ms <= now_ms:
            group, until = (started, first) if first <= now_ms else (waiting, now_ms)
            group.setdefault(one.queue, []).append(float(until - one.submitted_ms))
    quantiles: dict[str, Quantiles] = {}
    for one in (each.workload for each in told.waiting if each.workload.id in told.quantiles):
        waits = Lifetimes(started.get(one.queue, ()), waiting.get(one.queue, ()))
        lot = np.random.default_rng(len(quantiles))
        waited = float(max(now_ms - one.submitted_ms, 1))
        p50, p90 = np.percentile([waits.draw(lot, waited) - waited for _ in range(DRAWS)], (50, 90))
        quantiles[one.id] = Quantiles(
            p50_ms=now_ms + round(p50), p90_ms=now_ms + round(p90), samples=DRAWS, started=DRAWS
        )
    return structs.replace(told, quantiles=quantiles)


def cases_of(seeds: int, philly: Path | None, itp: Path | None) -> Iterator[Case]:
    for seed in range(1, seeds + 1):
        yield Case(name="synthetic, nothing told", trace="synthetic", seed=seed)
    for seed in range(1, seeds + 1):
        yield Case(name="synthetic, told with error 0.5", trace="synthetic", seed=seed, sigma=0.5)
    for file in lists_of("Philly", philly)[:1]:
        sizes = Counter(job.queue for job in formats.load(file).jobs)
        for queue, _ in sizes.most_common(LISTS):
            yield Case(name="Philly, nothing told", trace=str(file), queue=queue)
    for file in lists_of("ITP", itp)[:LISTS]:
        yield Case(name="ITP, nothing told", trace=str(file))


def lists_of(name: str, folder: Path | None) -> list[Path]:
    files = sorted(folder.glob("*.csv*")) if folder is not None else []
    if folder is not None and not files:
        raise TraceError(f"{folder}: no list of jobs in it; name the folder of the {name} data")
    return files


def main(arguments: list[str] | None = None) -> int:
    parser = measuring.parser("forecast", __doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--moments", type=int, default=20, help="of each trace")
    parser.add_argument("--samples", type=int, default=12)
    parser.add_argument("--philly", type=Path)
    parser.add_argument("--itp", type=Path)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--dry", action="store_true", help="print, and leave the result file alone")
    chosen = parser.parse_args(arguments)
    try:
        cases = list(cases_of(chosen.seeds, chosen.philly, chosen.itp))
    except TraceError as error:
        print(error, file=sys.stderr)
        return 2
    judged: dict[tuple[str, str], list[tuple[int, Judged]]] = {}
    count = len(cases)
    settings = {"load": LOAD, "moments": chosen.moments, "samples": chosen.samples}
    with ProcessPoolExecutor(chosen.processes) as pool:
        played = pool.map(measure, cases, [chosen.moments] * count, [chosen.samples] * count)
        for number, (case, found) in enumerate(zip(cases, played, strict=True)):
            print(f"{number + 1} of {count}: {case.name}, seed {case.seed}", file=sys.stderr, flush=True)
            for kind, rows in found.items():
                judged.setdefault((case.name, kind), []).extend((number, row) for row in rows)
            if not chosen.dry:
                _keep([_row(name, kind, pairs) | {"settings": settings} for (name, kind), pairs in judged.items()])
    for (name, kind), pairs in judged.items():
        print(_line(_row(name, kind, pairs)))
    return 0


def _keep(rows: list[dict[str, Any]]) -> None:
    """Beside rows of other traces that are there: each kind of trace can be measured by itself."""
    path = measuring.RESULTS / "forecast.json"
    before = json.loads(path.read_text()).get("rows", []) if path.is_file() else []
    new = {(row["trace"], row["kind"]) for row in rows}
    kept = [row for row in before if (row["trace"], row["kind"]) not in new]
    measuring.write("forecast", {"rows": sorted([*kept, *rows], key=lambda row: (row["trace"], row["kind"]))})


def _row(trace: str, kind: str, found: list[tuple[int, Judged]]) -> dict[str, Any]:
    shared: dict[tuple[int, int], int] = {}
    groups = [shared.setdefault((number, one.at_ms), len(shared)) for number, one in found]
    told = msgspec.to_builtins(coverage([one for _, one in found], groups))
    return {"trace": trace, "kind": kind, "traces": len({number for number, _ in found}), **told}


def _line(row: dict[str, Any]) -> str:
    p50, p90 = row["p50"], row["p90"]
    return (
        f"{row['trace']:32} {row['kind']:18} {p50['forecasts']:5} forecasts at {row['moments']:4} moments   "
        f"P50 {_percent(p50)}   P90 {_percent(p90)}   off by {(row['medianErrorMs'] or 0) / 60_000:.0f} min   "
        f"loss {(row['lossMs'] or 0) / 60_000:.0f} min"
    )


def _percent(kept: dict[str, Any]) -> str:
    if kept["part"] is None:
        return "-"
    return f"{kept['part']:.1%} ({kept['low']:.0%} to {kept['high']:.0%})"


if __name__ == "__main__":
    sys.exit(main())
