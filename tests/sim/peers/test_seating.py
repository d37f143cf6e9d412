"""Replicas of several GPUs: who is chosen by number and finds no place leaves its GPUs to the next."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from optimus.drivers.sim.clockwork import Clockwork, Scheduler
from optimus.drivers.sim.peers.afs import afs
from optimus.drivers.sim.peers.elasticflow import elasticflow
from optimus.drivers.sim.peers.seating import fill, seat_in_order
from optimus.drivers.sim.peers.shortest import srtf
from optimus.drivers.sim.peers.themis import themis
from optimus.drivers.sim.peers.tiresias import tiresias
from optimus.drivers.sim.setup import Setup, uniform_nodes
from tests.sim.peers.stories import job, play, started


@pytest.mark.parametrize("make", [tiresias, themis, srtf, afs, elasticflow])
def test_no_gpu_idles_because_another_job_counts_on_it(make: Callable[[], Scheduler]) -> None:
    """Each of two nodes has three of its four GPUs taken. "pair" wants two on one node and comes before "single"."""
    jobs = [job(f"busy-{i}", 600, 3) for i in range(2)]
    jobs += [job("pair", 610, 2, at=1), job("single", 620, at=2)]
    records = play(make(), jobs, nodes=2, gpus=4, round_s=60)
    assert started(records)["single"] == 60


def test_what_is_left_goes_to_whoever_can_take_it_where_it_was_if_it_can_stay() -> None:
    """One GPU is free on either node: the pair cannot, "old" stays where it was, and "new" takes the other one."""
    clock = Clockwork(Setup(nodes=uniform_nodes(2, 4)), [job("a pair", 1, 2), job("new", 1), job("old", 1)])
    runs = {run.index: run for run in clock.runs}
    free = {0: 1, 1: 1}
    assert fill([0, 2, 1], lambda _: (1,), runs, {2: (1,)}, {0: ()}, free, clock) == {2: (1,), 1: (0,)}
    assert free == {0: 0, 1: 0}


def test_the_largest_size_that_has_a_place_is_taken() -> None:
    clock = Clockwork(Setup(nodes=uniform_nodes(2, 4)), [job("elastic", 1, 2, min_replicas=1, max_replicas=4)])
    found = fill([0], lambda _: (4, 3, 2, 1), {0: clock.runs[0]}, {}, {}, {0: 3, 1: 3}, clock)
    assert found == {0: (0, 1)}


def test_who_is_before_them_in_line_takes_the_place_of_others() -> None:
    """By number there is room for all three; "node" has a whole one only if "b" moves to the other."""
    clock = Clockwork(Setup(nodes=uniform_nodes(2, 4)), [job("a", 1, 2), job("b", 1, 2), job("node", 1, 4)])
    runs = {run.index: run for run in clock.runs}
    assert seat_in_order([2, 0, 1], runs, {0: (0,), 1: (1,)}, clock) == {2: (1,), 0: (0,), 1: (0,)}


def test_who_comes_later_in_line_displaces_nobody() -> None:
    clock = Clockwork(Setup(nodes=uniform_nodes(2, 4)), [job("a", 1, 2), job("b", 1, 2), job("node", 1, 4)])
    runs = {run.index: run for run in clock.runs}
    assert seat_in_order([0, 1, 2], runs, {0: (0,), 1: (1,)}, clock) == {0: (0,), 1: (1,)}


def test_who_did_not_have_to_leave_stays() -> None:
    """Three nodes; for "node" one of them is emptied, and the last in line is asked first."""
    names = (("a", 1), ("b", 1), ("c", 1), ("node", 4))
    clock = Clockwork(Setup(nodes=uniform_nodes(3, 4)), [job(name, 1, g) for name, g in names])
    runs = {run.index: run for run in clock.runs}
    placed = seat_in_order([3, 0, 1, 2], runs, {0: (0,), 1: (1,), 2: (2,)}, clock)
    assert placed == {3: (2,), 0: (0,), 1: (1,), 2: (0,)}


def test_what_is_firm_is_never_moved() -> None:
    clock = Clockwork(Setup(nodes=uniform_nodes(1, 4)), [job("leased", 1, 1), job("node", 1, 4), job("small", 1, 3)])
    runs = {run.index: run for run in clock.runs}
    assert seat_in_order([1, 2], runs, {0: (0,)}, clock, firm={0: (0,)}) == {0: (0,), 2: (0,)}
