"""`kill -9` of a real `optimus up` at random moments under load, as often as one likes.

    python -m tests.local.killing --kills 200       goes on where the last run stopped, if the source is the same
    python -m tests.local.killing --round 7         one round again, to look at; it counts for nothing

A round is one store, a load of several kinds, ten kills at moments that its number decides, and then the question: has
everything run exactly as often as it should, is every state right, does the journal of it all replay, and is nothing
left behind? What was found is written to benchmarks/results/killing.json after every round, and stays there: a round
that went wrong once is wrong for this source.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.local.machines import Up, until

RESULT = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "killing.json"
KILLS = 10
PARTS = 60
RETRIES = 2
STEPS = 30
TRAIN = """
import optimus, sys, time
state = {"total": 0}
for step in optimus.steps(int(sys.argv[1]), state=state, every=1):
    state["total"] += step
    time.sleep(0.05)
print("total", state["total"])
"""


def play(number: int, kills: int, folder: Path) -> list[str]:
    """One round; what is wrong after it, in words."""
    luck = random.Random(number)
    ran, failed, script = folder / "ran.txt", folder / "failed.txt", folder / "train.py"
    script.write_text(TRAIN)
    machine = Up(folder / "store")
    try:
        _load(machine, ran, failed, script)
        for _ in range(kills):
            time.sleep(luck.uniform(0.0, 0.8))
            machine.kill()
            machine.start()
        names = ("parts", "broken", "train", "gone")
        until(lambda: all(machine.job(name)["final"] for name in names), "everything is over")
        return [*_wrong(machine, ran, failed), *machine.left_behind()]
    finally:
        machine.end()


def _load(machine: Up, ran: Path, failed: Path, script: Path) -> None:
    part = f"echo $OPTIMUS_PART >> {ran}; sleep 0.2"
    machine.cli("run", "-d", "--name", "parts", "--array", str(PARTS), "--", "bash", "-c", part)
    document = (
        "kind: UnifiedJob\nmetadata: {name: broken}\n"
        f"spec: {{command: [bash, -c, 'echo x >> {failed}; exit 3'], gpu: 1, "
        f"restart: {{backoffLimit: {RETRIES}, backoffSeconds: 1}}}}\n"
    )
    machine.cli("submit", "-", stdin=document)
    words = ["--name", "train", "--replicas", "2", "--checkpoint", "10", "--priority", "900", "--retries", "3"]
    machine.cli("run", "-d", *words, "--", sys.executable, str(script), str(STEPS))
    machine.cli("run", "-d", "--name", "gone", "--", "sleep", "600")
    machine.cli("cancel", "gone")


def _wrong(machine: Up, ran: Path, failed: Path) -> list[str]:
    wrong = []
    counts = machine.job("parts")["counts"]
    if counts != {"Succeeded": PARTS}:
        wrong.append(f"parts are {counts}")
    often = Counter(ran.read_text().split())
    again = often - Counter(set(often))
    if len(often) != PARTS or again.total() > machine.job("parts")["preemptions"]:
        wrong.append(f"of {PARTS} parts {len(often)} ran, again without being preempted: {sorted(again.items())[:5]}")
    tries = len(failed.read_text().split())
    if tries != RETRIES + 1 or machine.phase("broken") != "Failed":
        wrong.append(f"broken is {machine.phase('broken')} after {tries} tries")
    told = machine.cli("logs", "train").stdout
    if machine.phase("train") != "Succeeded" or told.count(f"total {STEPS * (STEPS - 1) // 2}") != 2:
        wrong.append(f"train is {machine.phase('train')}: {told[-200:]}")
    if machine.phase("gone") != "Cancelled":
        wrong.append(f"gone is {machine.phase('gone')}")
    replayed = json.loads(machine.cli("replay", "-o", "json").stdout)
    if replayed["equal"] != replayed["cycles"] or not replayed["cycles"] or replayed["flaws"]:
        wrong.append(f"of the journal {replayed['equal']} of {replayed['cycles']} cycles agree: {replayed['flaws']}")
    return wrong


def _played(number: int) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        try:
            return play(number, KILLS, Path(folder))
        except AssertionError as error:
            return [str(error)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--round", type=int)
    parser.add_argument("--anew", action="store_true", help="forget what has passed")
    chosen = parser.parse_args()
    if chosen.round is not None:
        with tempfile.TemporaryDirectory() as folder:
            wrong = play(chosen.round, KILLS, Path(folder))
        print("\n".join(wrong) or "nothing is wrong")
        return bool(wrong)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD:src"], capture_output=True, text=True, check=False)
    book: dict[str, Any] = json.loads(RESULT.read_text()) if RESULT.is_file() else {}
    if chosen.anew or book.get("source") != commit.stdout.strip():
        book = {"source": commit.stdout.strip(), "kills": 0, "rounds": 0, "wrong": {}}
    while book["kills"] < chosen.kills:
        number = book["rounds"] + 1
        wrong = _played(number)
        book["rounds"], book["kills"] = number, book["kills"] + KILLS
        if wrong:
            book["wrong"][str(number)] = wrong
        RESULT.write_text(json.dumps(book, indent=2, sort_keys=True) + "\n")
        print(f"{book['kills']} of {chosen.kills} kills: {'; '.join(wrong) or 'nothing is wrong'}", flush=True)
    return bool(book["wrong"])


if __name__ == "__main__":
    sys.exit(main())
