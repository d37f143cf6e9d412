"""KAI-like: queues have a fair share; who is below it goes first, and takes back what others have above theirs.

    fair share     what a queue is guaranteed, as far as it asks for it; the rest over all that ask for more, by weight
    allocate       again and again the queue with the smallest part of its fair share; inside it priority, then arrival;
                   what does not fit is skipped; above the fair share is allowed, above the limit is not
    reclaim        for a job with which its queue stays within its fair share, jobs of queues above theirs are stopped:
                   of the queue farthest above first, the newest first, as long as the queue is above

Source: the KAI scheduler (formerly Run:ai), actions allocate and reclaim, its fair-share plugin, bin-packing placement.
Differences: one level of queues (leaves), GPUs are the only resource that is shared out, no consolidation, no
preemption inside a queue, no time-aware fairness. Stopped jobs go back to their place in the line.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from msgspec import Struct

from optimus.drivers.sim.clockwork import Clockwork, News, Run
from optimus.drivers.sim.peers.lines import Line, LineScheduler, together
from optimus.drivers.sim.peers.native import priority_then_arrival
from optimus.drivers.sim.peers.room import need_of, refuse_impossible, seats_on
from optimus.model.queues import GPU, Queue


class Right(Struct, frozen=True):
    """What a queue may have, in GPUs."""

    guarantee: float = 0.0
    limit: float = float("inf")
    weight: float = 1.0


def right_of(queue: Queue) -> Right:
    quotas = [pool.resources[GPU] for pool in queue.quotas if GPU in pool.resources]
    if not quotas:
        return Right()
    limits = [quota.limit for quota in quotas if quota.limit is not None]
    return Right(
        sum(quota.guarantee for quota in quotas) / 1000,
        sum(limits) / 1000 if len(limits) == len(quotas) else float("inf"),
        max(quota.weight for quota in quotas),
    )


def fair_shares(total: float, rights: Mapping[str, Right], asked: Mapping[str, float]) -> dict[str, float]:
    """GPUs each queue is due. Nobody is due more than it asks for or may have."""
    most = {name: min(asked.get(name, 0.0), right.limit) for name, right in rights.items()}
    share = {name: min(right.guarantee, most[name]) for name, right in rights.items()}
    left = max(total - sum(share.values()), 0.0)
    wants = sorted(
        ((most[name] - share[name]) / right.weight, name)
        for name, right in rights.items()
        if right.weight > 0 and share[name] < most[name] - 1e-9
    )
    weights = sum(rights[name].weight for _, name in wants)
    level = 0.0
    for number, (want, name) in enumerate(wants):  # the level rises until all is given; who is served stays behind
        if (want - level) * weights > left:
            level += left / weights
            return share | {n: share[n] + level * rights[n].weight for _, n in wants[number:]}
        left -= (want - level) * weights
        level = want
        weights -= rights[name].weight
        share[name] = most[name]
    return share


class Kai(LineScheduler):
    def __init__(self) -> None:
        super().__init__("kai", priority_then_arrival, together)

    def open(self, clock: Clockwork) -> None:
        super().open(clock)
        parents = {queue.parent for queue in clock.setup.queues}
        self._rights = {q.name: right_of(q) for q in clock.setup.queues if q.name not in parents}
        self._lines: dict[str, Line] = {}
        self._in_vain: set[tuple[str, Hashable]] = set()
        """Lanes whose head could not be helped by stopping others; they are tried again when something ends."""
        self._has: dict[str, int] = {}
        self._waits: dict[str, int] = {}
        """GPUs by queue."""

    def decide(self, clock: Clockwork, news: News) -> None:
        if not news:
            return
        for index in news.ended:
            self._has[clock.runs[index].job.queue] -= clock.runs[index].job.total_gpus
        for index in sorted({index for index, _ in news.gone if index in clock.active}):
            self._has[clock.runs[index].job.queue] -= clock.runs[index].job.total_gpus
        self.take_back(clock, news)
        for index in news.arrived:
            if not refuse_impossible(clock, self.room, index):
                self.wait(clock.runs[index])
        if news.ended or news.gone or news.nodes_up:
            self._open_all()
        self._allocate(clock)
        self._reclaim(clock)

    def _open_all(self) -> None:
        self._in_vain.clear()
        for line in self._lines.values():
            line.open_all()

    def wait(self, run: Run) -> None:
        queue = run.job.queue
        self._rights.setdefault(queue, Right())
        self._has.setdefault(queue, 0)
        self._waits[queue] = self._waits.get(queue, 0) + run.job.total_gpus
        lane = (need_of(run.job), run.job.replicas)
        self._lines.setdefault(queue, Line()).add(lane, priority_then_arrival(run), run.index)

    def shares(self) -> dict[str, float]:
        asked = {name: float(self._has.get(name, 0) + self._waits.get(name, 0)) for name in self._rights}
        return fair_shares(float(self.room.gpus_of[self.room.up].sum()), self._rights, asked)

    def _allocate(self, clock: Clockwork) -> None:
        share = self.shares()
        heads = {queue: head for queue, line in self._lines.items() if (head := line.first()) is not None}
        while heads:
            queue = min(heads, key=lambda q: (self._has[q] / max(share[q], 1e-9), q))
            lane, index = heads.pop(queue)
            within = self._has[queue] + clock.runs[index].job.total_gpus <= self._rights[queue].limit
            if within and self._start(clock, index):
                self._lines[queue].pop(lane)
                self._count(clock.runs[index], 1)
            else:
                self._lines[queue].shut(lane)
            following = self._lines[queue].first()
            if following is not None:
                heads[queue] = following

    def _count(self, run: Run, sign: int) -> None:
        self._has[run.job.queue] += sign * run.job.total_gpus
        self._waits[run.job.queue] -= sign * run.job.total_gpus

    def _reclaim(self, clock: Clockwork) -> None:
        """One attempt for the first of each lane; whoever was stopped for it may start elsewhere."""
        share = self.shares()
        if all(self._has[queue] <= share[queue] + 1e-9 for queue in self._has):
            return
        stopped = False
        for queue in sorted(self._lines, key=lambda q: (self._has[q] / max(share[q], 1e-9), q)):
            for lane, index in self._lines[queue].heads():
                run = clock.runs[index]
                if self._has[queue] + run.job.total_gpus > share[queue] + 1e-9 or (queue, lane) in self._in_vain:
                    continue
                victims = self._victims(clock, run, share)
                if victims is None:
                    self._in_vain.add((queue, lane))
                    continue
                for victim in victims:
                    self._stop(clock, victim)
                self._start(clock, index)
                self._lines[queue].pop(lane)
                self._count(run, 1)
                stopped = stopped or bool(victims)
        if stopped:
            self._open_all()
            self._allocate(clock)

    def _victims(self, clock: Clockwork, run: Run, share: Mapping[str, float]) -> list[int] | None:
        """Whom to stop so that it fits; None where even all of them are not enough."""
        need = need_of(run.job)
        above = {queue: has - share[queue] for queue, has in self._has.items() if has > share[queue] + 1e-9}
        newest: dict[str, list[int]] = {queue: [] for queue in above}
        for index in sorted(self.placed):
            if clock.runs[index].job.queue in above:
                newest[clock.runs[index].job.queue].append(index)
        chosen: list[int] = []
        try:
            while not self.room.holds(need, run.job.replicas):
                far = max(
                    (q for q in above if above[q] > 1e-9 and newest[q]), key=lambda q: (above[q], q), default=None
                )
                if far is None:
                    return None
                chosen.append(newest[far].pop())
                above[far] -= clock.runs[chosen[-1]].job.total_gpus
                self._shift(clock.runs[chosen[-1]], -1)
            return chosen
        finally:  # only tried: the room is theirs until they are stopped
            for index in chosen:
                self._shift(clock.runs[index], 1)

    def _shift(self, run: Run, sign: int) -> None:
        for node in self.placed[run.index]:
            self.room.move(need_of(run.job), node, sign)

    def _stop(self, clock: Clockwork, index: int) -> None:
        run = clock.runs[index]
        self._shift(run, -1)
        del self.placed[index]
        clock.place(index, seats_on(()))
        self._has[run.job.queue] -= run.job.total_gpus
        self.wait(run)


def kai() -> Kai:
    return Kai()
