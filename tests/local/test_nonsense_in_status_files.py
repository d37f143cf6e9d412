"""A job writes what it likes into its status file: it is told what was not taken, and nobody else notices."""

from __future__ import annotations

import json
import math
import os
import random
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from optimus.drivers.local import line, saying
from optimus.drivers.local.progress import Progress
from optimus.inside.status import plain
from tests.local.machines import Up, until
from tests.local.test_a_turn_of_the_body import Machine, job

WRITE = "import os,sys,time; f=os.environ['OPTIMUS_STATUS_FILE']\n"
STAY = "\ntime.sleep(1000)"
JOBS = {
    "seed": "import optimus,time\noptimus.report(step=1, seed=2**70, longest=1 << 100000)\ntime.sleep(1000)",
    "deep": f"{WRITE}open(f,'w').write('['*20000 + ']'*20000){STAY}",
    "deep-inside": f"{WRITE}open(f,'w').write('{{\"a\":'*500 + '1' + '}}'*500){STAY}",
    "hardly": WRITE + "n=0.0\nwhile 1: open(f,'w').write('{\"fraction\": %r}' % n); n=5e-324; time.sleep(1.2)",
    "long-ago": f"{WRITE}open(f,'w').write('{{\"last_checkpoint_ms\": -1%s}}' % ('0'*30)){STAY}",
    "raw-seed": f'{WRITE}open(f,\'w\').write(\'{{"step": 7, "metrics": {{"seed": %d}}}}\' % 2**70){STAY}',
    "far-future": f"{WRITE}open(f,'w').write('{{\"fraction\": 0.5}}'); os.utime(f, (1 << 40, 1 << 40)){STAY}",
    "pipe": f"{WRITE}os.mkfifo(f){STAY}",
    "endless": f"{WRITE}os.symlink('/dev/zero', f){STAY}",
    "folder": f"{WRITE}os.mkdir(f){STAY}",
    "huge": f"{WRITE}open(f,'w').write(' ' * (1 << 24)){STAY}",
    "garbage": f"{WRITE}open(f,'wb').write(bytes(range(256))){STAY}",
    "list": f"{WRITE}open(f,'w').write('[1]'){STAY}",
}
TOLD = {
    "deep": "it is nested too deep",
    "deep-inside": "left out of what it says of itself: a.a.a.a.a.a.a.a",
    "raw-seed": "left out of what it says of itself: metrics.seed",
    "long-ago": "left out of what it says of itself: last_checkpoint_ms",
    "pipe": "it is no file",
    "endless": "it is no file",
    "folder": "it is no file",
    "huge": "it is larger than 64 KiB",
    "garbage": "it is no JSON",
    "list": "it is no JSON object",
}
"""What each hears of it, once."""


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    machine = Up(tmp_path, "--nodes", "1", "--gpus", str(len(JOBS) + 1))
    yield machine
    machine.end()


def test_a_scheduler_outlives_whatever_its_jobs_say(up: Up) -> None:
    documents = [document(name, program) for name, program in JOBS.items()]
    assert up.cli("submit", "-", stdin="\n---\n".join(documents)).returncode == 0
    for name, text in TOLD.items():
        until(partial(hears, up, name, text), f"{name} hears: {text}")
    until(lambda: up.job("seed")["progress"], "the one that uses the library has said something")
    said = up.job("seed")["progress"]
    assert said["step"] == 1 and said["metrics"]["seed"] == str(2**70)
    assert up.job("raw-seed")["progress"] == {"step": 7, "metrics": {}}

    up.kill()
    up.start()  # it finds all of that again
    for name in JOBS:
        assert up.phase(name) == "Running"
        up.api.delete(f"/v1/jobs/default/{name}")
    for name in JOBS:
        up.reaches(name, "Cancelled")
    assert up.cli("get", "jobs").returncode == 0
    for name in TOLD:
        assert 1 <= len(complaints(up, name)) <= 2, "once by each scheduler"
    assert "Traceback" not in up.stop()


def document(name: str, program: str) -> str:
    spec = {"command": [sys.executable, "-c", program], "gpu": 1}
    return json.dumps({"kind": "UnifiedJob", "metadata": {"name": name}, "spec": spec})


