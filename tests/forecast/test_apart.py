"""A forecast in a process of its own disturbs nobody, and can be stopped at any moment."""

from __future__ import annotations

import os
import signal
from multiprocessing import Pipe
from typing import Any

import pytest
from msgspec import structs

from optimus.drivers.sim.clockwork import SimulationError
from optimus.drivers.sim.forecasting import Apart, Asked, ForecastError, apart, forecast_apart
from optimus.drivers.sim.forecasting.apart import NICENESS
from optimus.drivers.sim.forecasting.foreseeing import foresee
from optimus.drivers.sim.forecasting.sampling import Futures
from tests.forecast.worlds import ONE_GPU, present

ENDLESS = 1_000_000
"""Samples: more than anybody waits for."""


def asked(samples: int) -> Asked:
    return Asked(present=present(ONE_GPU), samples=samples)


def test_it_says_the_same_as_in_this_process() -> None:
    heard: list[int] = []
    assert forecast_apart(asked(6), tell=heard.append) == foresee(asked(6))
    assert heard == sorted(heard)


def test_killed_it_leaves_what_was_done() -> None:
    with Apart(asked(ENDLESS)) as apart:
        while not apart.samples:
            assert not apart.wait(1)
        assert apart.process.pid is not None
        ours = os.getpriority(os.PRIO_PROCESS, 0)  # whoever asks may have stepped back already
        assert os.getpriority(os.PRIO_PROCESS, apart.process.pid) == max(ours, NICENESS)
        os.kill(apart.process.pid, signal.SIGKILL)
        while not apart.wait(1):
            pass
        told = apart.forecast()
    assert 0 < told.samples < ENDLESS and told.asked == ENDLESS
    assert "ended without a word" in told.stopped and "-9" in told.stopped
    assert told.quantiles == foresee(asked(told.samples)).quantiles


def test_killed_before_it_said_anything_there_is_no_forecast() -> None:
    with Apart(asked(ENDLESS)) as apart:
        assert apart.process.pid is not None
        os.kill(apart.process.pid, signal.SIGKILL)
        while not apart.wait(1):
            pass
        with pytest.raises(ForecastError, match="without a word"):
            apart.forecast()


def test_cancelled_it_is_gone() -> None:
    with Apart(asked(ENDLESS)) as apart:
        while not apart.samples:
            apart.wait(1)
        apart.cancel()
        assert not apart.process.is_alive()
        assert apart.forecast().stopped == "it was cancelled"


def test_its_cpu_time_is_bounded() -> None:
    with Apart(asked(ENDLESS), cpu_seconds=1) as apart:
        while not apart.wait(1):
            pass
        assert apart.process.exitcode in (-signal.SIGXCPU, -signal.SIGKILL)


def test_one_future_that_breaks_down_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    play = Futures.play

    def played(futures: Futures, targets: Any, seed: int, sample: int, wanted: Any) -> Any:
        if sample == 1:
            raise SimulationError("no such device")
        return play(futures, targets, seed, sample, wanted)

    monkeypatch.setattr(Futures, "play", played)
    monkeypatch.setattr("os.nice", lambda _by: 0)
    near, far = Pipe(duplex=False)
    apart._work(far, asked(4), 0)
    heard = []
    while near.poll():
        heard.append(near.recv())
    assert [type(one) for one in heard] == [tuple, dict, dict, dict, str]
    assert heard[-1] == "it broke down: SimulationError: no such device"


def test_what_breaks_down_says_how() -> None:
    broken = structs.replace(asked(2), present=structs.replace(present(ONE_GPU), policy="no-such-policy"))
    with pytest.raises(ForecastError, match="no policy 'no-such-policy'"):
        forecast_apart(broken)
