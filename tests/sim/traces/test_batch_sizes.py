"""Jobs that change their batch size: when, and what that does to their time."""

from __future__ import annotations

from pathlib import Path

import pytest

from optimus.drivers.sim.clockwork import Clockwork
from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.peers.fifo import fifo
from optimus.drivers.sim.setup import Setup, uniform_nodes
from optimus.drivers.sim.traces.batch_sizes import change_of, model_and_batch
from optimus.drivers.sim.traces.formats import load
from optimus.drivers.sim.traces.trace import TraceError, Verdict
from optimus.drivers.sim.works.adapting import Adapting, AdaptingProgress, Change, adapting
from tests.sim.traces.lists import said, with_rows, written

LIST = """\
job_id,job_type,scale_factor,adaptation,total_steps,priority_weight,slo,duration_s,arrival_s
0,LM (batch size 40),1,static,1492,1.0,-1.0,100,0
1,LM (batch size 40),1,accordion,29840,1.0,-1.0,100,0
"""
RATES = """\
gpu_type,consolidated,job_type,scale_factor,steps_per_s
v100,1,LM (batch size 40),1,10
v100,1,LM (batch size 80),1,8
"""
DOUBLING = Change(most=80, doublings=(4,))
WORK = Adapting(steps=100, batch=40, samples=400, rates={40: 0.1, 80: 0.1}, change=DOUBLING)
"""Ten epochs of ten steps, 100 s each, and of five steps with the larger batch, 50 s each."""


def passed(work: Adapting, round_s: int, rounds: int) -> AdaptingProgress:
    progress = AdaptingProgress(work)
    for _ in range(rounds):
        progress.pass_ms(round_s * 1000)
    return progress


def test_a_larger_batch_means_fewer_steps_for_the_same_epochs() -> None:
    """In rounds of 100 s: the change is due when epoch 4 is next, seen after three, made after four. Six are left."""
    assert passed(WORK, 100, 3).left_ms() == 120_000  # it looks again then
    after = passed(WORK, 100, 4)
    assert (after.done(), after.steps_per_s) == (0.4, 0.1)
    assert not passed(WORK, 100, 6).over
    assert passed(WORK, 100, 7).over
    assert passed(WORK, 100, 7).over_ago_ms == 0
    without = Adapting(steps=100, batch=40, samples=400, rates={40: 0.1})
    assert passed(without, 100, 9).done() == pytest.approx(0.9)


def test_an_epoch_that_was_begun_counts_as_done_after_a_change() -> None:
    """In rounds of 150 s: seen after 3 of 10 epochs (at 300 s), made at 450 s within the fifth, which is then done."""
    assert passed(WORK, 150, 2).done() == pytest.approx(0.3)
    assert passed(WORK, 150, 3).done() == 0.5
    assert passed(WORK, 150, 5).over
    assert passed(WORK, 150, 5).over_ago_ms == pytest.approx(50_000)


def test_a_batch_size_that_was_not_measured_is_not_taken() -> None:
    alone = Adapting(steps=100, batch=40, samples=400, rates={40: 0.1}, change=DOUBLING)
    assert passed(alone, 100, 9).done() == pytest.approx(0.9)


def test_undisturbed_it_looks_every_two_minutes() -> None:
    """Seen at 240 s in the third epoch, made at 360 s: four epochs count as done, six of 50 s are left."""
    assert adapting(WORK).ideal_ms() == pytest.approx((360 + 300) * 1000)


@pytest.mark.parametrize("round_s", [0, 60])
def test_the_clockwork_plays_it_with_and_without_rounds(round_s: int) -> None:
    work = adapting(WORK)
    setup = Setup(nodes=uniform_nodes(1, 1), interval_ms=round_s * 1000)
    (record,) = Clockwork(setup, [Job(name="a", submit_ms=0, work=work)]).play(fifo()).jobs
    slow, fast = 1_000_000, 500_000
    assert record.end_ms is not None
    assert fast < record.end_ms < slow
    if not round_s:
        assert record.end_ms == work.ideal_ms()


def test_accordion_has_the_first_batch_in_critical_epochs_and_the_largest_in_others() -> None:
    change = change_of("ResNet-18", 64, 1, "accordion")
    assert change is not None
    wanted = [change.wanted(64, 64, epoch) for epoch in (0, 9, 10, 149, 150, 159, 160)]
    assert wanted == [64, 64, 256, 256, 64, 64, 256]


def test_gns_doubles_step_by_step() -> None:
    change = change_of("LM", 10, 1, "gns")
    assert change is not None
    assert [change.wanted(10, 10, epoch) for epoch in (9, 10, 50)] == [10, 20, 20]
    assert [change.wanted(10, 20, epoch) for epoch in (19, 20)] == [20, 40]
    assert change.wanted(10, 80, 100) == 80


@pytest.mark.parametrize(
    ("model", "batch", "adaptation"), [("LM", 80, "gns"), ("Transformer", 16, "accordion"), ("LM", 5, "static")]
)
def test_some_never_change(model: str, batch: int, adaptation: str) -> None:
    assert change_of(model, batch, 1, adaptation) is None


def test_the_kind_says_model_and_batch_size() -> None:
    assert model_and_batch("ResNet-18 (batch size 64)") == ("ResNet-18", 64)
    assert model_and_batch("A3C") is None


def test_a_list_can_be_loaded_adapting(tmp_path: Path) -> None:
    """1,492 steps at 10 a second. The other: 20 epochs of 149.2 s; it sees at 1,440 s that the tenth has begun, and has
    changed at 1,560 s, when 11 count as done and nine of 746 steps at 8 a second are left."""
    path = written(tmp_path, "jobs.csv", LIST)
    with pytest.raises(TraceError, match="no throughputs_v100_tacc"):
        load(path, adapt=True)
    written(tmp_path, "throughputs_v100_tacc.csv", RATES)
    trace = load(path, adapt="true")
    static, accordion = (job.work for job in trace.jobs)
    assert isinstance(static, Adapting)
    assert static.change is None
    assert static.ideal_ms() == pytest.approx(149_200)
    assert accordion.ideal_ms() / 1000 == pytest.approx(1560 + 9 * 746 / 8)
    assert not trace.problems


def test_what_is_not_known_of_a_kind_is_said(tmp_path: Path) -> None:
    written(tmp_path, "throughputs_v100_tacc.csv", RATES)
    rows = (
        "0,A3C,1,gns,10,1,-1,100,0",
        "1,LM (batch size 40),1,gns,0,1,-1,100,0",
        "2,LM (batch size 5),1,gns,9,1,-1,9,0",
    )
    trace = load(written(tmp_path, "jobs.csv", with_rows(LIST, *rows)), adapt=True)
    assert [text.split(";")[0] for text in said(trace, Verdict.LEFT_OUT).values()] == [
        "nothing is known of the epochs and rates of A3C",
        "total_steps is 0",
        "nothing is known of the epochs and rates of LM (batch size 5)",
    ]
