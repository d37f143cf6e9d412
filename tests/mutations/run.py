"""A list of deliberate faults, and who notices each of them.

    python -m tests.mutations                     all faults
    python -m tests.mutations --only NAME …       these
    python -m tests.mutations --sample 6          a few, always the same

Where a fault was caught is kept in benchmarks/results/mutations.json and looked at first the next time.
The end is a success if every fault was caught, and (for a full run) every invariant has caught one.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from typing import Any

from optimus.testing import INVARIANTS
from optimus.testing.drawing import Draw
from tests.mutations.fault import Fault
from tests.mutations.faults import FAULTS
from tests.mutations.running import ROOT, Verdict, try_fault, workshop

RESULT = ROOT / "benchmarks" / "results" / "mutations.json"
SAMPLE_SEED = 1


def sample(count: int, seed: int = SAMPLE_SEED) -> list[Fault]:
    """A few faults, expected to be noticed by as many different checks as possible; always the same."""
    chosen: list[Fault] = []
    left = Draw(seed, "faults").shuffled(FAULTS)
    while left and len(chosen) < count:
        seen = Counter(fault.caught_by for fault in chosen)
        fault = min(left, key=lambda f: seen[f.caught_by])
        chosen.append(fault)
        left.remove(fault)
    return chosen


def run(faults: Sequence[Fault], *, jobs: int = 1, src: Path | None = None, loud: bool = False) -> list[Verdict]:
    """Every fault tried; `loud`: each verdict is told, and written to the result file, as soon as it is known."""
    began = time.monotonic()
    hints = {entry["name"]: entry["look"] for entry in read_book().get("faults", ())}
    found: dict[str, Verdict] = {}
    with workshop(src) as shop, ThreadPoolExecutor(jobs) as pool:
        tasks = [pool.submit(try_fault, shop, fault, hints.get(fault.name, "")) for fault in faults]
        for task in as_completed(tasks):
            verdict = task.result()
            found[verdict.name] = verdict
            if loud:
                print(line(verdict), flush=True)
                write_book(list(found.values()), time.monotonic() - began)
    return [found[fault.name] for fault in faults]


def line(verdict: Verdict) -> str:
    mark = "caught  " if verdict.caught else "SURVIVED"
    by = verdict.by if verdict.as_expected or not verdict.caught else f"{verdict.by} (expected: {verdict.expected})"
    return f"{mark} {verdict.seconds:6.1f} s  {verdict.name:44} {by:12} {verdict.look}"


def tally(verdicts: Iterable[Verdict]) -> dict[str, int]:
    counts = Counter(verdict.by for verdict in verdicts if verdict.caught)
    return {by: counts[by] for by in sorted({*counts, *(f"invariant {number}" for number in INVARIANTS)})}


def read_book() -> dict[str, Any]:
    if not RESULT.exists():
        return {}
    book: dict[str, Any] = json.loads(RESULT.read_text(encoding="utf-8"))
    return book


def write_book(verdicts: Sequence[Verdict], seconds: float) -> None:
    """Those that were not run this time keep what is known about them."""
    known = {entry["name"]: entry for entry in read_book().get("faults", ())}
    for verdict in verdicts:
        hint = known.get(verdict.name, {}).get("look", "") if not verdict.caught else ""
        known[verdict.name] = {**asdict(verdict), "look": verdict.look or hint}
    entries = [known[fault.name] for fault in FAULTS if fault.name in known]
    book = {
        "commit": _commit(),
        "faults_in_list": len(FAULTS),
        "caught": sum(entry["caught"] for entry in entries),
        "survived": [entry["name"] for entry in entries if not entry["caught"]],
        "caught_by": dict(sorted(Counter(entry["by"] for entry in entries if entry["caught"]).items())),
        "seconds": round(seconds, 1),
        "faults": entries,
    }
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(book, indent=2) + "\n", encoding="utf-8")


def _commit() -> str:
    git = ["git", "describe", "--always", "--dirty"]
    said = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=False)
    return said.stdout.strip() or "unknown"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutations", description="Deliberate faults, and who notices."
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these faults")
    parser.add_argument("--sample", type=int, metavar="N", help="only so many, always the same")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--src", type=Path, help="another source folder than this checkout's")
    options = parser.parse_args()
    faults = [fault for fault in FAULTS if not options.only or fault.name in options.only]
    unknown = set(options.only or ()) - {fault.name for fault in FAULTS}
    if unknown:
        parser.error(f"no such fault: {', '.join(sorted(unknown))}")
    if options.sample:
        faults = sample(options.sample)
    began = time.monotonic()
    verdicts = run(faults, jobs=options.jobs, src=options.src, loud=True)
    seconds = time.monotonic() - began
    survivors = [verdict.name for verdict in verdicts if not verdict.caught]
    print(f"\n{len(verdicts) - len(survivors)} of {len(verdicts)} caught in {seconds:.0f} s")
    for by, count in tally(verdicts).items():
        print(f"  {by:14} {count}")
    idle = [by for by, count in tally(verdicts).items() if not count] if len(faults) == len(FAULTS) else []
    for by in idle:
        print(f"  {by} has caught nothing: add a fault that breaks it")
    return 1 if survivors or idle else 0
