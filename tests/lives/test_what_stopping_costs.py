"""What work loses that is stopped now: said in the same words wherever it is asked, and counted as the brain counts."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec import structs

from optimus.api.loading import load_text
from optimus.decide.holdings import lost_ms
from optimus.decide.world import World
from optimus.engine.engine import Engine
from optimus.lives import Loss, in_words, loss_of, when_resumed
from optimus.model.observations import Checkpointed, Observation, SavesInTime, WorkloadSeen
from optimus.model.workloads import Checkpoint

MINUTE = 60_000
STORY = "{cluster: [{name: n, gpus: 4}], workloads: [{name: train, gpu: 1, running: {on: n, since: -12m}}]}"
WHO = "default/train"


def stopped(*facts: Observation, saves: Checkpoint | None = None) -> Loss:
    """Twelve minutes after it began."""
    scenario = load_text(STORY).or_raise()
    engine = Engine(policy="default", settings=scenario.settings)
    now_ms = scenario.start_ms
    opening = [
        WorkloadSeen(structs.replace(fact.workload, checkpoint=saves)) if isinstance(fact, WorkloadSeen) else fact
        for fact in scenario.opening
    ]
    engine.step([*opening, *facts], now_ms)
    table = engine.state.workloads
    found = loss_of(table, WHO, now_ms)
    assert found is not None
    world = World(engine.state.snapshot(now_ms), engine.policy, now_ms, engine.budget, engine.seed)
    counted = int(lost_ms(world, np.array([table.row_of[WHO]]))[0])
    assert found.lost_ms == counted, "people are told what the brain counts"
    return found


def ago(minutes: float) -> int:
    return load_text(STORY).or_raise().start_ms - round(minutes * MINUTE)


def test_work_that_saves_nothing_loses_all_it_has_done_and_begins_anew() -> None:
    found = stopped()
    assert (found.text, found.lost_ms, found.anew) == ("saves nothing: 12m of work are lost", 12 * MINUTE, True)
    assert when_resumed([found]) == ("it saves nothing: 12m of work are lost, and it begins anew when it is resumed")


def test_work_that_has_saved_goes_on_from_there() -> None:
    found = stopped(Checkpointed(WHO, ago(0.5)), saves=Checkpoint(grace_ms=30_000))
    assert found.text == "resumes from its checkpoint of 30s ago, or a newer one"
    assert (found.lost_ms, found.checkpoint_ms, found.anew) == (30_000, ago(0.5), False)


def test_a_checkpoint_counts_also_where_none_was_promised() -> None:
    assert stopped(Checkpointed(WHO, ago(2))).text == "resumes from its checkpoint of 2m ago, or a newer one"


def test_what_was_saved_before_this_attempt_does_not_count() -> None:
    assert stopped(Checkpointed(WHO, ago(20))).text == "saves nothing: 12m of work are lost"


def test_who_says_that_it_saves_in_time_loses_nothing() -> None:
    found = stopped(SavesInTime(WHO, yes=True), saves=Checkpoint(grace_ms=30_000))
    assert (found.text, found.lost_ms) == ("saves first and loses nothing", 0)
    assert when_resumed([found]) == ("it saves first and loses nothing, and it goes on from there when it is resumed")


def test_a_promise_to_save_is_told_as_a_promise() -> None:
    assert stopped(saves=Checkpoint(grace_ms=30_000)).text == (
        "has told of no checkpoint: 12m of work are lost unless it saves within its 30s"
    )
    assert stopped(saves=Checkpoint(interval_ms=5 * MINUTE)).text == "saves every 5m: at most 5m of work are lost"


@pytest.mark.parametrize(
    ("losses", "said"),
    [
        ((), ""),
        ((5, 7), "all 2 save nothing: 12m of work are lost in all"),
        ((5, -1), "1 of 2 saves nothing: at most 6m of work are lost in all"),
        ((-1, -2), "they save: at most 3m of work are lost in all"),
        ((0, 0), "all 2 save first and lose nothing"),
    ],
)
def test_several_are_told_together(losses: tuple[int, ...], said: str) -> None:
    """Minutes that are lost, below 0 of those that have a checkpoint."""
    those = [Loss(workload="x", lost_ms=abs(lost) * MINUTE, anew=lost > 0, text="") for lost in losses]
    assert in_words(those) == said


def test_what_does_not_run_loses_nothing() -> None:
    scenario = load_text("{cluster: [{name: n, gpus: 4}], workloads: [{name: train, gpu: 8}]}").or_raise()
    engine = Engine(policy="default", settings=scenario.settings)
    engine.step(scenario.opening, scenario.start_ms)
    assert loss_of(engine.state.workloads, WHO, scenario.start_ms) is None
    assert loss_of(engine.state.workloads, "default/nobody", scenario.start_ms) is None
    assert when_resumed([]) == ""
