"""Preemptions of real trainings at random moments, as often as one likes: what is lost, and that nothing else is.

    python -m tests.local.preempting --preemptions 100     goes on where the last run stopped, if the source is the same
    python -m tests.local.preempting --round 7             one round again, under both policies
    python -m tests.local.preempting --round 7 --policy newest-first

A round is one store and a queue of trainings that has borrowed nearly everything: alone, in gangs and elastic, some that
save when asked and some that do not. Guaranteed work of two other queues arrives at moments that the number of the
round decides. Then: has every step been run on the state it belongs to, has every resume begun at the newest
checkpoint, is every end as if undisturbed, and is nothing left behind? The same arrivals are played again under a
policy that asks the newest first, and what both threw away is compared. What has passed is written to
benchmarks/results/preempting.json after every round.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from optimus.model.reasons import Code
from tests.local import newest_first, trails, training
from tests.local.machines import Up, until
from tests.local.trails import Lost

HERE = Path(__file__).resolve()
RESULT = HERE.parents[2] / "benchmarks" / "results" / "preempting.json"
POLICIES = {"default": "default", "newest-first": f"{newest_first.__file__}:newest_first"}
ARRIVALS = 12
RESTART_S = 2
"""What stopping and starting one of these takes."""
CAUSES = {Code.RECLAIMED, Code.PREEMPTED, Code.TURN_OVER, Code.MOVED, Code.RESIZED, Code.REPACKED}
QUEUES = """
{kind: Queue, metadata: {name: open}, spec: {gpu: {guarantee: 2}}}
---
{kind: Queue, metadata: {name: vision}, spec: {gpu: {guarantee: 3}}}
---
{kind: Queue, metadata: {name: speech}, spec: {gpu: {guarantee: 3}}}
"""


@dataclass(frozen=True)
class Training:
    name: str
    manner: str
    replicas: tuple[int, int]
    gpus: int
    steps: int
    every: int
    seconds: float
    grace: int
    at: float

    def document(self, seed: int, folder: Path) -> dict[str, Any]:
        words = ["--manner", self.manner, "--steps", self.steps, "--every", self.every, "--seconds", self.seconds]
        least, most = self.replicas
        gang = least if least == most and least > 1 else 0
        spec = {
            "queue": "open",
            "command": [sys.executable, training.__file__, str(folder / self.name), "--seed", str(seed)]
            + [str(word) for word in [*words, "--gang", gang]],
            "env": {"PYTHONPATH": str(HERE.parents[2] / "src")},
            "gpu": self.gpus,
            "replicas": {"min": least, "max": most},
            "checkpoint": {"graceSeconds": self.grace},
            "restartCostSeconds": RESTART_S,
            "restart": {"backoffLimit": 0},
        }
        return {"kind": "UnifiedJob", "metadata": {"name": self.name}, "spec": spec}


@dataclass(frozen=True)
class Arrival:
    name: str
    queue: str
    gpus: int
    seconds: float
    at: float

    def document(self) -> dict[str, Any]:
        spec = {"queue": self.queue, "command": ["sleep", str(self.seconds)], "gpu": self.gpus}
        return {"kind": "UnifiedJob", "metadata": {"name": self.name}, "spec": spec}


@dataclass
class Outcome:
    """Of one round under one policy."""

    wrong: list[str] = field(default_factory=list)
    preemptions: int = 0
    lost: Lost = field(default_factory=Lost)
    lost_by_manner: dict[str, Lost] = field(default_factory=dict)
    preempted_by_manner: dict[str, int] = field(default_factory=dict)


def draw(number: int, arrivals: int) -> tuple[list[Training], list[Arrival]]:
    """What the number of the round decides."""
    luck = random.Random(number)
    kinds = [("heeds", (1, 1), 1)] * 2 + [("deaf", (1, 1), 1)] * 2
    kinds += [("slow", (1, 1), 1), ("heeds", (2, 2), 1), ("deaf", (2, 2), 1), ("heeds", (1, 3), 1)]
    luck.shuffle(kinds)
    trainings = []
    for place, (manner, replicas, gpus) in enumerate(kinds):
        seconds = round(luck.uniform(1.2, 1.5) if manner == "slow" else luck.uniform(0.08, 0.3), 2)
        steps = int(luck.uniform(16, 24) / seconds)
        every = max(int(luck.uniform(0.8, 4) / seconds), 1)
        grace = 4 if manner == "heeds" else 1
        name = f"{manner}-{place}"
        trainings.append(Training(name, manner, replicas, gpus, steps, every, seconds, grace, place * 0.5))
    coming, at = [], 5.0
    for place in range(arrivals):
        at += luck.uniform(1.0, 3.5)
        queue, gpus = luck.choice(["vision", "speech"]), luck.choice([1, 1, 2])
        coming.append(Arrival(f"due-{place}", queue, gpus, round(luck.uniform(0.8, 2.0), 2), at))
    return trainings, coming


def play(number: int, arrivals: int, folder: Path, policy: str = "default") -> Outcome:
    """One round; what came of it."""
    trainings, coming = draw(number, arrivals)
    machine = Up(folder / "store", "--nodes", "2", "--gpus", "4", "--policy", POLICIES[policy])
    try:
        machine.api.post("/v1/submit", QUEUES.encode())
        begun = time.monotonic()
        for one in sorted([*trainings, *coming], key=lambda one: one.at):
            time.sleep(max(begun + one.at - time.monotonic(), 0))
            if isinstance(one, Training):
                (folder / one.name).mkdir()
                document = one.document(number, folder)
            else:
                document = one.document()
            machine.api.post("/v1/submit", json.dumps(document).encode(), where=str(folder))
        for one in [*trainings, *coming]:
            until(lambda name=one.name: machine.job(name)["final"], f"{one.name} is over")  # type: ignore[misc]
        outcome = Outcome()
        for each in trainings:
            _account(machine, each, number, folder, outcome)
        outcome.wrong += [f"{one.name} is {machine.phase(one.name)}" for one in coming if machine.phase(one.name) != OK]
        outcome.wrong += machine.left_behind()
        return outcome
    finally:
        machine.end()


OK = "Succeeded"


def _account(machine: Up, one: Training, seed: int, folder: Path, outcome: Outcome) -> None:
    seen = machine.job(one.name)
    history = trails.read(folder / one.name, machine.folder / "checkpoints" / "default" / one.name)
    wrong = trails.check(history, seed, one.steps)
    if seen["phase"] != OK or seen["failures"] or seen["replicas"]:
        wrong.append(f"is {seen['phase']} with {seen['failures']} failures and {len(seen['replicas'])} replicas")
    told = [event["text"] for event in machine.api.get(f"/v1/jobs/default/{one.name}/events") if event["code"] in CAUSES]
    if len(told) < seen["preemptions"] or not all(told):
        wrong.append(f"was preempted {seen['preemptions']} times, for which the reasons are {told}")
    outcome.wrong += [f"{one.name}: {each}" for each in wrong]
    outcome.preemptions += seen["preemptions"]
    thrown = trails.total(trails.lost(history, one.gpus))
    outcome.lost.add(thrown)
    outcome.lost_by_manner.setdefault(one.manner, Lost()).add(thrown)
    outcome.preempted_by_manner[one.manner] = outcome.preempted_by_manner.get(one.manner, 0) + seen["preemptions"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preemptions", type=int, default=100)
    parser.add_argument("--round", type=int)
    parser.add_argument("--policy", choices=sorted(POLICIES))
    chosen = parser.parse_args()
    if chosen.round is not None:
        outcomes = _round(chosen.round, [chosen.policy] if chosen.policy else list(POLICIES))
        for policy, outcome in outcomes.items():
            print(policy, json.dumps(asdict(outcome), indent=2))
        return any(outcome.wrong for outcome in outcomes.values())
    book = _book()
    while book["preemptions"] < chosen.preemptions:
        number = len(book["rounds"]) + 1
        order = list(POLICIES) if number % 2 else list(POLICIES)[::-1]
        outcomes = _round(number, order)
        book["rounds"].append({policy: asdict(outcomes[policy]) for policy in POLICIES})
        book["preemptions"] += outcomes["default"].preemptions
        RESULT.write_text(json.dumps(_with_sums(book), indent=2) + "\n")
        wrong = [text for outcome in outcomes.values() for text in outcome.wrong]
        thrown = ", ".join(f"{policy} {outcomes[policy].lost.gpu_seconds:.1f}" for policy in POLICIES)
        said = f"{book['preemptions']} of {chosen.preemptions} preemptions: {'; '.join(wrong) or 'nothing is wrong'}"
        print(f"{said}; GPU-seconds thrown away: {thrown}", flush=True)
    print(_table(book))
    return any(outcome["wrong"] for one in book["rounds"] for outcome in one.values())


def _round(number: int, order: list[str]) -> dict[str, Outcome]:
    found = {}
    for policy in order:
        with tempfile.TemporaryDirectory() as folder:
            try:
                found[policy] = play(number, ARRIVALS, Path(folder), policy)
            except AssertionError as error:
                found[policy] = Outcome(wrong=[str(error)])
    return found


def _book() -> dict[str, Any]:
    """What the last run with the same source and the same rounds has written."""
    tree = subprocess.run(["git", "rev-parse", "--short", "HEAD:src"], capture_output=True, text=True, check=False)
    rounds = hashlib.sha256(b"".join(Path(m.__file__).read_bytes() for m in (training, trails, newest_first)))
    rounds.update(HERE.read_bytes())
    about = {"source": tree.stdout.strip(), "campaign": rounds.hexdigest()[:7]}
    book: dict[str, Any] = json.loads(RESULT.read_text()) if RESULT.is_file() else {}
    if {name: book.get(name) for name in about} != about:
        book = {**about, "preemptions": 0, "rounds": []}
    return book


def _with_sums(book: dict[str, Any]) -> dict[str, Any]:
    sums = {
        policy: {
            "preemptions": sum(one[policy]["preemptions"] for one in book["rounds"]),
            "lost_steps": sum(one[policy]["lost"]["steps"] for one in book["rounds"]),
            "lost_gpu_seconds": round(sum(one[policy]["lost"]["gpu_seconds"] for one in book["rounds"]), 1),
        }
        for policy in POLICIES
    }
    rounds = book.pop("rounds")
    book.update({"sums": sums, "rounds": rounds})
    return book


def _table(book: dict[str, Any]) -> str:
    lines = ["| victims | preemptions | steps thrown away | GPU-seconds thrown away |", "| --- | ---: | ---: | ---: |"]
    for policy, one in book["sums"].items():
        lines.append(f"| {policy} | {one['preemptions']} | {one['lost_steps']} | {one['lost_gpu_seconds']} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
