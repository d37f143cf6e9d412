"""Preemptions of real trainings at random moments, as often as one likes: what is lost, and that nothing else is.

    python -m tests.local.preempting --preemptions 100     goes on where the last run stopped, if the source is the same
    python -m tests.local.preempting --round 7             one round again, under both policies

A round is one store and a queue of trainings that has borrowed nearly everything: alone, in gangs and elastic, some
that save when asked and some that do not. Guaranteed work of two other queues arrives at moments that the number of
the round decides. Then: has every step been run on the state it belongs to, has every resume begun at the newest
checkpoint, is every end as if undisturbed, and is nothing left behind? The same arrivals are played again under a
policy that asks the newest first, and what both threw away is compared. What has passed is written to
benchmarks/results/preempting.json after every round.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.local.preemption_rounds import ARRIVALS, POLICIES, Outcome, play

HERE = Path(__file__).resolve().parent
RESULT = HERE.parents[1] / "benchmarks" / "results" / "preempting.json"
ROUNDS = ("newest_first.py", "preemption_rounds.py", "training.py", "trails.py")
"""What a round is; another one is not to be added to the same sums."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preemptions", type=int, default=100)
    parser.add_argument("--round", type=int)
    chosen = parser.parse_args()
    if chosen.round is not None:
        outcomes = _play(chosen.round)
        print(json.dumps({policy: asdict(outcome) for policy, outcome in outcomes.items()}, indent=2))
        return any(outcome.wrong for outcome in outcomes.values())
    book = _book()
    while (done := _preemptions(book, "default")) < chosen.preemptions:
        outcomes = _play(len(book["rounds"]) + 1)
        book["rounds"].append({policy: asdict(outcome) for policy, outcome in outcomes.items()})
        book["sums"] = _sums(book["rounds"])
        RESULT.write_text(json.dumps(book, indent=1) + "\n")
        wrong = [f"{policy}: {text}" for policy, outcome in outcomes.items() for text in outcome.wrong]
        done = _preemptions(book, "default")
        print(f"{done} of {chosen.preemptions} preemptions: {'; '.join(wrong) or 'nothing is wrong'}", flush=True)
    print(_table(book["sums"]))
    lost = {policy: one["lost_gpu_seconds"] for policy, one in book["sums"]["all"].items()}
    book["met"] = lost["default"] < lost["newest-first"]
    RESULT.write_text(json.dumps(book, indent=1) + "\n")
    if not book["met"]:
        print(f"more is thrown away than by asking the newest first: {lost}")
    return not book["met"] or any(outcome["wrong"] for one in book["rounds"] for outcome in one.values())


def _play(number: int) -> dict[str, Outcome]:
    """Under both policies; which comes first alternates."""
    found = {}
    for policy in sorted(POLICIES, reverse=bool(number % 2)):
        with tempfile.TemporaryDirectory() as folder:
            try:
                found[policy] = play(number, ARRIVALS, Path(folder), policy)
            except Exception as error:  # noqa: BLE001 - whatever it is, it went wrong, and is written down
                found[policy] = Outcome(wrong=[f"{type(error).__name__}: {error}"])
    return {policy: found[policy] for policy in POLICIES}


def _book() -> dict[str, Any]:
    """What the last run with the same source and the same kind of rounds has written."""
    tree = subprocess.run(["git", "rev-parse", "--short", "HEAD:src"], capture_output=True, text=True, check=False)
    rounds = hashlib.sha256(b"".join((HERE / name).read_bytes() for name in ROUNDS)).hexdigest()[:7]
    about = {"source": tree.stdout.strip(), "kind_of_rounds": rounds}
    book: dict[str, Any] = json.loads(RESULT.read_text()) if RESULT.is_file() else {}
    if {name: book.get(name) for name in about} != about:
        book = {**about, "sums": {}, "rounds": []}
    return book


def _preemptions(book: dict[str, Any], policy: str) -> int:
    return sum(sum(one[policy]["preemptions"].values()) for one in book["rounds"])


def _sums(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    kinds = {"some save when asked": rounds[0::2], "nearly nobody saves when asked": rounds[1::2], "all": rounds}
    return {kind: {policy: _sum([one[policy] for one in some]) for policy in POLICIES} for kind, some in kinds.items()}


def _sum(outcomes: list[dict[str, Any]]) -> dict[str, Any]:
    lost = [each for outcome in outcomes for each in outcome["lost"].values()]
    return {
        "rounds": len(outcomes),
        "preemptions": sum(sum(outcome["preemptions"].values()) for outcome in outcomes),
        "lost_steps": sum(each["steps"] for each in lost),
        "lost_gpu_seconds": round(sum(each["gpu_seconds"] for each in lost), 1),
        "wrong": sum(len(outcome["wrong"]) for outcome in outcomes),
    }


def _table(sums: dict[str, Any]) -> str:
    lines = [
        "| rounds | victims | preemptions | steps thrown away | GPU-seconds thrown away |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    for kind, policies in sums.items():
        for policy, one in policies.items():
            numbers = f"{one['preemptions']} | {one['lost_steps']} | {one['lost_gpu_seconds']}"
            lines.append(f"| {one['rounds']}, {kind} | {policy} | {numbers} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
