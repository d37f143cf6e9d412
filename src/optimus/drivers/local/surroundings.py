"""Surroundings: what a replica finds when it starts.

Why: a program must know which GPUs are its own, who else is in its gang, where its checkpoints are and why it was
started, without asking anybody.
Owns: the variables (docs/guides/checkpoint-and-resume.md lists them).
Must not: start it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from optimus.drivers.local.store import Submitted
from optimus.lives import LeavingCause, Life, Place
from optimus.lives.kinds import KINDS, Peers
from optimus.lives.reconciling import grace_ms
from optimus.model.nodes import Node

_REASONS = {
    None: "first start",
    LeavingCause.PREEMPTED: "resumed after preemption",
    LeavingCause.SUSPENDED: "resumed by its owner",
    LeavingCause.FAILED: "retry after a failure",
    LeavingCause.LOST: "restarted after it was lost",
}
INHERITED = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "TZ",
    "SHELL",
    "TMPDIR",
    "VIRTUAL_ENV",
    "LD_LIBRARY_PATH",
)
"""Of the environment that `optimus up` has; the rest is not the job's business."""


def environment(
    one: Submitted, life: Life, place: Place, folder: Path, checkpoints: Path, node: Node
) -> dict[str, str]:
    """`folder`: of this start; `checkpoints`: of the workload, over all starts."""
    job = one.job
    visible = ",".join(_visible(node, place))
    own = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return {
        **own,
        "OPTIMUS_JOB": job.id,
        "OPTIMUS_QUEUE": job.workload.queue,
        "OPTIMUS_NODE": place.node,
        "OPTIMUS_ROLE": place.role,
        "OPTIMUS_RANK": str(place.ordinal),
        "OPTIMUS_REPLICAS": str(len(life.places)),
        "OPTIMUS_PART": life.workload.removeprefix(job.id).removeprefix("/"),
        "OPTIMUS_ATTEMPT": str(max(life.attempt, 1)),
        "OPTIMUS_REASON": _REASONS.get(life.last_leaving, "restarted"),
        "OPTIMUS_CHECKPOINT_DIR": from_where(one, job.saving.path) or str(checkpoints),
        "OPTIMUS_CHECKPOINT_SIGNAL": job.saving.signal,
        "OPTIMUS_GRACE_SECONDS": str(grace_ms(job.workload) // 1000),
        "OPTIMUS_STATUS_FILE": str(folder / "status.json"),
        "CUDA_VISIBLE_DEVICES": visible,
        **_dress(one, life, place),
        **_threads(job.template.env),
        **dict(job.template.env),
    }


def _dress(one: Submitted, life: Life, place: Place) -> dict[str, str]:
    """What its type adds."""
    peers = Peers(namespace="", service="", replicas={}, attempt=max(life.attempt, 1))
    return dict(KINDS[one.job.job_type].dress(one.job, place.slot, peers).env)


def from_where(one: Submitted, path: str) -> str:
    """A folder that a job names is as seen from where it was submitted, whoever looks; empty: it names none."""
    return os.path.normpath(os.path.join(one.where, path)) if path else ""


def _visible(node: Node, place: Place) -> list[str]:
    uuids = {device.index: device.uuid for device in node.devices}
    return [uuids.get(index) or str(index) for index in place.devices]


def _threads(own: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    """Output appears when it is written, not when a buffer is full."""
    return {} if any(name == "PYTHONUNBUFFERED" for name, _ in own) else {"PYTHONUNBUFFERED": "1"}
