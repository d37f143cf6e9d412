"""Work of real operators under real controllers of ours, from its first day to its second: admitted, bound together,
taken back by its own field, started again; and whoever leads is killed in the middle of it, twice."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator

import pytest

from hack.controlplane import ControlPlane
from tests.kube.body.clusters import until
from tests.kube.faults.checking import settle
from tests.kube.faults.front import BIND, Front
from tests.kube.faults.gangs import JOB_SET, MPI_JOB, PYTORCH_JOB, Sort
from tests.kube.faults.worlds import World

PODS = 5
NewWorld = Callable[[ControlPlane], World]


@pytest.fixture
def new_world(request: pytest.FixtureRequest) -> Iterator[NewWorld]:
    made: list[World] = []

    def make(plane: ControlPlane) -> World:
        made.append(World(plane, f"operators-{zlib.crc32(request.node.name.encode()):08x}"))
        return made[-1]

    yield make
    for world in made:
        world.stop()


def test_a_pytorch_job(training_operator: None, plane: ControlPlane, new_world: NewWorld) -> None:
    admitted_killed_reclaimed_killed_and_started_again(new_world(plane), PYTORCH_JOB)


def test_a_job_set(jobset_controller: None, plane: ControlPlane, new_world: NewWorld) -> None:
    admitted_killed_reclaimed_killed_and_started_again(new_world(plane), JOB_SET)


def test_an_mpi_job(mpi_plane: ControlPlane, new_world: NewWorld) -> None:
    admitted_killed_reclaimed_killed_and_started_again(new_world(mpi_plane), MPI_JOB)


def admitted_killed_reclaimed_killed_and_started_again(world: World, sort: Sort) -> None:
    world.serve_queues()
    owner, borrower = (f"{world.namespace}-{name}" for name in ("owner", "borrower"))
    assert world.make_queue(owner, {"gpu": {"guarantee": 4}, "namespaces": [world.namespace]})
    assert world.make_queue(borrower, {"gpu": {"guarantee": 0}, "namespaces": [world.namespace]})
    world.nodes(2, gpus=3)
    with Front(world.plane) as front:
        front.hold_binds(after=2)
        first = world.lead(front.option)
        until(lambda: world.leading() is first, "the first one leads")
        world.lead(front.option)
        world.create(sort, "train", PODS, queue=borrower, suspended=True)
        until(lambda: front.held and front.passed[BIND] == 2, "it is admitted, its operator makes pods, two are bound")
        assert not world.is_suspended("train")
        assert len(world.bound("train")) == 2
        first.kill()
        first.wait()
        front.lose_held()
        until(lambda: len(world.bound("train")) == PODS, "another one leads, and binds the others")
        settle(world)
        before = _uids(world)

        world.job("urgent", 4, queue=owner, seconds=5)
        until(lambda: world.is_suspended("train"), "what was lent is taken back, by the field of its kind")
        second = world.leading()
        assert second is not None
        second.kill()
        second.wait()
        world.lead(front.option)
        until(lambda: len(world.bound("urgent")) == 4, "and the third leader goes on: its owner has it")
        assert world.bound("train") == [] and world.over_committed() == {}
        told = [note for name, reason, note in world.events() if name == "train" and reason == "Reclaimed"]
        assert told and "which is inside its guarantee" in told[0]
        del world.gangs["urgent"]  # it ends
        until(lambda: len(world.bound("train")) == PODS, "when that has ended, it is started again, as a whole")
        seen = settle(world)
    assert not world.is_suspended("train") and not before & _uids(world), "with new pods"
    assert seen.overbooked == 0


def _uids(world: World) -> set[str]:
    return {pod["metadata"]["uid"] for pod in world.bound("train")}
