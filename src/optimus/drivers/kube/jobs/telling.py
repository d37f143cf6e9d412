"""Telling: the status of a job, field by field, as people and scripts read it.

Why: `kubectl get`, `describe` and `wait` are where they look; the same facts stand behind every field.
Owns: the fields, the conditions and the two histories.
Must not: decide anything, or change a field for which nothing has changed: a status is written when it differs.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from optimus.drivers.kube.jobs import words
from optimus.drivers.kube.jobs.keeping import Parts, numbers, status_of
from optimus.drivers.kube.jobs.last_words import LastWords
from optimus.drivers.kube.jobs.reading import Written, because
from optimus.drivers.kube.jobs.replicas import is_ready, waits_for
from optimus.drivers.kube.jobs.times import as_time, read_time
from optimus.drivers.kube.objects import Anything, Pod
from optimus.lives import JobPhase, LeavingCause, Life, Replica, phase_of

MOST_TOLD = 20
MOST_PLACES = 1_024
LONGEST = 1_024
RESCALE_S = 600
"""So long a job that runs may take to reach another size."""
Document = dict[str, Any]


Why = tuple[str, str]
"""A code of the closed vocabulary, and its sentence."""


class Trouble(Struct, frozen=True):
    """Why the server does not do what we ask for."""

    reason: str
    message: str


class Seen(Struct, frozen=True, kw_only=True):
    """What a status is made from, beside the job itself."""

    view_pods: tuple[Pod, ...]
    """Those whose end is not counted."""
    replicas: tuple[Replica, ...]
    before: Life
    life: Life
    parts: Parts
    target: int
    words: LastWords | None = None
    trouble: Trouble | None = None
    waits: Why | None = None

    @property
    def running(self) -> int:
        workers = [one for one in self.replicas if one.role == words.WORKER]
        return sum(one.started_ms is not None and one.asked_ms is None for one in workers)


def told(thing: Anything, written: Written, seen: Seen, now_ms: int) -> Document:
    """The whole status but for `life`."""
    before, life, meta = status_of(thing), seen.life, thing.metadata
    phase = _phase(written, seen)
    targets = _targets(before, thing, seen.target, now_ms)
    reason, message = _why(thing, written, seen, phase)
    overdue = _overdue(targets, seen, now_ms) if phase is JobPhase.RESCALING else ""
    status: Document = {
        **{name: value for name, value in before.items() if name not in _OURS},
        "phase": str(phase),
        "reason": reason,
        "message": message[:LONGEST],
        "observedGeneration": meta.generation,
        "replicas": len(seen.replicas),
        "ready": sum(is_ready(pod) for pod in seen.view_pods if not pod.over),
        "target": seen.target,
        "running": f"{seen.running}/{seen.target}",
        "attempt": life.attempt,
        "failures": life.failures,
        "preemptions": life.preemptions,
        "selector": f"{words.JOB}={meta.name}",
        "placement": _placement(seen),
        "attempts": _attempts(before, seen, now_ms),
        "targets": targets,
    }
    optional: Document = {
        "startTime": as_time(life.first_started_ms),
        "completionTime": as_time(life.ended_ms),
        "url": written.kind.url(meta.name, meta.namespace, written.template) if seen.running else "",
        **_told_by_itself(before, seen.words),
    }
    status |= {name: value for name, value in optional.items() if value}
    wanted = _wanted(written, seen, phase, message, overdue, now_ms)
    status["conditions"] = _conditions(before, wanted, meta.generation, now_ms)
    return status


def _phase(written: Written, seen: Seen) -> JobPhase:
    """Parts of an array come and go; it runs while any of them does."""
    phase = phase_of(written.job.workload, seen.life, seen.replicas)
    goes_on = phase in (JobPhase.STARTING, JobPhase.RESCALING) and seen.life.leaving is None
    return JobPhase.RUNNING if written.job.array and goes_on and seen.running else phase


def told_unreadable(thing: Anything, problem: str, now_ms: int) -> Document:
    before = status_of(thing)
    message = problem[:LONGEST]
    status = {"phase": str(JobPhase.PENDING), **before, "reason": "Malformed", "message": message}
    status["observedGeneration"] = thing.metadata.generation
    wanted: dict[str, tuple[bool, str, str]] = {words.VALID: (False, "Malformed", message)}
    kept = {one["type"]: one for one in _known(before)}
    for name in words.CONDITIONS:
        if name in kept and name != words.VALID:
            wanted[name] = (kept[name]["status"] == "True", kept[name]["reason"], kept[name].get("message", ""))
    status["conditions"] = _conditions(before, wanted, thing.metadata.generation, now_ms)
    return status


def look_at_rescale_ms(thing: Anything, life: Life, now_ms: int) -> int | None:
    """When a size that was asked for is overdue, if it is not there by then."""
    targets = status_of(thing).get("targets")
    if life.over or not life.places or not isinstance(targets, list) or not targets:
        return None
    at_ms = read_time(str(targets[-1].get("time", ""))) + 1000 * RESCALE_S
    return at_ms if at_ms > now_ms else None


_ALWAYS = ("phase", "reason", "message", "observedGeneration", "replicas", "ready", "target", "running")
_COUNTS = ("attempt", "failures", "preemptions", "selector", "placement", "attempts", "targets", "conditions")
_SOMETIMES = ("startTime", "completionTime", "url", "lastCheckpoint", "progress", "life")
_OURS = frozenset((*_ALWAYS, *_COUNTS, *_SOMETIMES))
"""What else stands in the status is somebody else's (when it is expected to start and to end), and stays."""


