"""Lives: the life of a UnifiedJob as a pure function.

Why: starting, saving, stopping, retrying and ending are the same on one machine and on Kubernetes; the hands differ.
Owns: the phases of a job, and what has to be done for it: `reconcile(job, life, replicas, now) -> Changes`; and
what it loses when it is stopped (`losing`).
Must not: start anything, read a clock, or know a body.
"""

from optimus.lives.life import Blame, Ended, Leaving, LeavingCause, Life, Outcome, Place, Replica, Shortage
from optimus.lives.losing import Loss, in_words, loss_of, unheard, when_resumed
from optimus.lives.phases import JobPhase, phase_of
from optimus.lives.reconciling import Changes, reconcile

__all__ = [
    "Blame",
    "Changes",
    "Ended",
    "JobPhase",
    "Leaving",
    "LeavingCause",
    "Life",
    "Loss",
    "Outcome",
    "Place",
    "Replica",
    "Shortage",
    "in_words",
    "loss_of",
    "phase_of",
    "reconcile",
    "unheard",
    "when_resumed",
]
