"""To ask what would be done later leaves everything as it is."""

from __future__ import annotations

from optimus.api.loading import load_text
from optimus.drivers.sim.playing import Play

HOUR = 3_600_000
STORY = """
cluster: [{name: n, gpus: 4}]
settings: {historyHalfLife: 1h}
queues: [{name: a}, {name: b}]
workloads:
  - {name: runs, queue: a, gpu: 3, running: {on: n, since: -1h}}
  - {name: waits, queue: b, gpu: 4}
cycles: 2
"""


def test_a_plan_for_later_does_not_move_the_clock_or_count_use() -> None:
    play = Play(load_text(STORY).or_raise())
    moments = iter(play)
    next(moments)
    engine = play.engine
    before, now_ms = engine.dump(), engine.state.now_ms
    later = engine.decide(now_ms + HOUR)
    assert engine.decide(now_ms + HOUR) == later
    assert engine.dump() == before
    assert engine.state.now_ms == now_ms
    undisturbed = Play(load_text(STORY).or_raise())
    assert [moment.plan for moment in moments] == [moment.plan for moment in undisturbed][1:]
    assert engine.dump() == undisturbed.engine.dump()
