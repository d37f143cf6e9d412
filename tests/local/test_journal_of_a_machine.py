"""The journal that a real `optimus up` keeps: killed at any moment it replays, and it stands in nobody's way."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from optimus.drivers.local.journaling import FOLDER, begin_journal
from optimus.drivers.sim.standing import read_state, standings
from optimus.engine.copying import read_copy
from optimus.engine.engine import Engine, ReplayEngine
from optimus.engine.journal import Journal, Opened, replay
from optimus.model.observations import Tick
from tests.local.machines import Up, until

ORDER = """
import numpy as np

def small_first(workloads):
    "Who asks for least goes first."
    return np.asarray(workloads.size_milli)
"""
FULL = 'mount -t tmpfs -o size=16k,nr_inodes=0 none {journal} || exit 77; exec "$@"'


def test_a_killed_one_replays_bit_by_bit_and_the_next_goes_on_with_it(tmp_path: Path) -> None:
    machine = Up(tmp_path / "store")
    try:
        for name in ("one", "two"):
            machine.cli("run", "-d", "--name", name, "--array", "20", "--", "sleep", "0.1")
            machine.kill()
            machine.start()
        until(lambda: all(machine.job(name)["final"] for name in ("one", "two")), "all of it ends")
        for restore in (True, False):
            replayed = list(replay(machine.folder / FOLDER, ReplayEngine, restore_each_keyframe=restore))
            assert all(one.equal for one in replayed), next(one.difference for one in replayed if not one.equal)
        assert [one.cycle.sequence for one in replayed] == list(range(len(replayed))), "and no cycle is missing"
        told = machine.cli("replay")
        assert told.returncode == 0 and "cycles agree" in told.stdout, told.stderr
        opened = [one for one in Journal(machine.folder / FOLDER).read() if isinstance(one, Opened)]
        assert len(opened) == 3 and not any(one.continues for one in opened), "one for each start"
    finally:
        machine.end()


def test_the_policy_that_decided_is_kept_though_its_file_changes(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(ORDER)
    machine = Up(tmp_path / "store", "--nodes", "1", "--gpus", "2", "--policy", f"{file}:small_first")
    try:
        machine.cli("run", "-d", "--name", "wide", "--gpus", "2", "--", "sleep", "600")
        machine.reaches("wide", "Running")
        machine.cli("run", "-d", "--name", "two", "--gpus", "2", "--", "true")
        machine.cli("run", "-d", "--name", "one", "--gpus", "1", "--", "true")
        told = json.loads(machine.cli("explain", "two", "--no-forecast", "-o", "json").stdout)
        assert told["ahead"] == ["default/one"], "it decides"
        file.write_text(ORDER.replace("return ", "return -"))
        replayed = json.loads(machine.cli("replay", "-o", "json").stdout)
        assert replayed["equal"] == replayed["cycles"] > 0
        (kept,) = replayed["policies"]
        assert kept.startswith(str(machine.folder / "policies" / "mine-")) and kept.endswith(".py:small_first")
    finally:
        machine.end()


def test_a_policy_that_cannot_be_used_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def order(:\n")
    machine = Up(tmp_path / "store")
    try:
        for policy, why in (("nonsense", "there is no policy 'nonsense'"), (f"{tmp_path}/broken.py:order", "line 1")):
            refused = machine.cli("up", "--port", "0", "--store", str(tmp_path / "other"), "--policy", policy)
            assert refused.returncode == 2 and why in refused.stderr and "Traceback" not in refused.stderr
        refused = machine.cli("up", "--journal", "lots")
        assert refused.returncode == 2 and "write a size such as 512Mi" in refused.stderr
    finally:
        machine.end()


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="needs a small file system of its own")
def test_a_full_disk_leaves_a_gap_and_a_word_and_work_goes_on(tmp_path: Path) -> None:
    journal = tmp_path / "store" / FOLDER
    journal.mkdir(parents=True)
    machine = Up(tmp_path / "store", inside=("unshare", "-m", "sh", "-c", FULL.format(journal=journal), "sh"))
    try:
        machine.cli("run", "-d", "--name", "parts", "--array", "60", "--", "true")
        machine.reaches("parts", "Succeeded")
        assert machine.job("parts")["counts"] == {"Succeeded": 60}
        told = machine.stop()
        assert "not recorded: [Errno 28] No space left on device; cycles are lost until" in told, told
    finally:
        machine.end()


def test_without_a_place_for_it_there_is_a_word_and_no_journal_and_work_goes_on(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / FOLDER).touch()
    machine = Up(tmp_path / "store")
    try:
        assert machine.cli("run", "--", "echo", "done").stdout == "done\n"
        refused = machine.cli("replay")
        assert refused.returncode == 2 and "`optimus up` keeps one" in refused.stderr
        (machine.folder / FOLDER).unlink()
        until(lambda: any((machine.folder / FOLDER).glob("*.journal")), "it is begun as soon as that is possible")
        assert machine.cli("replay").returncode == 0
        told = machine.stop()
        assert "nothing can be recorded" in told and "recording again from cycle" in told, told
    finally:
        machine.end()


def test_nobody_has_to_keep_one(tmp_path: Path) -> None:
    machine = Up(tmp_path / "store", "--journal", "0")
    try:
        assert machine.cli("run", "--", "echo", "done").stdout == "done\n"
        assert not (machine.folder / FOLDER).exists()
    finally:
        machine.end()


@pytest.mark.parametrize(("kept_mib", "days"), [(512, 7), (1, 3)], ids=["in age", "in size"])
def test_it_is_bounded(kept_mib: int, days: int, tmp_path: Path) -> None:
    """Two weeks of ticks; of the small one less than a week has room."""
    engine = Engine()
    writer = begin_journal(engine, tmp_path, kept_mib, 0)
    assert writer is not None
    day_ms = 86_400_000
    for tick in range(20_000):
        engine.step([Tick()], tick * 14 * day_ms // 20_000)
    writer.close()
    files = list((tmp_path / FOLDER).glob("*.journal"))
    assert sum(file.stat().st_size for file in files) < (kept_mib << 20) + (1 << 19)
    kept = [one.now_ms for one in Journal(tmp_path / FOLDER).read() if isinstance(one, Opened)]
    assert abs(14 * day_ms - min(kept) - days * day_ms) < day_ms


def test_after_a_restart_it_is_known_how_long_work_ran_before(tmp_path: Path) -> None:
    machine = Up(tmp_path / "store")

    def elapsed_ms() -> int:
        copied = read_copy(machine.api.raw("/v1/state"))
        (one,) = standings(read_state(copied.state), copied.now_ms)
        return one.elapsed_ms

    try:
        machine.cli("run", "-d", "--name", "long", "--", "sleep", "600")
        machine.reaches("long", "Running")
        until(lambda: elapsed_ms() > 1_000, "it has run for a while")
        machine.cli("suspend", "long")
        machine.reaches("long", "Suspended")
        before = elapsed_ms()
        machine.kill()
        machine.start()
        assert elapsed_ms() == before > 1_000
        machine.cli("resume", "long")
        machine.reaches("long", "Running")
        machine.kill()
        machine.start()
        assert elapsed_ms() > before, "its first attempt counts, too"
        replayed = json.loads(machine.cli("replay", "-o", "json").stdout)
        assert replayed["equal"] == replayed["cycles"]
    finally:
        machine.end()
