"""The loop of one machine, told as stories. The processes are played (`PlayedHands`); `keeping` has the real ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from optimus.drivers.local.body import Body
from optimus.drivers.local.hands import Ask, Spawn
from optimus.drivers.local.machine import virtual_nodes
from optimus.drivers.local.store import Store, StoreError, Submitted
from optimus.engine.engine import Engine
from optimus.lives import Ended, JobPhase, phase_of
from optimus.model.jobs import Job, Template
from optimus.model.queues import Queue
from optimus.model.reasons import Code
from optimus.model.workloads import Checkpoint, Group, Request, Role, Workload

SECOND = 1000


@dataclass
class PlayedHands:
    """No process is started: the story says what became of each."""

    spawned: list[Spawn] = field(default_factory=list)
    asked: list[tuple[str, str]] = field(default_factory=list)
    savers: list[Ask] = field(default_factory=list)
    killed: list[str] = field(default_factory=list)

    def spawn(self, asked: Spawn) -> None:
        assert asked.start not in [one.start for one in self.spawned], "a start is used twice"
        self.spawned.append(asked)

    def ask(self, asked: Ask) -> None:
        self.asked.append((asked.start, asked.signal))
        self.savers += [asked] if asked.command else []

    def kill(self, start: str) -> None:
        self.killed.append(start)


def job(
    name: str, *, gpus: int = 1, replicas: int = 1, saves: bool = False, array: int = 0, priority: int = 0
) -> Submitted:
    role = Role(name="worker", min=replicas, max=replicas, request=Request(gpu_count=gpus))
    workload = Workload(
        id=f"default/{name}",
        queue="default",
        gang=Group(roles=(role,)),
        checkpoint=Checkpoint(grace_ms=5 * SECOND) if saves else None,
        priority=priority or None,
        restart_cost_ms=0,
    )
    told = Job(workload=workload, template=Template(command=("train", name)), array=array)
    return Submitted(job=told, uid=f"uid-{name}", submitted_ms=0, where="/work")


class Machine:
    """One body at a time on one store; `dies` is `kill -9`."""

    def __init__(self, folder: Path, nodes: int = 1, gpus: int = 2) -> None:
        self.folder = folder
        self.nodes = virtual_nodes(nodes, gpus)
        self.now_ms = 0
        self.hands = PlayedHands()
        self.body = self._body()
        self.body.open()
        self.body.put_queue(Queue(name="default"))

    def _body(self) -> Body:
        return Body(Store(self.folder), Engine(), self.hands, self.nodes)

    def turn(self, after_s: float = 0) -> None:
        self.now_ms += round(after_s * SECOND)
        self.body.turn(self.now_ms)
        while self.body.restless:
            self.body.turn(self.now_ms)

    def submit(self, *jobs: Submitted) -> None:
        for one in jobs:
            self.body.submit(one)
        self.turn()

    def runs(self, *names: str) -> None:
        for one in self.hands.spawned:
            if one.command[1] in names or not names:
                self.body.saw_start(one.start, self.now_ms)
        self.turn()

    def ends(self, name: str, code: int | None = 0, signal: int | None = None) -> None:
        one = [one for one in self.hands.spawned if one.command[1] == name][-1]
        self.body.saw_end(one.start, Ended(at_ms=self.now_ms, code=code, signal=signal))
        self.turn()

    def dies(self) -> list[str]:
        """And comes again; says which starts it asks about."""
        self.body.store.close()
        self.body = self._body()
        return self.body.open()

    def phase(self, name: str) -> JobPhase:
        life = self.body.lives[f"default/{name}"]
        replicas = list(self.body.replicas.get(life.workload, {}).values())
        return phase_of(self.body.workload(life.workload), life, replicas)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_job_is_started_where_the_brain_put_it(machine: Machine) -> None:
    machine.submit(job("a", gpus=2))
    (spawn,) = machine.hands.spawned
    assert spawn.command == ("train", "a") and spawn.workdir == "/work"
    assert spawn.environment["CUDA_VISIBLE_DEVICES"] == "0,1"
    assert spawn.environment["OPTIMUS_REASON"] == "first start"
    assert machine.phase("a") is JobPhase.STARTING
    machine.runs()
    assert machine.phase("a") is JobPhase.RUNNING
    machine.ends("a")
    assert machine.phase("a") is JobPhase.SUCCEEDED


def test_who_finds_no_room_waits_with_a_reason_and_starts_when_there_is(machine: Machine) -> None:
    machine.submit(job("a", gpus=2), job("b", gpus=2))
    machine.runs()
    assert machine.phase("b") is JobPhase.PENDING
    assert "default/b" in machine.body.waiting
    machine.ends("a")
    assert [one.command[1] for one in machine.hands.spawned] == ["a", "b"]
    assert "default/b" not in machine.body.waiting


def test_an_array_is_many_workloads_and_one_job(machine: Machine) -> None:
    machine.submit(job("many", array=3))
    assert len(machine.hands.spawned) == 2
    parts = [one.environment["OPTIMUS_PART"] for one in machine.hands.spawned]
    assert parts == ["0", "1"]
    machine.runs()
    machine.body.saw_end(machine.hands.spawned[0].start, Ended(at_ms=0, code=0))
    machine.turn()
    assert machine.hands.spawned[-1].environment["OPTIMUS_PART"] == "2"
    assert machine.body.store.ended() == []


def test_the_more_important_takes_the_room_of_work_that_saves_first(machine: Machine) -> None:
    machine.submit(job("low", gpus=2, saves=True))
    machine.runs()
    machine.turn(after_s=3600)
    machine.submit(job("high", gpus=2, priority=900))
    assert machine.phase("low") is JobPhase.CHECKPOINTING
    assert machine.hands.asked == [(machine.hands.spawned[0].start, "SIGTERM")]
    machine.turn(after_s=5)
    assert machine.hands.killed == [machine.hands.spawned[0].start]
    machine.ends("low", code=None, signal=9)
    assert machine.phase("low") is JobPhase.PREEMPTED
    assert machine.hands.spawned[-1].command == ("train", "high")
    machine.runs("high")
    machine.ends("high")
    assert machine.hands.spawned[-1].command == ("train", "low")
    assert machine.hands.spawned[-1].environment["OPTIMUS_REASON"] == "resumed after preemption"
    assert machine.hands.spawned[-1].environment["OPTIMUS_ATTEMPT"] == "2"


def test_nobody_gets_the_gpus_of_work_that_is_stopped_while_it_starts_before_it_is_gone(machine: Machine) -> None:
    machine.submit(job("low", gpus=2, saves=True))
    machine.submit(job("high", gpus=2, priority=900))
    start = machine.hands.spawned[0].start
    assert machine.hands.asked == [(start, "SIGTERM")], "a process may be there already"
    machine.turn(after_s=1)
    assert len(machine.hands.spawned) == 1
    machine.ends("low", code=None, signal=15)
    assert machine.hands.spawned[-1].command == ("train", "high")
    assert machine.phase("low") is JobPhase.PREEMPTED and not machine.body.lives["default/low"].failures


def test_after_a_crash_it_asks_for_what_ran_and_goes_on(machine: Machine) -> None:
    machine.submit(job("a", gpus=2), job("b", gpus=2))
    machine.runs()
    started = machine.hands.spawned[0].start
    assert machine.dies() == [started]
    machine.body.stand_again()
    machine.turn()
    assert len(machine.hands.spawned) == 1, "what runs is not started again, and nobody takes its place"
    assert machine.phase("a") is JobPhase.RUNNING and machine.phase("b") is JobPhase.PENDING
    machine.ends("a")
    assert machine.phase("a") is JobPhase.SUCCEEDED
    assert machine.hands.spawned[-1].command == ("train", "b")


def test_what_ended_while_nobody_looked_is_counted_once(machine: Machine) -> None:
    machine.submit(job("a"))
    machine.runs()
    (start,) = machine.dies()
    machine.body.saw_end(start, Ended(at_ms=5, code=0))
    machine.body.stand_again()
    machine.turn()
    assert machine.phase("a") is JobPhase.SUCCEEDED
    assert machine.dies() == []
    machine.turn()
    assert len(machine.hands.spawned) == 1


def test_a_cancelled_job_is_told_to_leave_also_after_a_crash(machine: Machine) -> None:
    machine.submit(job("a"))
    machine.runs()
    machine.body.cancel("default/a", "by ada", machine.now_ms)
    machine.turn()
    (start,) = machine.dies()
    machine.body.stand_again()
    machine.turn(after_s=3)
    assert machine.hands.killed == [start]
    machine.body.saw_end(start, Ended(at_ms=9, signal=9))
    machine.turn()
    assert machine.phase("a") is JobPhase.CANCELLED


def test_nobody_gets_the_gpus_of_a_cancelled_job_before_it_is_gone_also_after_a_crash(machine: Machine) -> None:
    machine.submit(job("a", gpus=2, saves=True))
    machine.runs()
    machine.body.cancel("default/a", "no more", machine.now_ms)
    machine.turn()
    assert machine.dies() == [machine.hands.spawned[0].start]
    machine.body.stand_again()
    machine.submit(job("b", gpus=2))
    assert [one.command[1] for one in machine.hands.spawned] == ["a"]
    assert machine.body.waiting["default/b"].code in (Code.STOPPING, Code.NO_ROOM, Code.WAITING_FOR_ROOM)
    machine.ends("a")
    assert [one.command[1] for one in machine.hands.spawned] == ["a", "b"]


def test_what_cannot_be_written_down_is_not_done(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_args: object, **_kwargs: object) -> None:
        raise StoreError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Store, "put_replicas", full)
        machine.body.submit(job("a"))
        machine.body.turn(0)
        assert machine.hands.spawned == [] and machine.body.trouble == "the disk is full"
    machine.turn()
    assert len(machine.hands.spawned) == 1 and not machine.body.trouble


def test_a_second_body_on_the_same_store_is_told_who_has_it(machine: Machine) -> None:
    with pytest.raises(StoreError, match=r"is in use by process \d+: stop it, or name another folder"):
        Store(machine.folder)


def test_who_is_refused_because_of_the_disk_does_not_find_it_running_later(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_args: object, **_kwargs: object) -> None:
        raise StoreError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Store, "put_lives", full)
        with pytest.raises(StoreError):
            machine.body.accept([job("a"), job("b")])
    machine.turn()
    assert machine.hands.spawned == [] and not machine.body.jobs
    machine.body.accept([job("a")])
    machine.turn()
    assert len(machine.hands.spawned) == 1


def test_who_is_cancelled_ends_for_the_store_when_its_save_is_over(machine: Machine) -> None:
    machine.submit(job("a", gpus=2, saves=True))
    machine.runs()
    machine.turn(after_s=60)
    machine.body.cancel("default/a", "cancelled", machine.now_ms)
    machine.turn(after_s=3)
    assert machine.phase("a") is JobPhase.STOPPING
    (start,) = machine.dies()
    machine.body.stand_again()
    machine.turn(after_s=1)
    machine.ends("a", code=143)
    assert machine.body.lives["default/a"].ran_ms == 64 * SECOND
    assert machine.body.store.ended() == [("default/a", 64 * SECOND)]
    assert start not in machine.dies()
