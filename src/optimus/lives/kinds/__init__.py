"""Types of jobs: one file each, and this one list.

Why: what differs between a plain job, a notebook and an elastic training is small; everything else is the same life.
Owns: which type is which.
Must not: start, count or end anything.
"""

from optimus.lives.kinds.interactive import INTERACTIVE
from optimus.lives.kinds.kind import Additions, Kind, Peers, Rescale
from optimus.lives.kinds.plain import PLAIN
from optimus.lives.kinds.pytorch_elastic import PYTORCH_ELASTIC
from optimus.model.jobs import JobType

KINDS: dict[JobType, Kind] = {
    JobType.JOB: PLAIN,
    JobType.PYTORCH_ELASTIC: PYTORCH_ELASTIC,
    JobType.INTERACTIVE: INTERACTIVE,
}

__all__ = ["KINDS", "Additions", "Kind", "Peers", "Rescale"]
