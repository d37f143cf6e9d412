"""KAI-like fair shares of queues, and Lucid-style packing."""

from __future__ import annotations

import pytest

from optimus.drivers.sim.clockwork import SimulationError
from optimus.drivers.sim.peers.kai import Kai, Right, fair_shares, kai, right_of
from optimus.drivers.sim.peers.lucid import lucid
from optimus.drivers.sim.setup import Outage, SharedDevice
from optimus.model.queues import PoolQuota, Queue, Quota
from tests.sim.peers.stories import ended, job, play, started


def queue(name: str, guarantee: int = 0, limit: int | None = None, weight: int = 1) -> Queue:
    quota = Quota(guarantee=guarantee * 1000, limit=None if limit is None else limit * 1000, weight=weight)
    return Queue(name=name, quotas=(PoolQuota(pool="all", resources={"gpu": quota}),))


# -- KAI ------------------------------------------------------------------------------------------------------


def test_guarantees_come_first_and_the_rest_goes_by_weight() -> None:
    rights = {"a": Right(4.0), "b": Right(0.0, weight=3), "c": Right(0.0, weight=1)}
    assert fair_shares(8, rights, {"a": 4, "b": 9, "c": 9}) == {"a": 4, "b": 3, "c": 1}


def test_what_a_queue_does_not_ask_for_goes_to_the_others() -> None:
    rights = {"a": Right(4.0), "b": Right(4.0)}
    assert fair_shares(8, rights, {"a": 1, "b": 20}) == {"a": 1, "b": 7}


def test_nobody_is_due_more_than_its_limit() -> None:
    rights = {"a": Right(limit=2.0), "b": Right()}
    assert fair_shares(8, rights, {"a": 9, "b": 9}) == {"a": 2, "b": 6}


def test_guarantees_above_what_there_is_are_kept_as_they_are() -> None:
    assert fair_shares(4, {"a": Right(4.0), "b": Right(4.0)}, {"a": 9, "b": 9}) == {"a": 4, "b": 4}


def test_quotas_of_several_pools_add_up() -> None:
    pools = tuple(PoolQuota(pool=p, resources={"gpu": Quota(guarantee=2000, limit=3000)}) for p in "xy")
    assert right_of(Queue(name="q", quotas=pools)) == Right(4.0, 6.0, 1)
    assert right_of(Queue(name="q")) == Right()


def test_an_idle_cluster_is_lent_and_reclaimed() -> None:
    """ "b" borrows everything; when "a" asks for its half, the newest of "b" are stopped and go on later."""
    jobs = [*(job(f"b{i}", 100, queue="b", at=i) for i in range(4)), job("a", 50, 2, at=10, queue="a")]
    records = play(kai(), jobs, gpus=4, queues=(queue("a", 2), queue("b", 2)))
    assert started(records)["a"] == 10
    assert [records[f"b{i}"].preemptions for i in range(4)] == [0, 0, 1, 1]
    assert ended(records)["b3"] == 60 + 93


def test_a_queue_above_its_share_does_not_reclaim() -> None:
    jobs = [job("a", 100, 3, queue="a"), job("b1", 100, 1, queue="b"), job("a2", 10, 1, at=1, queue="a")]
    records = play(kai(), jobs, gpus=4, queues=(queue("a", 2), queue("b", 2)))
    assert started(records)["a2"] == 100
    assert records["b1"].preemptions == 0


def test_the_queue_with_least_of_its_share_goes_first() -> None:
    """When "c1" ends, queue "a" has a GPU and "b" has none: "b1" starts, although "a2" came first."""
    jobs = [job("a1", 100, queue="a"), job("c1", 10, queue="c")]
    jobs += [job("a2", 50, at=1, queue="a"), job("b1", 50, at=2, queue="b")]
    assert started(play(kai(), jobs, gpus=2)) == {"a1": 0, "c1": 0, "b1": 10, "a2": 60}


def test_a_limit_holds_although_gpus_idle() -> None:
    jobs = [job("a1", 100, 2, queue="a"), job("a2", 10, 1, at=1, queue="a")]
    assert started(play(kai(), jobs, gpus=4, queues=(queue("a", 0, 2),)))["a2"] == 100


def test_who_lost_a_node_comes_back() -> None:
    outage = Outage(node="gpu-0", at_ms=10_000, for_ms=20_000)
    scheduler: Kai = kai()
    assert ended(play(scheduler, [job("a", 100, queue="a")], outages=(outage,))) == {"a": 120}


# -- Lucid ----------------------------------------------------------------------------------------------------


def test_without_a_price_of_sharing_it_does_not_play() -> None:
    with pytest.raises(SimulationError, match="neighbours"):
        play(lucid(), [job("a", 1)])


def test_light_jobs_share_a_device_when_none_is_free() -> None:
    jobs = [job("a", 100, activity_milli=400), job("b", 100, at=1, activity_milli=500)]
    assert ended(play(lucid(), jobs, neighbours=SharedDevice())) == {"a": 100, "b": 101}


def test_a_device_of_ones_own_is_preferred() -> None:
    jobs = [job(name, 100, activity_milli=900) for name in ("a", "b")]
    assert ended(play(lucid(), jobs, gpus=2, neighbours=SharedDevice())) == {"a": 100, "b": 100}


def test_together_too_busy_they_do_not_share() -> None:
    jobs = [job("a", 100, activity_milli=600), job("b", 100, at=1, activity_milli=500)]
    assert started(play(lucid(), jobs, neighbours=SharedDevice())) == {"a": 0, "b": 100}


def test_three_never_share_and_who_says_nothing_is_left_alone() -> None:
    jobs = [*(job(n, 100, at=i, activity_milli=100) for i, n in enumerate("abc")), job("silent", 10, at=3)]
    assert started(play(lucid(), jobs, neighbours=SharedDevice())) == {"a": 0, "b": 1, "c": 100, "silent": 200}


def test_only_jobs_of_the_same_size_share() -> None:
    jobs = [job("pair", 100, 2, activity_milli=100), job("one", 10, at=1, activity_milli=100)]
    assert started(play(lucid(), jobs, gpus=2, neighbours=SharedDevice()))["one"] == 100


def test_devices_are_free_again_only_when_both_have_left() -> None:
    jobs = [
        job("short", 10, activity_milli=400),
        job("long", 100, at=1, activity_milli=400),
        job("whole", 10, at=2, activity_milli=900),
    ]
    assert started(play(lucid(), jobs, neighbours=SharedDevice())) == {"short": 0, "long": 1, "whole": 101}


def test_both_who_share_come_back_when_their_node_is_lost() -> None:
    jobs = [job(name, 100, activity_milli=400) for name in ("a", "b")]
    outage = Outage(node="gpu-0", at_ms=10_000, for_ms=20_000)
    records = play(lucid(), jobs, outages=(outage,), neighbours=SharedDevice())
    assert ended(records) == {"a": 120, "b": 120}


def test_the_shortest_expected_service_goes_first() -> None:
    jobs = [
        *(job(f"seen-{f}", s, family=f) for f, s in (("long", 100), ("short", 10))),
        job("now", 50, at=200),
        job("long", 100, at=201, family="long"),
        job("short", 10, at=202, family="short"),
    ]
    assert started(play(lucid(), jobs, neighbours=SharedDevice()))["short"] == 250
