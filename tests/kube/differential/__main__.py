"""As many random worlds as one likes before kube-scheduler and before the brain.

    python -m tests.kube.differential --worlds 2000     until so many are compared; goes on where it stopped
    python -m tests.kube.differential --seed 17         one world again, with every difference
    python -m tests.kube.differential --recheck         look again at the worlds that have differed
    python -m tests.kube.differential --fresh           forget what was compared before

What was compared is written to benchmarks/results/kube_differential.json after every few worlds: pods by rule,
differences that are meant with their explanation, and those that are not. Any of the latter is a failure. Worlds count
for the source that was compared (benchmarks/sources.py): another one begins anew, with worlds that nobody has seen.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.sources import source_of
from hack.controlplane import ControlPlane, missing_toolchain
from tests.kube.differential.cluster import FLAGS, Cluster
from tests.kube.differential.comparing import Outcome, play
from tests.kube.differential.worlds import random_world

RESULT = Path(__file__).resolve().parents[3] / "benchmarks" / "results" / "kube_differential.json"
FIRST_SEED = 100_000
WRITE_EVERY = 20
KEPT_DIFFERENCES = 50
NUMBERS = ("worlds", "pods", "placed", "refused", "nodes_compared", "looked_again")


async def compare(book: dict[str, Any], worlds: int) -> None:
    with tempfile.TemporaryDirectory() as folder, ControlPlane(Path(folder), api_server_flags=FLAGS) as plane:
        async with Cluster(plane) as cluster:
            began = time.monotonic()
            run: dict[str, Any] = {"commit": commit(), "from": book["next_seed"], "worlds": 0}
            book["runs"].append(run)
            while book["worlds"] < worlds:
                outcome = await play(cluster, random_world(book["next_seed"]))
                note(book, outcome)
                run["worlds"] += 1
                run["seconds"] = round(time.monotonic() - began)
                if run["worlds"] % WRITE_EVERY == 0 or book["worlds"] >= worlds:
                    save(book)
                    print(line(book, run), flush=True)


def note(book: dict[str, Any], outcome: Outcome) -> None:
    book["next_seed"] = outcome.seed + 1
    book["worlds"] += 1
    for name in NUMBERS[1:]:
        book[name] += getattr(outcome, name)
    for rule, counts in outcome.by_rule.items():
        entry = book["by_rule"].setdefault(rule, {"placed": 0, "refused": 0})
        for how, number in counts.items():
            entry[how] += number
    for why, number in outcome.explained.items():
        book["explained"][why] = book["explained"].get(why, 0) + number
    found = [{"seed": outcome.seed, "what": what} for what in outcome.differences]
    book["differences"] = [*book["differences"], *found][-KEPT_DIFFERENCES:]
    for one in outcome.differences:
        print(f"{one}\n    python -m tests.kube.differential --seed {outcome.seed}", flush=True)


def line(book: dict[str, Any], run: dict[str, Any]) -> str:
    pace = run["worlds"] / max(run["seconds"], 1)
    return (
        f"{book['worlds']} worlds, {book['pods']} pods ({book['placed']} placed, {book['refused']} refused): "
        f"{len(book['differences'])} differences, {sum(book['explained'].values())} explained  ({pace:.1f} worlds/s)"
    )


async def recheck(book: dict[str, Any]) -> None:
    """Forget differences that have been mended or explained."""
    left = []
    for seed in dict.fromkeys(one["seed"] for one in book["differences"]):
        outcome = await replayed(seed)
        left += [{"seed": seed, "what": what} for what in outcome.differences]
        book["rechecked"] = [
            *book.get("rechecked", ()),
            {"seed": seed, "commit": commit(), "explained": outcome.explained},
        ]
    book["differences"] = left
    save(book)


async def replayed(seed: int) -> Outcome:
    with tempfile.TemporaryDirectory() as folder, ControlPlane(Path(folder), api_server_flags=FLAGS) as plane:
        async with Cluster(plane) as cluster:
            return await play(cluster, random_world(seed))


async def again(seed: int) -> int:
    outcome = await replayed(seed)
    for one in outcome.differences:
        print(one)
    for why, number in outcome.explained.items():
        print(f"explained {number} times: {why}")
    found = len(outcome.differences)
    print(f"world {seed}: {outcome.pods} pods, {outcome.placed} placed, {found} differences that are not explained")
    return 1 if found else 0


def read_book(*, fresh: bool) -> dict[str, Any]:
    source, first = source_of(), FIRST_SEED
    if RESULT.exists() and not fresh:
        found: dict[str, Any] = json.loads(RESULT.read_text(encoding="utf-8"))
        if found.get("source") == source:
            return found
        first = found["next_seed"]
    empty: dict[str, Any] = {"source": source, **dict.fromkeys(NUMBERS, 0)}
    return {**empty, "next_seed": first, "by_rule": {}, "explained": {}, "differences": [], "runs": []}


def save(book: dict[str, Any]) -> None:
    book["by_rule"] = dict(sorted(book["by_rule"].items()))
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(book, indent=2) + "\n", encoding="utf-8")


def commit() -> str:
    git = ["git", "describe", "--always", "--dirty"]
    said = subprocess.run(git, cwd=RESULT.parents[2], capture_output=True, text=True, check=False)
    return said.stdout.strip() or "unknown"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.kube.differential", description=__doc__)
    parser.add_argument("--worlds", type=int, default=2000, help="compare until so many have been compared")
    parser.add_argument("--seed", type=int, help="only this world")
    parser.add_argument("--recheck", action="store_true", help="look again at worlds that have differed")
    parser.add_argument("--fresh", action="store_true", help="forget what was compared before")
    options = parser.parse_args()
    if why := missing_toolchain():
        print(f"left out: {why}")
        return 0
    if options.seed is not None:
        return asyncio.run(again(options.seed))
    book = read_book(fresh=options.fresh) if not options.recheck else json.loads(RESULT.read_text(encoding="utf-8"))
    asyncio.run(recheck(book) if options.recheck else compare(book, options.worlds))
    print(f"{book['worlds']} worlds compared, {len(book['differences'])} differences that are not explained")
    return 1 if book["differences"] else 0


if __name__ == "__main__":
    sys.exit(main())
