"""Traits of the synthetic mix: elastic and shared jobs, deadlines, mixed models. Without them nothing changes."""

from __future__ import annotations

import pytest
from msgspec import structs

from optimus.drivers.sim.sweeping import Finished, SweepError, source_of
from optimus.drivers.sim.traces.synthetic import Mix, generate
from optimus.drivers.sim.traces.trace import TraceError
from optimus.drivers.sim.works import Spread
from optimus.drivers.sim.works.steady import Steady
from optimus.model.workloads import WorkloadClass
from tests.sim.sweeping.small import swept, tiny

PLAIN = Mix(jobs=400, gpus=64, seed=1)


def test_a_part_of_the_jobs_has_a_deadline_and_the_rest_is_as_before() -> None:
    plain, hurried = generate(PLAIN), generate(structs.replace(PLAIN, deadlines=0.3))
    due = [job for job in hurried.jobs if job.deadline_ms is not None]
    assert 0.2 < len(due) / len(hurried.jobs) < 0.35
    assert all(1.2 <= (job.deadline_ms - job.submit_ms) / job.work.ideal_ms() <= 4.01 for job in due if job.deadline_ms)
    assert [structs.replace(job, deadline_ms=None) for job in hurried.jobs] == list(plain.jobs)


def test_elastic_jobs_are_replicas_of_one_gpu_and_say_how_they_scale() -> None:
    trace = generate(structs.replace(PLAIN, elastic=0.5))
    elastic = [job for job in trace.jobs if job.most > job.least]
    assert 0.3 < len(elastic) / len(trace.jobs) < 0.6
    assert all(job.gpus == 1 for job in trace.jobs)
    for job in elastic:
        assert isinstance(job.work, Steady) and job.workload_class is not WorkloadClass.INTERACTIVE
        assert job.least == 1 and job.replicas in job.sizes and job.most <= 32
        assert 1.0 < job.work.speed(Spread((2 * job.replicas,))) <= 2.0 or job.most == job.replicas


def test_shared_jobs_take_parts_of_devices_and_load_counts_parts() -> None:
    trace = generate(structs.replace(PLAIN, shared=0.5))
    shared = [job for job in trace.jobs if job.gpu_milli < 1000]
    assert {job.gpu_milli for job in shared} == {250, 500}
    assert all(job.total_gpus == 1 and job.activity_milli == job.gpu_milli for job in shared)
    first, last = trace.jobs[0].submit_ms, trace.jobs[-1].submit_ms
    busy = sum(j.total_gpus * j.gpu_milli / 1000 * min(j.work.ideal_ms(), last - j.submit_ms) for j in trace.jobs)
    assert busy / (last - first) / 64 == pytest.approx(0.8, rel=0.02)


def test_models_share_the_nodes_and_families_differ_in_what_they_lose() -> None:
    trace = generate(structs.replace(PLAIN, models=("a100", "v100")))
    assert trace.setup is not None
    assert [node.devices[0].model for node in trace.setup.nodes] == ["a100"] * 4 + ["v100"] * 4
    speeds = {job.family: {speed.model: speed.speed_percent for speed in job.models} for job in trace.jobs}
    assert all(told["a100"] == 100 for told in speeds.values())
    assert len({told["v100"] for told in speeds.values()}) > 10


@pytest.mark.parametrize("peer", ["afs", "elasticflow", "gavel-las", "optimus-eurosys", "pollux", "sia"])
def test_what_others_have_published_can_be_tried_without_any_data(peer: str) -> None:
    if peer == "sia":
        pytest.importorskip("scipy")
    found, runs = tiny(peer, text="synthetic:jobs=15,gpus=8,gpus_per_node=4,elastic=1,deadlines=0.3,models=a100+v100")
    result = swept(found, runs)[0][0]
    assert isinstance(result, Finished), result


@pytest.mark.parametrize(
    ("mix", "why"),
    [
        (Mix(jobs=1, elastic=1.5), "elastic is 1.5; write which part"),
        (Mix(jobs=1, models=("a", "a")), "each once, such as a100"),
        (Mix(jobs=1, models=("",)), "write names"),
        (Mix(jobs=1, gpus=8, models=("a", "b")), "2 models for 1 node;"),
    ],
)
def test_what_makes_no_sense_is_refused(mix: Mix, why: str) -> None:
    with pytest.raises(TraceError, match=why):
        generate(mix)
    with pytest.raises(SweepError, match="write a number"):
        source_of("synthetic:shared=half")
