"""`kill -9` of a real leader in the middle of binding a gang, as often as one likes.

    python -m tests.kube.faults --kills 200        goes on where the last run stopped, if the source is the same
    python -m tests.kube.faults --round 7          one round again

A round is a control plane of its own, three controllers, and ten kills at moments that its number decides (`killing`
says what one is). What has passed is written to benchmarks/results/kube_faults.json after every round.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from hack.controlplane import ControlPlane, missing_toolchain
from tests.kube.faults.front import Front
from tests.kube.faults.killing import Kill, Killing, summary
from tests.kube.faults.worlds import LEASE_S, World

RESULT = Path(__file__).resolve().parents[3] / "benchmarks" / "results" / "kube_faults.json"
KILLS = 10


def play(number: int) -> list[Kill]:
    with tempfile.TemporaryDirectory() as folder, ControlPlane(Path(folder), controllers=True, kwok=True) as plane:
        world = World(plane, f"round-{number}")
        try:
            with Front(plane, seed=number) as front:
                killing = Killing(world, front, seed=number)
                return [killing.kill_once() for _ in range(KILLS)]
        finally:
            world.stop()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--round", type=int)
    chosen = parser.parse_args()
    if why := missing_toolchain():
        print(f"left out: {why}")
        return 0
    if chosen.round is not None:
        told = summary(play(chosen.round))
        print(json.dumps(told, indent=2))
        return bool(told["wrong"])
    book = _book()
    while len(book["each"]) < chosen.kills:
        begun = time.monotonic()
        number = len(book["each"]) // KILLS + 1
        kills = play(number)
        book["each"] += [msgspec.to_builtins(kill) for kill in kills]
        book["seconds"] = round(book["seconds"] + time.monotonic() - begun)
        told = _write(book)
        print(
            f"{told['kills']} of {chosen.kills} kills: {told['killed_in_the_middle']} in the middle of a gang, "
            f"whole again after {told['whole_again_s']['p50']} s (most {told['whole_again_s']['most']} s), "
            f"{told['looks_with_a_gpu_given_twice']} GPUs given twice, {len(told['wrong'])} wrong",
            flush=True,
        )
    told = _write(book)
    return bool(told["wrong"] or told["looks_with_a_gpu_given_twice"])


def _book() -> dict[str, Any]:
    source = subprocess.run(["git", "rev-parse", "--short", "HEAD:src"], capture_output=True, text=True, check=False)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    book: dict[str, Any] = json.loads(RESULT.read_text()) if RESULT.is_file() else {}
    if book.get("source") != source.stdout.strip():
        book = {"each": [], "seconds": 0}
    return {**book, "source": source.stdout.strip(), "commit": commit.stdout.strip()}


def _write(book: dict[str, Any]) -> dict[str, Any]:
    told = summary([msgspec.convert(one, Kill) for one in book["each"]])
    known = {"source": book["source"], "commit": book["commit"], "seconds": book["seconds"], "lease_s": LEASE_S}
    RESULT.write_text(json.dumps({**known, **told, "each": book["each"]}, indent=1) + "\n")
    return told


if __name__ == "__main__":
    sys.exit(main())
