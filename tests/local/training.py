"""A small training whose result shows every step: gradient descent, and a hash over each state in order.

A step that was lost, doubled or done on the wrong state gives another result, bit by bit. Each process leaves a trail:
a file with a line for its start and each step, appended to, whose age tells how long the process lived. Checkpoints are
all kept. From both, `trails` counts what was thrown away.

    heeds   saves between two steps when it is asked to leave
    slow    would, but its step takes longer than its grace
    deaf    has a loop of its own, saves every so many steps, and does not hear the request
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import optimus

BREATH_S = 0.05
"""How often it shows that it lives."""
KEEP = 100_000


def beginning(seed: int) -> dict[str, Any]:
    return {"chain": f"{seed:064x}", "weight": 0.0, "bias": 0.0, "loss": 0.0, "done": 0}


def learn(state: dict[str, Any], step: int) -> None:
    """One step of gradient descent towards y = 3x + 1, with an example that the step decides."""
    digest = hashlib.sha256(f"{state['chain']} {step} {state['weight'].hex()} {state['bias'].hex()}".encode())
    x = (step * 37 % 101) / 50 - 1
    error = state["weight"] * x + state["bias"] - (3 * x + 1)
    state["weight"] -= 0.1 * error * x
    state["bias"] -= 0.1 * error
    state["loss"] += error * error
    state["chain"] = digest.hexdigest()
    state["done"] += 1


class Trail:
    def __init__(self, folder: Path) -> None:
        self.rank = int(os.environ.get("OPTIMUS_RANK", "0"))
        self.path = folder / f"{optimus.attempt():04d}-{self.rank}-{os.getpid()}.trail"
        self._file = self.path.open("a", buffering=1)
        self.say(start=optimus.attempt(), rank=self.rank, why=optimus.reason())

    def say(self, **words: Any) -> None:
        print(json.dumps({"at": time.time(), **words}), file=self._file)

    def live(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, BREATH_S))
            os.utime(self.path)


class Gang:
    """Nobody ends a step before all have ended it, as in a collective operation."""

    def __init__(self, folder: Path, size: int, trail: Trail) -> None:
        attempt = optimus.attempt()
        self._files = [folder / f"{attempt:04d}-{rank}.place" for rank in range(size)]
        self._trail = trail

    def wait(self, step: int) -> None:
        own = self._files[self._trail.rank]
        beside = own.with_suffix(f".{os.getpid()}")
        beside.write_text(str(step))
        beside.replace(own)
        while not all(_number(file) >= step for file in self._files):
            self._trail.live(0.01)


def _number(file: Path) -> int:
    try:
        return int(file.read_text())
    except FileNotFoundError:
        return -1


def by_itself(state: dict[str, Any], steps: int, every: int, rank: int) -> Iterator[int]:
    """A loop of one's own that saves and resumes, and hears nothing."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    folder = optimus.checkpoint_dir()
    assert folder is not None
    newest = max((int(path.stem.removeprefix("own-")) for path in folder.glob("own-*.json")), default=0)
    if newest:
        state.update(json.loads((folder / f"own-{newest}.json").read_text()))
    for step in range(newest, steps):
        yield step
        if (step + 1) % every == 0 and rank == 0:
            beside = folder / f"{os.getpid()}.writing"
            beside.write_text(json.dumps(state))
            beside.replace(folder / f"own-{step + 1}.json")
            optimus.checkpointed(step + 1)
        optimus.report(step=step + 1, total=steps)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--manner", choices=["heeds", "slow", "deaf"], required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--every", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--gang", type=int, default=0)
    told = parser.parse_args()
    trail = Trail(told.folder)
    gang = Gang(told.folder, told.gang, trail) if told.gang else None
    state = beginning(told.seed)
    if told.manner == "deaf":
        steps = by_itself(state, told.steps, told.every, trail.rank)
    else:
        steps = iter(optimus.steps(told.steps, state=state, every=told.every, keep=KEEP))
    for step in steps:
        trail.live(told.seconds)
        if gang is not None:
            gang.wait(step)
        learn(state, step)
        trail.say(step=step, chain=state["chain"])
    trail.say(final=state)


if __name__ == "__main__":
    main()
