"""How fast a month is simulated: 55,803 Philly jobs on 60 nodes of eight GPUs, on one core.

Side by side in one run: a bare heap, the clockwork under first-in-first-out, and the default policy inside the real
engine, in rounds of so many seconds. For the last, where the time goes: in the clockwork (heap, progress and records),
in taking facts in, and in deciding.

    python -m benchmarks.simulating --traces FOLDER                    # FOLDER holds philly/; some minutes
    python -m benchmarks.simulating --traces FOLDER --rounds 60 600    # rounds of a minute take an hour
    python -m benchmarks.simulating --traces FOLDER --jobs 3000        # shorter, for a look; writes nothing

The data is not part of this repository: docs/reference/traces.md says where it comes from.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: small problems, many threads would only spin

import heapq
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from msgspec import structs

from benchmarks import measuring
from benchmarks.tenants import PHILLY
from optimus.drivers.sim.brain import Brain
from optimus.drivers.sim.clockwork import Clockwork, Scheduler
from optimus.drivers.sim.measuring import measure
from optimus.drivers.sim.peers.registry import peer
from optimus.drivers.sim.setup import uniform_nodes
from optimus.drivers.sim.traces.formats import load
from optimus.drivers.sim.traces.trace import Trace, setup_on
from optimus.engine.engine import Engine

NODES, PER_NODE = 60, 8
TARGET_S = 40
ROUNDS_S = (600,)
_P = ParamSpec("_P")
_T = TypeVar("_T")


class Stopwatch:
    """Seconds of this process spent in functions, by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def around(self, name: str, function: Callable[_P, _T]) -> Callable[_P, _T]:
        def timed(*args: _P.args, **kwargs: _P.kwargs) -> _T:
            begun = time.process_time()
            try:
                return function(*args, **kwargs)
            finally:
                self.seconds[name] = self.seconds.get(name, 0.0) + time.process_time() - begun

        return timed


def heap_events_per_s(events: int) -> int:
    """What the heap alone can do: as many pushes and pops, half of them in between."""
    begun = time.process_time()
    heap: list[tuple[int, int, int, int, int]] = []
    for number in range(events // 2):
        heapq.heappush(heap, (number * 7919 % events, number, 0, number, 0))
    for number in range(events // 2):
        at = heapq.heappop(heap)[0]
        heapq.heappush(heap, (at + events, number, 1, number, 0))
    while heap:
        heapq.heappop(heap)
    return round(events / max(time.process_time() - begun, 1e-9))


def play(trace: Trace, scheduler: Scheduler, rounds_s: int) -> dict[str, Any]:
    setup = structs.replace(setup_on(trace, uniform_nodes(NODES, PER_NODE)), interval_ms=rounds_s * 1000)
    begun = time.process_time()
    record = Clockwork(setup, trace.jobs).play(scheduler)
    seconds = time.process_time() - begun
    metrics = measure(record, trace.jobs, setup).metrics
    return {
        "who": scheduler.name,
        "rounds_s": rounds_s,
        "seconds": round(seconds, 1),
        "decisions": record.decisions,
        "average_s": round((metrics.jct_ms.average or 0) / 1000),
        "preemptions": metrics.preemptions,
    }


def ours(trace: Trace, rounds_s: int) -> dict[str, Any]:
    watch, engine = Stopwatch(), Engine()
    brain = Brain(engine)
    engine.observe = watch.around("observe", engine.observe)  # type: ignore[method-assign]
    engine.decide = watch.around("decide", engine.decide)  # type: ignore[method-assign]
    brain.decide = watch.around("brain", brain.decide)  # type: ignore[method-assign]
    row = play(trace, brain, rounds_s)
    inside = watch.seconds
    return row | {
        "clockwork_s": round(row["seconds"] - inside["brain"], 1),
        "observe_s": round(inside["observe"], 1),
        "decide_s": round(inside["decide"], 1),
        "other_s": round(inside["brain"] - inside["observe"] - inside["decide"], 1),
        "ms_per_decision": round(inside["decide"] / row["decisions"] * 1000, 2),
    }


def main(arguments: list[str] | None = None) -> int:
    parser = measuring.parser("simulating", __doc__)
    parser.add_argument("--traces", type=Path, required=True, help="the folder with philly/")
    parser.add_argument("--rounds", nargs="+", type=int, default=list(ROUNDS_S), metavar="SECONDS")
    parser.add_argument("--jobs", type=int, help="the first ones; all, if not given")
    chosen = parser.parse_args(arguments)
    file = chosen.traces / PHILLY
    if not file.is_file():
        print(f"{chosen.traces} has no {PHILLY}: give the folder with --traces", file=sys.stderr)
        return 2
    trace = load(file, cluster_gpus=NODES * PER_NODE, gpus_per_node=PER_NODE)
    trace = structs.replace(trace, jobs=trace.jobs[: chosen.jobs])
    events = heap_events_per_s(2_000_000)
    print(f"a bare heap: {events:,} events a second", flush=True)
    rows = []
    for rounds_s in chosen.rounds:
        for played in (partial(play, trace, peer("fifo").make()), partial(ours, trace)):
            rows.append(played(rounds_s))
            print(_line(rows[-1]), flush=True)
    fastest = min(row["seconds"] for row in rows if "decide_s" in row)
    says = f"{len(trace.jobs):,} jobs under the default policy: {fastest:,} s (asked: {TARGET_S} s)"
    print(says)
    if chosen.jobs is None:
        content = {"machine": measuring.machine(), "jobs": len(trace.jobs), "heap_events_per_s": events}
        measuring.write("simulating", {**content, "rows": rows, "met": fastest <= TARGET_S, "says": says})
    return 0 if fastest <= TARGET_S else 1


def _line(row: dict[str, Any]) -> str:
    told = (
        f"rounds of {row['rounds_s']:>4} s  {row['who']:<10} {row['seconds']:>8,.1f} s  "
        f"{row['decisions']:>7,} decisions  average completion {row['average_s']:>8,} s"
    )
    if "decide_s" in row:
        told += (
            f"\n    clockwork {row['clockwork_s']:,} s, facts {row['observe_s']:,} s, deciding {row['decide_s']:,} s "
            f"({row['ms_per_decision']} ms each), the rest {row['other_s']:,} s"
        )
    return told


if __name__ == "__main__":
    sys.exit(main())
