"""Seats that are kept, reminders, and seats that take a part of a device."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from optimus.drivers.sim.clockwork import Clockwork, News, Seat, SimulationError
from optimus.drivers.sim.setup import Outage, Setup, uniform_nodes
from tests.sim.peers.stories import job

Act = Callable[[Clockwork, News], None]


class Scripted:
    name = "scripted"
    every_round = False

    def __init__(self, act: Act) -> None:
        self.decide = act

    def open(self, clock: Clockwork) -> None:
        pass


def world(*jobs_gpus: int, nodes: int = 1, gpus: int = 2, **setup: object) -> Clockwork:
    jobs = [job(f"j{i}", 10, g) for i, g in enumerate(jobs_gpus)]
    return Clockwork(Setup(nodes=uniform_nodes(nodes, gpus), tick_ms=0, **setup), jobs)  # type: ignore[arg-type]


def test_kept_seats_are_nobody_elses_and_do_no_work() -> None:
    clock = world(1, 1, gpus=1)
    seen: list[int] = []

    def act(clock: Clockwork, news: News) -> None:
        seen.append(clock.now_ms)
        if clock.now_ms == 0:
            clock.hold(0, {0: Seat(0)})
            with pytest.raises(SimulationError, match="0 free"):
                clock.hold(1, {0: Seat(0)})
            clock.hold(1, {})
            clock.remind(0, 5_000)
        elif news.reminded:
            clock.place(0, {0: Seat(0)})
        elif 0 in news.ended:
            clock.place(1, {0: Seat(0)})

    record = clock.play(Scripted(act))
    assert seen == [0, 5_000, 15_000]
    assert [r.start_ms for r in record.jobs] == [5_000, 15_000]
    assert [r.held_gpu_ms for r in record.jobs] == [5_000, 0]
    assert [r.gpu_ms for r in record.jobs] == [10_000, 10_000]


def test_who_runs_has_its_seats_already() -> None:
    clock = world(1)

    def act(clock: Clockwork, news: News) -> None:
        clock.place(0, {0: Seat(0)})
        with pytest.raises(SimulationError, match="does not wait"):
            clock.hold(0, {0: Seat(0)})

    clock.play(Scripted(act), until_ms=1)


def test_kept_seats_on_a_lost_node_are_lost() -> None:
    clock = world(1, nodes=2, gpus=1, outages=(Outage(node="gpu-1", at_ms=1_000, for_ms=1_000),))
    gone: list[tuple[int, int]] = []

    def act(clock: Clockwork, news: News) -> None:
        gone.extend(news.gone)
        if news.arrived:
            clock.hold(0, {0: Seat(0), 1: Seat(1)})
        if news.nodes_up:
            clock.place(0, dict(clock.runs[0].held))

    record = clock.play(Scripted(act))
    assert gone == [(0, 1)]
    assert record.jobs[0].end_ms == 12_000


def test_two_can_share_a_device_they_did_not_ask_to_share_and_no_more() -> None:
    clock = world(1, 1, gpus=1)

    def act(clock: Clockwork, news: News) -> None:
        if news.arrived:
            for index in (0, 1):
                clock.place(index, {0: Seat(0, (0,), 500)})

    record = clock.play(Scripted(act))
    assert [r.end_ms for r in record.jobs] == [10_000, 10_000]
    assert [r.gpu_ms for r in record.jobs] == [5_000, 5_000]


def test_three_halves_are_more_than_a_device() -> None:
    clock = world(1, 1, 1, gpus=1)

    def act(clock: Clockwork, news: News) -> None:
        for index in news.arrived:
            clock.place(index, {0: Seat(0, (0,), 500)})

    with pytest.raises(SimulationError, match="0 free"):
        clock.play(Scripted(act))
