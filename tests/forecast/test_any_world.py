"""Whatever a world looks like in the middle of its life, it can be played on from there."""

from __future__ import annotations

import pytest

from optimus.drivers.sim.forecasting import forecast
from optimus.drivers.sim.present import of_engine
from optimus.drivers.sim.standing import read_state
from optimus.model.slots import Phase
from optimus.testing import PretendBody, random_world

HOUR_MS = 3_600_000
CYCLES = 8


@pytest.mark.parametrize("seed", range(24))
def test_gangs_shares_elastic_and_leaving_work_go_on(seed: int) -> None:
    """The clockwork refuses two on one device and work that is not there, so that going on proves the places agree."""
    body = PretendBody(random_world(seed))
    for _ in range(CYCLES):
        body.step(40_000)
    present = of_engine(body.engine, body.now_ms)
    found = forecast(present, samples=1, horizon_ms=3 * HOUR_MS)
    assert all(one.samples == 1 for one in found.values())


def test_these_worlds_have_work_in_every_phase() -> None:
    phases: set[int] = set()
    promised = False
    for seed in range(24):
        body = PretendBody(random_world(seed))
        for _ in range(CYCLES):
            body.step(40_000)
        slots = read_state(body.engine.dump()).slots
        phases |= {slot.phase for slot in slots}
        promised = promised or any(slot.promised for slot in slots)
    assert {Phase.HELD, Phase.RUNNING, Phase.RELEASING} <= phases and promised
