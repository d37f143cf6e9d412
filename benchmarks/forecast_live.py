"""Forecasts of a real `optimus up` beside what came: real processes of seconds on virtual GPUs, a stream with a seed.

At many moments the copy of the scheduler's state is fetched that `optimus explain` works on. When all is over, whoever
waited at one of them is forecast from that copy alone, as explain does it, and judged by the starts in the journal.
Nothing is forecast while jobs run, so that the cores are theirs.

    silent      jobs say nothing: run times are those of their queue so far
    nobody      the very copies of silent, as if nobody else came: what newcomers of a young journal are worth
    learned     the very forecasts of silent, each as wide as what came of those before it asks for
    declared    each says how long it will run, off by a factor that is drawn (log-normal, 0.3)
    twice       the very copies of declared, with an error drawn anew for newcomers: what it is worth that they do not
    steps       each counts its steps (`optimus.steps`)
    unheard     the very copies of steps, without what the jobs said: what listening is worth

    python -m benchmarks.forecast_live                          # some ten minutes where nobody else computes
    python -m benchmarks.forecast_live --seconds 30 --samples 5 # a look; writes nothing
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: small problems, many threads would only spin

import random
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, structs

from benchmarks import measuring
from benchmarks.machine import Machine
from optimus.drivers.local.journaling import FOLDER
from optimus.drivers.sim.forecasting import Asked, Judged
from optimus.drivers.sim.forecasting.checking import read_starts
from optimus.drivers.sim.forecasting.foreseeing import foresee
from optimus.drivers.sim.forecasting.judging import coverage, judge, widened
from optimus.drivers.sim.present import of_copy
from optimus.engine.copying import EngineCopy, read_copy
from optimus.engine.journal_past import past_of

SECONDS = 120
MOMENT_S = 12.0
SAMPLES = 9
"""The fewest of which the fifth is a P50 and the last a P90."""
WARM_UP_S = 20.0
"""Nothing has ended yet, and nobody could forecast."""
GPUS = (1, 1, 1, 2, 2, 4)
MEDIAN_S, SIGMA = 8.0, 0.7
LOAD = 1.3
NODES, EACH = 2, 4
DECLARED_SIGMA = 0.3
SEEDS = (1,)
CLUSTER = f"""
cluster: [{{name: node, count: {NODES}, gpus: {EACH}}}]
queues: [{{name: vision, gpu: {{guarantee: 4}}}}, {{name: speech, gpu: {{guarantee: 4}}}}]
"""
STEP_S = 0.25
STEPS = f"import optimus, sys, time\nfor _ in optimus.steps(int(sys.argv[1])):\n    time.sleep({STEP_S})\n"


class Planned(Struct, frozen=True, kw_only=True):
    name: str
    queue: str
    at_s: float
    gpus: int
    run_s: float
    said_s: float


def stream(seed: int, seconds: float) -> list[Planned]:
    """Of so much work in `seconds` that it is 1.3 times what the machine can do."""
    luck = random.Random(seed)
    jobs: list[Planned] = []
    load = 0.0
    while load < LOAD * NODES * EACH * seconds:
        run_s = min(max(luck.lognormvariate(0.0, SIGMA) * MEDIAN_S, 1.0), 60.0)
        gpus = luck.choice(GPUS)
        said = run_s * luck.lognormvariate(0.0, DECLARED_SIGMA)
        queue, at_s = luck.choice(("vision", "speech")), luck.uniform(0.0, seconds)
        jobs.append(Planned(name=f"job-{len(jobs)}", queue=queue, at_s=at_s, gpus=gpus, run_s=run_s, said_s=said))
        load += run_s * gpus
    return sorted(jobs, key=lambda job: job.at_s)


def document(job: Planned, kind: str) -> bytes:
    command = ["sleep", f"{job.run_s:.2f}"]
    if kind == "steps":
        command = [sys.executable, "-c", STEPS, str(max(round(job.run_s / STEP_S), 2))]
    spec: dict[str, Any] = {"command": command, "queue": job.queue, "gpu": job.gpus}
    if kind == "declared":
        spec["expectedDurationSeconds"] = max(round(job.said_s), 1)
    return msgspec.json.encode({"kind": "UnifiedJob", "metadata": {"name": job.name}, "spec": spec})


def play(kind: str, seed: int, seconds: float, folder: Path) -> list[EngineCopy]:
    """The copies, in order; the journal stays in the folder."""
    cluster = folder / "cluster.yaml"
    cluster.write_text(CLUSTER)
    machine = Machine(folder / "store", "--cluster", str(cluster), size=())
    copies = []
    try:
        waiting = stream(seed, seconds)
        begun, next_s = time.monotonic(), WARM_UP_S
        while waiting or any(not job["final"] for job in machine.api.get("/v1/jobs")):
            now_s = time.monotonic() - begun
            while waiting and waiting[0].at_s <= now_s:
                machine.api.post("/v1/submit", document(waiting.pop(0), kind))
            if next_s <= now_s <= seconds:
                copies.append(read_copy(machine.api.raw("/v1/state")))
                next_s = now_s + MOMENT_S
            time.sleep(0.1)
    finally:
        machine.stop()
    return copies


def judged(
    copies: Sequence[EngineCopy],
    journal: Path,
    samples: int,
    *,
    heard: bool = True,
    newcomers: bool = True,
    twice: bool = False,
) -> list[Judged]:
    until_ms = time.time_ns() // 1_000_000
    starts = read_starts(journal, until_ms).starts
    asked = []
    for copied in copies:
        present = of_copy(copied if heard else structs.replace(copied, remaining={}), "live")
        known = past_of(journal, copied.now_ms)
        past = known.usable() if newcomers else known.without_arrivals()
        past = structs.replace(past, ran=()) if twice else past
        asked.append(Asked(present=present, samples=samples, past=past))
    with ProcessPoolExecutor() as pool:
        return [one for told in pool.map(foresee, asked) for one in judge(told, starts, until_ms)]


def main(arguments: list[str] | None = None) -> int:
    parser = measuring.parser("forecast_live", __doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--samples", type=int, default=SAMPLES)
    chosen = parser.parse_args(arguments)
    about = measuring.machine()
    found: dict[str, list[Judged]] = {}
    for kind in ("silent", "declared", "steps"):
        for seed in SEEDS:
            with tempfile.TemporaryDirectory() as folder:
                copies = play(kind, seed, chosen.seconds, Path(folder))
                journal = Path(folder) / "store" / FOLDER
                found.setdefault(kind, []).extend(judged(copies, journal, chosen.samples))
                if kind == "silent":
                    found.setdefault("nobody", []).extend(judged(copies, journal, chosen.samples, newcomers=False))
                    found.setdefault("learned", []).extend(widened(found["silent"]))
                if kind == "declared":
                    found.setdefault("twice", []).extend(judged(copies, journal, chosen.samples, twice=True))
                if kind == "steps":
                    found.setdefault("unheard", []).extend(judged(copies, journal, chosen.samples, heard=False))
    rows = {kind: msgspec.to_builtins(coverage(those)) for kind, those in found.items()}
    for kind, told in rows.items():
        p50, p90 = told["p50"], told["p90"]
        print(
            f"{kind:9} {p50['forecasts']:4} forecasts, {told['moments']} moments: "
            f"by the P50 {p50['part']:.0%} ({p50['low']:.0%} to {p50['high']:.0%}), "
            f"by the P90 {p90['part']:.0%} ({p90['low']:.0%} to {p90['high']:.0%}); "
            f"waits of {told['medianWaitMs'] / 1000:.1f} s, P50 {told['medianP50Ms'] / 1000:.1f} s, "
            f"P90 {told['medianP90Ms'] / 1000:.1f} s, off by {told['medianErrorMs'] / 1000:.1f} s"
        )
    if chosen.seconds == SECONDS and chosen.samples == SAMPLES:
        measuring.write("forecast_live", {"machine": about, "rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
