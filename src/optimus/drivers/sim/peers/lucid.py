"""Lucid-style: shortest estimated service first, and small jobs two to a device when the cluster is full.

A job starts on devices of its own if there are any. If not, it may join one running job that asks for the same and has
its devices alone, when both together keep a device busy for no more than all of its time; of several the least busy.
Nobody is preempted. Service is GPUs times the run time expected from the history of similar jobs.
Source: Hu et al., ASPLOS'23: non-intrusive, indolent packing by measured utilisation, same number of GPUs, at most two
jobs on a device; priority by estimated GPU time.
Differences: utilisation is what the job says (`activity_milli`) instead of three classes from a profiling run, and a
job that says nothing is never packed; the estimate is that of `shortest.History` instead of an additive model; there is
no profiler, so no time is spent on it; jobs are packed whatever the load.
What sharing costs is the set-up's to say (`neighbours`): without it sharing would be free, so it is demanded. From the
command line a set-up that says nothing is given `SharedDevice` for the run of this peer.
"""

from __future__ import annotations

from optimus.drivers.sim.clockwork import Clockwork, News, Run, Seat, SimulationError
from optimus.drivers.sim.peers.lines import LineScheduler, together
from optimus.drivers.sim.peers.room import need_of
from optimus.drivers.sim.peers.shortest import History

FULL_MILLI = 1000
SHARED_MILLI = 500


class Lucid(LineScheduler):
    def __init__(self, limit_milli: int = FULL_MILLI) -> None:
        super().__init__("lucid", self._service, together)
        self._limit = limit_milli

    def open(self, clock: Clockwork) -> None:
        if clock.setup.neighbours is None:
            raise SimulationError(
                "lucid shares devices: say what that costs, --neighbours devices or neighbours=SharedDevice()"
            )
        super().open(clock)
        self._history = History()
        self._free = [{device.index for device in node.devices} for node in clock.setup.nodes]
        self._seats: dict[int, dict[int, Seat]] = {}
        self._mates: dict[int, int] = {}
        """Who shares with whom, both ways."""

    def decide(self, clock: Clockwork, news: News) -> None:
        for index in news.ended:
            self._history.learn(clock.runs[index].job, clock.runs[index].record.run_ms)
        self.line.open_all()  # who starts is one to join, so a lane may open without an end
        super().decide(clock, news)

    def wait(self, run: Run) -> None:
        job = run.job
        self.line.add((need_of(job), job.replicas, job.activity_milli), self._service(run), run.index)

    def _service(self, run: Run) -> tuple[float, int]:
        return (run.job.total_gpus * self._history.expect(run.job), run.index)

    def take_back(self, clock: Clockwork, news: News) -> None:
        """A mate that stays keeps the devices; otherwise they are free."""
        lost = {index for index, _ in news.gone if index in clock.active}
        for index in (*news.ended, *sorted(lost)):
            mate = self._mates.pop(index, None)
            if mate is not None:
                del self._mates[mate]
                del self._seats[index], self.placed[index]
                continue
            for seat in self._seats.pop(index, {}).values():
                self._free[seat.node].update(seat.devices)
        super().take_back(clock, news)

    def _start(self, clock: Clockwork, index: int) -> bool:
        run = clock.runs[index]
        job, need = run.job, need_of(run.job)
        milli = SHARED_MILLI if 0 < job.activity_milli < self._limit and job.gpu_milli == FULL_MILLI else 0
        if self.room.holds(need, job.replicas):
            self.placed[index] = self._seating(self.room, need, job.replicas, self._random)
            seats = {}
            for ordinal, node in enumerate(self.placed[index]):
                devices = tuple(sorted(self._free[node])[: job.gpus])
                self._free[node].difference_update(devices)
                seats[ordinal] = Seat(node, devices, milli)
        else:
            mate = self._mate(clock, run) if milli else None
            if mate is None:
                return False
            self._mates[index], self._mates[mate] = mate, index
            seats = self._seats[mate]
            self.placed[index] = self.placed[mate]
        self._seats[index] = seats
        clock.place(index, seats)
        return True

    def _mate(self, clock: Clockwork, run: Run) -> int | None:
        def fits(other: Run) -> bool:
            job = other.job
            return (
                other.index not in self._mates
                and job.activity_milli > 0
                and job.gpu_milli == FULL_MILLI
                and job.activity_milli + run.job.activity_milli <= self._limit
                and (job.replicas, job.gpus) == (run.job.replicas, run.job.gpus)
            )

        alone = [other for other in clock.running.values() if fits(other)]
        return min(alone, key=lambda other: (other.job.activity_milli, other.index)).index if alone else None


def lucid() -> Lucid:
    return Lucid()
