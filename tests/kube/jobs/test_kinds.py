"""A type of its own, as one file would say it: a launcher beside its workers, which starts again with another size."""

from __future__ import annotations

import pytest

from optimus.lives.kinds import KINDS, Additions, Kind, Peers, Rescale
from optimus.model.jobs import Job, JobType
from tests.kube.jobs.worlds import World, job_spec


def dress(job: Job, slot: tuple[str, int], peers: Peers) -> Additions:
    role, _ = slot
    hosts = ",".join(f"{name}.{peers.service}" for name in peers.replicas["worker"])
    return Additions(env=(("HOSTS", hosts),), command=("launch",) if role == "launcher" else ())


@pytest.fixture(autouse=True)
def launched(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = Kind(beside=(("launcher", 1),), rescale=Rescale.RESTART, ends_with="launcher", dress=dress)
    monkeypatch.setitem(KINDS, JobType.JOB, kind)


def running(count: int = 2) -> World:
    world = World(job_spec(1, 4, saves=True))
    world.target(count)
    world.run()
    return world


def test_other_roles_are_there_whenever_a_worker_is_wanted() -> None:
    world = running()
    assert world.live == ["train-launcher-0", "train-worker-0", "train-worker-1"]
    assert world.status["running"] == "2/2"
    assert world.phase == "Running"


def test_each_is_dressed_by_its_type() -> None:
    world = running()
    assert world.env("train-launcher-0")["HOSTS"] == "train-worker-0.train,train-worker-1.train"
    assert world.pods["train-launcher-0"]["spec"]["containers"][0]["command"] == ["launch"]
    assert world.pods["train-worker-0"]["spec"]["containers"][0]["command"] == ["train"]


def test_another_size_restarts_all_of_them() -> None:
    world = running()
    world.target(3, "Resized: goes on with 3 replicas")
    assert world.phase == "Rescaling"
    assert world.leaving == ["train-launcher-0", "train-worker-0", "train-worker-1"]
    world.all_leave()
    world.run()
    assert (world.phase, world.status["running"], world.life.attempt) == ("Running", "3/3", 2)
    assert (world.life.preemptions, world.life.failures) == (0, 0)
    assert world.env("train-worker-0")["OPTIMUS_REASON"] == "restarted with another size"


def test_the_end_of_the_launcher_is_that_of_the_job() -> None:
    world = running()
    world.exits("train-launcher-0")
    assert world.leaving == ["train-worker-0", "train-worker-1"]
    world.all_leave()
    assert world.phase == "Succeeded"
    assert world.unreleased() == []


def test_without_its_launcher_it_starts_again() -> None:
    world = running()
    world.evict("train-launcher-0")
    world.all_leave()
    world.run()
    assert (world.phase, world.life.attempt, world.life.failures) == ("Running", 2, 0)
