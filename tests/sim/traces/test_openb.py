"""Pods that share GPUs: nodes become the set-up, pods jobs, and lists without times a closed workload."""

from __future__ import annotations

from pathlib import Path

import pytest

from optimus.drivers.sim.traces.formats import load
from optimus.drivers.sim.traces.shaping import at_load
from optimus.drivers.sim.traces.trace import ENDLESS_MS, TraceError, Verdict
from optimus.model.workloads import ModelSpeed, WorkloadClass
from tests.sim.traces.lists import said, steady, written

NODES = """\
sn,cpu_milli,memory_mib,gpu,model
node-a,64000,262144,2,P100
node-b,96000,393216,8,G2
node-c,32000,131072,0,
"""
HEAD = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
PODS = (
    HEAD
    + """\
part,4000,8192,1,460,,LS,Running,100,400,150.0
whole,12000,16384,1,1000,P100|G2,BE,Running,200,300,200
cpu,2000,4096,0,0,,BE,Succeeded,250,260,250
never,2000,4096,1,1000,,BE,Pending,300,310,
"""
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    written(tmp_path, "openb_node_list_gpu_node.csv", NODES)
    written(tmp_path, "openb_pod_list_default.csv.gz", PODS)
    return tmp_path


def test_nodes_are_the_cluster(folder: Path) -> None:
    trace = load(folder)
    assert trace.setup is not None
    assert [(node.name, len(node.devices)) for node in trace.setup.nodes] == [
        ("node-a", 2),
        ("node-b", 8),
        ("node-c", 0),
    ]
    assert trace.setup.nodes[1].devices[7].model == "G2"


def test_a_pod_is_a_job_on_a_part_of_a_device_or_without_one(folder: Path) -> None:
    part, whole, cpu = load(folder).jobs
    assert (part.gpus, part.gpu_milli, part.workload_class) == (1, 460, WorkloadClass.INFERENCE)
    assert (whole.models, whole.workload_class) == ((ModelSpeed("P100"), ModelSpeed("G2")), WorkloadClass.UNATTENDED)
    assert (cpu.gpus, cpu.cpu_milli, cpu.memory_mib) == (0, 2000, 4096)


def test_it_runs_from_when_it_was_scheduled_until_it_was_deleted(folder: Path) -> None:
    trace = load(folder)
    assert [job.submit_ms for job in trace.jobs] == [0, 100_000, 150_000]
    assert [steady(trace, job.name).duration_ms for job in trace.jobs] == [250_000, 100_000, 10_000]


def test_a_pod_that_never_ran_has_no_run_time(folder: Path) -> None:
    trace = load(folder)
    assert (trace.rows, trace.left_out, trace.endless) == (4, 1, False)
    assert "was never scheduled" in said(trace, Verdict.LEFT_OUT)[5]


def test_a_list_without_times_is_a_closed_workload_that_never_ends(folder: Path) -> None:
    pods = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1000,1024,1,500\nb,1000,1024,8,1000\n"
    trace = load(written(folder, "openb_pod_list_multi.csv", pods))
    assert trace.endless
    assert [(job.submit_ms, steady(trace, job.name).duration_ms) for job in trace.jobs] == [(0, ENDLESS_MS)] * 2
    assert "completion times cannot" in said(trace, Verdict.NOTE)[0]
    with pytest.raises(TraceError, match="never end"):
        at_load(trace, 1.0, 10)


def test_any_list_can_be_closed_and_then_has_all_its_pods(folder: Path) -> None:
    trace = load(folder, closed=True)
    assert (len(trace.jobs), trace.left_out, trace.endless) == (4, 0, True)


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("x,1000,1024,9,1000,,BE,Running,0,10,0", "no node of the cluster is large enough"),
        ("x,1000,1024,1,1000,A100,BE,Running,0,10,0", "or has its GPU model"),
        ("x,99000,1024,0,0,,BE,Running,0,10,0", "no node of the cluster is large enough"),
        ("x,1000,1024,1,0,,BE,Running,0,10,0", "gpu_milli is 0"),
        ("x,1000,1024,2,500,,BE,Running,0,10,0", "only a single device can be shared"),
        ("x,1000,1024,-1,0,,BE,Running,0,10,0", "fewer than no GPUs"),
        ("x,-5,1024,1,1000,,BE,Running,0,10,0", "less than nothing"),
        ("x,1000,1024,1,1000,,BE,Running,0,10,20", "ends before it begins"),
    ],
)
def test_pods_that_cannot_be_are_left_out(folder: Path, row: str, why: str) -> None:
    trace = load(written(folder, "openb_pod_list_bad.csv", HEAD + row + "\n"))
    assert why in said(trace, Verdict.LEFT_OUT)[2]


def test_bad_nodes_are_told_too(folder: Path) -> None:
    written(folder, "openb_node_list_gpu_node.csv", NODES + "node-a,1,1,1,P100\nnode-d,1,1,2,\n")
    trace = load(folder)
    about = {p.line: p.message for p in trace.problems if p.file == "openb_node_list_gpu_node.csv"}
    assert "node-a is there twice" in about[5]
    assert "name the model" in about[6]
    assert trace.left_out == 1  # the pod that never ran; nodes are not counted as rows


def test_without_nodes_there_is_no_cluster(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no list of nodes"):
        load(written(tmp_path, "openb_pod_list_default.csv", PODS))
