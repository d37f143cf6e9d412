"""Types of jobs: one file each, and this one list.

Why: what differs between a plain job, a notebook and an elastic training is small; everything else is the same life.
Owns: which type is which.
Must not: start, count or end anything.
"""

from optimus.drivers.kube.jobs.kinds.interactive import INTERACTIVE
from optimus.drivers.kube.jobs.kinds.kind import Additions, Kind, Peers, Rescale
from optimus.drivers.kube.jobs.kinds.plain import PLAIN
from optimus.model.jobs import JobType

KINDS: dict[JobType, Kind] = {JobType.JOB: PLAIN, JobType.INTERACTIVE: INTERACTIVE}

__all__ = ["KINDS", "Additions", "Kind", "Peers", "Rescale"]
