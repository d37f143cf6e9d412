"""Optimus: a scheduler for AI workloads that decides who gets which GPUs, when, and for how long.

Outside, `optimus.submit`, `optimus.job` and `optimus.jobs` give work to a scheduler and look after it
(docs/guides/python.md). Inside a job, `import optimus` gives a script `optimus.steps` and what belongs to it. All names
are looked up when they are first used: importing the package costs nothing, and needs nothing but the standard library
and Python 3.9.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in `typing`, whose import alone takes longer than this one may

if TYPE_CHECKING:
    from optimus.client.connection import ApiError as ApiError
    from optimus.client.connection import JobError as JobError
    from optimus.client.jobs import Explanation as Explanation
    from optimus.client.jobs import Job as Job
    from optimus.client.jobs import JobFailedError as JobFailedError
    from optimus.client.jobs import JobList as JobList
    from optimus.client.jobs import LogLine as LogLine
    from optimus.client.jobs import job as job
    from optimus.client.jobs import jobs as jobs
    from optimus.client.submitting import submit as submit
    from optimus.client.submitting import submit_all as submit_all
    from optimus.inside import AskedToLeave as AskedToLeave
    from optimus.inside import CheckpointError as CheckpointError
    from optimus.inside import CheckpointWarning as CheckpointWarning
    from optimus.inside import asked_to_leave as asked_to_leave
    from optimus.inside import attempt as attempt
    from optimus.inside import checkpoint_dir as checkpoint_dir
    from optimus.inside import checkpointed as checkpointed
    from optimus.inside import reason as reason
    from optimus.inside import report as report
    from optimus.inside import save_on_request as save_on_request
    from optimus.inside import steps as steps

__version__ = "0.1.0"

INSIDE_A_JOB = frozenset(
    {
        "AskedToLeave",
        "CheckpointError",
        "CheckpointWarning",
        "asked_to_leave",
        "attempt",
        "checkpoint_dir",
        "checkpointed",
        "reason",
        "report",
        "save_on_request",
        "steps",
    }
)
HOMES = {
    **dict.fromkeys(INSIDE_A_JOB, "optimus.inside"),
    **dict.fromkeys(("ApiError", "JobError"), "optimus.client.connection"),
    **dict.fromkeys(
        ("Explanation", "Job", "JobFailedError", "JobList", "LogLine", "job", "jobs"), "optimus.client.jobs"
    ),
    **dict.fromkeys(("submit", "submit_all"), "optimus.client.submitting"),
}
"""Name -> where it is found. The client is newer than Python 3.9, and nothing of it is needed inside a job."""


def __getattr__(name: str) -> object:
    if name not in HOMES:
        raise AttributeError(f"module 'optimus' has no attribute {name!r}")
    from importlib import import_module

    globals()[name] = value = getattr(import_module(HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    """What there is to use; how it is looked up is nobody's business."""
    return sorted({*HOMES, *(name for name in globals() if name.startswith("__"))})
