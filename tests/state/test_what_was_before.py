"""What an engine is told of the time before it began: service received and past use, once or twice told."""

from __future__ import annotations

from optimus.api.loading import load_text
from optimus.drivers.sim.playing import Play
from optimus.model.observations import ServiceRemembered, UseRemembered
from optimus.state import State

STORY = """
cluster: [{name: n, count: 1, gpus: 4}]
queues: [{name: team}]
workloads:
  - {name: runs, queue: team, gpu: 4, running: {on: n-0, since: -10m}}
  - {name: waits, queue: team, gpu: 4}
settings: {historyHalfLife: 1h}
"""
MINUTE_MS = 60_000


def opened() -> State:
    play = Play(load_text(STORY, "story.yaml").or_raise())
    next(iter(play))
    return play.engine.state


def numbers(state: State, name: str) -> tuple[int, int, int]:
    row, columns = state.workloads.row_of[f"default/{name}"], state.workloads.columns
    return int(columns.elapsed[row]), int(columns.attained[row]), int(columns.worked[row])


def test_work_that_runs_goes_on_from_what_it_had_received() -> None:
    state = opened()
    now_ms = state.now_ms
    told = ServiceRemembered("default/runs", now_ms - MINUTE_MS, 3 * MINUTE_MS, 12, 7)
    for _ in range(2):
        assert state.apply(told, now_ms) == []
        assert numbers(state, "runs") == (3 * MINUTE_MS, 12, 7), "told twice is told once"
    row = state.workloads.row_of["default/runs"]
    state.workloads.count_service(row, now_ms)
    assert numbers(state, "runs")[0] == 4 * MINUTE_MS, "and the minute since then is counted"


def test_work_that_waits_keeps_what_it_had_received() -> None:
    state = opened()
    state.apply(ServiceRemembered("default/waits", state.now_ms - MINUTE_MS, 5, 6, 7), state.now_ms)
    state.workloads.count_service(state.workloads.row_of["default/waits"], state.now_ms)
    assert numbers(state, "waits") == (5, 6, 7)
    assert state.apply(ServiceRemembered("default/nobody", 1, 2, 3, 4), state.now_ms) == []


def test_past_use_decays_from_the_time_it_is_of() -> None:
    state = opened()
    state.history.past_use, state.history.past_use_at = {}, 0
    told = UseRemembered("team", "default", "gpu", str(1 << 80), state.now_ms)
    for _ in range(2):
        assert state.apply(told, state.now_ms) == []
    state.snapshot(state.now_ms + 60 * MINUTE_MS)
    assert (1 << 79) <= state.history.past_use["team", "default", "gpu"] < (1 << 79) + (1 << 60), "an hour is half"
    (problem,) = state.apply(UseRemembered("team", "default", "gpu", "lots", 0), state.now_ms)
    assert "is no number: lots" in str(problem)
