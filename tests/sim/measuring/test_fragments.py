"""Free GPUs that are of no use because they are scattered."""

from __future__ import annotations

import numpy as np
import pytest

from optimus.drivers.sim.clockwork import Clockwork, News, Seat
from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.measuring import Watched
from optimus.drivers.sim.measuring.watching import Fragments, summarise
from optimus.drivers.sim.setup import Setup, uniform_nodes
from optimus.drivers.sim.works.steady import Steady


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
