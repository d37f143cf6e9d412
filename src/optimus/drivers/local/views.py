"""Views: what is shown of jobs, queues, pools and nodes, as data.

Why: the command line, the page, the Python API and scripts see the same words and numbers.
Owns: the records of the HTTP API (docs/reference/http.md), and how they follow from what the body knows.
Must not: change anything.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from msgspec import Struct

from optimus.drivers.local.body import Body, part_of
from optimus.drivers.local.sizing import allowed_sizes
from optimus.drivers.local.store import Happening
from optimus.engine.kept_room import Kept, held_milli, reserved_by
from optimus.lives import JobPhase, LeavingCause, Life, Replica, phase_of
from optimus.model.gangs import chains, maximum_replicas, minimum_replicas
from optimus.model.nodes import WHOLE_DEVICE_MILLI
from optimus.model.pools import NodePool
from optimus.model.queues import GPU
from optimus.model.reasons import Code, Reason, counted, named, reason
from optimus.model.workloads import Workload, share_milli

_ORDER = (
    JobPhase.FAILED,
    JobPhase.RUNNING,
    JobPhase.RESCALING,
    JobPhase.STARTING,
    JobPhase.CHECKPOINTING,
    JobPhase.STOPPING,
    JobPhase.ADMITTED,
    JobPhase.PREEMPTED,
    JobPhase.PENDING,
    JobPhase.SUSPENDED,
    JobPhase.CANCELLED,
    JobPhase.SUCCEEDED,
)
"""Of an array, the first of these that any part is in; it has failed only when all parts are over."""
MOST_PARTS = 20
"""Of an array, so many parts are told one by one."""


class Why(Struct, frozen=True, rename="camel"):
    code: str
    text: str


class HeldView(Struct, frozen=True, kw_only=True, rename="camel"):
    """Room on one node that is kept for one job that waits."""

    node: str
    job: str
    """namespace/name; of an array, with the part."""
    queue: str
    devices: tuple[int, ...]
    """Empty if it is only reserved: a reservation names nodes, not devices."""
    gpu_milli: int
    """Thousandths of each device."""
    at_ms: int
    """Held until then; reserved for about then."""
    reason: Why
    """HeldFor: nobody else gets it. ReservedFor: whoever is over by then may use it."""


class ReplicaView(Struct, frozen=True, kw_only=True, rename="camel"):
    start: str
    part: str
    role: str
    ordinal: int
    node: str
    devices: tuple[int, ...]
    gpu_milli: int
    state: str
    """starting, running, leaving."""
    started_ms: int | None


class PartView(Struct, frozen=True, kw_only=True, rename="camel"):
    part: str
    phase: str
    reason: Why | None
    attempt: int


class JobView(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str
    namespace: str
    uid: str
    job_type: str
    queue: str
    job_class: str
    priority: int
    phase: str
    reason: Why | None
    """Why it waits, is being stopped or has failed; of one that runs, what is to be known of its place. Of an array it
    names the part, and while others run, one that has failed."""
    min_replicas: int
    max_replicas: int
    roles: dict[str, int]
    """By role: how many replicas it can have; they are called worker-0, worker-1 …, of an array 3-worker-0."""
    sizes: tuple[int, ...]
    """That it may be scaled to; of powers of two, up to the next. Empty: any."""
    running_replicas: int
    gpu_milli: int
    """Of all the replicas it has; of its smallest gang while it has none."""
    attempt: int
    failures: int
    preemptions: int
    submitted_ms: int
    started_ms: int | None
    ended_ms: int | None
    ran_ms: int
    """In earlier attempts; all of it once it has ended."""
    since_ms: int | None
    """Since when the present attempt runs."""
    suspended: bool
    command: tuple[str, ...]
    replicas: tuple[ReplicaView, ...] = ()
    parts: tuple[PartView, ...] = ()
    counts: dict[str, int] = {}
    """Of an array: how many parts are in which phase."""
    final: bool = False
    progress: dict[str, Any] | None = None
    """What it says of itself; of an array, nothing."""
    held: tuple[HeldView, ...] = ()
    """Room that is held for it while others leave it."""


class ShareView(Struct, frozen=True, kw_only=True, rename="camel"):
    pool: str
    guarantee_milli: int
    limit_milli: int | None
    weight: int
    share_milli: int
    allocated_milli: int
    demand_milli: int
    held_milli: int
    """Of what is allocated: held for work of it that waits, and idle or being left by others."""
    running: int
    """Jobs of its own that have something there."""


class QueueView(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str
    parent: str
    state: str
    gpu: tuple[ShareView, ...]
    running: int
    waiting: int


class NodeView(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str
    ready: bool
    cpu_milli: int
    memory_mib: int
    models: tuple[str, ...]
    """By device."""
    used_milli: tuple[int, ...]
    """Thousandths of each device that are given."""
    jobs: tuple[tuple[str, ...], ...]
    """By device: who is on it."""
    held: tuple[HeldView, ...]
    """What of it is held or reserved for work that waits: why a GPU is idle."""
    gone: tuple[int, ...]
    """Devices that are no longer part of the cluster: they stay until what runs on them has ended."""
    labels: dict[str, str]
    virtual: bool
    """It is a name for a part of a machine: its GPUs are numbers, its CPU and memory are counted and not there."""
    machine: str
    """Of a virtual node: what the machine that it is on really has."""
    limits: str
    """What of CPU and memory its processes are held to, and by what; or why not."""


class PoolView(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str
    selector: dict[str, str]
    levels: tuple[str, ...]
    """Of the topology, widest first."""
    strategy: dict[str, str]
    """Workload class -> pack or spread."""
    interference_limit_milli: int


class EventView(Struct, frozen=True, kw_only=True, rename="camel"):
    at_ms: int
    object: str
    code: str
    text: str
    """Of an array it names the part; what happened to several in the same words is told once."""
    part: str
    """The last it happened to."""
    parts: int
    """To how many; 1 where it is no array."""


def job_view(body: Body, job: str) -> JobView:
    one = body.jobs[job]
    lives = body.lives_of(job)
    phases = [_phase(body, life) for life in lives]
    phase = _together(phases)
    shown = lives[0] if len(lives) == 1 else None
    workload = one.job.workload
    live = [(life, replica) for life in lives for replica in body.replicas.get(life.workload, {}).values()]
    replicas = tuple(view for life, replica in live if replica.live and (view := _replica(life, replica)) is not None)
    least = sum(map(len, minimum_replicas(workload.gang).values()))
    only = workload.gang.roles[0] if len(workload.gang.roles) == 1 else None
    held = sum(view.gpu_milli * len(view.devices) for view in replicas)
    started = [life.first_started_ms for life in lives if life.first_started_ms is not None]
    ended = [life.ended_ms for life in lives if life.ended_ms is not None]
    return JobView(
        name=job.partition("/")[2],
        namespace=job.partition("/")[0],
        uid=one.uid,
        job_type=one.job.job_type.value,
        queue=workload.queue,
        job_class=workload.workload_class.value,
        priority=workload.effective_priority,
        phase=phase.value,
        reason=_why(body, lives, phases, phase),
        min_replicas=least,
        max_replicas=sum(maximum_replicas(workload.gang)),
        roles={chain.role.name: chain.capacity for chain in chains(workload.gang)},
        sizes=allowed_sizes(one, only, only.max) if only is not None else (),
        running_replicas=sum(view.state == "running" for view in replicas),
        gpu_milli=held or _least_milli(workload),
        attempt=max((life.attempt for life in lives), default=0),
        failures=sum(life.failures for life in lives),
        preemptions=sum(life.preemptions for life in lives),
        submitted_ms=one.submitted_ms,
        started_ms=min(started, default=None),
        ended_ms=max(ended, default=None) if phase.final else None,
        ran_ms=sum(life.ran_ms for life in lives),
        since_ms=shown.since_ms if shown is not None else None,
        suspended=workload.suspended,
        command=one.job.template.command,
        replicas=replicas,
        parts=tuple(_parts(body, lives, phases)) if one.job.array else (),
        counts=dict(Counter(phase.value for phase in phases)) if one.job.array else {},
        final=phase.final,
        progress=body.progress.get(job),
        held=tuple(_held(kept) for life in lives for kept in body.held.get(life.workload, ())),
    )


def queue_views(body: Body) -> list[QueueView]:
    shares = {(s.queue, s.pool): s for s in (body.plan.shares if body.plan else ()) if s.resource == GPU}
    running: Counter[str] = Counter()
    waiting: Counter[str] = Counter()
    there: Counter[tuple[str, str]] = Counter()
    pool_of = {node.name: view.pool.name for view in body.engine.state.pool_views for node in view.nodes}
    for life in body.lives.values():
        if not life.over:
            mine = body.workload(life.workload).queue
            (running if life.places else waiting)[mine] += 1
            there.update({(mine, pool_of.get(place.node, "")) for place in life.places})
    found, held = [], held_milli(_holds(body), {name: queue.parent for name, queue in body.queues.items()})
    for name, queue in sorted(body.queues.items()):
        quotas = {quota.pool: quota.resources[GPU] for quota in queue.quotas if GPU in quota.resources}
        pools = sorted({*quotas, *(pool for q, pool in shares if q == name)})
        rows = []
        for pool in pools:
            quota, share = quotas.get(pool), shares.get((name, pool))
            rows.append(
                ShareView(
                    pool=pool,
                    guarantee_milli=quota.guarantee if quota else 0,
                    limit_milli=quota.limit if quota else None,
                    weight=quota.weight if quota else 1,
                    share_milli=share.share if share else 0,
                    allocated_milli=share.allocated if share else 0,
                    demand_milli=share.demand if share else 0,
                    held_milli=held[name, pool],
                    running=there[name, pool],
                )
            )
        found.append(
            QueueView(
                name=name,
                parent=queue.parent,
                state=queue.state.value,
                gpu=tuple(rows),
                running=running[name],
                waiting=waiting[name],
            )
        )
    return found


def node_views(body: Body) -> list[NodeView]:
    used: Counter[tuple[str, int]] = Counter()
    who: dict[tuple[str, int], list[str]] = {}
    for life in body.lives.values():
        for node_name, devices, milli in [*_taken(life), *_being_left(body, life)]:
            for device in devices:
                used[node_name, device] += milli
                who.setdefault((node_name, device), []).append(life.workload)
    kept: dict[str, list[HeldView]] = {}
    reserved = reserved_by(body.plan, lambda name: body.workload(name).queue, body.now_ms) if body.plan else []
    for one in [*_holds(body), *reserved]:
        kept.setdefault(one.node, []).append(_held(one))
    return [
        NodeView(
            name=node.name,
            ready=node.ready and not node.cordoned,
            cpu_milli=node.cpu_milli,
            memory_mib=node.memory_mib,
            models=tuple(device.model for device in node.devices),
            used_milli=tuple(used[node.name, device.index] for device in node.devices),
            jobs=tuple(tuple(who.get((node.name, device.index), ())) for device in node.devices),
            gone=tuple(sorted(body.gone.get(node.name, ()))),
            held=tuple(kept.get(node.name, ())),
            labels=dict(node.labels),
            virtual=bool(body.machine),
            machine=body.machine,
            limits=body.limits,
        )
        for node in body.nodes.values()
    ]


def _taken(life: Life) -> list[tuple[str, tuple[int, ...], int]]:
    return [(place.node, place.devices, place.gpu_milli) for place in life.places if place.slot not in life.done]


def _being_left(body: Body, life: Life) -> list[tuple[str, tuple[int, ...], int]]:
    """Where processes still are although the place was taken back, as that of a job that was cancelled."""
    gone = [one for one in body.replicas.get(life.workload, {}).values() if one.live and life.place(one.slot) is None]
    requests = (
        {chain.role.name: chain.role.request for chain in chains(body.workload(life.workload).gang)} if gone else {}
    )
    return [
        (one.node, one.devices, min(share_milli(requests[one.role], 0), WHOLE_DEVICE_MILLI))
        for one in gone
        if one.role in requests
    ]


def pool_view(pool: NodePool) -> PoolView:
    return PoolView(
        name=pool.name,
        selector=dict(pool.selector),
        levels=pool.levels,
        strategy={name: strategy.value for name, strategy in pool.strategy.items()},
        interference_limit_milli=pool.interference_limit_milli,
    )


def event_view(one: Happening) -> EventView:
    who = f"part {one.part}" if one.parts == 1 else f"{one.parts:,} parts, the last of them part {one.part}"
    text = ": ".join(filter(None, (who, one.text))) if one.part else one.text
    return EventView(at_ms=one.at_ms, object=one.object, code=one.code, text=text, part=one.part, parts=one.parts)


def _holds(body: Body) -> list[Kept]:
    return [kept for several in body.held.values() for kept in several]


def _held(kept: Kept) -> HeldView:
    return HeldView(
        node=kept.node,
        job=kept.workload,
        queue=kept.queue,
        devices=kept.devices,
        gpu_milli=kept.gpu_milli,
        at_ms=kept.at_ms,
        reason=Why(str(kept.why.code), kept.why.text()),
    )


def _phase(body: Body, life: Life) -> JobPhase:
    replicas = list(body.replicas.get(life.workload, {}).values())
    return phase_of(body.workload(life.workload), life, replicas, promised=life.workload in body.held)


def _together(phases: list[JobPhase]) -> JobPhase:
    if len(phases) == 1:
        return phases[0]
    open_ones = [phase for phase in phases if not phase.final]
    return min(open_ones or phases, key=_ORDER.index)


def _why(body: Body, lives: list[Life], phases: list[JobPhase], phase: JobPhase) -> Why | None:
    """Of the first part that is in the phase of the whole; where nothing is to be said of it, of one that failed."""
    for wanted in (phase, JobPhase.FAILED):
        life = next((life for life, found in zip(lives, phases, strict=True) if found is wanted), None)
        why = _why_of(body, life) if life is not None else None
        if life is not None and why is not None:
            others = phases.count(wanted) - 1
            more = f"; {counted(others, 'more part')} {'is' if others == 1 else 'are'} {wanted}" if others else ""
            return Why(why.code, f"part {part_of(life)}: {why.text}{more}") if part_of(life) else why
    return None


def _why_of(body: Body, life: Life) -> Why | None:
    waits: Reason | None = body.waiting.get(life.workload)
    if life.over:
        return Why(life.outcome.capitalize(), life.ended_text) if life.outcome and life.ended_text else None
    if life.leaving is not None:
        if life.leaving.cause is LeavingCause.SUSPENDED and not body.workload(life.workload).suspended:
            return Why("Resumed", "resumed by its owner while it was leaving: it waits for room as soon as it has left")
        return Why(life.leaving.cause.capitalize(), life.leaving.text)
    if waits is not None and not life.places:
        return Why(str(waits.code), waits.text())
    if where := body.left_behind(life):
        left = reason(Code.LEFT_BEHIND, where=named(where))
        return Why(str(left.code), left.text())
    return None


def _parts(body: Body, lives: list[Life], phases: list[JobPhase]) -> list[PartView]:
    """Those that are not simply done or waiting first."""
    ranked = sorted(zip(lives, phases, strict=True), key=lambda pair: _ORDER.index(pair[1]))
    return [
        PartView(
            part=part_of(life),
            phase=phase.value,
            reason=_why_of(body, life),
            attempt=life.attempt,
        )
        for life, phase in ranked[:MOST_PARTS]
    ]


def _replica(life: Life, replica: Replica) -> ReplicaView | None:
    place = life.place(replica.slot)
    leaving = replica.asked_ms is not None
    return ReplicaView(
        start=replica.start,
        part=part_of(life),
        role=replica.role,
        ordinal=replica.ordinal,
        node=place.node if place else "",
        devices=place.devices if place else (),
        gpu_milli=place.gpu_milli if place else 0,
        state="leaving" if leaving else "starting" if replica.started_ms is None else "running",
        started_ms=replica.started_ms,
    )


def _least_milli(workload: Workload) -> int:
    roles = [chain.role for chain in chains(workload.gang)]
    total = 0
    for index, ordinals in minimum_replicas(workload.gang).items():
        request = roles[index].request
        total += len(ordinals) * request.gpu_count * min(share_milli(request, 0), 1000)
    return total
