"""FIFO with skip, and shortest first with and without errors."""

from __future__ import annotations

import math

import numpy as np
import pytest

from optimus.drivers.sim.peers.expectations import attained_ms, told, with_error
from optimus.drivers.sim.peers.fifo import fifo
from optimus.drivers.sim.peers.shortest import qssf, sjf, sjf_erring, srtf, srtf_erring
from optimus.drivers.sim.setup import Outage
from tests.sim.peers.stories import ended, job, play, started


def test_fifo_starts_in_order_of_arrival_and_passes_what_does_not_fit() -> None:
    jobs = [job("first", 100, 2), job("large", 10, 4, at=1), job("small", 10, 2, at=2), job("last", 1, 2, at=3)]
    assert started(play(fifo(), jobs, gpus=4)) == {"first": 0, "small": 2, "last": 12, "large": 100}


def test_fifo_keeps_a_gang_together() -> None:
    jobs = [job("a", 100, 1), job("b", 100, 1, replicas=3), job("c", 100, 1, replicas=4)]
    assert set(started(play(fifo(), jobs, nodes=2, gpus=4)).values()) == {0}


def test_sjf_takes_the_shortest_that_waits_and_leaves_alone_who_runs() -> None:
    jobs = [job("running", 100), job("long", 50, at=1), job("short", 5, at=2)]
    records = play(sjf(), jobs)
    assert started(records) == {"running": 0, "short": 100, "long": 105}
    assert all(r.preemptions == 0 for r in records.values())


def test_srtf_preempts_for_what_is_shorter_than_the_rest() -> None:
    jobs = [job("long", 100), job("short", 5, at=2), job("middle", 97, at=3)]
    records = play(srtf(), jobs)
    assert ended(records) == {"short": 7, "middle": 104, "long": 202}
    assert records["long"].preemptions == 1


def test_srtf_decides_in_rounds_where_the_set_up_has_them() -> None:
    jobs = [job("long", 100), job("short", 5, at=61)]
    assert started(play(srtf(), jobs, round_s=60))["short"] == 120


def test_srtf_survives_the_loss_of_a_node() -> None:
    outage = Outage(node="gpu-0", at_ms=10_000, for_ms=20_000)
    assert ended(play(srtf(), [job("a", 100), job("b", 200)], outages=(outage,))) == {"a": 120, "b": 320}


def test_an_error_can_turn_the_order_around() -> None:
    """Somewhere among many seeds the longer one is taken for the shorter one."""
    jobs = [job("running", 100), job("ten", 10, at=1), job("eleven", 11, at=1)]
    first = {min(("ten", "eleven"), key=started(play(sjf_erring(1.0, s), jobs)).__getitem__) for s in range(10)}
    assert first == {"ten", "eleven"}
    assert sjf_erring(0.3).name == "sjf (error 0.3)"
    assert srtf_erring(0.7).name == "srtf (error 0.7)"


def test_who_outlives_its_expectation_runs_on() -> None:
    jobs = [job("sloth", 100, expected_ms=10_000), job("short", 5, at=20, expected_ms=5_000)]
    assert ended(play(srtf(told()), jobs)) == {"sloth": 100, "short": 105}


def test_who_says_nothing_is_last() -> None:
    jobs = [job("now", 10, expected_ms=1), job("silent", 1, at=1), job("long", 90, at=2, expected_ms=90_000)]
    assert started(play(sjf(told()), jobs)) == {"now": 0, "long": 10, "silent": 100}


def test_errors_are_log_normal_and_the_same_for_everybody() -> None:
    jobs = [job(f"j{i}", 100) for i in range(2000)]
    logs = np.array([math.log(with_error(j, 0.7) / 100_000) for j in jobs])
    assert logs.mean() == pytest.approx(0, abs=0.05)
    assert logs.std() == pytest.approx(0.7, abs=0.05)
    assert with_error(jobs[0], 0.7) == with_error(jobs[0], 0.7) != with_error(jobs[0], 0.7, seed=1)


def test_qssf_learns_from_similar_jobs_what_to_expect() -> None:
    """Two families are seen once. Of the next two, the family that was short goes first, although it came later."""
    jobs = [
        job("short-1", 10, family="short"),
        job("long-1", 100, family="long"),
        job("long-2", 100, at=200, family="long"),
        job("long-3", 100, at=201, family="long"),
        job("short-2", 10, at=202, family="short"),
    ]
    assert started(play(qssf(), jobs)) == {"long-1": 0, "short-1": 100, "long-2": 200, "short-2": 300, "long-3": 310}


def test_qssf_counts_gpus_as_well_as_time() -> None:
    jobs = [
        *(job(f"seen-{g}", 100, g, queue="q") for g in (1, 4)),
        job("now", 10, 4, at=300, queue="q"),
        job("wide", 100, 4, at=301, queue="q"),
        job("narrow", 100, 1, at=302, queue="q"),
    ]
    assert started(play(qssf(), jobs, gpus=4)) | {"wide": 0} == {
        "seen-1": 0,
        "seen-4": 100,
        "now": 300,
        "narrow": 310,
        "wide": 0,
    }


def test_attained_time_counts_the_present_stretch_too() -> None:
    from optimus.drivers.sim.clockwork import Run, Seat

    run = Run(0, job("a", 100))
    run.record.run_ms = 500
    assert attained_ms(run, 1_000) == 500
    run.seats, run.began_ms = {0: Seat(0)}, 700
    assert attained_ms(run, 1_000) == 800