def hears(up: Up, name: str, text: str) -> bool:
    return any(text in complaint for complaint in complaints(up, name))


def complaints(up: Up, name: str) -> list[str]:
    events = up.api.get(f"/v1/jobs/default/{name}/events")
    return [event["text"] for event in events if event["code"] == "StatusIgnored"]


# -- the reader by itself -----------------------------------------------------------------------------------------


def junk(dice: random.Random, depth: int = 0) -> Any:
    """Anything that can be written as JSON, and some that cannot."""
    leaves: list[Any] = [
        None,
        True,
        dice.choice((0, -1, 2**63 - 1, 2**63, -(2**63) - 1, 10**400)),
        dice.choice((0.0, 5e-324, 1.7e308, math.nan, math.inf, -math.inf)),
        "".join(chr(dice.choice((0, 34, 92, 0x7F, 0xD800, 0xFFFF, 0x1F600))) for _ in range(dice.randrange(4))),
    ]
    if depth > 12 or dice.random() < 0.3:
        return dice.choice(leaves)
    names = ("fraction", "last_checkpoint_ms", "leaves_in_s", "step", "metrics", "checkpoint", "", "ü\n")
    inside = [junk(dice, depth + 1) for _ in range(dice.randrange(4))]
    return inside if dice.random() < 0.4 else {dice.choice(names): one for one in inside}


def damaged(dice: random.Random, raw: bytes) -> bytes:
    """As a disk or a half-finished write leaves it."""
    kind = dice.randrange(4)
    if kind == 0:
        return raw[: dice.randrange(len(raw) + 1)]
    if kind == 1:
        at = dice.randrange(len(raw) + 1)
        return raw[:at] + dice.randbytes(3) + raw[at:]
    return raw


@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_in_the_file_can_be_passed_on_or_is_refused_in_words(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    machine = Machine(tmp_path)
    machine.submit(job("train", gpus=2, saves=True))
    machine.runs()
    progress = Progress(machine.body)
    file = machine.body.folder_of(machine.hands.spawned[-1].start) / "status.json"
    file.parent.mkdir(parents=True)
    taken = 0
    for number in range(1, 201):
        file.write_bytes(damaged(dice, json.dumps(junk(dice)).encode("utf-8", "surrogatepass")))
        when = dice.choice((number, -number, number << 33))
        os.utime(file, (when, when))
        progress.look()
        said = machine.body.progress.get("default/train", {})
        line.packed(line.News(1, {"default/train": said}))
        json.dumps(said, allow_nan=False)
        machine.turn(after_s=1)
        taken += bool(said)
    assert taken, "some of it was worth something"


def test_a_file_that_is_half_written_is_nothing_to_complain_of(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.submit(job("train", gpus=2))
    machine.runs()
    progress = Progress(machine.body)
    file = machine.body.folder_of(machine.hands.spawned[-1].start) / "status.json"
    file.parent.mkdir(parents=True)
    for _ in range(3):
        file.write_text('{"step"')
        progress.look()
        file.write_text('{"step": 1}')
        os.utime(file, ns=(file.stat().st_mtime_ns + 1,) * 2)
        progress.look()
    machine.turn()
    assert machine.body.progress["default/train"] == {"step": 1}
    assert "StatusIgnored" not in [one.code for one in machine.body.store.happenings("default/train")]


def test_nothing_new_is_not_read_again(tmp_path: Path) -> None:
    file = tmp_path / "status.json"
    assert saying.read(file) is None
    file.write_text('{"step": 1}')
    said = saying.read(file)
    assert said is not None and said.words == {"step": 1}
    assert saying.read(file, said.written_ns) is None


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (7, 7),
        (True, True),
        (2**63 - 1, 2**63 - 1),
        (-(2**63), str(-(2**63))),
        (2**70, "1180591620717411303424"),
        (math.inf, "inf"),
        (1 << 100_000, hex(1 << 100_000)[:200]),
    ],
    ids=range(7),
)
def test_what_the_library_writes_every_reader_has(value: Any, written: Any) -> None:
    assert plain(value) == written
