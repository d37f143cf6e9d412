"""Words: labels, annotations, finalizers and conditions by which a UnifiedJob and its pods are known.

Why: two loops and several people read them; each is written down once.
Owns: the words.
Must not: mean anything by itself.
"""

from __future__ import annotations

from optimus.api.crds import GROUP, VERSION
from optimus.kube.resources import Resource

KIND = "UnifiedJob"
UNIFIED_JOB = f"{GROUP}/{KIND}"
UNIFIED_JOBS = Resource(GROUP, VERSION, "unifiedjobs")
SERVICES = Resource("", "v1", "services")
API_VERSION = f"{GROUP}/{VERSION}"
WORKER = "worker"
"""The role whose number `targetReplicas` is."""

JOB, ROLE, INDEX, ATTEMPT = (f"{GROUP}/{word}" for word in ("job", "role", "index", "attempt"))
PART = f"{GROUP}/part"
"""Of an array: which part this pod works on."""
REVISION = f"{GROUP}/revision"
"""On a pod: the status that asked for it. A pod that is ahead of the status tells that the status is an old one."""

ENDED = f"{GROUP}/ended"
"""The finalizer of a pod: its end is not in the status yet."""
KEPT = f"{GROUP}/job"
"""The finalizer of a job: it may have pods."""

TARGET_BECAUSE = f"{GROUP}/target-because"
"""Written by the scheduler with the number: `Reclaimed: …`."""
HELD_BECAUSE = f"{GROUP}/held-because"
"""Written by the scheduler on work that it has done with for good (ran too long, waited too long): `RanTooLong: …`."""

VALID, ADMITTED, RUNNING, SUSPENDED = "Valid", "Admitted", "Running", "Suspended"
COMPLETE, FAILED = "Complete", "Failed"
BLOCKED = "Blocked"
"""The server does not let us make or change its pods; in its own words."""
BACKING_OFF = "BackingOff"
"""It has failed, and is tried again at a time."""
RESCALE_OVERDUE = "RescaleOverdue"
"""A size that was asked for is not there after RESCALE_S. The scheduler takes the number back when it reads this."""
CONDITIONS = (VALID, ADMITTED, RUNNING, SUSPENDED, COMPLETE, FAILED, BLOCKED, BACKING_OFF, RESCALE_OVERDUE)
"""Those that are written here; others on the same object are left alone."""


def replica_name(role: str, ordinal: int) -> str:
    return f"{role}-{ordinal}"


def pod_name(job: str, role: str, ordinal: int) -> str:
    return f"{job}-{role}-{ordinal}"
