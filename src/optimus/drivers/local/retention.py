"""Retention: what is over is remembered for a while, and then cleared away.

Why: a machine that runs ten thousand jobs a day must not fill its disk with their names.
Owns: when a job, its logs and its checkpoints are removed.
Must not: touch what is not over.
"""

from __future__ import annotations

import shutil

from optimus.drivers.local.body import Body
from optimus.drivers.local.store import StoreError

KEEP_MS = 7 * 86_400_000
KEEP_MOST = 2_000
AT_ONCE = 200
"""Removed in one look: clearing away must not hold up a turn."""


class Retention:
    def __init__(self, body: Body) -> None:
        self._body = body

    def look(self, now_ms: int) -> None:
        ended = self._body.store.ended()
        surplus = max(len(ended) - KEEP_MOST, 0)
        old = [job for number, (job, at) in enumerate(ended) if number < surplus or at < now_ms - self._keep_ms(job)]
        for job in old[:AT_ONCE]:
            one = self._body.jobs.get(job)
            if one is None or any(self._body.replicas.get(life.workload) for life in self._body.lives_of(job)):
                continue
            try:
                self._body.forget(job)
            except StoreError:
                return
            for folder in (self._body.store.folder / "runs").glob(f"{one.uid}-*"):
                shutil.rmtree(folder, ignore_errors=True)
            shutil.rmtree(self._body.store.folder / "checkpoints" / job, ignore_errors=True)

    def _keep_ms(self, job: str) -> int:
        one = self._body.jobs.get(job)
        return KEEP_MS if one is None or one.job.keep_ms is None else one.job.keep_ms
