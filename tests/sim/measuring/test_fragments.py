"""Free GPUs that are of no use because they are scattered."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from optimus.drivers.sim.clockwork import Clockwork, News, Seat
from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.measuring import Watched
from optimus.drivers.sim.measuring.scattering import Mix, Need, Room, Scattering, need_of
from optimus.drivers.sim.measuring.watching import Fragments, summarise
from optimus.drivers.sim.setup import Outage, Setup, uniform_nodes
from optimus.drivers.sim.works.steady import Steady
from optimus.model.workloads import ModelSpeed


class OneByOne:
    """Places each newcomer on the node that the test says."""

    name = "one by one"
    every_round = False

    def __init__(self, nodes: list[int]) -> None:
        self._nodes = nodes

    def open(self, clock: Clockwork) -> None:
        pass

    def decide(self, clock: Clockwork, news: News) -> None:
        for index in news.arrived:
            clock.place(index, {0: Seat(self._nodes[index])})


def test_a_gpu_beside_three_used_ones_is_a_fragment_for_pairs() -> None:
    """Node 0 has one GPU left, node 1 all four. Half of the jobs ask for three at a time, half for two: the one GPU is
    of no use to either, the four are of use to both. The largest job that could start asks for three."""
    jobs = [
        Job(name="a", submit_ms=0, gpus=3, work=Steady(duration_ms=60_000.0)),
        Job(name="b", submit_ms=60_000, gpus=2, work=Steady(duration_ms=60_000.0)),
    ]
    watched = Watched(OneByOne([0, 1]))
    Clockwork(Setup(nodes=uniform_nodes(2, 4)), jobs).play(watched)
    seen = watched.fragments()
    assert seen is not None
    assert (seen.free_gpus[0], seen.fragment_gpus[0], seen.largest[0]) == (5.0, 1.0, 3.0)
    assert watched.decision_ms() is None


def asking(
    name: str, gpus: int = 1, milli: int = 1000, *, cpu: int = 0, models: tuple[str, ...] = (), **more: int
) -> Job:
    speeds = tuple(ModelSpeed(model) for model in models)
    work = Steady(duration_ms=60_000.0)
    facts = {"gpus": gpus, "gpu_milli": milli, "cpu_milli": cpu, "models": speeds, **more}
    return Job(name=name, submit_ms=0, work=work, **facts)  # type: ignore[arg-type]


def seen_by(jobs: list[Job], *devices: int, cpu: int = 0, model: str = "a100") -> tuple[float, int]:
    """GPUs of a node with such devices that are fragments, and thousandths of the largest job that could start."""
    mix = Mix(jobs)
    worth = mix.worth(Room(tuple(sorted(devices)), cpu, 0, model))
    return worth.fragments / mix.jobs / 1000, mix.largest(worth.replicas)


def test_half_free_devices_are_of_no_use_to_whole_ones() -> None:
    assert seen_by([asking("a")], 500, 500, 500, 500) == (2.0, 0)


def test_free_devices_are_all_of_use_to_shares() -> None:
    assert seen_by([asking("a", milli=300)], *[1000] * 8) == (0.0, 300)


def test_only_the_parts_that_are_too_small_are_fragments_where_a_replica_can_run() -> None:
    """Two of three free devices are enough for the pair; the half is of no use to it. The share can use the half, but
    not the tenth."""
    pair, share = asking("pair", 2), asking("share", milli=400)
    assert seen_by([pair], 1000, 1000, 1000, 500) == (0.5, 2000)
    assert seen_by([share], 500, 100) == (0.1, 400)
    assert seen_by([pair, share], 1000, 500, 100) == (0.85, 400)


def test_shares_of_several_devices_are_on_different_ones() -> None:
    job = asking("a", 2, 300)
    assert seen_by([job], 900, 200) == (1.1, 0)
    assert seen_by([job], 900, 300) == (0.0, 600)
    assert seen_by([asking("a", 2, 300, replicas=2), job], 900, 300) == (0.0, 600)
    assert seen_by([asking("a", 2, 300, replicas=2), job], 900, 600) == (0.0, 1200)


def test_gpus_without_cpu_or_of_another_model_are_of_no_use() -> None:
    assert seen_by([asking("a", cpu=8)], 1000, 1000, cpu=7) == (2.0, 0)
    assert seen_by([asking("a", cpu=8)], 1000, 1000, cpu=8) == (0.0, 1000)
    assert seen_by([asking("a", models=("h100",))], 1000, model="a100") == (1.0, 0)
    assert seen_by([asking("a", models=("a100", "h100"))], 1000, model="a100") == (0.0, 1000)


def test_work_without_gpus_is_no_reason_to_call_gpus_useless() -> None:
    assert seen_by([asking("a"), asking("cpu only", 0, cpu=4)], 1000) == (0.0, 1000)


def as_defined(jobs: list[Job], room: Room) -> float:
    """The definition of FGD, word by word."""
    asking_some = [need_of(job) for job in jobs if job.gpus]
    return sum(useless(need, room) for need in asking_some) / len(asking_some)


def useless(need: Need, room: Room) -> int:
    enough = sum(free >= need.gpu_milli for free in room.devices) >= need.gpus
    fed = room.cpu_milli >= need.cpu_milli and room.memory_mib >= need.memory_mib
    if enough and fed and (not need.models or room.model in need.models):
        return sum(free for free in room.devices if free < need.gpu_milli)
    return sum(room.devices)


class Moving:
    """Puts jobs on devices and takes them away by lot, and compares the sums with the definition each time."""

    name = "moving"
    every_round = True

    def __init__(self, seed: int) -> None:
        self._lot = Random(seed)
        self.compared = 0

    def open(self, clock: Clockwork) -> None:
        self._scattering = Scattering(clock)

    def decide(self, clock: Clockwork, news: News) -> None:
        for run in list(clock.active.values()):
            if run.seats and self._lot.random() < 0.2:
                clock.place(run.index, {})
            elif not run.seats:
                self._try(clock, run.index)
        free, fragments, _ = self._scattering.look(clock)
        rooms = [self._room(clock, node) for node in range(len(clock.up)) if clock.up[node]]
        jobs = [run.job for run in clock.runs]
        assert free * 1000 == pytest.approx(sum(sum(room.devices) for room in rooms))
        assert fragments * 1000 == pytest.approx(sum(as_defined(jobs, room) for room in rooms))
        self.compared += 1

    def _try(self, clock: Clockwork, index: int) -> None:
        job, node = clock.runs[index].job, self._lot.randrange(len(clock.up))
        room = self._room(clock, node)
        taken = clock._devices[node]
        fits = [d for d in range(4) if 1000 - taken.get(d, 0) >= job.gpu_milli]
        if clock.up[node] and len(fits) >= job.gpus and room.cpu_milli >= job.cpu_milli:
            clock.place(index, {0: Seat(node, tuple(self._lot.sample(fits, job.gpus)))})

    def _room(self, clock: Clockwork, node: int) -> Room:
        machine = clock.setup.nodes[node]
        cpu = machine.cpu_milli - sum(clock.runs[i].job.cpu_milli for i in clock.neighbours(node))
        return Room(tuple(clock.free_devices(node)), cpu, machine.memory_mib, machine.devices[0].model)


@pytest.mark.parametrize("seed", range(3))
def test_sums_that_follow_the_clockwork_are_those_of_the_definition(seed: int) -> None:
    lot = Random(seed)
    jobs = [
        asking(
            f"job-{i}",
            *lot.choice([(1, 1000), (2, 1000), (4, 1000), (1, 300), (1, 500), (2, 250), (0, 1000)]),
            cpu=lot.choice([0, 2000, 8000]),
            models=lot.choice([(), ("gpu",), ("other",)]),
        )
        for i in range(40)
    ]
    cluster = uniform_nodes(5, 4, cpu_milli=16_000, model="gpu")
    outage = Outage(node=cluster[1].name, at_ms=90_000, for_ms=120_000)
    scheduler = Moving(seed)
    Clockwork(Setup(nodes=cluster, interval_ms=10_000, outages=(outage,)), jobs).play(scheduler, until_ms=600_000)
    assert scheduler.compared > 20


def test_seats_without_named_devices_have_the_emptiest_ones() -> None:
    """Three shares that name no device are on three devices, as a device plugin gives them; a fifth must share."""
    setup = Setup(nodes=uniform_nodes(1, 4))
    jobs = [asking(f"job-{i}", milli=300) for i in range(5)]
    clock = Clockwork(setup, jobs)
    for run in clock.runs:
        run.arrived = True
        clock.place(run.index, {0: Seat(0)})
        if run.index == 2:
            assert clock.free_devices(0) == [700, 700, 700, 1000]
    assert clock.free_devices(0) == [400, 700, 700, 700]


def test_averages_are_over_time() -> None:
    seen = Fragments(
        time_ms=np.array([0.0, 30.0, 40.0]),
        free_gpus=np.array([4.0, 0.0, 8.0]),
        fragment_gpus=np.array([1.0, 0.0, 8.0]),
        largest=np.array([2.0, 0.0, 0.0]),
    )
    told = summarise(seen, gpus=8.0)
    assert told.of_idle == pytest.approx(30 / 120)
    assert told.of_all == pytest.approx(30 / 320)
    assert told.largest_gpus == pytest.approx(60 / 40)
