"""What one look at a job is at, and what comes of it.

Why: the look is pure; whoever carries it out and whoever tests it share these records.
Owns: the records.
Must not: decide anything.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from msgspec import Struct

from optimus.drivers.kube.jobs.keeping import Kept
from optimus.drivers.kube.jobs.replicas import Answers
from optimus.drivers.kube.jobs.saying import Saying
from optimus.drivers.kube.jobs.telling import Trouble, Why
from optimus.drivers.kube.objects import Anything, Pod


class Make(Struct, frozen=True):
    """A pod that is missing."""

    role: str
    ordinal: int
    part: int | None = None


class Look(Struct, frozen=True, kw_only=True):
    adopt: bool = False
    """Put our finalizer on the job, and look again: before that nothing else is done."""
    status: dict[str, Any] | None = None
    """As it shall be; None: it is."""
    make: tuple[Make, ...] = ()
    delete: tuple[Pod, ...] = ()
    """With their grace."""
    clear: tuple[Pod, ...] = ()
    """At once: they have ended, and their name is needed or their node is dead."""
    release: tuple[Pod, ...] = ()
    let_go: bool = False
    """Take our finalizer from the job."""
    forget: bool = False
    """Delete the job: its time is over."""
    missing: tuple[str, ...] = ()
    """Uids of pods that seem to have been taken away by force; whoever is sure says so in `gone`."""
    says: tuple[Saying, ...] = ()
    kept: Kept | None = None
    stale: bool = False
    """The job is older than its pods: the newest version of it is needed."""
    look_again_ms: int | None = None


class View(Struct, frozen=True, kw_only=True):
    """What one look is at."""

    thing: Anything
    pods: Sequence[Pod]
    """Of this job, by its uid."""
    now_ms: int
    answers: Answers
    gone: Collection[str] = ()
    """Uids that are not on the server any more, for certain."""
    trouble: Trouble | None = None
    waits: Why | None = None
    """What the scheduler says of it while it has no places."""
    certain: bool = False
    """The job is as the server has it, for certain."""
