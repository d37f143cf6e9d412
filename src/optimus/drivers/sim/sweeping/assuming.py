"""Assuming: what starting, saving, failing, spreading and sharing cost, where a trace does not say it.

Why: a trace says how long a job ran, not what stopping it would have cost; a result means little without that.
Owns: the assumptions of a command line, what they make of jobs and set-up, and the words in which a report tells them.
Must not: look at who schedules. Failures and outages are drawn once, by the seed, and are the same for everybody.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct, structs

from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.setup import Neighbours, Outage, Setup, Several, SharedDevice, SharedNetwork
from optimus.drivers.sim.traces.trace import Trace, TraceError
from optimus.drivers.sim.works.steady import Steady
from optimus.model.nodes import Node
from optimus.model.pools import DEFAULT_POOL, NodePool
from optimus.model.units import format_duration_ms

NEVER = -1
"""Instead of an interval of checkpoints: work cannot continue and starts again."""
RACK = "rack"
MOST_OUTAGES = 100_000
_JOBS, _NODES = 1, 2
"""Streams of the seed: drawing outages does not change which jobs fail."""


class Assumptions(Struct, frozen=True, kw_only=True):
    """None and 0: as the trace has it."""

    start_ms: int | None = None
    restart_ms: int | None = None
    checkpoint_ms: int | None = None
    """0: always up to date; NEVER: there are none."""
    checkpoint_cost_ms: int | None = None
    job_failures: float = 0.0
    """This part of the jobs fails once."""
    node_mtbf_ms: int = 0
    """Mean time of a node between failures; 0: none fails."""
    node_repair_ms: int = 0
    racks: int = 0
    """Nodes are in so many racks, in the order of the cluster."""
    across_nodes: float = 1.0
    """Speed of a job on more nodes than it needs."""
    across_racks: float = 1.0
    neighbours: Neighbours | None = None


def assume(trace: Trace, setup: Setup, given: Assumptions) -> tuple[Trace, Setup]:
    """TraceError where the trace has no place for what is assumed."""
    if given == Assumptions():
        return trace, setup
    jobs = _failing(_costly(trace.jobs, given), given, setup.seed)
    if given.across_nodes != 1.0 or given.across_racks != 1.0:
        jobs = _spreading(trace.name, jobs, setup.nodes, given)
    if given.racks:
        setup = _in_racks(setup, given.racks)
    if given.node_mtbf_ms:
        setup = structs.replace(setup, outages=(*setup.outages, *_outages(jobs, setup, given)))
    if given.neighbours is not None:
        setup = structs.replace(setup, neighbours=given.neighbours)
    return structs.replace(trace, jobs=tuple(jobs)), setup


def neighbours_of(devices: bool, network: float) -> Neighbours | None:
    parts: list[SharedDevice | SharedNetwork] = [SharedDevice()] * devices
    if network:
        parts.append(SharedNetwork(network))
    return parts[0] if len(parts) == 1 else Several(tuple(parts)) if parts else None


def _costly(jobs: Iterable[Job], given: Assumptions) -> list[Job]:
    changes: dict[str, int | None] = {}
    for name in ("start_ms", "restart_ms", "checkpoint_cost_ms"):
        if getattr(given, name) is not None:
            changes[name] = getattr(given, name)
    if given.checkpoint_ms is not None:
        changes["checkpoint_ms"] = None if given.checkpoint_ms == NEVER else given.checkpoint_ms
    return [structs.replace(job, **changes) for job in jobs] if changes else list(jobs)


def _failing(jobs: list[Job], given: Assumptions, seed: int) -> list[Job]:
    if not given.job_failures:
        return jobs
    draw = np.random.default_rng([seed, _JOBS])
    fails, when = draw.random(len(jobs)) < given.job_failures, draw.random(len(jobs))
    return [
        structs.replace(job, fails_at=(float(at),)) if fail else job
        for job, fail, at in zip(jobs, fails, when, strict=True)
    ]


def _spreading(name: str, jobs: list[Job], nodes: Sequence[Node], given: Assumptions) -> list[Job]:
    """Jobs whose speed was measured by place keep it, and nobody pays for nodes and racks that are needed."""
    largest = max((len(node.devices) for node in nodes), default=1) or 1
    rack = sum(len(node.devices) for node in nodes) / max(given.racks, 1)
    made = [_slower_apart(job, largest, rack, given) for job in jobs]
    if made == jobs:
        raise TraceError(f"{name}: the speed of its jobs was measured by place; leave --spreading away")
    return made


def _slower_apart(job: Job, largest: int, rack: float, given: Assumptions) -> Job:
    work = job.work
    if type(work) is not Steady or work.speed_by_nodes:
        return job
    least = -(-job.total_gpus // largest) or 1
    by_nodes = (*[1.0] * least, given.across_nodes) if given.across_nodes != 1.0 else ()
    by_racks = given.across_racks if job.total_gpus <= rack else 1.0
    return structs.replace(job, work=structs.replace(work, speed_by_nodes=by_nodes, speed_across_racks=by_racks))


def _in_racks(setup: Setup, racks: int) -> Setup:
    count = len(setup.nodes)
    if racks > count:
        raise TraceError(f"{racks} racks for {count} node{'s' * (count != 1)}; write at most {count}")
    nodes = tuple(
        structs.replace(node, labels={**node.labels, RACK: f"rack-{i * racks // count}"})
        for i, node in enumerate(setup.nodes)
    )
    pools = setup.pools or (NodePool(name=DEFAULT_POOL),)
    known = tuple(pool if RACK in pool.levels else structs.replace(pool, levels=(*pool.levels, RACK)) for pool in pools)
    return structs.replace(setup, nodes=nodes, pools=known, rack_label=RACK)


def _outages(jobs: Sequence[Job], setup: Setup, given: Assumptions) -> tuple[Outage, ...]:
    """Of each node for itself, up and down in turns, long enough for the jobs to come to an end twice over."""
    work = sum(job.total_gpus * job.work.ideal_ms() for job in jobs)
    gpus = sum(len(node.devices) for node in setup.nodes) or 1
    longest = max(job.work.ideal_ms() for job in jobs)
    until = 2 * (jobs[-1].submit_ms + work / gpus + longest)
    if until / (given.node_mtbf_ms + given.node_repair_ms) * len(setup.nodes) > MOST_OUTAGES:
        raise TraceError(f"nodes would fail more than {MOST_OUTAGES:,} times; write a longer mtbf")
    draw = np.random.default_rng([setup.seed, _NODES])
    found = []
    for node in setup.nodes:
        at = draw.exponential(given.node_mtbf_ms)
        while at < until:
            down = max(round(draw.exponential(given.node_repair_ms)), 1)
            found.append(Outage(node=node.name, at_ms=round(at), for_ms=down))
            at = round(at) + down + max(draw.exponential(given.node_mtbf_ms), 1.0)
    return tuple(sorted(found, key=lambda outage: (outage.at_ms, outage.node)))


# -- in words -------------------------------------------------------------------------------------------------------


def in_words(jobs: Sequence[Job], setup: Setup, given: Assumptions) -> tuple[tuple[str, str], ...]:
    """What holds for these jobs, whoever said it: the trace, the command line, or nobody."""
    told = [
        ("first start", _times(job.start_ms for job in jobs)),
        ("restart, new size or place", _times(job.restart_ms for job in jobs)),
        ("checkpoint", _checkpoints(jobs)),
        ("leaving", _times(job.grace_ms for job in jobs)),
        ("job failures", _failures(jobs)),
        ("node failures", _node_failures(setup, given)),
        ("spreading", _costs_of_spreading(jobs, setup, given)),
        ("neighbours", _disturbance(setup.neighbours)),
    ]
    return tuple(told)


def _times(values: Iterable[int]) -> str:
    found = sorted(set(values))
    if found in ([], [0]):
        return "free"
    shown = [format_duration_ms(value) for value in (found[0], found[-1])]
    return shown[0] if len(found) == 1 else f"{shown[0]} to {shown[1]}"


def _checkpoints(jobs: Sequence[Job]) -> str:
    kinds = {(job.checkpoint_ms, job.checkpoint_cost_ms) for job in jobs}
    if len(kinds) > 1:
        return "differs from job to job"
    every, cost = next(iter(kinds), (0, 0))
    if every is None:
        return "none, work starts again"
    if every == 0:
        return "always up to date, free"
    return f"every {format_duration_ms(every)}, {f'{format_duration_ms(cost)} each' if cost else 'free'}"


def _failures(jobs: Sequence[Job]) -> str:
    failing = sum(bool(job.fails_at) for job in jobs)
    return f"{failing} of {len(jobs)} jobs fail on their way" if failing else "none"


def _node_failures(setup: Setup, given: Assumptions) -> str:
    if not setup.outages:
        return "none"
    if not given.node_mtbf_ms:
        return f"{len(setup.outages)} outages"
    mtbf, repair = format_duration_ms(given.node_mtbf_ms), format_duration_ms(given.node_repair_ms)
    return f"every {mtbf} for each node, {repair} of repair, both on average"


def _costs_of_spreading(jobs: Sequence[Job], setup: Setup, given: Assumptions) -> str:
    parts = []
    if given.across_nodes != 1.0:
        parts.append(f"speed {given.across_nodes:g} on more nodes than needed")
    elif any(type(job.work) is not Steady or job.work.speed_by_nodes for job in jobs):
        parts.append("as measured")
    if setup.rack_label:
        parts.append(f"speed {given.across_racks:g} across racks ({given.racks or 'of the cluster'})")
    return ", ".join(parts) or "free"


def _disturbance(neighbours: Neighbours | None) -> str:
    match neighbours:
        case None:
            return "do not disturb each other"
        case SharedDevice():
            return "share the time of a device"
        case SharedNetwork(loses):
            return f"jobs over several nodes lose {loses:g} where they meet"
        case Several(parts):
            return "; ".join(_disturbance(part) for part in parts)
        case _:
            return type(neighbours).__name__
