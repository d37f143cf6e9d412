"""Seeing: UnifiedJobs and their pods, as the watch tells them, and which of them have changed.

Why: whoever leads next has them at hand; and a look is due when something has changed, not when a clock says so.
Owns: which pod belongs to which job: by the uid of its controller, which nobody can forge without being the owner.
Must not: mean anything by a change.
"""

from __future__ import annotations

from collections.abc import Callable

from optimus.api.crds import GROUP
from optimus.drivers.kube.jobs.telling import Why
from optimus.drivers.kube.jobs.words import ENDED, KIND
from optimus.drivers.kube.objects import Anything, Pod

ORPHANED = "orphan/"


class Sight:
    def __init__(self) -> None:
        self.jobs: dict[str, Anything] = {}
        """By uid."""
        self.pods: dict[str, dict[str, Pod]] = {}
        """By the uid of their job, by their own."""
        self.changed: set[str] = set()
        """Uids of jobs that need a look."""
        self.waits: dict[str, Why] = {}
        """By uid: what the scheduler says of a job that waits."""
        self.wake: Callable[[], object] = lambda: None
        self._job_of: dict[str, str] = {}
        """By the uid of a pod."""

    def job(self, thing: Anything) -> None:
        self.jobs[thing.metadata.uid] = thing
        self._touch(thing.metadata.uid)

    def waits_because(self, uid: str, why: Why | None) -> None:
        """Told when it says something else; None: it does not wait any more, which is seen by its number."""
        if why is None:
            self.waits.pop(uid, None)
        elif self.waits.get(uid) != why:
            self.waits[uid] = why
            self._touch(uid)

    def job_gone(self, uid: str) -> None:
        self.waits.pop(uid, None)
        if self.jobs.pop(uid, None) is not None and uid in self.pods:
            self._touch(uid)

    def pod(self, pod: Pod) -> None:
        job = _job_of(pod)
        if self._job_of.get(pod.metadata.uid, job) != job:
            self.pod_gone(pod.metadata.uid)
        if job is None:
            return
        self.pods.setdefault(job, {})[pod.metadata.uid] = pod
        self._job_of[pod.metadata.uid] = job
        self._touch(job)

    def pod_gone(self, uid: str) -> None:
        if (job := self._job_of.pop(uid, None)) is None:
            return
        del self.pods[job][uid]
        if not self.pods[job]:
            del self.pods[job]
        self._touch(job)

    def look_at_all(self) -> None:
        """For somebody who has seen nothing yet."""
        self.changed |= self.jobs.keys() | self.pods.keys()
        self.wake()

    def _touch(self, uid: str) -> None:
        self.changed.add(uid)
        self.wake()


def _job_of(pod: Pod) -> str | None:
    """A pod that nobody owns any more (`--cascade=orphan`) and that still waits to be counted stands for itself."""
    meta = pod.metadata
    for one in meta.owner_references or ():
        if one.controller and one.kind == KIND and one.api_version.partition("/")[0] == GROUP:
            return one.uid
    return f"{ORPHANED}{meta.uid}" if ENDED in (meta.finalizers or ()) else None
