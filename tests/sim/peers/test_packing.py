"""FGD and Best-Fit with jobs that come, wait and end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from optimus.drivers.sim.peers.packing import Packing, best_fit, fgd
from optimus.drivers.sim.setup import Outage, uniform_nodes
from optimus.model.workloads import ModelSpeed
from tests.sim.peers.stories import ended, job, play, started

both = pytest.mark.parametrize("make", [fgd, best_fit])


@both
def test_parts_of_devices_lie_together(make: Callable[[], Packing]) -> None:
    """Two halves on one device leave the other one whole."""
    jobs = [job("half-1", 100, gpu_milli=500), job("half-2", 100, gpu_milli=500, at=1), job("whole", 100, at=2)]
    assert started(play(make(), jobs, gpus=2)) == {"half-1": 0, "half-2": 1, "whole": 2}


@both
def test_all_pods_of_a_job_or_none_and_who_does_not_fit_is_passed(make: Callable[[], Packing]) -> None:
    jobs = [job("busy", 100), job("gang", 50, replicas=4, at=1), job("one", 10, at=2)]
    assert started(play(make(), jobs, nodes=2, gpus=2)) == {"busy": 0, "one": 2, "gang": 100}


@both
def test_who_came_first_starts_first(make: Callable[[], Packing]) -> None:
    jobs = [job("busy", 100), job("long", 500, at=1), job("short", 1, at=2)]
    assert started(play(make(), jobs)) == {"busy": 0, "long": 100, "short": 600}


@both
def test_who_lost_a_node_comes_back_elsewhere(make: Callable[[], Packing]) -> None:
    """The first node is lost for long; its job goes on when the other one ends."""
    lost = Outage(node="gpu-0", at_ms=10_000, for_ms=10_000_000)
    records = play(make(), [job("a", 100), job("b", 50)], nodes=2, outages=(lost,))
    assert records["a"].losses == 1
    assert ended(records) == {"b": 50, "a": 140}


@both
def test_a_node_that_is_back_is_used_again(make: Callable[[], Packing]) -> None:
    lost = Outage(node="gpu-0", at_ms=10_000, for_ms=20_000)
    assert ended(play(make(), [job("a", 100)], outages=(lost,))) == {"a": 120}


@both
def test_what_never_fits_is_refused(make: Callable[[], Packing]) -> None:
    jobs = [job("many", 1, replicas=5, gpu_milli=500), job("just", 1, replicas=4, gpu_milli=500), job("wide", 1, 3)]
    records = play(make(), jobs, gpus=2)
    assert {name for name, record in records.items() if record.rejected} == {"many", "wide"}


@both
def test_only_models_that_suit_are_used(make: Callable[[], Packing]) -> None:
    cluster = (*uniform_nodes(1, 1, model="a"), *uniform_nodes(1, 1, model="b"))
    only = (ModelSpeed(model="b", speed_percent=100),)
    jobs = [job(f"j{i}", 10, models=only) for i in range(2)]
    assert started(play(make(), jobs, cluster=cluster)) == {"j0": 0, "j1": 10}


@both
def test_work_without_gpus_and_large_nodes(make: Callable[[], Packing]) -> None:
    """Nodes with more CPU and GPUs than those of the published cluster have room as well."""
    cluster = uniform_nodes(2, 16, cpu_milli=512_000)
    jobs = [job("cpu", 10, 0, cpu_milli=1_000), *(job(f"gpu-{i:02d}", 10, 4, cpu_milli=1_000) for i in range(8))]
    assert set(started(play(make(), jobs, cluster=cluster)).values()) == {0}


def test_fgd_keeps_whole_devices_for_those_who_want_them() -> None:
    """So far whole devices were asked for: a small part goes where a part is missing already, whatever the node has
    left; best-fit goes to the node with least left and breaks its last whole device."""
    cluster = (*uniform_nodes(1, 4, model="a"), *uniform_nodes(1, 2, model="b"))
    on_b = (ModelSpeed(model="b", speed_percent=100),)
    on_a = (ModelSpeed(model="a", speed_percent=100),)
    jobs = [job(f"whole-{i}", 10) for i in range(6)]
    jobs += [job("part-a", 100, at=20, gpu_milli=300, models=on_a), job("whole-b", 100, at=20, models=on_b)]
    jobs += [job("part", 100, at=30, gpu_milli=300), job("last-b", 10, at=40, models=on_b)]
    assert started(play(fgd(), jobs, cluster=cluster))["last-b"] == 40
    assert started(play(best_fit(), jobs, cluster=cluster))["last-b"] > 40
