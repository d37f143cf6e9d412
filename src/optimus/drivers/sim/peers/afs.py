"""AFS, apathetic future share: a GPU goes to who makes better use of it, counting what the shorter job will free.

One unit each, shortest first. Then one more, again and again: of a pair, a finishes first; b wins the GPU if

    (p_b(n_b + 1) - p_b(n_b)) / p_b(n_b + 1)  >  (p_a(n_a + 1) - p_a(n_a)) / p_a(n_a)

with p(n) the speed on n units, and else a; the winner meets the next. Without a gain nobody wins.
Source: Hwang et al., NSDI'21, algorithm 1 (AFS-L), which knows what work is left (oracle).
Differences: a unit is one replica, or a step between the sizes that a job allows. Speeds: see `scaling`.
"""

from __future__ import annotations

from collections.abc import Mapping

from optimus.drivers.sim.clockwork import Clockwork, Run
from optimus.drivers.sim.peers.rounds import Nodes, RoundScheduler, free_gpus
from optimus.drivers.sim.peers.scaling import Speeds, next_size, place_sizes


class _Bid:
    """One job, its size now, and what the next size would bring."""

    __slots__ = ("ends_in", "if_first", "if_later", "index", "larger", "left", "run", "size", "speeds")

    def __init__(self, run: Run, left: float, speeds: Speeds) -> None:
        self.run, self.index, self.left, self.speeds = run, run.index, left, speeds
        self.resize(run.job.least)

    def resize(self, size: int) -> None:
        self.size, self.larger = size, next_size(self.run, size)
        now, then = self.speeds.of(self.run, size), self.speeds.of(self.run, self.larger)
        self.ends_in = self.left / now
        step = max(self.larger - size, 1)
        gain = max(then - now, 0.0) / step if self.larger else 0.0
        self.if_first, self.if_later = gain / now, gain / max(then, now)

    def cost(self) -> int:
        return (self.larger - self.size) * self.run.job.gpus


class Afs:
    def __init__(self) -> None:
        self._speeds = Speeds()

    def __call__(self, jobs: Mapping[int, Run], held: Mapping[int, Nodes], clock: Clockwork) -> Mapping[int, Nodes]:
        self._speeds.look(jobs)
        left = sum(free_gpus(clock, {}).values())
        bids = [_Bid(run, self._speeds.left_ms(run, clock.now_ms), self._speeds) for run in jobs.values()]
        bids.sort(key=lambda bid: (bid.ends_in, bid.index))
        served: list[_Bid] = []
        for bid in bids:
            need = bid.size * bid.run.job.gpus
            if need <= left:
                served.append(bid)
                left -= need
        while left > 0:
            open_bids = [bid for bid in served if bid.larger and bid.if_first > 0 and bid.cost() <= left]
            if not open_bids:
                break
            winner = open_bids[0]
            for other in open_bids[1:]:
                winner = better(winner, other)
            left -= winner.cost()
            winner.resize(winner.larger)
        return place_sizes({bid.index: bid.size for bid in served}, jobs, held, clock, [bid.index for bid in bids])


def better(one: _Bid, other: _Bid) -> _Bid:
    a, b = (one, other) if (one.ends_in, one.index) <= (other.ends_in, other.index) else (other, one)
    return b if b.if_later > a.if_first else a


def afs() -> RoundScheduler:
    return RoundScheduler("afs (oracle)", Afs())
