"""The Pollux set-up: first the published averages of others, then ours beside them on the same jobs.

16 nodes of four T4 GPUs, decisions every 60 s, 30 s for every start and change, 160 jobs per workload at load 1.0. The
published table is `published_avg_jct.json` beside the data. Reproduced are Tiresias (rigid jobs), Optimus (oracle,
strong scaling) and Pollux (adaptive; its objective with an exact solver instead of a genetic search).

Ours is the default policy inside the real engine. On the rigid jobs, against Tiresias: with nothing known at the start
(online), and with the run times of the other workloads under Tiresias (history). On the adaptive jobs, against Pollux
with its exact solver: with nothing known at the start (elastic); and without any history, where jobs have no family:
under the built-in `least-attained-service`, which needs no run times (elastic-blind), and under the default all the
same (elastic-unnamed).

    python -m benchmarks.pollux --traces FOLDER            # FOLDER holds pollux/; about ten minutes
    python -m benchmarks.pollux --traces FOLDER --loads 0.5 1.0 1.5 2.0

The data is not part of this repository: `simulator` of github.com/petuum/adaptdl, branch osdi21-artifact.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: small problems, many threads would only spin

import json
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from msgspec import structs

from benchmarks import measuring
from optimus.drivers.sim.brain import Brain
from optimus.drivers.sim.clockwork import Clockwork, Scheduler
from optimus.drivers.sim.peers.optimus_eurosys import optimus_eurosys
from optimus.drivers.sim.peers.pollux import pollux
from optimus.drivers.sim.peers.tiresias import tiresias
from optimus.drivers.sim.records import Record
from optimus.drivers.sim.setup import Setup, uniform_nodes
from optimus.drivers.sim.traces.pollux import Mode, load_jobs
from optimus.engine.engine import Engine
from optimus.model.observations import RunRemembered
from optimus.model.queues import Queue

WORKLOADS = (1, 2, 3, 4)
ROUND_MS = 60_000
QUEUE = "default"


class Peer(NamedTuple):
    make: Callable[[], Scheduler]
    mode: Mode
    within: float
    """Of the published average."""


PEERS = {
    "tiresias": Peer(tiresias, Mode.RIGID, 0.01),
    "optimus": Peer(optimus_eurosys, Mode.SCALING, 0.03),
    "pollux": Peer(pollux, Mode.ADAPTIVE, 0.03),
}
TARGETS = {"history": 0.80, "online": 0.86}
"""Average completion time against Tiresias at load 1.0."""
ELASTIC_TARGETS = {"elastic": 0.96, "elastic-blind": 1.00, "elastic-unnamed": 1.00}
"""Average completion time against Pollux at load 1.0."""
TAIL = 1.05


class Rival(NamedTuple):
    """Whom a row of ours is compared with."""

    name: str
    target: float


RIVALS = {who: Rival("tiresias", target) for who, target in TARGETS.items()} | {
    who: Rival("pollux", target) for who, target in ELASTIC_TARGETS.items()
}


def play(traces: Path, load: str, workload: int, mode: Mode, scheduler: Scheduler, *, families: bool = True) -> Record:
    jobs = load_jobs(traces / f"workloads_load{load}" / f"workload-{workload}.csv", traces / "apps_t4", mode)
    if not families:
        jobs = [structs.replace(job, family="") for job in jobs]
    queues = (Queue(name=QUEUE),)
    setup = Setup(nodes=uniform_nodes(16, 4, model="t4"), queues=queues, interval_ms=ROUND_MS, tick_ms=ROUND_MS)
    return Clockwork(setup, jobs).play(scheduler)


def ours(traces: Path, load: str, workload: int, *, history: bool) -> Record:
    engine = Engine()
    if history:
        for other in WORKLOADS:
            if other != workload:
                record = play(traces, "1.0", other, Mode.RIGID, tiresias())
                runs = [RunRemembered(QUEUE, job.run_ms, job.name.rpartition("-")[0]) for job in record.jobs]
                engine.observe(runs, 0)
    return play(traces, load, workload, Mode.RIGID, Brain(engine))


def ours_elastic(traces: Path, load: str, workload: int, who: str) -> Record:
    policy = "least-attained-service" if who == "elastic-blind" else "default"
    families = who == "elastic"
    return play(traces, load, workload, Mode.ADAPTIVE, Brain(Engine(policy=policy)), families=families)


def measure(traces: Path, case: tuple[str, str, int]) -> dict[str, float]:
    who, load, workload = case
    if who in PEERS:
        record = play(traces, load, workload, PEERS[who].mode, PEERS[who].make())
    elif who in ELASTIC_TARGETS:
        record = ours_elastic(traces, load, workload, who)
    else:
        record = ours(traces, load, workload, history=who == "history")
    times = np.array([job.end_ms - job.submit_ms for job in record.jobs if job.end_ms is not None]) / 1000
    return {
        "average_s": round(float(times.mean()), 3),
        "p99_s": round(float(np.percentile(times, 99)), 1),
        "longest_s": float(times.max()),
        "preemptions": sum(job.preemptions for job in record.jobs),
        "restarts": sum(job.restarts + job.resizes for job in record.jobs),
    }


def main(arguments: list[str] | None = None) -> int:
    parser = measuring.parser("pollux", __doc__)
    parser.add_argument("--traces", type=Path, required=True, help="the folder with pollux/")
    parser.add_argument("--loads", nargs="+", default=["1.0"])
    rows = [*PEERS, *RIVALS]
    parser.add_argument("--who", nargs="+", default=rows, choices=rows, help="only these; the other results are kept")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    chosen = parser.parse_args(arguments)
    traces = measuring.folder_of(chosen.traces, "pollux")
    table = traces / "published_avg_jct.json"
    if not table.is_file():
        print(f"{table} is missing: give the folder of the Pollux data with --traces", file=sys.stderr)
        return 2
    published = json.loads(table.read_text())["avg_jct"]
    cases = [(who, load, w) for load in chosen.loads for who in chosen.who for w in WORKLOADS]
    found = {}
    with ProcessPoolExecutor(chosen.processes) as pool:
        for case, row in zip(cases, pool.map(partial(measure, traces), cases), strict=True):
            found[case] = row
            print(_line(case, row, published), flush=True)
    found = {**_kept(cases), **found}
    found = {case: found[case] for case in sorted(found, key=lambda case: (case[1], rows.index(case[0]), case[2]))}
    summary, met = _judge(found, sorted({load for _, load, _ in found}), published)
    for told in summary:
        print(told["says"])
    measuring.write(
        "pollux",
        {
            "what": "average completion time in seconds on the Pollux workloads; published: the artifact's own results",
            "cases": [{"who": who, "load": load, "workload": w, **row} for (who, load, w), row in found.items()],
            "summary": summary,
        },
    )
    return 0 if met else 1


def _kept(measured: list[tuple[str, str, int]]) -> dict[tuple[str, str, int], dict[str, float]]:
    """Rows of the last result that were not measured again."""
    path = measuring.RESULTS / "pollux.json"
    rows = json.loads(path.read_text())["cases"] if path.is_file() else []
    kept = {(row.pop("who"), row.pop("load"), row.pop("workload")): row for row in rows}
    return {case: row for case, row in kept.items() if case not in measured}


def _line(case: tuple[str, str, int], row: dict[str, float], published: dict[str, dict[str, dict[str, float]]]) -> str:
    who, load, workload = case
    known = published[load][f"workload-{workload}"]
    against, name = (known[who], "published") if who in PEERS else (known[RIVALS[who].name], RIVALS[who].name)
    change = row["average_s"] / against - 1
    return f"load {load}  workload {workload}  {who:<13} {row['average_s']:>10,.1f} s  {change:+8.2%} against {name}"


def _judge(
    found: dict[tuple[str, str, int], dict[str, float]],
    loads: list[str],
    published: dict[str, dict[str, dict[str, float]]],
) -> tuple[list[dict[str, object]], bool]:
    rows: list[dict[str, object]] = []
    met = True
    for load in loads:
        there = {who for who, at, _ in found if at == load}
        for who, peer in PEERS.items():
            if who not in there:
                continue
            worst = max(
                abs(found[who, load, w]["average_s"] / published[load][f"workload-{w}"][who] - 1) for w in WORKLOADS
            )
            ok = worst <= peer.within
            met &= ok or load != "1.0"
            says = f"load {load}  {who}: within {worst:.2%} of the published averages (asked: {peer.within:.0%})"
            rows.append({"load": load, "who": who, "worst": round(worst, 4), "met": ok, "says": says})
        for who, (rival, target) in RIVALS.items():
            if not {who, rival} <= there:
                continue
            ratios = {
                key: sum(found[who, load, w][key] for w in WORKLOADS)
                / sum(found[rival, load, w][key] for w in WORKLOADS)
                for key in ("average_s", "p99_s")
            }
            bound = target if load == "1.0" else 1.0
            ok = ratios["average_s"] <= bound and ratios["p99_s"] <= TAIL
            met &= ok
            says = (
                f"load {load}  ours, {who}: {ratios['average_s']:.3f} x {rival} (asked: {bound:g}), "
                f"p99 {ratios['p99_s']:.3f} x (asked: {TAIL:g})"
            )
            rows.append(
                {"load": load, "who": who, **{k: round(v, 4) for k, v in ratios.items()}, "met": ok, "says": says}
            )
    return rows, met


if __name__ == "__main__":
    sys.exit(main())
