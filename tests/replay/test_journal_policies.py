"""A journal looked at again: the recorded situation is reached without deciding; another policy does not change it."""

from __future__ import annotations

from pathlib import Path

import pytest

from optimus.api.loading import load_files
from optimus.drivers.sim.playing import Play
from optimus.engine.engine import ReplayEngine
from optimus.engine.journal import Journal, replay

STORIES = Path(__file__).parents[1] / "scenarios"
TOLD = [
    "fairness/history-orders-but-never-evicts.yaml",
    "fairness/two-equal-queues-take-turns.yaml",
    "elastic/grows-into-idle-room-and-gives-it-back.yaml",
    "consolidation/a-gang-moves-as-a-whole.yaml",
    "failures/a-lost-node-is-replaced-within-the-grace.yaml",
]


@pytest.fixture(params=TOLD)
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    story = STORIES / request.param
    for _ in Play(load_files(story).scenario, folder=story.parent, journal=tmp_path / "journal"):
        pass
    return tmp_path / "journal"


def test_every_cycle_of_a_story_replays(journal: Path) -> None:
    replayed = list(replay(journal, ReplayEngine))
    assert replayed and [item.difference for item in replayed if not item.equal] == []


def test_following_the_record_leads_to_every_recorded_situation(journal: Path) -> None:
    moment = Journal(journal).seek(sequence=2**62)
    for number, cycle in enumerate(moment.cycles):
        engine = ReplayEngine()
        engine.restore(bytes(moment.keyframe.state))
        for earlier in moment.cycles[:number]:
            engine.follow(earlier)
        assert engine.look(cycle) == cycle.plan


def test_another_policy_judges_and_the_record_goes_on(journal: Path) -> None:
    """After each cycle the state is what the recorded plan led to, whatever the other policy would have done."""

    recorded, other = ReplayEngine(), ReplayEngine("fair-share-only")
    moment = Journal(journal).seek(sequence=2**62)
    for engine in (recorded, other):
        engine.restore(bytes(moment.keyframe.state))
    for cycle in moment.cycles:
        recorded.follow(cycle)
        other.judge(cycle)
        assert other.engine.dump() == recorded.engine.dump()
    replayed = list(replay(journal, lambda: ReplayEngine("fair-share-only"), ReplayEngine.judge))
    assert [item.cycle for item in replayed] == list(moment.cycles)
