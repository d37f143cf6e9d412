"""What a UnifiedJob says of itself, in the record that every table and program reads.

Why: its controller knows its life (attempts, failures, what it saved); of other kinds all of that is guessed from pods.
Owns: how its status becomes fields of a job's record (docs/reference/http.md).
Must not: believe more than a status can say: anybody with the right may have written nonsense there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from optimus.drivers.kube.describing import read_time
from optimus.drivers.kube.grouping import Group
from optimus.drivers.kube.objects import Anything
from optimus.lives import JobPhase

View = dict[str, Any]
PHASES = {str(phase): phase for phase in JobPhase}


def phase_said(owner: Anything | None) -> JobPhase | None:
    return PHASES.get(str(_mapping(owner.status).get("phase"))) if owner is not None else None


def said_by_job(group: Group, owner: Anything) -> View:
    """The fields of its record that are known better from its status."""
    status, spec = _mapping(owner.status), _mapping(owner.spec)
    worker = next((role for role in group.job.workload.gang.roles), None) if group.job is not None else None
    return {
        "jobType": str(spec.get("jobType") or "Job"),
        "sizes": list(worker.sizes) if worker is not None else [],
        "attempt": _count(status, "attempt"),
        "failures": _count(status, "failures"),
        "preemptions": _count(status, "preemptions"),
        "progress": _progress(status),
        **({"startedMs": at} if (at := _time(status, "startTime")) else {}),
        **({"endedMs": at} if (at := _time(status, "completionTime")) else {}),
    }


def reason_said(owner: Anything) -> View | None:
    """Of one that has failed, or that its controller cannot run."""
    status = _mapping(owner.status)
    code, text = status.get("reason"), status.get("message")
    return {"code": str(code), "text": str(text)} if code and text else None


def _progress(status: Mapping[str, Any]) -> View | None:
    told, saved = _mapping(status.get("progress")), _mapping(status.get("lastCheckpoint"))
    if not told and not saved:
        return None
    rate = _decimal(told.get("stepsPerSecond"))
    at_ms = _time(saved, "time") or None
    return {
        "step": told.get("step"),
        "total": told.get("total"),
        "fraction": _decimal(told.get("fraction")),
        "steps_per_second": rate,
        "metrics": dict(_mapping(told.get("metrics"))),
        "last_checkpoint_ms": at_ms,
        "checkpoint": {"step": saved.get("step"), "at_ms": at_ms, "path": saved.get("path")} if saved else None,
    }


def _mapping(found: Any) -> Mapping[str, Any]:
    return found if isinstance(found, Mapping) else {}


def _count(status: Mapping[str, Any], name: str) -> int:
    found = status.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) else 0


def _time(status: Mapping[str, Any], name: str) -> int:
    found = status.get(name)
    return read_time(found) if isinstance(found, str) else 0


def _decimal(found: Any) -> float | None:
    try:
        return float(found) if isinstance(found, str | int | float) else None
    except ValueError:
        return None
