"""Work that saves in time when it is told loses nothing: the brain knows, and rather asks it than others."""

from __future__ import annotations

import pytest

from optimus.api.loading import load_text
from optimus.drivers.sim.playing import Play
from optimus.model.observations import Observation, SavesInTime
from optimus.model.plans import Evict, Plan
from optimus.state import keyframe

TWO_GUESTS = """
cluster: [{name: n, count: 2, gpus: 4}]
queues: [{name: owner, gpu: {guarantee: 4}}, {name: guests}]
workloads:
  - {name: fresh, queue: guests, gpu: 4, checkpoint: {}, running: {on: n-0, since: -9h, lastCheckpoint: -1m}}
  - {name: stale, queue: guests, gpu: 4, checkpoint: {}, running: {on: n-1, since: -1h, lastCheckpoint: -45m}}
  - {name: asker, queue: owner, gpu: 4}
"""
STALE = "default/stale"


@pytest.mark.parametrize(
    ("told", "victim"),
    [
        ([], "default/fresh"),
        ([SavesInTime(STALE)], STALE),
        ([SavesInTime(STALE), SavesInTime(STALE)], STALE),
        ([SavesInTime(STALE), SavesInTime(STALE, yes=False)], "default/fresh"),
        ([SavesInTime("default/nobody")], "default/fresh"),
    ],
    ids=["nothing is known", "it saves", "it says so twice", "it was late since", "somebody who is not there"],
)
def test_who_saves_in_time_is_asked_first(told: list[Observation], victim: str) -> None:
    plan = _first_plan(told)
    assert [action.workload for action in plan.actions if isinstance(action, Evict)] == [victim]


def test_a_copy_of_the_state_knows_it_too() -> None:
    play = Play(load_text(TWO_GUESTS, "story.yaml").or_raise())
    next(iter(play))
    state = play.engine.state
    state.apply(SavesInTime(STALE), state.now_ms)
    copy = keyframe.restore(keyframe.dump(state))
    assert copy.workloads.columns.saves_in_time[copy.workloads.row_of[STALE]] == 1


def _first_plan(told: list[Observation]) -> Plan:
    play = Play(load_text(TWO_GUESTS, "story.yaml").or_raise())
    step, plans = play.engine.step, []

    def listen(facts: list[Observation], now_ms: int) -> Plan:
        plans.append(step([*facts, *told], now_ms))
        return plans[-1]

    play.engine.step = listen  # type: ignore[method-assign, assignment]
    next(iter(play))
    return plans[0]
