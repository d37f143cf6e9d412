"""A journal of our own: what really ran, as jobs to try other policies on.

    WorkloadSeen ──► request and submission     SlotRunning … SlotGone ──► time it worked     WorkloadEnded ──► a job

Why: the best trace for a cluster is its own past.
Owns: the work that a workload must have had to run as it did, and what is left out.
Must not: know more of it than was observed (`journal_lives`).

The work of a job is the time in which its gang was whole, weighted with the speed of the replicas that ran. An
observation without a time of its own has that of its cycle. What was lost when a job was stopped counts as work, too: a
journal does not say how much it was. However it ended, a job ran that long; one that never ran, had not ended, or was
there before the journal begins is left out, and told.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.setup import Setup
from optimus.drivers.sim.traces.gathering import equal_queues, moved
from optimus.drivers.sim.traces.rows import Problems, RowError, positive_ms
from optimus.drivers.sim.traces.trace import Trace, TraceError
from optimus.drivers.sim.works.steady import Steady
from optimus.engine.journal import Cycle, Flaw, Journal, Keyframe
from optimus.engine.journal_lives import Life, Recording
from optimus.model.gangs import chains
from optimus.model.workloads import Request, Workload


def load_journal(path: Path) -> Trace:
    """`path` is the folder of a journal."""
    if not path.is_dir() or not any(path.glob("*.journal")):
        raise TraceError(f"{path}: no journal in it; expected a folder that an engine wrote its journal to")
    problems = Problems(path.name)
    recording = Recording()
    begun = False
    for item in Journal(path).read():
        match item:
            case Flaw():
                problems.note(f"{item}; what happened there is missing")
            case Keyframe() if not begun:
                begun = True
                try:
                    recording.begin(item)
                except msgspec.MsgspecError as error:
                    problems.note(f"what was there before it begins cannot be read ({error}); it is taken as nothing")
            case Cycle():
                for fact in item.observations:
                    recording.observe(fact, item.now_ms)
            case _:
                pass
    return _trace(path, recording, problems)


def _trace(path: Path, recording: Recording, problems: Problems) -> Trace:
    jobs: dict[str, Job] = {}
    for life in recording.over:
        try:
            job = _job(life, problems)
            if job.name in jobs:
                raise RowError("ended twice under the same name; the first one counts")  # noqa: TRY301
            jobs[job.name] = job
        except RowError as wrong:
            problems.leave_out(0, f"{life.workload.id}: {wrong}")
    for name, life in recording.lives.items():
        what = "still ran" if life.ran else "still waited"
        problems.leave_out(0, f"{name}: {what} when the journal ends, so its run time is not known")
    for name in sorted(recording.older):
        problems.leave_out(0, f"{name}: was there before the journal begins, so its run time is not known")
    if recording.gone:
        problems.note(f"{_nodes(len(recording.gone))} lost or taken away; the set-up has them all, all the time")
    ordered = sorted(jobs.values(), key=lambda job: (job.submit_ms, job.name))
    queues = tuple(recording.queues.values()) or equal_queues(job.queue for job in ordered)
    setup = Setup(nodes=tuple(recording.nodes.values()), pools=tuple(recording.pools.values()), queues=queues)
    return Trace(
        name=path.name,
        jobs=tuple(moved(job, -ordered[0].submit_ms) for job in ordered),
        rows=len(recording.over) + len(recording.lives) + len(recording.older),
        problems=tuple(problems.found),
        queues=queues,
        setup=setup if recording.nodes else None,
        source=path,
    )


def _job(life: Life, problems: Problems) -> Job:
    workload = life.workload
    if not life.ran:
        raise RowError("ended without ever running; it says nothing about run times")
    request, same = _request(workload)
    if not same:
        problems.change(0, f"{workload.id}: its roles ask for different things; every replica asks for the largest")
    least, most, curve = life.least, life.most, workload.speedup_percent
    checkpoint = workload.checkpoint
    return Job(
        name=workload.id.replace("/", "."),
        submit_ms=workload.submitted_ms,
        work=Steady(
            duration_ms=positive_ms("time in which its gang was whole", life.worked_ms),
            replicas=least,
            scaling=tuple(percent / 100 for percent in curve),
        ),
        queue=workload.queue,
        family=workload.family,
        workload_class=workload.workload_class,
        priority=workload.priority,
        preemptible=workload.preemptible,
        replicas=least,
        min_replicas=least if most > least else 0,
        max_replicas=most if most > least else 0,
        gpus=request.gpu_count,
        gpu_milli=request.gpu_milli,
        models=request.models,
        cpu_milli=request.cpu_milli,
        memory_mib=request.memory_mib,
        activity_milli=request.activity_milli,
        topology=workload.gang.topology,
        expected_ms=workload.expected_duration_ms,
        speedup_percent=curve,
        deadline_ms=workload.deadline_ms,
        checkpoint_ms=None if checkpoint is None else checkpoint.interval_ms or 0,
        grace_ms=workload.grace_ms,
        restart_ms=workload.restart_cost_ms,
    )


def _request(workload: Workload) -> tuple[Request, bool]:
    """What each replica asks for, and whether that is the same for all."""
    requests = [chain.role.request for chain in chains(workload.gang)]
    largest = max(requests, key=lambda r: (r.gpu_count * r.gpu_milli, r.cpu_milli, r.memory_mib))
    return largest, all(request == largest for request in requests)


def _nodes(count: int) -> str:
    return "1 node was" if count == 1 else f"{count} nodes were"
