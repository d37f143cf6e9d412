"""Native Kubernetes: what its defaults do to gangs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from optimus.drivers.sim.clockwork import Clockwork, Scheduler
from optimus.drivers.sim.peers.native import native_gang, native_packed, native_pods, native_strict
from optimus.drivers.sim.setup import Outage, Setup, uniform_nodes
from tests.sim.peers.stories import ended, job, play, started


def test_who_does_not_fit_is_passed() -> None:
    jobs = [job("first", 100, 2), job("large", 10, 4, at=1), job("small", 10, 2, at=2)]
    assert started(play(native_gang(), jobs, gpus=4)) == {"first": 0, "large": 100, "small": 2}


def test_strict_order_lets_nobody_pass() -> None:
    jobs = [job("first", 100, 2), job("large", 10, 4, at=1), job("small", 10, 2, at=2)]
    assert started(play(native_strict(), jobs, gpus=4)) == {"first": 0, "large": 100, "small": 110}


def test_in_strict_order_a_higher_priority_becomes_the_head() -> None:
    """ "large" blocks the line; "urgent" comes with a higher priority and fits, so it starts at once."""
    jobs = [job("first", 100, 2), job("large", 10, 4, at=1), job("urgent", 10, 2, at=2, priority=1000)]
    assert started(play(native_strict(), jobs, gpus=4))["urgent"] == 2


def test_priority_goes_before_arrival() -> None:
    jobs = [job("now", 10, priority=9), job("early", 10, at=1, priority=1), job("urgent", 10, at=2, priority=9)]
    assert started(play(native_gang(), jobs)) == {"now": 0, "urgent": 10, "early": 20}


def test_pod_by_pod_a_partial_gang_holds_what_it_has_until_it_times_out() -> None:
    """Of two pods one finds room. Its GPU idles for five minutes, then the pod is deleted and "small" can have it."""
    jobs = [job("first", 1000), job("gang", 50, at=1, replicas=2), job("small", 2000, at=2)]
    records = play(native_pods(), jobs, nodes=2)
    assert started(records) == {"first": 0, "small": 301, "gang": 2301}
    assert records["gang"].held_gpu_ms >= 300_000


def test_a_time_out_between_two_rounds_is_seen_at_the_next() -> None:
    """The same with a decision every 70 s: 300 s after 70 there is none, and at 420 it is high time."""
    jobs = [job("first", 1000), job("gang", 50, at=1, replicas=2), job("small", 2000, at=72)]
    records = play(native_pods(), jobs, nodes=2, round_s=70)
    assert started(records) == {"first": 0, "small": 420, "gang": 2450}


def test_all_or_nothing_holds_nothing() -> None:
    jobs = [job("first", 1000), job("gang", 50, at=1, replicas=2), job("small", 2000, at=2)]
    records = play(native_gang(), jobs, nodes=2)
    assert started(records)["small"] == 2
    assert records["gang"].held_gpu_ms == 0


def test_two_partial_gangs_block_each_other_only_until_the_time_out() -> None:
    """Each of the gangs has two of its three pods when the long jobs end; the older one gives up first."""
    jobs = [
        *(job(f"long-{i}", 10) for i in range(2)),
        job("one", 20, at=1, replicas=3),
        job("two", 20, at=2, replicas=3),
    ]
    records = play(native_pods(), jobs, nodes=4)
    assert started(records)["one"] == 10
    assert ended(records)["two"] == 50


def test_gpus_are_not_scored_so_a_large_pod_waits_although_half_is_free() -> None:
    """Two small pods land on two nodes as often as not; MostAllocated puts them on one."""
    jobs = [job("a", 100, 1), job("b", 100, 1, at=1), job("large", 10, 2, at=2)]
    waits = [started(play(native_gang(seed), jobs, nodes=2, gpus=2))["large"] for seed in range(20)]
    assert set(waits) == {2, 100}
    packed = [started(play(native_packed(seed), jobs, nodes=2, gpus=2))["large"] for seed in range(20)]
    assert set(packed) == {2}


def test_cpu_and_memory_are_scored_so_the_emptier_node_is_taken() -> None:
    jobs = [job("a", 100, 1, cpu_milli=48_000), job("b", 100, 1, at=1, cpu_milli=48_000), job("c", 10, 2, at=2)]
    waits = {started(play(native_gang(seed), jobs, nodes=2, gpus=2))["c"] for seed in range(10)}
    assert waits == {100}


def test_cpu_can_be_what_is_missing() -> None:
    jobs = [job("greedy", 100, 1, cpu_milli=96_000), job("other", 10, 1, at=1, cpu_milli=1)]
    assert started(play(native_gang(), jobs, gpus=8))["other"] == 100


@pytest.mark.parametrize("scheduler", [native_pods(), native_gang(), native_packed(), native_strict()])
def test_what_the_empty_cluster_cannot_hold_is_refused(scheduler: Scheduler) -> None:
    records = play(scheduler, [job("monster", 1, 9), job("fine", 10, 8)], gpus=8)
    assert "do not fit" in records["monster"].rejected
    assert ended(records) == {"fine": 10}


@pytest.mark.parametrize("scheduler", [native_pods(), native_gang()])
def test_a_lost_node_sends_its_jobs_back_into_the_line(scheduler: Scheduler) -> None:
    outage = Outage(node="gpu-0", at_ms=10_000, for_ms=50_000)
    records = play(scheduler, [job("a", 100)], outages=(outage,))
    assert ended(records) == {"a": 150}
    assert records["a"].losses == 1


def test_a_partial_gang_that_loses_a_node_keeps_its_other_pods() -> None:
    """Two of three pods are bound when one node is lost; it comes back before the time-out, and the rest with it."""
    jobs = [job("long", 100), job("gang", 10, at=1, replicas=3)]
    clock = Clockwork(
        Setup(nodes=uniform_nodes(3, 1), outages=(Outage(node="gpu-2", at_ms=20_000, for_ms=30_000),)), jobs
    )
    record = clock.play(native_pods(seed=1))
    by_name = {r.name: r for r in record.jobs}
    assert by_name["gang"].end_ms in (110_000, 160_000)  # the lost node was the gang's, or that of the long job
    assert clock.free == clock.capacity


@pytest.mark.parametrize("make", [native_pods, native_gang, native_packed, native_strict])
def test_higher_priority_preempts_as_few_as_it_needs_and_equals_never(make: Callable[[], Scheduler]) -> None:
    """Of four running, "urgent" needs two: the two newest of the lowest priority go, and come back after it."""
    jobs = [*(job(f"low-{i}", 100, at=i, priority=1) for i in range(3)), job("equal", 100, priority=5)]
    jobs += [job("urgent", 10, 1, at=10, priority=5, replicas=2), job("waits", 10, 1, at=11, priority=1)]
    records = play(make(), jobs, gpus=4)
    assert started(records)["urgent"] == 10
    assert {name for name, r in records.items() if r.preemptions} == {"low-1", "low-2"}
    assert ended(records)["low-1"] == 111  # nine seconds before "urgent", the rest after it
    assert started(records)["waits"] >= 100


def test_nobody_is_stopped_where_it_would_not_help() -> None:
    jobs = [job("low", 100, priority=1), job("high", 100, 2, priority=9), job("huge", 10, 2, at=1, priority=5)]
    records = play(native_gang(), jobs, gpus=3)
    assert records["low"].preemptions == 0
    assert started(records)["huge"] == 100
