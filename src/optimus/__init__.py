"""Optimus: a scheduler for AI workloads that decides who gets which GPUs, when, and for how long.

Inside a job, `import optimus` gives a script `optimus.steps` and what belongs to it. These names are looked up when
they are first used: importing the package costs nothing, and needs nothing but the standard library and Python 3.9.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in `typing`, whose import alone takes longer than this one may

if TYPE_CHECKING:
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


def __getattr__(name: str) -> object:
    if name not in INSIDE_A_JOB:
        raise AttributeError(f"module 'optimus' has no attribute {name!r}")
    from optimus import inside

    globals()[name] = value = getattr(inside, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *INSIDE_A_JOB})