def _placement(seen: Seen) -> list[Document]:
    bound = [one for one in seen.replicas if one.node]
    order = sorted(bound, key=lambda one: (one.role, one.ordinal))
    named = [{"replica": words.replica_name(one.role, one.ordinal), "node": one.node} for one in order]
    return named[:MOST_PLACES]


# -- why --------------------------------------------------------------------------------------------------------------


def _why(thing: Anything, written: Written, seen: Seen, phase: JobPhase) -> tuple[str, str]:
    """One word and one sentence."""
    life = seen.life
    code, text = because(thing)
    if life.over:
        return str(phase), life.ended_text
    if life.leaving is not None:
        return life.leaving.cause.capitalize(), life.leaving.text
    if written.job.workload.suspended:
        return words.SUSPENDED, "paused by its owner"
    if seen.trouble is not None:
        return seen.trouble.reason, seen.trouble.message
    if life.retry_at_ms and seen.target:
        return words.BACKING_OFF, _next_try(life)
    if not seen.target:
        return seen.waits or (code or "Queued", text or life.last_text or "it waits for the scheduler")
    stuck = next((f"{pod.metadata.name}: {why}" for pod in seen.view_pods if (why := waits_for(pod))), "")
    if stuck:
        return "ContainersWaiting", stuck
    if written.job.array:
        done, failed = len(numbers(seen.parts.done)), len(numbers(seen.parts.failed))
        return str(phase), f"{done} of {written.job.array} parts are done" + (f", {failed} failed" if failed else "")
    there = seen.running + len(life.done)
    wanted = sum(place.role == words.WORKER for place in life.places)
    return str(phase), "" if there == wanted else f"{there} of {wanted} replicas run"


def _next_try(life: Life) -> str:
    return f"{life.last_text}; next try at {as_time(life.retry_at_ms)}"[:LONGEST]


def _overdue(targets: list[Document], seen: Seen, now_ms: int) -> str:
    since_ms = read_time(targets[-1]["time"]) if targets else 0
    if now_ms < since_ms + 1000 * RESCALE_S:
        return ""
    last = targets[-2]["target"] if len(targets) > 1 else seen.running
    late = f"{RESCALE_S // 60} minutes after they were asked for"
    return f"{seen.running} of {seen.target} replicas run {late}; it should go back to {last}"


# -- conditions -------------------------------------------------------------------------------------------------------


def _wanted(
    written: Written, seen: Seen, phase: JobPhase, message: str, overdue: str, now_ms: int
) -> dict[str, tuple[bool, str, str]]:
    """By type: whether it holds, a word and a sentence. Those that never were true are left out."""
    runs = phase in (JobPhase.RUNNING, JobPhase.RESCALING)
    found = {
        words.VALID: (True, "Readable", ""),
        words.ADMITTED: _admitted(seen),
        words.RUNNING: (runs, str(phase), "" if runs else message[:LONGEST]),
    }
    if phase is JobPhase.SUCCEEDED:
        found[words.COMPLETE] = (True, "Succeeded", seen.life.ended_text)
    elif phase in (JobPhase.FAILED, JobPhase.CANCELLED):
        found[words.FAILED] = (True, _blame(seen.life), seen.life.ended_text[:LONGEST])
    found[words.SUSPENDED] = (phase is JobPhase.SUSPENDED, "ByItsOwner" if written.job.workload.suspended else "No", "")
    trouble = seen.trouble
    refused = (True, trouble.reason, trouble.message[:LONGEST]) if trouble else (False, "Accepted", "")
    found[words.BLOCKED] = refused
    waits = seen.life.retry_at_ms > now_ms and not seen.life.over
    found[words.BACKING_OFF] = (waits, "Failed" if waits else "No", _next_try(seen.life) if waits else "")
    found[words.RESCALE_OVERDUE] = (bool(overdue), "TooSlow" if overdue else "InTime", overdue)
    return found


