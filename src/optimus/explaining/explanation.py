"""The explanation of one job: the record that people read as a page and programs as JSON.

Why: the command line, the page and scripts tell the same.
Owns: its fields. They are a promise: fields may be added, none changes its meaning while `version` stays.
Must not: print, or fetch anything.
"""

from __future__ import annotations

from msgspec import Struct, structs

from optimus.engine.copying import CopyError, EngineCopy, engine_of
from optimus.engine.policy_loading import PolicyError
from optimus.explaining.growth import could_grow, why_no_larger
from optimus.explaining.lines import ahead_in_queue
from optimus.explaining.quotas import quota_of
from optimus.explaining.seen import JobSeen, ReplicaSeen
from optimus.explaining.starts import Ask, StartTold, Tell, start_of
from optimus.explaining.suggesting import suggestions
from optimus.explaining.suggestion import Suggestion
from optimus.explaining.trying import Trials
from optimus.model.plans import Plan, Start
from optimus.model.queues import GPU
from optimus.model.reasons import Fact, Reason
from optimus.model.units import format_time_ms

VERSION = 1
OVER = "over"
RUNNING = "running"
LEAVING = "leaving"
WAITING = "waiting"
_LEAVING_PHASES = ("Checkpointing", "Stopping")


class Why(Struct, frozen=True, kw_only=True):
    code: str
    text: str
    facts: dict[str, Fact] = {}


class QueueTold(Struct, frozen=True, kw_only=True, rename="camel"):
    """GPUs of its queue in one pool, in thousandths."""

    pool: str
    guarantee_milli: int
    limit_milli: int | None
    share_milli: int
    in_use_milli: int
    wanted_milli: int
    """In use and asked for together."""


class Explanation(Struct, frozen=True, kw_only=True, rename="camel"):
    version: int = VERSION
    job: str
    queue: str
    job_class: str
    priority: int
    phase: str
    state: str
    """waiting, running, leaving, over. An array runs as long as one part does."""
    at_ms: int
    time: str
    submitted_ms: int
    since_ms: int | None
    """Since when it runs."""
    ended_ms: int | None
    replicas: tuple[ReplicaSeen, ...]
    """Where it is."""
    counts: dict[str, int]
    """Of an array: parts by phase."""
    part: str = ""
    """Of an array: the part that is explained, the first of those that wait."""
    why: Why | None = None
    """Why it waits, is being stopped or has ended."""
    size: Why | None = None
    """Why it runs with fewer replicas than it could have."""
    policy: str = ""
    queue_gpus: tuple[QueueTold, ...] = ()
    ahead: tuple[str, ...] | None = None
    """Of its own queue, the first one first; null: it is in no line."""
    start: StartTold | None = None
    suggestions: tuple[Suggestion, ...] = ()
    decisions: int = 0
    """Of the engine, to find them."""
    notes: tuple[str, ...] = ()


def needs_copy(job: JobSeen) -> bool:
    """Whether there is something to explain that its record does not say."""
    return not job.final and (bool(job.counts) or not job.replicas or _below_its_most(job))


def explain(
    job: JobSeen,
    now_ms: int,
    copied: EngineCopy | None = None,
    ask: Ask | None = None,
    tell: Tell = lambda _done: None,
) -> Explanation:
    """`copied`: of the engine (`needs_copy`). `ask`: of the forecast; None: there is none."""
    seen = _seen(job, now_ms)
    if copied is None:
        return seen
    try:
        if _below_its_most(job):
            return _running(seen, copied)
        return _waiting(seen, copied, ask, tell)
    except (PolicyError, CopyError) as error:
        return structs.replace(seen, notes=(f"neither suggestions nor a forecast: {error}",))


def _seen(job: JobSeen, now_ms: int) -> Explanation:
    why = Why(code=job.reason.code, text=job.reason.text) if job.reason else None
    return Explanation(
        job=job.id,
        queue=job.queue,
        job_class=job.job_class,
        priority=job.priority,
        phase=job.phase,
        state=_state(job),
        at_ms=now_ms,
        time=format_time_ms(now_ms),
        submitted_ms=job.submitted_ms,
        since_ms=job.since_ms if job.since_ms is not None else job.started_ms if job.replicas else None,
        ended_ms=job.ended_ms,
        replicas=job.replicas,
        counts=job.counts,
        why=why,
    )


def _state(job: JobSeen) -> str:
    if job.final:
        return OVER
    if job.phase in _LEAVING_PHASES:
        return LEAVING
    return RUNNING if job.replicas else WAITING


def _below_its_most(job: JobSeen) -> bool:
    return _state(job) == RUNNING and could_grow(job)


def _running(seen: Explanation, copied: EngineCopy) -> Explanation:
    why = why_no_larger(engine_of(copied), seen.job, copied.now_ms)
    size = None if why is None else _told(why)
    return structs.replace(seen, size=size, policy=copied.policy)


def _told(reason: Reason) -> Why:
    return Why(code=str(reason.code), text=reason.text(), facts=reason.facts)


def _waiting(seen: Explanation, copied: EngineCopy, ask: Ask | None, tell: Tell) -> Explanation:
    engine = engine_of(copied)
    trials = Trials(engine, (), copied.now_ms)
    reasons = _reasons(trials.plan, seen.job)
    if not reasons:
        return structs.replace(seen, policy=copied.policy)
    name = min(reasons)  # among equals the engine goes by name, too
    reason = reasons[name]
    trials.names = tuple(sorted(one for one, why in reasons.items() if (why is None) == (reason is None)))
    why = None if reason is None else _told(reason)
    ahead = ahead_in_queue(engine, name, copied.now_ms)
    found = suggestions(trials, reason)
    return structs.replace(
        seen,
        part=name.removeprefix(seen.job).removeprefix("/"),
        why=why,
        policy=copied.policy,
        queue_gpus=_queue(trials, seen.queue),
        ahead=ahead,
        start=start_of(copied, name, reason, _reserved_ms(trials.plan, name), ask, tell),
        suggestions=found,
        decisions=trials.decisions,
    )


def _reasons(plan: Plan, job: str) -> dict[str, Reason | None]:
    """Of the workloads of the job that wait; None: the next decision starts it."""
    below = f"{job}/"
    waits: dict[str, Reason | None] = {action.workload: None for action in plan.actions if isinstance(action, Start)}
    waits |= {wait.workload: wait.reason for wait in plan.waiting}
    return {name: reason for name, reason in waits.items() if name == job or name.startswith(below)}


def _reserved_ms(plan: Plan, name: str) -> int | None:
    return next((one.at_ms for one in plan.reservations if one.workload == name), None)


def _queue(trials: Trials, name: str) -> tuple[QueueTold, ...]:
    queue = trials.engine.state.queues.get(name)
    if queue is None:
        return ()
    return tuple(
        QueueTold(
            pool=share.pool,
            guarantee_milli=quota_of(queue, share.pool).guarantee,
            limit_milli=quota_of(queue, share.pool).limit,
            share_milli=share.share,
            in_use_milli=share.allocated,
            wanted_milli=share.demand,
        )
        for share in trials.plan.shares
        if share.queue == name and share.resource == GPU
    )
