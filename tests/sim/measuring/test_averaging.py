"""The metrics of one scheduler over several traces."""

from __future__ import annotations

from optimus.drivers.sim.measuring.averaging import averaged
from tests.sim.measuring.worlds import MINUTE, job, measured

CALM = measured("s", [job("a", 0, 4, 60, queue="x")], {"a": [(0, 60)]}).metrics
BUSY = measured(
    "s",
    [job("a", 0, 4, 60, queue="x"), job("b", 0, 1, 10, queue="y")],
    {"a": [(0, 60)], "b": [(60, 70)]},
).metrics


def test_one_trace_stays_as_it_is() -> None:
    assert averaged([CALM]) is CALM


def test_every_number_is_the_mean_over_traces() -> None:
    told = averaged([CALM, BUSY])
    assert told.scheduler == "s"
    assert told.jct_ms.average == (60 + 65) / 2 * MINUTE
    assert told.longest_wait_ms == 30 * MINUTE
    assert told.longest_waiter == ""


def test_what_only_some_traces_have_is_averaged_over_those() -> None:
    told = averaged([CALM, BUSY])
    assert told.jct_ms_by_size["1"].average == 70 * MINUTE
    assert [(queue.queue, queue.gpu_hours) for queue in told.queues] == [("x", 4.0), ("y", round(1 / 6, 6))]
    assert told.decision_ms is None