def _admitted(seen: Seen) -> tuple[bool, str, str]:
    if seen.life.over:
        return False, "Over", ""
    return seen.target > 0, "Target" if seen.target else "NoTarget", ""


_ONLY_WHEN_TRUE_ONCE = (words.SUSPENDED, words.BLOCKED, words.BACKING_OFF, words.RESCALE_OVERDUE)


def _conditions(
    before: Document, wanted: dict[str, tuple[bool, str, str]], generation: int, now_ms: int
) -> list[Document]:
    """With the time at which each became what it is. Conditions of others stay as they are."""
    old = {one["type"]: one for one in _known(before)}
    found: list[Document] = []
    for name in words.CONDITIONS:
        if name not in wanted:
            continue
        holds, reason, message = wanted[name]
        was = old.get(name)
        if was is None and not holds and name in _ONLY_WHEN_TRUE_ONCE:
            continue
        status = "True" if holds else "False"
        same = was is not None and was.get("status") == status
        since = was.get("lastTransitionTime") if was is not None and same else None
        found.append(
            {
                "type": name,
                "status": status,
                "reason": reason,
                "message": message,
                "observedGeneration": generation,
                "lastTransitionTime": since or as_time(now_ms),
            }
        )
    return found + [one for name, one in old.items() if name not in words.CONDITIONS]


def _known(before: Document) -> list[Document]:
    found = before.get("conditions")
    return [one for one in found if isinstance(one, dict) and "type" in one] if isinstance(found, list) else []


# -- histories --------------------------------------------------------------------------------------------------------


def _targets(before: Document, thing: Anything, target: int, now_ms: int) -> list[Document]:
    """Numbers that the scheduler wrote, with its reasons."""
    known = _list(before, "targets")
    if (known and known[-1].get("target") == target) or (not known and not target):
        return known
    code, text = because(thing)
    entry = {"time": as_time(now_ms), "target": target, "reason": ": ".join(filter(None, (code, text))) or "Unsaid"}
    return [*known, entry][-MOST_TOLD:]


def _attempts(before: Document, seen: Seen, now_ms: int) -> list[Document]:
    known, life = [dict(one) for one in _list(before, "attempts")], seen.life
    old = seen.before
    if known and "ended" not in known[-1] and (life.attempt > old.attempt or _has_left(old, life)):
        reason, message = _end_of_attempt(life)
        known[-1] |= {"ended": as_time(now_ms), "reason": reason, "message": message[:LONGEST]}
    if life.attempt > old.attempt or (life.attempt and not known):
        began = as_time(now_ms if life.since_ms is None else life.since_ms)
        known.append({"number": life.attempt, "started": began})
    return known[-MOST_TOLD:]


def _has_left(old: Life, life: Life) -> bool:
    return old.since_ms is not None and life.since_ms is None


def _end_of_attempt(life: Life) -> tuple[str, str]:
    if life.over:
        return (life.outcome or "").capitalize(), life.ended_text
    if life.last_leaving in (LeavingCause.FAILED, LeavingCause.LOST) and life.last_blame is not None:
        return str(life.last_blame), life.last_text
    return (life.last_leaving or "over").capitalize(), life.last_text


def _blame(life: Life) -> str:
    """The scheduler names its reason first: `RanTooLong: …`."""
    code, colon, _ = life.ended_text.partition(": ")
    if colon and code.isalnum():
        return code
    return str(life.last_blame) if life.last_blame is not None else "Failed"


def _list(before: Document, name: str) -> list[Document]:
    found = before.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


# -- what it says of itself -------------------------------------------------------------------------------------------


def _told_by_itself(before: Document, said: LastWords | None) -> Document:
    found: Document = {name: before.get(name) for name in ("lastCheckpoint", "progress")}
    if said is None:
        return found
    if said.checkpoint_ms is not None:
        saved = {"time": as_time(said.checkpoint_ms), "step": said.checkpoint_step, "path": said.checkpoint_path}
        found["lastCheckpoint"] = {name: value for name, value in saved.items() if value not in (None, "")}
    progress = {
        "step": said.step,
        "total": said.total,
        "fraction": _text(said.fraction),
        "stepsPerSecond": _text(said.steps_per_second),
        "metrics": {name: _text(value) for name, value in said.metrics.items()} or None,
    }
    progress = {name: value for name, value in progress.items() if value is not None}
    return found | ({"progress": progress} if progress else {})


def _text(value: float | str | None) -> str | None:
    """Numbers with a point are text in the API of Kubernetes."""
    return f"{value:.6g}" if isinstance(value, float) else value
