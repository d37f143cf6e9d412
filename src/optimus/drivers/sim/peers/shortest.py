"""Shortest first, in three ways.

    sjf     shortest job first; who runs is left alone
    srtf    shortest remaining time first; who runs is preempted for what is shorter (in rounds, if the set-up has them)
    qssf    quasi-shortest service first: expected GPU time from the history of similar jobs; who runs is left alone

Sources: sjf and srtf are the textbook's, with the truth (oracle), a log-normal error, or what the trace says; when a
job outlives its expectation, srtf takes it to be about to end. qssf: Hu et al. (Helios), SC'21: jobs of one user and
name with the same GPUs, recent ones more; else of the same user; else of the same GPUs. As in its artifact the order is
strict: nobody passes the head of the line.
Differences: sjf and srtf skip who does not fit (srtf with replicas of several GPUs: `seating`). qssf blends no second
model (gradient-boosted trees) into its estimate, takes the queue for the user and the family for the name, and knows
nothing before the first jobs end.
"""

from __future__ import annotations

import heapq
from bisect import insort
from collections.abc import Mapping

from optimus.drivers.sim.clockwork import Clockwork, News, Run
from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.peers import lines
from optimus.drivers.sim.peers.expectations import Expectation, attained_ms, erring, oracle, told
from optimus.drivers.sim.peers.lines import LineScheduler
from optimus.drivers.sim.peers.rounds import Nodes, RoundScheduler
from optimus.drivers.sim.peers.seating import seat_in_order

RECENT = 0.5
"""Weight of the last job in the estimate from similar ones."""


def sjf(expect: Expectation | None = None) -> LineScheduler:
    expect = expect or oracle()
    return LineScheduler(f"sjf ({expect.name})", lambda run: (expect(run), run.index), lines.together)


class ShortestRemaining:
    """What is left of a job changes only while it runs, so those that wait stay sorted."""

    def __init__(self, expect: Expectation) -> None:
        self._expect = expect
        self._waiting: list[tuple[float, int]] = []
        self._placed: set[int] = set()
        self._last = -1

    def __call__(self, jobs: Mapping[int, Run], held: Mapping[int, Nodes], clock: Clockwork) -> Mapping[int, Nodes]:
        for index in reversed(clock.active):  # in order of arrival, so the new ones are last
            if index <= self._last:
                break
            if index in jobs:
                insort(self._waiting, (self._expect(jobs[index]), index))
        self._last = max(self._last, next(reversed(clock.active)))
        for index in sorted(self._placed - held.keys()):  # its node was lost
            if index in jobs:
                insort(self._waiting, (self._left(jobs[index], clock), index))
        running = sorted((self._left(jobs[index], clock), index) for index in held)
        order = [index for _, index in heapq.merge(running, self._waiting)]
        placed = seat_in_order(order, jobs, held, clock)
        self._waiting = [entry for entry in self._waiting if entry[1] not in placed]
        self._placed = set(placed)
        for index in held.keys() - self._placed:
            insort(self._waiting, (self._left(jobs[index], clock), index))
        return placed

    def _left(self, run: Run, clock: Clockwork) -> float:
        if self._expect.name == "oracle":
            passed = max(clock.now_ms - max(run.since_ms, run.pause_until_ms), 0) if run.seats else 0
            return max((1.0 - run.progress.done()) * self._expect(run) - passed, 0.0)
        return max(self._expect(run) - attained_ms(run, clock.now_ms), 0.0)


def srtf(expect: Expectation | None = None) -> RoundScheduler:
    expect = expect or oracle()
    return RoundScheduler(f"srtf ({expect.name})", ShortestRemaining(expect), every_round=False)


class History:
    """Run times of jobs that ended, by what they have in common."""

    def __init__(self) -> None:
        self._recent: dict[tuple[str, str, int], float] = {}
        self._sums: dict[tuple[str, int], tuple[float, int]] = {}
        """By queue and GPUs; with an empty queue for all queues, with 0 GPUs for all sizes."""

    def learn(self, job: Job, ran_ms: int) -> None:
        if job.family:
            key = (job.queue, job.family, job.total_gpus)
            self._recent[key] = RECENT * ran_ms + (1 - RECENT) * self._recent.get(key, ran_ms)
        for broad in ((job.queue, job.total_gpus), ("", job.total_gpus), ("", 0)):
            total, count = self._sums.get(broad, (0.0, 0))
            self._sums[broad] = (total + ran_ms, count + 1)

    def expect(self, job: Job) -> float:
        similar = self._recent.get((job.queue, job.family, job.total_gpus))
        if similar is not None:
            return similar
        for broad in ((job.queue, job.total_gpus), ("", job.total_gpus), ("", 0)):
            if broad in self._sums:
                total, count = self._sums[broad]
                return total / count
        return 0.0


class QuasiShortest(LineScheduler):
    def __init__(self) -> None:
        super().__init__("qssf", self._service, lines.together, strict=True)

    def open(self, clock: Clockwork) -> None:
        super().open(clock)
        self._history = History()

    def decide(self, clock: Clockwork, news: News) -> None:
        for index in news.ended:
            self._history.learn(clock.runs[index].job, clock.runs[index].record.run_ms)
        super().decide(clock, news)

    def _service(self, run: Run) -> tuple[float, int]:
        """Estimated once, when it comes into the line."""
        return (run.job.total_gpus * self._history.expect(run.job), run.index)


def qssf() -> QuasiShortest:
    return QuasiShortest()


def sjf_erring(sigma: float, seed: int = 0) -> LineScheduler:
    return sjf(erring(sigma, seed))


def srtf_erring(sigma: float, seed: int = 0) -> RoundScheduler:
    return srtf(erring(sigma, seed))


def sjf_told() -> LineScheduler:
    return sjf(told())


def srtf_told() -> RoundScheduler:
    return srtf(told())
