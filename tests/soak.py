"""Random worlds against the nine invariants for as long as one likes.

    python -m tests.soak --minutes 10 [--start SEED] [--jobs 2]    goes on where the last run stopped
    python -m tests.soak --seed 123 --verbose                      tells the story of one world, cycle by cycle
    python -m tests.soak --recheck                                 looks again at the worlds that have failed

What has passed so far is written to benchmarks/results/soak.json after every minute. A world that has failed stays in
it for good, with its seed and what was broken, and since which commit it holds: what is counted can be looked up.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from optimus.testing import INVARIANTS, Violation, check_cycle, check_world, examine, live, random_world
from optimus.testing.story import tell_cycle, tell_world

RESULT = Path(__file__).resolve().parents[1] / "benchmarks" / "results" / "soak.json"
FIRST_SEED = 10_000
MEDIUM_EVERY = 10
MOST_FAILURES = 50
"""Of one run: then something is wrong that need not be found more often."""


def size_of(seed: int) -> str:
    """Every tenth world is a larger one."""
    return "medium" if seed % MEDIUM_EVERY == 0 else "small"


def look(seed: int) -> tuple[int, list[str], list[int]]:
    """Seed, what is broken in words, and the numbers of the broken invariants."""
    try:
        found = examine(seed, size_of(seed))
    except Exception:  # noqa: BLE001 - a crash of the brain is the worst violation of all
        last = traceback.format_exc().strip().splitlines()
        found = [Violation(0, seed, 0, f"crash: {last[-1]} at {last[-3].strip()}")]
    return seed, [str(violation) for violation in found], sorted({violation.invariant for violation in found})


def soak(minutes: float, start: int | None, jobs: int) -> int:
    book = read_book()
    first = start if start is not None else book["next_seed"]
    began = said = time.monotonic()
    run: dict[str, Any] = {"commit": commit(), "from": first, "to": first, "passed": 0, "failed": 0}
    book["runs"].append(run)

    def seeds() -> Iterator[int]:
        seed = first
        while time.monotonic() - began < minutes * 60:
            yield seed
            seed += 1

    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        for seed, broken, numbers in pool.imap(look, seeds(), chunksize=1):
            note(book, run, seed, broken, numbers)
            now = time.monotonic()
            if now - said >= 60:
                said = now
                write_book(book, run, now - began)
                print(line(book, run, now - began), flush=True)
            if now - began >= minutes * 60 or run["failed"] >= MOST_FAILURES:
                break
        pool.terminate()
    write_book(book, run, time.monotonic() - began)
    print(line(book, run, time.monotonic() - began))
    return 1 if run["failed"] else 0


def note(book: dict[str, Any], run: dict[str, Any], seed: int, broken: list[str], numbers: list[int]) -> None:
    run["to"] = seed
    book["next_seed"] = max(book["next_seed"], seed + 1)
    for number in INVARIANTS:
        counts = book["invariants"].setdefault(str(number), {"means": INVARIANTS[number], "worlds": 0, "failed": 0})
        counts["worlds"] += 1
        counts["failed"] += number in numbers
    if not broken:
        run["passed"] += 1
        book["worlds_passed"] += 1
        return
    run["failed"] += 1
    failure = {"seed": seed, "commit": run["commit"], "invariants": numbers, "what": broken[:3], "holds_at": ""}
    book["failures"].append(failure)
    print(f"{broken[0]}\n    python -m tests.soak --seed {seed} --verbose", flush=True)


def recheck() -> int:
    """Note which failures have been mended, and which are back."""
    book = read_book()
    for failure in book["failures"]:
        _, broken, _ = look(failure["seed"])
        print(f"world {failure['seed']}: {broken[0] if broken else 'holds now'}", flush=True)
        failure["holds_at"] = "" if broken else failure["holds_at"] or commit()
    save(book)
    return 1 if any(not failure["holds_at"] for failure in book["failures"]) else 0


def tell(seed: int, *, verbose: bool) -> int:
    size = size_of(seed)
    world = random_world(seed, size)
    found: Counter[str] = Counter()
    if verbose:
        print("\n".join(tell_world(world)))
    for cycle, complaints in live(seed, size):
        violations = [*check_cycle(cycle), *complaints]
        if verbose:
            print("\n".join(tell_cycle(cycle, world.now_ms)))
        for violation in violations:
            print(f"  BROKEN {violation}")
        found.update(str(v.invariant) for v in violations)
    for violation in check_world(world):
        print(f"  BROKEN {violation}")
        found[str(violation.invariant)] += 1
    print(f"world {seed} ({size}): " + (f"broken {dict(found)}" if found else "everything holds"))
    return 1 if found else 0


# ----------------------------------------------------------------------------------------------------- the book


def read_book() -> dict[str, Any]:
    if RESULT.exists():
        found: dict[str, Any] = json.loads(RESULT.read_text(encoding="utf-8"))
        return found
    return {"worlds_passed": 0, "next_seed": FIRST_SEED, "invariants": {}, "failures": [], "runs": []}


def write_book(book: dict[str, Any], run: dict[str, Any], seconds: float) -> None:
    run["minutes"] = round(seconds / 60, 1)
    run["worlds_per_minute"] = round((run["passed"] + run["failed"]) / max(seconds, 1) * 60, 1)
    save(book)


def save(book: dict[str, Any]) -> None:
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(book, indent=2) + "\n", encoding="utf-8")


def line(book: dict[str, Any], run: dict[str, Any], seconds: float) -> str:
    pace = (run["passed"] + run["failed"]) / max(seconds, 1) * 60
    return (
        f"{seconds / 60:5.1f} min  worlds {run['from']} to {run['to']}: {run['passed']} passed, {run['failed']} failed"
        f"  ({pace:.0f} a minute; {book['worlds_passed']} passed so far)"
    )


def commit() -> str:
    git = ["git", "describe", "--always", "--dirty"]
    said = subprocess.run(git, cwd=RESULT.parents[2], capture_output=True, text=True, check=False)
    return said.stdout.strip() or "unknown"


def main() -> int:
    parser = argparse.ArgumentParser(description="Random worlds against the nine invariants.")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--start", type=int, help="first seed; default: where the last run stopped")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, help="only this world")
    parser.add_argument("--verbose", action="store_true", help="with --seed: tell its story")
    parser.add_argument("--recheck", action="store_true", help="look again at worlds that have failed")
    options = parser.parse_args()
    if options.seed is not None:
        return tell(options.seed, verbose=options.verbose)
    if options.recheck:
        return recheck()
    return soak(options.minutes, options.start, options.jobs)


if __name__ == "__main__":
    sys.exit(main())
