"""A replica that vanishes with its supervisor starts again, and the events of its job say why."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from optimus.lives import Ended
from tests.local.machines import Up, until
from tests.local.test_a_turn_of_the_body import Machine, job

LOST = "replica worker-0 vanished, and nobody knows how it ended"


def told(machine: Machine, name: str) -> list[tuple[str, str]]:
    return [(one.code, one.text) for one in machine.body.store.happenings(f"default/{name}")]


def test_a_job_of_one_replica_that_is_lost_says_so_before_it_starts_again(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.submit(job("a"))
    machine.runs()
    machine.body.saw_end(machine.hands.spawned[-1].start, Ended(at_ms=0, lost=True))
    machine.turn()
    codes = [code for code, _ in told(machine, "a")]
    assert codes == ["Submitted", "Admitted", "Lost", "Admitted"] and ("Lost", LOST) in told(machine, "a")
    assert machine.body.lives["default/a"].failures == 0


def test_a_gang_of_which_one_is_lost_says_so_once(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.submit(job("gang", replicas=2))
    machine.runs()
    first, second = (one.start for one in machine.hands.spawned)
    machine.body.saw_end(first, Ended(at_ms=0, lost=True))
    machine.turn(after_s=1)
    machine.body.saw_end(second, Ended(at_ms=1000, signal=15))
    machine.turn(after_s=1)
    assert [code for code, _ in told(machine, "gang")] == ["Submitted", "Admitted", "Lost", "Admitted"]


def test_a_failure_that_is_tried_again_is_told_once(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.submit(job("a"))
    machine.runs()
    machine.ends("a", code=3)
    assert [code for code, _ in told(machine, "a")].count("Failed") == 1
    assert ("Failed", "replica worker-0 exited with code 3") in told(machine, "a")


def test_the_supervisor_of_a_real_job_is_killed(tmp_path: Path) -> None:
    up = Up(tmp_path / "store", "--nodes", "1", "--gpus", "1")
    try:
        up.cli("run", "-d", "--name", "one", "--gpus", "1", "--", "sleep", "600")
        up.reaches("one", "Running")
        os.kill(supervisor_of(up), signal.SIGKILL)
        until(lambda: up.job("one")["attempt"] == 2 and up.phase("one") == "Running", "it runs again")
        events = [(one["code"], one["text"]) for one in up.api.get("/v1/jobs/default/one/events")]
    finally:
        up.end()
    assert ("Lost", LOST) in events


def supervisor_of(up: Up) -> int:
    """The parent of its process."""
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"OPTIMUS_ATTEMPT_FOLDER={up.folder}".encode() in environ.read_bytes():
                status = (environ.parent / "status").read_text()
                if (environ.parent / "comm").read_text() == "sleep\n":
                    return int(status.split("PPid:")[1].split()[0])
        except OSError:
            continue
    raise AssertionError("no process of it is there")
