"""Elastic work that runs with fewer replicas than it could have: what it waits for, as the engine itself decides."""

from __future__ import annotations

import pytest
from msgspec import structs

from optimus.explaining import explain, needs_copy
from optimus.explaining.explanation import Why
from optimus.explaining.seen import JobSeen, ReplicaSeen
from tests.explaining.worlds import Moment, moment, seen_of

WORLD = """
cluster: [{name: n, gpus: 8}]
queues: [{name: q QUEUE}]
settings: {sizingInterval: 60s}
workloads:
  - {name: train, queue: q, replicas: {min: 2, max: 8}, gpu: 1, CHECKPOINT restartCost: COST,
     running: {on: n, replicas: 2, since: SINCE}}
OTHERS
"""
FULL = "  - {name: other, queue: q, replicas: 6, gpu: 1, running: {on: n, since: -1h}}"


def world(
    *, since: str = "-1h", queue: str = "", others: str = "", cost: str = "2s", checkpoint: bool = True
) -> Moment:
    text = WORLD.replace("SINCE", since).replace("QUEUE", queue).replace("OTHERS", others).replace("COST", cost)
    return moment(text.replace("CHECKPOINT", "checkpoint: {grace: 20s}," if checkpoint else ""))


def running(at: Moment, replicas: int = 2, most: int = 8) -> JobSeen:
    there = tuple(ReplicaSeen(node="n", devices=(number,), state="running") for number in range(replicas))
    seen = seen_of(at.workload("train"), "Running")
    return structs.replace(seen, replicas=there, min_replicas=2, max_replicas=most, running_replicas=replicas)


def size(at: Moment, after_ms: int = 0) -> Why | None:
    at.now_ms += after_ms
    return explain(running(at), at.now_ms, at.copy()).size


def undecided(text: Moment) -> Moment:
    """Everybody is where the text says, and nothing has been decided yet."""
    fresh = Moment.__new__(Moment)
    fresh.scenario, fresh.now_ms = text.scenario, text.now_ms
    fresh.engine = type(text.engine)(settings=text.scenario.settings)
    fresh.engine.observe(text.scenario.opening, text.now_ms)
    return fresh


def test_it_grows_at_the_next_resize_and_it_is_said_when() -> None:
    told = size(world(since="-20s"))
    assert told is not None and told.code == "GrowsLater"
    assert told.text == (
        "gets up to 8 replicas in 40s, if nothing else comes: it started 20s ago, and a size stays for a while"
    )


def test_it_grows_with_the_next_decision() -> None:
    told = size(undecided(world()))
    assert told is not None and (told.code, told.facts) == ("GrowsNow", {"replicas": 8})


def test_its_queue_is_at_its_limit() -> None:
    told = size(world(queue=", gpu: {limit: 2}"))
    assert told is not None and told.code == "OverLimit"
    assert told.text == "queue q is at its limit of 2 GPUs in pool default: 2 in use, 1 asked"


def test_there_is_no_room() -> None:
    told = size(world(others=FULL))
    assert told is not None and told.code == "NoRoom"
    assert told.text == "no node of pool default has 1 GPU free; best has 0 GPUs"


def test_a_restart_does_not_pay_back_yet() -> None:
    told = size(world(cost="30m, expectedDuration: 61m", checkpoint=False))
    assert told is not None and told.code == "NotWorthIt" and "a restart costs 30m" in told.text


def test_its_queue_is_stopped() -> None:
    told = size(world(queue=", state: stopped"))
    assert told is not None and (told.code, told.text) == ("QueueStopped", "queue q is stopped")


@pytest.mark.parametrize("replicas", [2, 8])
def test_there_is_something_to_ask_only_below_its_most(replicas: int) -> None:
    assert needs_copy(running(world(), replicas)) == (replicas < 8)
