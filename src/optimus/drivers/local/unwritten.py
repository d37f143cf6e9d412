"""What has changed and is not in the store yet: what a turn writes down in one transaction before it acts.

Why: nothing is done that a restart would not know of, and a store that refuses loses nothing: all of it is tried again.
Owns: which jobs, lives and replicas differ from what the store has, and what is to be told there.
Must not: change any of them, or do anything but write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from optimus.drivers.local.store import Happening, Run, Store, Submitted
from optimus.lives import Life, Replica
from optimus.model.jobs import job_of_workload

RUNS_KEPT = 20_000
HAPPENINGS_KEPT = 50_000


class Unwritten:
    def __init__(self) -> None:
        self.jobs: set[str] = set()
        self.lives: set[str] = set()
        self.replicas: dict[str, str] = {}
        """Start -> workload."""
        self.dropped: set[str] = set()
        """Starts that are forgotten."""
        self.happenings: list[Happening] = []
        self.runs: list[Run] = []

    def __bool__(self) -> bool:
        return any((self.jobs, self.lives, self.replicas, self.dropped, self.happenings, self.runs))

    def drop(self, start: str) -> None:
        self.replicas.pop(start, None)
        self.dropped.add(start)

    def write(
        self,
        store: Store,
        jobs: Mapping[str, Submitted],
        ended_ms: Callable[[str], int | None],
        lives: Mapping[str, Life],
        replicas: Mapping[str, Mapping[str, Replica]],
    ) -> None:
        """StoreError: nothing was written, and all of it is still to be."""
        with store.turn():
            store.put_jobs((jobs[job], ended_ms(job)) for job in sorted(self.jobs))
            store.put_lives((job_of_workload(name), lives[name]) for name in sorted(self.lives))
            store.put_replicas((name, replicas[name][start]) for start, name in sorted(self.replicas.items()))
            store.drop_replicas(sorted(self.dropped))
            store.remember(self.runs, at_most=RUNS_KEPT)
            store.tell(self.happenings, at_most=HAPPENINGS_KEPT)
        for written in (self.jobs, self.lives, self.replicas, self.dropped, self.happenings, self.runs):
            written.clear()
