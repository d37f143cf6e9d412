"""`kill -9` of a real leader in the middle of starting a gang, as often as one likes.

    python -m tests.kube.faults --kills 200        goes on where the last run stopped, if the source is the same
    python -m tests.kube.faults --round 7          one round again

A round is a control plane of its own with the real operators of JobSet and PyTorchJob, three controllers, and twenty
kills at moments that its number decides (`killing` says what one is, and which of them count). Every other round has
the native PodGroup of Kubernetes; every fifth, from the second on, has the lease that people have, the others the
shortest. Then leaders whose binds land after their death (`--late`). What has passed is written to
benchmarks/results/kube_faults.json after every round.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from benchmarks.sources import source_of
from hack.controlplane import ControlPlane, missing_toolchain
from hack.operators import JOBSET, TRAINING_OPERATOR, start
from tests.kube.faults.front import Front
from tests.kube.faults.killing import DRAWS, NATIVE, Kill, Killing, Late, late_summary, summary
from tests.kube.faults.worlds import INSTALLED_LEASE_S, LEASE_S, World

RESULT = Path(__file__).resolve().parents[3] / "benchmarks" / "results" / "kube_faults.json"
KILLS, LATE = 20, 10
"""In a round."""
AT_ONCE = 2
LATE_ROUNDS = 1000
"""Their numbers begin here."""
T = TypeVar("T", Kill, Late)


def play(number: int, turn: Callable[[Killing], T], times: int = KILLS) -> list[T]:
    native = number % 2 == 1
    with (
        tempfile.TemporaryDirectory() as folder,
        ControlPlane(Path(folder), controllers=True, kwok=True, gang_api=native) as plane,
    ):
        for operator in (JOBSET, TRAINING_OPERATOR):
            start(plane, operator)
        world = World(plane, f"round-{number}")
        world.lease_s = INSTALLED_LEASE_S if number % 5 == 2 else LEASE_S
        try:
            with Front(plane, seed=number) as front:
                killing = Killing(world, front, number, (*DRAWS, NATIVE) if native else DRAWS)
                return list(_until_wrong(turn, killing, times))
        finally:
            world.stop()


def _until_wrong(turn: Callable[[Killing], T], killing: Killing, times: int) -> Iterator[T]:
    """A world in which something is wrong is no world to go on in."""
    for _ in range(times):
        yield (found := turn(killing))
        if found.wrong:
            return


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--late", type=int, default=20, help="leaders whose binds land late")
    parser.add_argument("--round", type=int)
    chosen = parser.parse_args()
    if why := missing_toolchain():
        print(f"left out: {why}")
        return 0
    if chosen.round is not None:
        told = summary(play(chosen.round, Killing.kill_once))
        print(json.dumps(told, indent=2))
        return bool(told["wrong"])
    with ThreadPoolExecutor(AT_ONCE) as pool:  # most of the time of a round is waiting for leases to run out
        return soak(chosen.kills, chosen.late, pool)


def soak(kills_wanted: int, late_wanted: int, pool: ThreadPoolExecutor) -> int:
    book = _book()
    while (so_far := _write(book))["killed_in_the_middle"] < kills_wanted and not so_far["wrong"]:
        begun = time.monotonic()
        first = book["rounds"] + 1
        for kills in pool.map(lambda number: play(number, Killing.kill_once), range(first, first + AT_ONCE)):
            book["each"] += [msgspec.to_builtins(kill) for kill in kills]
            book["rounds"] += 1
        book["seconds"] = round(book["seconds"] + time.monotonic() - begun)
        told = _write(book)
        print(
            f"{told['killed_in_the_middle']} of {kills_wanted} leaders killed in the middle of a gang "
            f"({told['kills']} in all; {_counts(told['by_sort'])}; {_counts(told['by_moment'])}), "
            f"{told['looks_with_a_gpu_given_twice']} GPUs given twice, {len(told['wrong'])} wrong",
            flush=True,
        )
    while len(book["each_late"]) < late_wanted:
        first = LATE_ROUNDS + len(book["each_late"]) // LATE
        for found in pool.map(lambda number: play(number, Killing.late_once, LATE), range(first, first + AT_ONCE)):
            book["each_late"] += [msgspec.to_builtins(one) for one in found]
        late = _write(book)["late"]
        print(
            f"{late['leaders_killed']} of {late_wanted} leaders: {late['binds_that_landed_late']} binds landed late, "
            f"repaired after {late['repaired_s']['p50']} s (most {late['repaired_s']['most']} s), "
            f"{len(late['wrong'])} wrong",
            flush=True,
        )
    told = _write(book)
    return bool(told["wrong"] or told["looks_with_a_gpu_given_twice"] or told["late"]["wrong"])


def _counts(by: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in by.items())


def _book() -> dict[str, Any]:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    source = source_of()
    book: dict[str, Any] = json.loads(RESULT.read_text()) if RESULT.is_file() else {}
    if book.get("source") != source:
        book = {"each": [], "seconds": 0, "rounds": 0}
    book.setdefault("each_late", [])
    return {**book, "source": source, "commit": commit.stdout.strip()}


def _write(book: dict[str, Any]) -> dict[str, Any]:
    told = summary([msgspec.convert(one, Kill) for one in book["each"]])
    told["late"] = late_summary([msgspec.convert(one, Late) for one in book["each_late"]])
    known = {"source": book["source"], "commit": book["commit"], "seconds": book["seconds"], "rounds": book["rounds"]}
    each = {"each": book["each"], "each_late": book["each_late"]}
    RESULT.write_text(json.dumps({**known, **told, **each}, indent=1) + "\n")
    return told


if __name__ == "__main__":
    sys.exit(main())
