"""Themis-style: who is worst off compared with a cluster of its own goes first.

    rho = (age + rest of the work as asked for) / (whole work on 1/N of the cluster)

GPUs are leased; when a lease ends they go to the waiting and ending jobs in the order of rho, largest first.
Source: Mahajan et al., NSDI'20: finish-time fairness, leases of 20 minutes.
Differences: no auction: the worst gets all it asked for if that is free, and who does not fit is passed (that is the
paper's filter at its fairest; where replicas have several GPUs see `seating`). Jobs are rigid and their bids true (told
what work is left: oracle). N is the number of jobs now.
"""

from __future__ import annotations

from collections.abc import Mapping

from optimus.drivers.sim.clockwork import Clockwork, Run
from optimus.drivers.sim.peers.rounds import Nodes, RoundScheduler, free_gpus
from optimus.drivers.sim.peers.seating import seat_in_order

LEASE_MS = 20 * 60_000


class Themis:
    def __init__(self, lease_ms: int = LEASE_MS) -> None:
        self._lease_ms = lease_ms
        self._until: dict[int, int] = {}
        self._ideal: dict[int, float] = {}
        self._reminded_ms = 0

    def __call__(self, jobs: Mapping[int, Run], held: Mapping[int, Nodes], clock: Clockwork) -> Mapping[int, Nodes]:
        now = clock.now_ms
        total = sum(free_gpus(clock, {}).values())
        leased = {index: nodes for index, nodes in held.items() if self._until[index] > now}
        order = sorted(
            (i for i in jobs if i not in leased), key=lambda i: (-self.rho(jobs[i], len(jobs), total, now), i)
        )
        placed = seat_in_order(order, jobs, held, clock, firm=leased)
        for index in placed.keys() - leased.keys():
            self._until[index] = now + self._lease_ms
        waits = next((index for index in jobs if not placed.get(index)), None)
        ends = min((self._until[index] for index in placed), default=now)
        if waits is not None and ends > now and not now < self._reminded_ms <= ends:
            clock.remind(waits, ends)  # where nobody waits, a lease that ends changes nothing
            self._reminded_ms = ends
        return placed

    def rho(self, run: Run, jobs: int, total: int, now_ms: int) -> float:
        """1 is fair; more is worse off."""
        if run.index not in self._ideal:
            self._ideal[run.index] = max(run.job.work.ideal_ms(), 1.0)
        whole = self._ideal[run.index]
        passed = max(now_ms - max(run.since_ms, run.pause_until_ms), 0) if run.seats else 0
        left = max((1.0 - run.progress.done()) * whole - passed, 0.0)
        alone = whole * max(run.job.total_gpus * jobs / total, 1.0)
        return (now_ms - run.job.submit_ms + left) / alone


def themis() -> RoundScheduler:
    return RoundScheduler("themis (oracle)", Themis(), every_round=False)
