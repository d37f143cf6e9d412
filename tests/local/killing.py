"""`kill -9` of a real `optimus up` at random moments under load, as often as one likes.

    python -m tests.local.killing --kills 200       goes on where the last run stopped, if the source is the same
    python -m tests.local.killing --round 7         one round again, to look at; it counts for nothing

A round is one store, work of several kinds that keeps coming while the scheduler is killed ten times at moments that
the number of the round decides, and then the question: is everything there that was acknowledged, has it run exactly as
often as it should, is every state right, does the journal of it all replay, and is nothing left behind? A kill counts
only if work was running at that moment: a round with one that hit nobody is wrong. What was found is written to
benchmarks/results/killing.json after every round, and stays there: a round that went wrong once is wrong for this
source, and what went wrong for other sources is kept beside it.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from tests.local.killing_load import Waves
from tests.local.machines import Up, until

RESULT = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "killing.json"
KILLS = 10
STEPS = 6000
TRAIN = """
import optimus, os, sys, time
state = {"total": 0}
for step in optimus.steps(int(sys.argv[1]), state=state, every=20):
    state["total"] += step
    time.sleep(0 if os.path.exists(sys.argv[2]) else 0.05)
print("total", state["total"])
"""


class Played(NamedTuple):
    wrong: list[str]
    running: list[int]
    """At each kill: processes of ours that were at work."""
    waves: int
    unanswered: int
    """Waves of which nobody was told that they were taken."""


def play(number: int, kills: int, folder: Path) -> Played:
    luck = random.Random(number)
    script = folder / "train.py"
    script.write_text(TRAIN)
    machine = Up(folder / "store")
    running: list[int] = []
    try:
        words = ["--name", "train", "--replicas", "2", "--checkpoint", "10", "--priority", "900", "--retries", "3"]
        machine.cli("run", "-d", *words, "--", sys.executable, str(script), str(STEPS), str(folder / "hurry"))
        machine.reaches("train", "Running")
        waves = Waves(machine, folder, random.Random(luck.random()))
        until(lambda: waves.ran.stat().st_size, "the first part runs")
        for _ in range(kills):
            time.sleep(luck.uniform(0.0, 0.8))
            running.append(machine.at_work())
            machine.kill()
            machine.start()
        waves.end()
        (folder / "hurry").touch()
        waves.settle()
        until(lambda: waves.is_over() and machine.job("train")["final"], "everything is over")
        wrong = [*waves.wrong(), *_wrong(machine), *machine.left_behind()]
        if 0 in running:
            wrong.append(f"a kill hit nobody: {running} were running")
        return Played(wrong, running, len(waves.waves), sum(not wave.acknowledged for wave in waves.waves))
    finally:
        machine.end()


def _wrong(machine: Up) -> list[str]:
    wrong = []
    told = machine.cli("logs", "train").stdout
    if machine.phase("train") != "Succeeded" or told.count(f"total {STEPS * (STEPS - 1) // 2}") != 2:
        wrong.append(f"train is {machine.phase('train')}: {told[-200:]}")
    replayed = json.loads(machine.cli("replay", "-o", "json").stdout)
    if replayed["equal"] != replayed["cycles"] or not replayed["cycles"] or replayed["flaws"]:
        wrong.append(f"of the journal {replayed['equal']} of {replayed['cycles']} cycles agree: {replayed['flaws']}")
    return wrong


def _played(number: int) -> Played:
    with tempfile.TemporaryDirectory() as folder:
        try:
            return play(number, KILLS, Path(folder))
        except Exception as error:  # noqa: BLE001 - whatever it is, it went wrong, and is written down
            return Played([f"{type(error).__name__}: {error}"], [], 0, 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--round", type=int)
    parser.add_argument("--anew", action="store_true", help="forget what has passed")
    chosen = parser.parse_args()
    if chosen.round is not None:
        played = _played(chosen.round)
        print(json.dumps(played._asdict(), indent=2))
        return bool(played.wrong)
    book = _book(anew=chosen.anew)
    while book["kills"] < chosen.kills:
        number = book["rounds"] + 1
        played = _played(number)
        book["rounds"], book["kills"] = number, book["kills"] + KILLS
        book["kills_that_hit_work"] += sum(count > 0 for count in played.running)
        book["processes_hit"] += sum(played.running)
        book["waves"] += played.waves
        book["waves_without_an_answer"] += played.unanswered
        if played.wrong:
            book["wrong"][str(number)] = played.wrong
        RESULT.write_text(json.dumps(book, indent=2, sort_keys=True) + "\n")
        print(f"{book['kills']} of {chosen.kills} kills: {'; '.join(played.wrong) or 'nothing is wrong'}", flush=True)
    return bool(book["wrong"])


def _book(*, anew: bool) -> dict[str, Any]:
    tree = subprocess.run(["git", "rev-parse", "--short", "HEAD:src"], capture_output=True, text=True, check=False)
    source = tree.stdout.strip()
    book: dict[str, Any] = json.loads(RESULT.read_text()) if RESULT.is_file() else {}
    if book.get("source") == source and not anew:
        return book
    before = book.get("wrong_before", {})
    if book.get("wrong"):
        before = {**before, book["source"]: book["wrong"]}
    counts = dict.fromkeys(("kills", "kills_that_hit_work", "processes_hit", "rounds", "waves"), 0)
    return {"source": source, **counts, "waves_without_an_answer": 0, "wrong": {}, "wrong_before": before}


if __name__ == "__main__":
    sys.exit(main())
