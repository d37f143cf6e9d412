"""The Gavel and Shockwave set-ups: first what others obtain there, then ours beside them on mixed GPU models.

Reproduced are Gavel's least attained service and largest sum of throughputs, and for information finish-time fairness,
against averages that its simulator gives for the same lists (`gavel_reference.json`: figures only, with their origin).
Ours is the default policy inside the real engine, with nothing known of run times at the start, on the lists with three
models of GPUs; jobs declare how fast they are on which model, and everybody is told the same.

    python -m benchmarks.gavel --traces FOLDER            # FOLDER holds gavel/ and shockwave/
    python -m benchmarks.gavel --traces FOLDER --lists debug continuous --restart 30

`--restart` lets everybody pay so many seconds for stopping a job and starting it again; the artifact counts none, so
nothing is reproduced then. Exits 1 if a target is missed, 2 if data is. The data is not part of this repository:
`scheduler` of github.com/stanford-futuredata/gavel and github.com/uw-mad-dash/shockwave.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: small problems, many threads would only spin

import json
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import measuring
from benchmarks.gavel_lists import CASES, MIXED, loaded
from optimus.drivers.sim.brain import Brain
from optimus.drivers.sim.clockwork import Clockwork, Scheduler
from optimus.drivers.sim.peers.gavel import gavel_ftf, gavel_las, gavel_las_filled, gavel_sum
from optimus.drivers.sim.traces.trace import TraceError
from optimus.engine.engine import Engine

REFERENCE = Path(__file__).parent / "gavel_reference.json"
WITHIN, TARGET, TAIL = 0.03, 0.95, 1.05
"""Of the reference; of Gavel's least attained service on average; and its 99th percentile."""
REPRODUCED = ("las", "sum")
SMALL = ("evaluation", "debug", "medium")
"""Finish-time fairness takes its time; it is looked at on these."""
WHO: dict[str, Callable[[], Scheduler]] = {
    "las": gavel_las,
    "sum": gavel_sum,
    "ftf": gavel_ftf,
    "las-filled": gavel_las_filled,
    "ours": lambda: Brain(Engine()),
}
Row = dict[str, float]
Found = dict[tuple[str, str], Row]


def measure(traces: Path, restart_ms: int | None, case: tuple[str, str]) -> Row:
    name, who = case
    with tempfile.TemporaryDirectory() as scratch:
        setup, jobs = loaded(traces, name, Path(scratch), restart_ms)
    record = Clockwork(setup, jobs).play(WHO[who]())
    times = np.array([job.end_ms - job.submit_ms for job in record.jobs if job.end_ms is not None]) / 1000
    return {
        "jobs": len(times),
        "average_s": round(float(times.mean()), 1),
        "p99_s": round(float(np.percentile(times, 99)), 1),
        "longest_s": float(times.max()),
        "moves": sum(job.preemptions + job.resizes for job in record.jobs),
    }


def cases_of(lists: list[str], *, reproduce: bool) -> list[tuple[str, str]]:
    found = []
    for name in lists:
        who = ["las"] + (["sum"] if reproduce else []) + (["ftf"] if reproduce and name in SMALL else [])
        found += [(name, w) for w in (*who, *(("las-filled", "ours") if name in MIXED else ()))]
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = measuring.parser("gavel", __doc__)
    parser.add_argument("--traces", type=Path, required=True, help="the folder with gavel/ and shockwave/")
    parser.add_argument("--lists", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--restart", type=float, help="seconds that everybody pays for a restart")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    chosen = parser.parse_args(arguments)
    reference: dict[str, dict[str, float]] = json.loads(REFERENCE.read_text())["average_s"]
    reproduce = chosen.restart is None
    restart_ms = None if reproduce else round(chosen.restart * 1000)
    cases = cases_of(chosen.lists, reproduce=reproduce)
    found: Found = {}
    try:
        with tempfile.TemporaryDirectory() as scratch:
            for name in chosen.lists:
                loaded(chosen.traces, name, Path(scratch))
    except TraceError as missing:
        print(missing, file=sys.stderr)
        return 2
    with ProcessPoolExecutor(chosen.processes) as pool:
        for case, row in zip(cases, pool.map(partial(measure, chosen.traces, restart_ms), cases), strict=True):
            found[case] = row
            print(_line(case, row, found, reference if reproduce else {}), flush=True)
    summary = (reproduced(found, reference) if reproduce else []) + beside_las(found)
    for told in summary:
        print(told["says"])
    measuring.write(
        "gavel" if reproduce else f"gavel_restart_{chosen.restart:g}s",
        {
            "what": "average completion time in seconds; reference: the artifacts' simulators on the same lists",
            "cases": [
                {
                    "list": name,
                    "who": who,
                    **row,
                    "reference_s": reference.get(name, {}).get(who) if reproduce else None,
                }
                for (name, who), row in found.items()
            ],
            "summary": summary,
        },
    )
    return 0 if all(told["met"] for told in summary) else 1


def _line(case: tuple[str, str], row: Row, found: Found, reference: dict[str, dict[str, float]]) -> str:
    name, who = case
    told = f"{name:<23} {who:<10} {row['average_s']:>12,.1f} s  p99 {row['p99_s']:>12,.1f} s"
    if who in reference.get(name, {}):
        return f"{told}  {row['average_s'] / reference[name][who] - 1:+7.2%} against the reference"
    return f"{told}  {row['average_s'] / found[name, 'las']['average_s']:7.3f} x least attained service"


def reproduced(found: Found, reference: dict[str, dict[str, float]]) -> list[dict[str, Any]]:
    rows = []
    for who in REPRODUCED:
        off = {name: row["average_s"] / reference[name][who] - 1 for (name, by), row in found.items() if by == who}
        worst = max(off, key=lambda name: abs(off[name]))
        says = f"{who}: within {abs(off[worst]):.2%} of the reference on {len(off)} lists, {worst} is furthest "
        says += f"(asked: {WITHIN:.0%})"
        rows.append({"who": who, "worst": round(off[worst], 4), "met": abs(off[worst]) <= WITHIN, "says": says})
    return rows


def beside_las(found: Found) -> list[dict[str, Any]]:
    """Ours against Gavel on mixed models; lists count alike, whatever their times."""
    names = [name for name, who in found if who == "ours"]
    if not names:
        return []
    ratio = {
        (key, who): _mean_ratio([found[name, "ours"][key] / found[name, who][key] for name in names])
        for key in ("average_s", "p99_s")
        for who in ("las", "las-filled")
    }
    average, tail = ratio["average_s", "las"], ratio["p99_s", "las"]
    says = (
        f"ours: {average:.3f} x least attained service on {len(names)} mixed lists (asked: {TARGET}), p99 {tail:.3f} x "
        f"(wanted: {TAIL}); {ratio['average_s', 'las-filled']:.3f} x when its shares are filled, p99 "
        f"{ratio['p99_s', 'las-filled']:.3f} x"
    )
    told = {f"{key}_against_{who}": round(value, 4) for (key, who), value in ratio.items()}
    return [{"who": "ours", **told, "met": average <= TARGET, "says": says}]


def _mean_ratio(ratios: list[float]) -> float:
    return float(np.exp(np.log(ratios).mean()))


if __name__ == "__main__":
    sys.exit(main())
