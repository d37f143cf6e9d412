"""Lists that come with measurements: how fast a job is where."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from optimus.drivers.sim.clockwork import Clockwork, News, Seat
from optimus.drivers.sim.measuring import Metrics, measure
from optimus.drivers.sim.setup import Setup, uniform_nodes
from optimus.drivers.sim.traces.formats import load
from optimus.drivers.sim.traces.gavel import without_speeds
from optimus.drivers.sim.traces.trace import TraceError, Verdict
from optimus.drivers.sim.works import Spread
from optimus.drivers.sim.works.training import Training
from tests.sim.traces.lists import GAVEL, RATES, said, steady, with_rows, written

SHOCKWAVE = """\
job_id,job_type,scale_factor,adaptation,total_steps,priority_weight,slo,duration_s,arrival_s
0,LM (batch size 5),1,static,1000,1.0,-1.0,500,0
1,LM (batch size 5),4,gns,1000,1.0,-1.0,800,30
"""

CHRONUS = """\
job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,expect_time_list,expect_value_list,best_effort,job_type
0,ada,4,500,100,vgg16,60,5,90,10,0,strict
1,bob,1,100,100,vgg16,60,5,100,10,1,best
2,bob,0,200,100,vgg16,30,5,45,10,0,strict
"""


@pytest.fixture
def gavel(tmp_path: Path) -> Path:
    written(tmp_path, "throughputs_simulation.csv", RATES)
    return written(tmp_path, "jobs.csv", GAVEL)


def test_steps_at_the_rate_of_the_reference_are_the_duration(gavel: Path) -> None:
    trace = load(gavel)
    assert (steady(trace, "0").duration_ms, steady(trace, "1").duration_ms) == (100_000, 100_000)
    slow = load(gavel, reference="k80")
    assert (steady(slow, "0").duration_ms, steady(slow, "1").duration_ms) == (500_000, 500_000)


def test_spreading_costs_more_on_fast_gpus_than_on_slow_ones(gavel: Path) -> None:
    work = steady(load(gavel), "1")
    assert work.speed(Spread((4,), "v100")) == 1.0
    assert work.speed(Spread((2, 2), "v100")) == 0.25
    assert work.speed(Spread((4,), "k80")) == 0.2
    assert work.speed(Spread((2, 2), "k80")) == pytest.approx(0.15)


def test_schedulers_are_told_the_speed_of_the_models_unless_they_are_not(gavel: Path) -> None:
    trace = load(gavel)
    told = {speed.model: speed.speed_percent for speed in trace.jobs[0].models}
    assert told == {"k80": 20, "v100": 100}
    assert {speed.speed_percent for job in without_speeds(trace).jobs for speed in job.models} == {100}


def test_steps_that_are_no_work_are_said_as_steps(tmp_path: Path) -> None:
    written(tmp_path, "throughputs_simulation.csv", RATES)
    row = GAVEL.splitlines()[1].split(",")
    row[3] = "-3"
    trace = load(written(tmp_path, "jobs.csv", with_rows(GAVEL, ",".join(row))))
    assert said(trace, Verdict.LEFT_OUT) == {2: "total_steps is -3; a job that has nothing to do says nothing"}


def test_an_adaptation_that_nobody_knows_is_told_whether_it_is_played_or_not(tmp_path: Path) -> None:
    row = "2,LM (batch size 5),1,wild,1000,1.0,-1.0,500,0"
    trace = load(written(tmp_path, "jobs.csv", with_rows(SHOCKWAVE, row)))
    assert said(trace, Verdict.LEFT_OUT) == {2: "adaptation is 'wild'; it is one of gns, accordion, static"}


def test_an_slo_is_a_deadline_in_multiples_of_the_duration(gavel: Path) -> None:
    assert [job.deadline_ms for job in load(gavel).jobs] == [None, 60_000 + 2 * 100_000]


def test_a_size_that_was_not_measured_is_taken_in_proportion_and_says_so(gavel: Path) -> None:
    gavel.write_text(with_rows(GAVEL, "0,LM (batch size 5),8,8000,1.0,-1.0,0"))
    trace = load(gavel)
    assert "2 times that of 4 is taken" in said(trace, Verdict.CHANGED)[2]
    assert steady(trace, "0").duration_ms == 400_000  # on two nodes of four: 8 GPUs at the rate of a spread job


def test_what_does_not_run_on_a_model_is_not_offered_it(tmp_path: Path) -> None:
    written(
        tmp_path,
        "throughputs_simulation.csv",
        RATES.replace("k80,1,LM (batch size 5),1,,,2.0", "k80,1,LM (batch size 5),1,,,0"),
    )
    trace = load(written(tmp_path, "jobs.csv", GAVEL))
    assert [speed.model for speed in trace.jobs[0].models] == ["v100"]


def test_jobs_of_an_unknown_kind_are_left_out(gavel: Path) -> None:
    gavel.write_text(with_rows(GAVEL, "0,Chess,1,10,1.0,-1.0,0", "1,LM (batch size 5),1,10,1,-1,0"))
    trace = load(gavel)
    assert len(trace.jobs) == 1
    assert "no rate of Chess in throughputs_simulation.csv" in said(trace, Verdict.LEFT_OUT)[2]


def test_the_table_must_be_there_and_know_the_reference(tmp_path: Path, gavel: Path) -> None:
    with pytest.raises(TraceError, match="no rate for a100; it has k80, v100"):
        load(gavel, reference="a100")
    alone = written(tmp_path, "elsewhere/jobs.csv", GAVEL)
    with pytest.raises(TraceError, match="no throughputs_simulation"):
        load(alone)


def test_shockwave_jobs_keep_their_first_batch_size_and_a_note_says_so(tmp_path: Path) -> None:
    trace = load(written(tmp_path, "jobs.csv", SHOCKWAVE))
    assert [steady(trace, name).duration_ms for name in "01"] == [500_000, 800_000]
    assert said(trace, Verdict.NOTE)[0].startswith("1 jobs change their batch size")
    rates = written(tmp_path, "rates.csv", RATES)
    assert steady(load(trace.source or "", throughputs=rates), "1").speed_by_nodes == (1.0, 0.25)


def test_chronus_has_deadlines_cpu_jobs_and_costs_of_spreading(tmp_path: Path) -> None:
    written(tmp_path, "placement_slowdown.json", '{"vgg16": {"4": {"1": 1.0, "2": 0.5, "4": 0.25}}}')
    trace = load(written(tmp_path, "jobs.csv", CHRONUS))
    best, cpu, gang = trace.jobs  # in order of submission, and no word about the order of the file
    assert (trace.rows, trace.problems) == (3, ())
    assert [(job.queue, job.submit_ms, job.deadline_ms) for job in trace.jobs] == [
        ("bob", 0, None),
        ("bob", 100_000, 145_000),
        ("ada", 400_000, 490_000),
    ]
    assert (cpu.gpus, cpu.cpu_milli, best.gpus) == (0, 1000, 1)
    assert (gang.replicas, gang.gpus) == (4, 1)
    speeds = [steady(trace, "0").speed(Spread(per_node)) for per_node in ((4,), (2, 2), (2, 1, 1), (1, 1, 1, 1))]
    assert speeds == [1.0, 0.5, 0.25, 0.25]


def test_without_the_table_spreading_is_free_and_a_note_says_so(tmp_path: Path) -> None:
    trace = load(written(tmp_path, "jobs.csv", CHRONUS))
    assert "spreading a job over nodes costs nothing" in said(trace, Verdict.NOTE)[0]


PLACEMENTS = """\
placement,local_bsz,step_time,sync_time
1,8,1.0,0.0
1,16,2.0,0.0
2,8,1.1,0.1
2,16,2.1,0.1
"""


@pytest.fixture
def pollux(tmp_path: Path) -> Path:
    app = "apps_t4/toy"
    written(tmp_path, f"{app}/placements.csv", PLACEMENTS)
    written(tmp_path, f"{app}/scalability.csv", "num_nodes,num_replicas,local_bsz,step_time,sync_time\n1,2,8,1.1,0.1\n")
    epochs = "progress,iteration,metric,grad_sqr,grad_var\n1000,1000,0.1,1.0,2.0\n2000,2000,0.2,1.0,2.0\n"
    written(tmp_path, f"{app}/validation-8.csv", epochs)
    written(tmp_path, f"{app}/validation-64.csv", epochs)
    rows = "toy-0,107,toy,2,16\ntoy-1,170,chess,1,8\ntoy-2,180,toy,1,4096\n"
    return written(tmp_path, "workloads/workload-1.csv", "name,time,application,num_replicas,batch_size\n" + rows)


@pytest.mark.parametrize(
    ("mode", "replicas", "least", "batch"), [("rigid", 2, 2, 16), ("scaling", 2, 1, 16), ("adaptive", 2, 1, None)]
)
def test_a_pollux_job_can_be_run_in_three_ways(
    pollux: Path, mode: str, replicas: int, least: int, batch: int | None
) -> None:
    trace = load(pollux, mode=mode)
    (job,) = trace.jobs
    assert (job.name, job.submit_ms, job.family, job.replicas, job.least) == ("toy-0", 107_000, "toy", replicas, least)
    assert isinstance(job.work, Training)
    assert (job.work.batch, job.work.replicas) == (batch, 2)
    assert trace.setup is not None
    assert (len(trace.setup.nodes), trace.setup.interval_ms) == (16, 60_000)


class Gives:
    """So many replicas to everybody, on one node."""

    name = "gives"
    every_round = True

    def __init__(self, replicas: int) -> None:
        self._replicas = replicas

    def open(self, clock: Clockwork) -> None:
        pass

    def decide(self, clock: Clockwork, news: News) -> None:
        for index in news.arrived:
            clock.place(index, {ordinal: Seat(0) for ordinal in range(self._replicas)})


def alone(path: Path, mode: str, replicas: int) -> Metrics:
    """The job on a cluster that is as large as what its owner asked for, without a pause."""
    jobs = [structs.replace(job, start_ms=0) for job in load(path, mode=mode).jobs]
    setup = Setup(nodes=uniform_nodes(1, 2, model="t4"), interval_ms=1000)
    return measure(Clockwork(setup, jobs).play(Gives(replicas)), jobs, setup).metrics


@pytest.mark.parametrize("mode", ["rigid", "scaling", "adaptive"])
def test_a_job_that_has_what_its_owner_asked_for_meets_its_ideal_in_every_metric(pollux: Path, mode: str) -> None:
    told = alone(pollux, mode, 2)
    assert told.use.useful == 1.0
    for ratio in (told.use.goodput, told.slowdown.average, told.rho.spread.average):
        assert ratio == pytest.approx(1.0, abs=0.01)
    assert list(told.jct_ms_by_size) == ["2-8"]


@pytest.mark.parametrize("mode", ["scaling", "adaptive"])
def test_a_job_that_was_given_less_is_slower_and_better_used_than_its_ideal(pollux: Path, mode: str) -> None:
    """One of the two GPUs: no time is lost to synchronisation, so its GPU time is worth more than as asked for."""
    told = alone(pollux, mode, 1)
    assert told.use.useful == 0.5
    assert told.slowdown.average is not None and 1.0 < told.slowdown.average < 2.0
    assert told.rho.spread.average == told.slowdown.average
    assert told.use.goodput == pytest.approx(1 / told.slowdown.average, rel=1e-3)
    assert list(told.jct_ms_by_size) == ["2-8"]


def test_unknown_applications_and_batches_that_were_not_measured_are_left_out(pollux: Path) -> None:
    left_out = said(load(pollux), Verdict.LEFT_OUT)
    assert left_out[3] == "application is 'chess'; measured are toy"
    assert "toy was measured with" in left_out[4]
    with pytest.raises(TraceError, match="rigid, scaling, adaptive"):
        load(pollux, mode="magic")


def test_without_spreading_a_job_is_as_fast_as_on_one_node_wherever_it_is(gavel: Path) -> None:
    work = steady(load(gavel, spreading=False, gpus_per_node=2), "1")
    assert [work.speed(Spread(per_node, "v100")) for per_node in ((4,), (2, 2), (1, 1, 1, 1))] == [1.0, 1.0, 1.0]
    assert (work.duration_ms, work.steps_per_s) == (100_000, 40.0)
