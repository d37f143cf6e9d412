"""The store does not grow without bound: what is over is cleared away, what is not is never touched."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import structs

from optimus.client import Unreachable
from optimus.client.waiting import lines
from optimus.drivers.local import retention
from optimus.drivers.local.keeping.cutting import cut
from optimus.drivers.local.retention import Keep, Retention
from optimus.drivers.local.store import Submitted
from optimus.drivers.local.web.logs import Reading
from optimus.lives import Ended
from tests.local.machines import Up, until
from tests.local.test_a_turn_of_the_body import SECOND, Machine, job

MIB = 1 << 20
LOG = 2 * 4096


class Clearing(Machine):
    """Starts leave folders behind, as real ones do."""

    def __init__(self, folder: Path, keep: Keep) -> None:
        super().__init__(folder, gpus=8)
        self.retention = Retention(self.body, keep)
        self.done = 0
        self.count = 0
        (folder / "runs").mkdir()

    def comes(self, name: str, *, array: int = 0) -> Submitted:
        self.count += 1
        one = structs.replace(job(name, array=array), uid=f"{self.count:010x}", submitted_ms=self.now_ms)
        self.body.accept([one])
        self.play(ending=False)
        return one

    def play(self, *, ending: bool = True) -> None:
        """Turn by turn; `ending`: until all that was started has ended."""
        while True:
            self.turn(1)
            new = self.hands.spawned[self.done :] if ending else []
            for spawn in self.hands.spawned:
                if not (self.folder / "runs" / spawn.start).exists() and self.body.is_live(spawn.start):
                    (self.folder / "runs" / spawn.start).mkdir()
                    (self.folder / "runs" / spawn.start / "log").write_bytes(b"x" * LOG)
            if not new:
                return
            for spawn in new:
                self.body.saw_start(spawn.start, self.now_ms)
                (self.folder / "runs" / spawn.start / "exit").touch()
                self.body.saw_end(spawn.start, Ended(at_ms=self.now_ms, code=0))
            self.done += len(new)

    def clear(self) -> None:
        self.turn(1)
        for _ in range(100):
            if not self.retention.look(self.now_ms):
                self.turn(1)
                return
        raise AssertionError("it never comes to an end")

    def rows(self, table: str) -> int:
        return self.body.store._number(f"SELECT count(*) FROM {table}")

    def folders(self) -> set[str]:
        return set(os.listdir(self.folder / "runs"))


def test_thousands_of_parts_leave_a_bounded_store(tmp_path: Path) -> None:
    machine = Clearing(tmp_path, Keep(jobs=50, parts=300))
    seen = []
    for batch in range(4):
        for number in range(3):
            machine.comes(f"sweep-{batch}-{number}", array=250)
        machine.play()
        machine.clear()
        seen.append((machine.rows("jobs"), machine.rows("lives"), machine.rows("replicas"), len(machine.folders())))
    assert machine.done == 3_000, "all of it ran"
    assert seen == [(1, 250, 0, 250)] * 4, "jobs, parts, replicas, folders: after each batch the same"
    assert len(machine.body.lives) == 250 and not machine.body._workload_of_start


def test_the_last_job_is_remembered_however_large_it_is(tmp_path: Path) -> None:
    machine = Clearing(tmp_path, Keep(parts=100))
    machine.comes("small")
    machine.play()
    machine.comes("large", array=500)
    machine.play()
    machine.clear()
    assert list(machine.body.jobs) == ["default/large"]
    assert len(machine.folders()) == 100, "but not the folders of all its starts"


def test_jobs_are_forgotten_oldest_first_and_in_their_time(tmp_path: Path) -> None:
    machine = Clearing(tmp_path, Keep(jobs=3))
    for number in range(5):
        machine.comes(f"job-{number}")
        machine.play()
    machine.clear()
    assert list(machine.body.jobs) == ["default/job-2", "default/job-3", "default/job-4"]
    machine.turn(retention.KEEP_MS // SECOND + 10)
    machine.clear()
    assert not machine.body.jobs and not machine.folders()


def test_folders_keep_to_their_bytes(tmp_path: Path) -> None:
    machine = Clearing(tmp_path, Keep(runs_mib=1))
    machine.comes("many", array=400)
    machine.play()
    machine.clear()
    each = retention._bytes_of(tmp_path / "runs" / next(iter(machine.folders())))
    assert each >= LOG
    assert len(machine.folders()) == MIB // each, "as many as fit, of 400"
    assert {int(start.split("-")[1]) for start in machine.folders()} > {399}, "the newest"


def test_what_runs_is_never_touched(tmp_path: Path) -> None:
    machine = Clearing(tmp_path, Keep(jobs=1, parts=1, runs_mib=0))
    machine.comes("first", array=8)
    running = machine.folders()
    assert len(running) == 8
    machine.turn(2 * retention.KEEP_MS // SECOND)
    machine.clear()
    assert machine.folders() == running and list(machine.body.jobs) == ["default/first"]


def test_an_end_that_is_not_written_down_keeps_its_folder(tmp_path: Path) -> None:
    machine = Clearing(tmp_path, Keep(runs_mib=0))
    machine.comes("one")
    machine.play()
    machine.body.unwritten = True
    assert not machine.retention.look(machine.now_ms)
    assert len(machine.folders()) == 1


def test_folders_that_a_killed_scheduler_left_are_found(tmp_path: Path) -> None:
    machine = Clearing(tmp_path, Keep())
    for name, ended in (("00000000aa-1-worker-0-5", True), ("00000000ab-1-worker-0-5", False)):
        (tmp_path / "runs" / name).mkdir()
        if ended:
            (tmp_path / "runs" / name / "exit").touch()
    machine.clear()
    assert machine.folders() == {"00000000ab-1-worker-0-5"}, "one whose end is not on record may still run"


def test_a_log_without_end_keeps_its_first_and_its_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("ab") as writing:
        for number in range(1_200_000):
            writing.write(b"line %9d\n" % number)
            if number % 100_000 == 0:
                writing.flush()
                cut(log, 4 * MIB)
        writing.flush()
        cut(log, 4 * MIB)
        if log.stat().st_blocks * 512 == log.stat().st_size:
            pytest.skip("this file system has no holes")
        writing.write(b"the end\n")
    assert log.stat().st_blocks * 512 <= 5 * MIB < log.stat().st_size
    reading, texts = Reading(log, "worker-0", "start", 1), []
    while (more := reading.more(last=True)) is not None:
        texts += [line.text for line in reading.records(more, together=False)]
    assert texts[0] == "line         0" and texts[-2:] == ["line   1199999", "the end"]
    words = [line for line in texts if "optimus has cut" in line]
    assert len(words) == 1 and words[0].endswith("a log keeps at most 4 MiB, its first and its last lines")
    assert not any("\0" in line for line in texts)
    assert len(texts) * 15 < 5 * MIB


class Breaking:
    """A stand-in for the connection: the log is read as the server reads it, and the stream breaks off when told."""

    def __init__(self, log: Path, meanwhile: Callable[[], None]) -> None:
        self.log, self.times, self.meanwhile, self.address = log, 0, meanwhile, "here"

    def look_again(self) -> None:
        pass

    def get(self, _: str) -> dict[str, bool]:
        return {"final": True}

    def lines(self, _: str, **__: object) -> Iterator[dict[str, Any]]:
        self.times += 1
        reading = Reading(self.log, "worker-0", "start", 1)
        while (more := reading.more(last=True)) is not None:
            for line in reading.records(more, together=True):
                yield msgspec.to_builtins(line)
                if self.times == 1 and line.end == 15_000:
                    self.meanwhile()
                    raise Unreachable("it broke off")


@pytest.mark.parametrize("written", [150_000, 600_000])
def test_who_follows_a_log_that_is_cut_meanwhile_sees_each_line_once_or_is_told(tmp_path: Path, written: int) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"".join(b"line %9d\n" % number for number in range(1000)))

    def meanwhile() -> None:
        with log.open("ab") as writing:
            for number in range(1000, written):
                writing.write(b"line \xff%8d\n" % number)
        cut(log, 4 * MIB)

    broken: Any = Breaking(log, meanwhile)
    found = lines(broken, "default/one", follow=True, tail=None, replica="")
    texts = [text for line in found for text in line["text"].split("\n")]
    numbers = [int(text[6:]) for text in texts if text.startswith("line ") and len(text) == 14]
    assert numbers[:1000] == list(range(1000)) and numbers[-1] == written - 1
    assert len(set(numbers)) == len(numbers) and numbers == sorted(numbers), "no line twice"
    told = [text for text in texts if "were cut out before they were read" in text]
    if written < 300_000:
        assert numbers == list(range(written)) and not told, "nothing was cut"
    else:
        assert len(numbers) < written and len(told) == 1
        gone = written - len(numbers)
        assert abs(int(told[0].split()[1]) * 1024 - gone * 15) < 2 * 4096


def test_a_real_machine_says_what_it_has_forgotten(tmp_path: Path) -> None:
    machine = Up(tmp_path / "store", "--nodes", "1", "--gpus", "4", "--keep-jobs", "2", "--keep-parts", "3")
    try:
        machine.cli("run", "-d", "--name", "stays", "--", "sleep", "600")
        for name in ("one", "two", "three"):
            assert machine.cli("run", "--name", name, "--array", "2", "--", "echo", name).returncode == 0
        until(lambda: len(machine.api.get("/v1/jobs")) == 2, "only the last that is over is kept, and what runs")
        until(lambda: len(os.listdir(machine.folder / "runs")) == 3, "and their folders")
        assert machine.phase("stays") == "Running"
        for words in (("logs", "one"), ("describe", "one"), ("get", "job", "one")):
            ran = machine.cli(*words)
            assert ran.returncode == 1
            assert "there is no job default/one any more: it was over, and forgotten at " in ran.stderr, ran.stderr
        assert machine.cli("run", "--name", "wide", "--array", "5", "--", "echo", "hi").returncode == 0
        until(lambda: len(os.listdir(machine.folder / "runs")) == 4, "three starts that are over, and one that runs")
        gone = next(part for part in range(5) if machine.cli("logs", "wide", "--part", str(part)).returncode)
        told = machine.cli("logs", "wide", "--part", str(gone)).stderr
        assert (
            f"there is no output of part {gone} of default/wide: it has not run, or too much was written since" in told
        )
        machine.cli("run", "--name", "one", "--", "echo", "again")
        assert "Forgotten" not in machine.cli("describe", "one").stdout
    finally:
        machine.end()
