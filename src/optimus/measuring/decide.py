"""How fast a cycle is: a row for each kind of work that a cycle can have.

    python -m optimus.measuring.decide ROW       one row, as JSON

Times are CPU seconds of one core. "x limit" is the ratio to writing the same plan down when its seats are already
known, measured in the same process.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import structs

from optimus.engine.engine import Engine
from optimus.measuring import decide_worlds as worlds
from optimus.measuring.timing import best_seconds, peak_memory_mib
from optimus.model.observations import Observation, SlotGone, SlotRunning, WorkloadEnded, WorkloadSeen
from optimus.model.plans import Hold, Placement, Plan, Start

MEASURED = Path(__file__).with_name("decide.json")
"""What `make bench` has found, and on which machine."""
NOW_MS = worlds.START_MS + 3_000_000
CHANGES = 1_000

ROWS: dict[str, tuple[str, float]] = {
    "empty": ("5,000 nodes x 8, 50,000 one-GPU pods waiting in gangs of 20", 1.0),
    "shapes": ("the same with 10 shapes, 3 pools, 200 queues", 2.0),
    "steady": ("4,000 nodes, 140,000 running pods: apply 1,000 changes and decide", 0.1),
    "reclaim": ("1,000 nodes full of preemptible work: reclaim for one gang of 500", 0.5),
    "consolidate": ("500 fragmented nodes: consolidate for 41 gangs of 10", 2.0),
}


def in_own_process(row: str) -> dict[str, Any]:
    """So that its memory is its own."""
    command = [sys.executable, "-m", __name__ if __name__ != "__main__" else "optimus.measuring.decide", row]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - a module of ours
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def measure(row: str) -> dict[str, Any]:
    """One row, in this process."""
    if row == "steady":
        return _steady()
    make: dict[str, Callable[[], Engine]] = {
        "empty": worlds.empty_cluster,
        "shapes": worlds.many_shapes,
        "reclaim": worlds.full_of_lent_work,
        "consolidate": worlds.fragmented,
    }
    if row.startswith("nodes-"):
        engine = worlds.empty_cluster(nodes=int(row[6:]), gangs=200)
    elif row.startswith("pending-"):
        engine = worlds.empty_cluster(nodes=2_000, gangs=int(row[8:]))
    else:
        engine = make[row]()
    plan = engine.decide(NOW_MS)
    seconds = best_seconds(lambda: engine.decide(NOW_MS))
    actions = Counter(type(action).__name__ for action in plan.actions)
    floor = best_seconds(lambda: _write_down(plan))
    return {
        "seconds": seconds,
        "times_writing_the_plan_down": round(seconds / floor, 1),
        "actions": actions,
        "complete": plan.complete,
        "peak_mib": peak_memory_mib(),
    }


def _write_down(plan: Plan) -> list[object]:
    """The limit: what it costs to make the records of the plan, its seats being known. Nobody can be faster."""
    return [
        structs.replace(a, placements=tuple(Placement(*structs.astuple(p)) for p in a.placements))
        if isinstance(a, Start | Hold)
        else structs.replace(a)
        for a in plan.actions
    ]


def _steady() -> dict[str, Any]:
    """A quarter each: pods end, their replicas go, new ones come, started ones are confirmed."""
    engine = worlds.steady_state()
    times, started = [], 0
    confirmed: list[Observation] = []
    for turn in range(8):
        now = NOW_MS + turn * 1_000
        seen = list(confirmed)
        quarter = (CHANGES - len(seen)) // 3
        for i in range(quarter):
            node = (i * 7 + turn * 3) % 4_000
            old = f"bench/pod-{node:05d}-{turn:02d}"
            new = worlds.job(f"new-{turn}-{i:04d}", f"team-{i % 20:02d}", milli=200, cpu=1_000)
            seen += [SlotGone(old, "worker", 0), WorkloadEnded(old), WorkloadSeen(new)]
        plans: list[Any] = []

        def step(now: int = now, seen: list[Observation] = seen, plans: list[Any] = plans) -> None:
            plans.append(engine.step(seen, now))

        times.append(best_seconds(step, runs=1))
        started = len(plans[0].actions)
        confirmed = [SlotRunning(action.workload, "worker", 0) for action in plans[0].actions]
    return {"seconds": min(times[1:]), "actions": {"Start": started}, "complete": True, "peak_mib": peak_memory_mib()}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measure(sys.argv[1])))
