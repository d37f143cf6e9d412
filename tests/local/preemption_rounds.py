"""One round of preemptions: what the number of the round decides, played on a real machine, and what came of it."""

from __future__ import annotations

import json
import random
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from optimus.model.reasons import Code
from tests.local import newest_first, trails, training
from tests.local.machines import Up, until
from tests.local.trails import Lost

POLICIES = {"default": "default", "newest-first": f"{newest_first.__file__}:newest_first"}
ARRIVALS = 18
RESTART_S = 1
"""What stopping and starting one of these takes."""
CAUSES = {Code.RECLAIMED, Code.PREEMPTED, Code.TURN_OVER, Code.MOVED, Code.RESIZED, Code.REPACKED}
WELL = "Succeeded"
SOURCES = Path(__file__).resolve().parents[2] / "src"
QUEUES = """
{kind: Queue, metadata: {name: open}, spec: {gpu: {guarantee: 2}, order: fifo}}
---
{kind: Queue, metadata: {name: vision}, spec: {gpu: {guarantee: 5}}}
---
{kind: Queue, metadata: {name: speech}, spec: {gpu: {guarantee: 5}}}
"""


@dataclass(frozen=True)
class Training:
    name: str
    manner: str
    replicas: tuple[int, int]
    steps: int
    every: int
    seconds: float
    grace: int
    at: float

    def spec(self, seed: int, folder: Path) -> dict[str, Any]:
        least, most = self.replicas
        words = {
            "manner": self.manner,
            "steps": self.steps,
            "every": self.every,
            "seconds": self.seconds,
            "seed": seed,
            "gang": least if least == most > 1 else 0,
        }
        options = [f"--{name}={value}" for name, value in words.items()]
        return {
            "queue": "open",
            "command": [sys.executable, training.__file__, str(folder / self.name), *options],
            "env": {"PYTHONPATH": str(SOURCES)},
            "gpu": 1,
            "replicas": {"min": least, "max": most},
            "checkpoint": {"graceSeconds": self.grace},
            "restartCostSeconds": RESTART_S,
            "restart": {"backoffLimit": 0},
        }


@dataclass(frozen=True)
class Arrival:
    """Guaranteed work, which takes back what was lent."""

    name: str
    queue: str
    replicas: int
    gpus: int
    seconds: float
    at: float

    def spec(self) -> dict[str, Any]:
        command = ["sleep", str(self.seconds)]
        return {"queue": self.queue, "command": command, "gpu": self.gpus, "replicas": self.replicas}


@dataclass
class Outcome:
    """Of one round under one policy."""

    wrong: list[str] = field(default_factory=list)
    preemptions: dict[str, int] = field(default_factory=dict)
    """By manner."""
    lost: dict[str, Lost] = field(default_factory=dict)


def draw(number: int, arrivals: int) -> tuple[list[Training], list[Arrival]]:
    """In even rounds only the elastic one saves when it is asked."""
    luck = random.Random(number)
    some = "heeds" if number % 2 else "deaf"
    kinds = [(some, (1, 1))] * 4 + [("deaf", (1, 1))] * 4
    kinds += [("slow", (1, 1)), (some, (2, 2)), ("deaf", (2, 2)), ("heeds", (1, 3))]
    luck.shuffle(kinds)
    trainings = []
    for place, (manner, replicas) in enumerate(kinds):
        seconds = round(luck.uniform(1.2, 1.5) if manner == "slow" else luck.uniform(0.08, 0.3), 2)
        steps = int(luck.uniform(18, 26) / seconds)
        every = max(int(luck.uniform(1, 6) / seconds), 1)
        grace = 4 if manner == "heeds" else 1
        trainings.append(Training(f"{manner}-{place}", manner, replicas, steps, every, seconds, grace, place * 0.3))
    coming, at = [], 4.0
    for place in range(arrivals):
        at += luck.uniform(0.7, 2.0)
        queue, (count, gpus) = luck.choice(["vision", "speech"]), luck.choice([(1, 1), (1, 1), (2, 1), (1, 2)])
        coming.append(Arrival(f"due-{place}", queue, count, gpus, round(luck.uniform(0.8, 2.0), 2), at))
    return trainings, coming


def play(number: int, arrivals: int, folder: Path, policy: str = "default") -> Outcome:
    trainings, coming = draw(number, arrivals)
    specs = [(one.at, one.name, one.spec(number, folder)) for one in trainings]
    specs += [(one.at, one.name, one.spec()) for one in coming]
    for one in trainings:
        (folder / one.name).mkdir()
    machine = Up(folder / "store", "--nodes", "3", "--gpus", "4", "--policy", POLICIES[policy])
    try:
        machine.api.post("/v1/submit", QUEUES.encode())
        begun = time.monotonic()
        for at, name, spec in sorted(specs, key=lambda each: each[0]):
            time.sleep(max(begun + at - time.monotonic(), 0))
            document = {"kind": "UnifiedJob", "metadata": {"name": name}, "spec": spec}
            machine.api.post("/v1/submit", json.dumps(document).encode(), where=str(folder))
        for _, name, _ in specs:
            _is_over(machine, name)
        outcome = Outcome()
        for one in trainings:
            _account(machine, one, number, folder, outcome)
        outcome.wrong += [f"{one.name} is {phase}" for one in coming if (phase := machine.phase(one.name)) != WELL]
        outcome.wrong += machine.left_behind()
        return outcome
    finally:
        machine.end()


def _is_over(machine: Up, name: str) -> None:
    until(lambda: machine.job(name)["final"], f"{name} is over")


def _account(machine: Up, one: Training, seed: int, folder: Path, outcome: Outcome) -> None:
    seen = machine.job(one.name)
    saved = machine.folder / "checkpoints" / "default" / f"{one.name}.{seen['uid']}"
    history = trails.read(folder / one.name, saved)
    wrong = trails.check(history, seed, one.steps)
    if seen["phase"] != WELL or seen["failures"] or seen["replicas"]:
        wrong.append(f"is {seen['phase']} with {seen['failures']} failures and {len(seen['replicas'])} replicas")
    events = machine.api.get(f"/v1/jobs/default/{one.name}/events")
    reasons = [event["text"] for event in events if event["code"] in CAUSES]
    if len(reasons) < seen["preemptions"] or not all(reasons):
        wrong.append(f"was preempted {seen['preemptions']} times, for which the reasons are {reasons}")
    outcome.wrong += [f"{one.name}: {each}" for each in wrong]
    outcome.preemptions[one.manner] = outcome.preemptions.get(one.manner, 0) + seen["preemptions"]
    outcome.lost.setdefault(one.manner, Lost()).add(trails.lost(history, gpus=1))
