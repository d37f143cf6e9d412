"""Our own journal: what was observed becomes jobs with the run times they really had."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from optimus.drivers.sim.traces.formats import load
from optimus.drivers.sim.traces.trace import Trace, TraceError, Verdict
from optimus.engine.engine import Engine
from optimus.engine.journal import JournalSettings, JournalWriter
from optimus.model import observations as seen
from optimus.model.nodes import Device, Node
from optimus.model.observations import Observation
from optimus.model.queues import Queue
from optimus.model.workloads import Checkpoint, Group, Request, Role, Workload
from tests.replay.journal_samples import write_journal
from tests.sim.traces.lists import steady

BEGIN = 1_700_000_000_000
NODE = Node(name="n", cpu_milli=8000, memory_mib=8192, devices=tuple(Device(index=i, model="a100") for i in range(8)))
CLUSTER: tuple[Observation, ...] = (seen.NodeSeen(NODE), seen.QueueSeen(Queue(name="q")))


def workload(name: str, least: int = 2, most: int = 2, gpus: int = 1, at_s: int = 0) -> Workload:
    role = Role(name="main", min=least, max=most, request=Request(gpu_count=gpus))
    return Workload(
        id=f"ml/{name}",
        queue="q",
        gang=Group(roles=(role,)),
        submitted_ms=BEGIN + at_s * 1000,
        family="vgg",
        checkpoint=Checkpoint(interval_ms=60_000),
        expected_duration_ms=1,
    )


def running(name: str, ordinal: int, since_s: int | None = None, node: str = "n") -> seen.SlotRunning:
    since = None if since_s is None else BEGIN + since_s * 1000
    return seen.SlotRunning(f"ml/{name}", "main", ordinal, node, (), since)


def gone(name: str, ordinal: int) -> seen.SlotGone:
    return seen.SlotGone(f"ml/{name}", "main", ordinal)


def ended(name: str) -> seen.WorkloadEnded:
    return seen.WorkloadEnded(f"ml/{name}")


def recorded(folder: Path, *cycles: tuple[int, Sequence[Observation]], keep_cycles: int = 1000) -> Trace:
    """A journal of these cycles (second, what was observed), read back."""
    engine = Engine()
    settings = JournalSettings(rotate_cycles=keep_cycles, keep_bytes=None)
    writer = JournalWriter(folder, dump=engine.dump, settings=settings)
    engine.keep_journal(writer, BEGIN)
    for second, facts in cycles:
        engine.step(list(facts), BEGIN + second * 1000)
    writer.close()
    return load(folder)


def test_it_ran_from_its_last_replica_to_its_end(tmp_path: Path) -> None:
    trace = recorded(
        tmp_path,
        (0, [*CLUSTER, seen.WorkloadSeen(workload("a"))]),
        (30, [running("a", 0, 10), running("a", 1, 20)]),
        (120, [ended("a"), gone("a", 0), gone("a", 1)]),
    )
    (job,) = trace.jobs
    assert (job.name, job.submit_ms, job.queue, job.family, job.replicas) == ("ml.a", 0, "q", "vgg", 2)
    assert steady(trace, "ml.a").duration_ms == 100_000
    assert (job.expected_ms, job.checkpoint_ms) == (1, 60_000)
    assert trace.setup is not None
    assert (trace.setup.nodes, [queue.name for queue in trace.setup.queues]) == ((NODE,), ["q"])
    assert (trace.rows, trace.problems) == (1, ())


def test_time_without_its_replicas_does_not_count(tmp_path: Path) -> None:
    trace = recorded(
        tmp_path,
        (0, [*CLUSTER, seen.WorkloadSeen(workload("a")), seen.WorkloadSeen(workload("b", at_s=5))]),
        (10, [running("a", 0), running("a", 1)]),
        (40, [gone("a", 0), gone("a", 1)]),  # preempted after 30 s
        (100, [running("a", 0), running("a", 1)]),
        (150, [ended("a"), running("b", 0), running("b", 1)]),
        (160, [ended("b")]),
    )
    assert [(job.name, job.submit_ms) for job in trace.jobs] == [("ml.a", 0), ("ml.b", 5_000)]
    assert [steady(trace, name).duration_ms for name in ("ml.a", "ml.b")] == [80_000, 10_000]


def test_a_lost_node_takes_its_replicas_along(tmp_path: Path) -> None:
    trace = recorded(
        tmp_path,
        (0, [*CLUSTER, seen.WorkloadSeen(workload("a"))]),
        (10, [running("a", 0), running("a", 1)]),
        (30, [seen.NodeGone("n")]),
        (60, [seen.NodeSeen(NODE)]),
        (70, [running("a", 0), running("a", 1)]),
        (100, [ended("a")]),
    )
    assert steady(trace, "ml.a").duration_ms == 50_000
    assert "1 node was lost" in trace.problems[0].message


def test_an_elastic_job_has_done_more_while_it_was_larger(tmp_path: Path) -> None:
    trace = recorded(
        tmp_path,
        (0, [*CLUSTER, seen.WorkloadSeen(workload("a", least=1, most=4))]),
        (10, [running("a", 0)]),
        (20, [running("a", 1), running("a", 2)]),
        (30, [gone("a", 2)]),
        (40, [ended("a")]),
    )
    (job,) = trace.jobs
    assert (job.least, job.most) == (1, 4)
    assert steady(trace, "ml.a").duration_ms == 60_000  # 10 s with one, 10 s with three, 10 s with two


def test_what_has_no_run_time_is_left_out_and_told(tmp_path: Path) -> None:
    names = ("runs", "waits", "cancelled")
    trace = recorded(
        tmp_path,
        (0, [*CLUSTER, *(seen.WorkloadSeen(workload(name)) for name in names)]),
        (10, [running("runs", 0), running("runs", 1), ended("cancelled")]),
        (20, [seen.Tick()]),
    )
    assert (trace.rows, trace.jobs, trace.left_out) == (3, (), 3)
    told = {problem.message.partition(":")[0]: problem.message for problem in trace.problems}
    assert "still ran when the journal ends" in told["ml/runs"]
    assert "still waited" in told["ml/waits"]
    assert "without ever running" in told["ml/cancelled"]


def test_roles_that_differ_become_replicas_of_the_largest(tmp_path: Path) -> None:
    roles = (Role(name="main", request=Request(gpu_count=4)), Role(name="ps", min=2, max=2))
    mixed = Workload(id="ml/a", queue="q", gang=Group(roles=roles), submitted_ms=BEGIN)
    facts = [running("a", 0), *(seen.SlotRunning("ml/a", "ps", i, "n") for i in range(2))]
    trace = recorded(tmp_path, (0, [*CLUSTER, seen.WorkloadSeen(mixed)]), (10, facts), (25, [ended("a")]))
    (job,) = trace.jobs
    assert (job.replicas, job.gpus, steady(trace, "ml.a").duration_ms) == (3, 4, 15_000)
    assert [problem.verdict for problem in trace.problems] == [Verdict.CHANGED]


def test_what_was_there_before_the_journal_begins_has_no_known_run_time(tmp_path: Path) -> None:
    recorded(
        tmp_path,
        (0, [*CLUSTER, seen.WorkloadSeen(workload("old"))]),
        (10, [running("old", 0), running("old", 1)]),
        (20, [seen.WorkloadSeen(workload("new", at_s=20))]),
        (30, [running("new", 0), running("new", 1)]),
        (50, [ended("old"), ended("new")]),
        keep_cycles=2,
    )
    min(tmp_path.glob("*.journal")).unlink()  # as retention does
    trace = load(tmp_path)
    assert [job.name for job in trace.jobs] == ["ml.new"]
    assert (trace.rows, trace.left_out) == (2, 1)
    assert "before the journal begins" in trace.problems[-1].message
    assert trace.setup is not None
    assert len(trace.setup.nodes) == 1


def test_a_torn_journal_gives_what_is_before_the_tear(tmp_path: Path) -> None:
    whole = recorded(
        tmp_path,
        (0, [*CLUSTER, seen.WorkloadSeen(workload("a"))]),
        (10, [running("a", 0), running("a", 1)]),
        (20, [ended("a")]),
        (30, [seen.WorkloadSeen(workload("b", at_s=30))]),
    )
    (segment,) = tmp_path.glob("*.journal")
    segment.write_bytes(segment.read_bytes()[:-5])
    torn = load(tmp_path)
    assert torn.jobs == whole.jobs
    assert any("what happened there is missing" in problem.message for problem in torn.problems)


def test_a_state_of_another_brain_is_not_needed(tmp_path: Path) -> None:
    write_journal(tmp_path, 12)
    trace = load(tmp_path)
    assert trace.jobs == ()
    assert "taken as nothing" in trace.problems[0].message


def test_a_folder_without_a_journal_is_none(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no journal in it"):
        load(tmp_path, format="journal")
