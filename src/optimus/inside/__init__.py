"""What a training script uses inside a job: resume, save in time, leave when asked, say how far it is.

Why: being stopped must cost little, or nobody lets others share. A script becomes stoppable by one line,
`for step in optimus.steps(...)`, and is the same script on a laptop.
Owns: the contract between a body and the job (`contract`), checkpoints of a script and the loops that write them,
the signal while somebody listens, the status file.
Must not: import anything but the standard library or be newer than Python 3.9, because the interpreter of a job is the
user's; know the scheduler; start threads; cost time in a step where nothing is due.

A copy of this folder and of `optimus/__init__.py` on the path of the job is all that it needs. At the top level the
names are `optimus.steps`, `optimus.report` and so on; the package is named otherwise: `optimus.steps` is a function.
"""

from optimus.inside.contract import AskedToLeave, CheckpointError, CheckpointWarning
from optimus.inside.loops import steps
from optimus.inside.own_loops import (
    asked_to_leave,
    attempt,
    checkpoint_dir,
    checkpointed,
    reason,
    report,
    save_on_request,
)

__all__ = [
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
]
