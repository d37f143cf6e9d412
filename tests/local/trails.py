"""What the processes of a training left behind: what was run, saved, thrown away and run again.

A *life* is one process of one replica. The first replica saves for all, so its lives, one after the other, are the
history of the job: each must begin exactly at the newest checkpoint. What a life did after that checkpoint was thrown
away, with the time that all replicas spent on it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.local.training import beginning, learn


@dataclass(frozen=True)
class Life:
    attempt: int
    rank: int
    began: float
    ended: float
    steps: tuple[tuple[int, float, str], ...]
    """Step, when it was done, the chain after it."""
    final: dict[str, Any] | None


@dataclass
class Lost:
    steps: int = 0
    gpu_seconds: float = 0.0

    def add(self, other: Lost) -> None:
        self.steps += other.steps
        self.gpu_seconds += other.gpu_seconds


@dataclass
class History:
    """Of one job."""

    lives: list[Life]
    checkpoints: list[tuple[float, int]]
    """When, and how many steps it has."""

    def of_rank(self, rank: int) -> list[Life]:
        return [life for life in self.lives if life.rank == rank]

    def saved_by(self, moment: float) -> int:
        return max((steps for at, steps in self.checkpoints if at <= moment), default=0)


def read(trails: Path, checkpoints: Path) -> History:
    lives = [life for path in sorted(trails.glob("*.trail")) if (life := _life(path)) is not None]
    saved = [(path.stat().st_mtime, int(path.stem.removeprefix("own-"))) for path in checkpoints.glob("own-*.json")]
    for path in checkpoints.glob("steps/*-step-*/checkpoint.json"):
        about = json.loads(path.read_text())
        saved.append((about["at_ms"] / 1000, about["step"]))
    return History(sorted(lives, key=lambda life: life.began), sorted(saved))


def _life(path: Path) -> Life | None:
    ended = path.stat().st_mtime
    lines = []
    for line in path.read_text().splitlines():
        try:
            lines.append(json.loads(line))
        except ValueError:
            break  # killed while it wrote its last line
    if not lines:  # killed before it could say that it began
        return None
    first = lines[0]
    steps = tuple((line["step"], line["at"], line["chain"]) for line in lines if "step" in line)
    final = next((line["final"] for line in lines if "final" in line), None)
    return Life(first["start"], first["rank"], first["at"], ended, steps, final)


def check(history: History, seed: int, steps: int) -> list[str]:
    """What is wrong with it: every step must be on the state it belongs to, every resume at the newest checkpoint, and
    the end as if nobody had ever disturbed it."""
    state, chains = beginning(seed), []
    for step in range(steps):
        learn(state, step)
        chains.append(state["chain"])
    wrong = []
    for life in history.lives:
        who = f"attempt {life.attempt} of rank {life.rank}"
        ran = [step for step, _, _ in life.steps]
        if ran != list(range(ran[0], ran[0] + len(ran)) if ran else []):
            wrong.append(f"{who} ran {ran}")
        wrong += [f"{who}: step {step} is on another state" for step, _, chain in life.steps if chain != chains[step]]
        if ran:
            # the first replica alone saves, so nothing is saved between its start and its first step
            soonest = history.saved_by(life.began)
            latest = soonest if life.rank == 0 else history.saved_by(life.steps[0][1])
            if not soonest <= ran[0] <= latest:
                wrong.append(f"{who} began with step {ran[0]}, and saved were {soonest} to {latest}")
        if life.final is not None and life.final != state:
            wrong.append(f"{who} ended with {life.final} instead of {state}")
    if not any(life.final is not None for life in history.of_rank(0)):
        wrong.append("the first replica never ended")
    return wrong


def lost(history: History, gpus: int) -> Lost:
    """What the lives of the first replica threw away: all but the last one, which came to the end."""
    found = Lost()
    for life, after in pairwise(history.of_rank(0)):
        found.add(_lost(history, life, after, gpus))
    return found


def _lost(history: History, life: Life, after: Life, gpus: int) -> Lost:
    saved = history.saved_by(after.began)
    thrown = [step for step, _, _ in life.steps if step >= saved]
    since = max([life.began, *(at for step, at, _ in life.steps if step < saved)])
    window = [max(min(each.ended, life.ended) - max(each.began, since), 0.0) for each in history.lives]
    return Lost(len(thrown), sum(window) * gpus)
