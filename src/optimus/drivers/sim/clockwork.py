"""The clockwork: virtual time, a heap of what happens next, and jobs that progress where they are put.

Why: the same arrivals, physics and failures for every scheduler, so that differences are the scheduler's.
Owns: the clock, who sits where, progress, and the record of it. It refuses what cannot be: two jobs on one device.
Must not: decide, or tell a scheduler what it may not know.

    arrivals ─┐
    ends      ├─► news ──► scheduler.decide(clock, news) ──► place / rearrange / leave ──► progress ──► ends …
    faults   ─┘            when something happened (or in rounds, or on its tick), and as much later as a decision takes

A job:   waiting ──place──► paused (start or restart) ──► working ──► ended
            ▲                      ▲                         │
            │                      └──── place: new size ────┤
            └─────────── stop, or its node is lost ──────────┘
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.records import JobRecord, Record, Segment
from optimus.drivers.sim.setup import Outage, Setup
from optimus.drivers.sim.works import Progress, Spread

NEVER = 1 << 62


class Seat(NamedTuple):
    """The place of one replica."""

    node: int
    devices: tuple[int, ...] = ()
    """Empty where only the number matters."""
    milli: int = 0
    """Thousandths of each device that it takes; 0: what its job asks for. Less: it has to share what it did not ask to
    share."""


class SimulationError(Exception):
    """A scheduler asked for what cannot be, or nothing happens any more."""


@dataclass(slots=True)
class News:
    """What happened since the last decision."""

    arrived: list[int] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    gone: list[tuple[int, int]] = field(default_factory=list)
    """(job, ordinal) of replicas that were told to leave, or were lost, and are not there any more."""
    nodes_down: list[int] = field(default_factory=list)
    nodes_up: list[int] = field(default_factory=list)
    reminded: list[int] = field(default_factory=list)
    """Jobs about which the scheduler asked to be reminded now."""

    def __bool__(self) -> bool:
        return bool(self.arrived or self.ended or self.gone or self.nodes_down or self.nodes_up or self.reminded)


class Scheduler(Protocol):
    name: str
    every_round: bool
    """It wants every round, also when nothing happened."""

    def open(self, clock: Clockwork) -> None:
        """Before the first decision."""

    def decide(self, clock: Clockwork, news: News) -> None:
        """Act through `clock.place`, `clock.rearrange` and `clock.leave`."""


class Run:
    """One job in the clockwork."""

    __slots__ = (
        "arrived",
        "began_ms",
        "failures",
        "generation",
        "held",
        "held_since_ms",
        "index",
        "job",
        "last_ordinals",
        "leaving",
        "pause_until_ms",
        "progress",
        "record",
        "saved",
        "seats",
        "since_ms",
        "slowed",
    )

    def __init__(self, index: int, job: Job) -> None:
        self.index = index
        self.job = job
        self.progress: Progress = job.work.begin()
        self.record = JobRecord(name=job.name, submit_ms=job.submit_ms)
        self.seats: dict[int, Seat] = {}
        """By ordinal; empty while it waits."""
        self.leaving: dict[int, Seat] = {}
        self.held: dict[int, Seat] = {}
        """Kept for it while it waits for the rest of its seats; it does not work there."""
        self.held_since_ms = 0
        self.last_ordinals: tuple[int, ...] = ()
        """Replicas it had when it ended."""
        self.arrived = False
        self.since_ms = 0
        """Progress is counted up to here."""
        self.pause_until_ms = 0
        self.began_ms = 0
        """When it took its present seats."""
        self.generation = 0
        """Of its next end in the heap; older ones are void."""
        self.saved = 0.0
        self.slowed = 1.0
        self.failures = 0

    @property
    def waits(self) -> bool:
        return self.arrived and not self.seats and self.record.end_ms is None

    @property
    def active(self) -> bool:
        return self.arrived and self.record.end_ms is None


def _milli(run: Run, seats: Iterable[Seat]) -> int:
    """Thousandths of GPUs that these seats of the job take."""
    return sum(seat.milli or run.job.gpu_milli for seat in seats) * run.job.gpus


_ARRIVAL, _CHANGE, _GONE, _DOWN, _UP, _REMINDER = range(6)


class Clockwork:
    def __init__(self, setup: Setup, jobs: Sequence[Job]) -> None:
        self.setup = setup
        self.now_ms = 0
        self.runs = [Run(i, job) for i, job in enumerate(sorted(jobs, key=lambda job: (job.submit_ms, job.name)))]
        self.active: dict[int, Run] = {}
        """Submitted and not over, in order of arrival."""
        self.running: dict[int, Run] = {}
        self.node_names = [node.name for node in setup.nodes]
        self.capacity = [len(node.devices) * 1000 for node in setup.nodes]
        self.free = list(self.capacity)
        """Thousandths of GPUs by node, leaving replicas still counted as there."""
        self.up = [True] * len(setup.nodes)
        self.touched: set[int] = set()
        """Nodes that came, went or got other seats; whoever watches them empties it."""
        self.decisions = 0
        self._until_ms = NEVER
        self._over = 0
        self._devices: list[dict[int, int]] = [{} for _ in setup.nodes]
        """Device -> thousandths that are taken of it, by node."""
        self._unnamed: list[dict[int, int]] = [{} for _ in setup.nodes]
        """The same of seats that do not name theirs: thousandths of a device -> how many such parts."""
        self._models = [node.devices[0].model if node.devices else "" for node in setup.nodes]
        self._racks = [node.labels.get(setup.rack_label, "") for node in setup.nodes]
        self._on_node: list[dict[int, int]] = [{} for _ in setup.nodes]
        """Job -> replicas, by node."""
        self._heap: list[tuple[int, int, int, int, int]] = []
        self._sequence = 0
        self._news = News()
        self._segments: list[Segment] = []
        self._in_rounds = any(run.progress.rounds for run in self.runs)
        for run in self.runs:
            self._push(run.job.submit_ms, _ARRIVAL, run.index)
        for outage in setup.outages:
            self._push(outage.at_ms, _DOWN, self._node(outage))
            self._push(outage.at_ms + outage.for_ms, _UP, self._node(outage))

    # -- the loop ---------------------------------------------------------------------------------------------

    def play(self, scheduler: Scheduler, *, until_ms: int = NEVER) -> Record:
        """Until every job is over, the time has come, or somebody has seen enough (`stop`). Nothing of what happens at
        `until_ms` or later is played; who is through by then has ended."""
        self._until_ms = until_ms
        scheduler.open(self)
        interval, tick = self.setup.interval_ms, self.setup.tick_ms
        decide_at, begun_ms, rests_until = NEVER, NEVER, 0
        while self._over < len(self.runs):
            next_ms = self._heap[0][0] if self._heap else NEVER
            if min(decide_at, next_ms) >= self._until_ms:
                if self._until_ms == NEVER:
                    raise SimulationError(self._stuck(scheduler))
                self.now_ms = self._until_ms
                break
            if decide_at < next_ms:
                self.now_ms = decide_at
                self._look_at_rounds()
                news, self._news = self._news, News()
                self.decisions += 1
                scheduler.decide(self, news)
                begun_ms = min(begun_ms, self.now_ms)
                rests = (self.now_ms - begun_ms) * self.setup.coarser_percent // 100
                rests_until = self.now_ms + min(rests, self.setup.coarsest_ms)
                decide_at = self._next_decision(scheduler, interval, tick)
                decide_at = decide_at if self._news.gone else max(decide_at, rests_until)
                continue
            self.now_ms = next_ms
            self._happen()
            if self._news:
                due = self._decided(next_ms)
                decide_at = min(decide_at, due if self._news.gone else max(due, rests_until))
        return self._record(scheduler)

    @property
    def unseen(self) -> News:
        """What happened after the last decision."""
        return self._news

    def stop(self) -> None:
        """The record ends now; what still runs or waits stays unfinished."""
        self._until_ms = self.now_ms

    def _decided(self, at_ms: int) -> int:
        """When what happens then has been decided: once it is thought over, or in the next round, which ends as much
        later."""
        interval, thinks = self.setup.interval_ms, self.setup.decision_ms
        return at_ms + thinks if not interval else -(-(at_ms - thinks) // interval) * interval + thinks

    def _next_decision(self, scheduler: Scheduler, interval: int, tick: int) -> int:
        if self._news:  # something that followed at once: room came free, a replica is gone
            return self.now_ms if interval else self._decided(self.now_ms)
        if scheduler.every_round and self.active:
            return self.now_ms + (interval or tick)
        if interval and self._in_rounds and any(run.progress.rounds for run in self.running.values()):
            return self.now_ms + interval
        if tick and len(self.active) > len(self.running):
            return self.now_ms + tick
        return NEVER

    def _happen(self) -> None:
        """The next thing of the heap."""
        at, _, kind, index, more = heapq.heappop(self._heap)
        if kind == _ARRIVAL:
            run = self.runs[index]
            run.arrived = True
            self.active[index] = run
            self._news.arrived.append(index)
        elif kind == _CHANGE:
            run = self.runs[index]
            if run.generation != more:
                return
            self._advance(run)
            if run.progress.over:
                self._end(run)
                return
            if self._has_failed(run):
                self._fail(run)
            self._expect(run)
        elif kind == _GONE:
            self._free_leaving(self.runs[index], more)
        elif kind == _DOWN:
            self._lose_node(index)
        elif kind == _REMINDER:
            self._news.reminded.append(index)
        else:
            self.up[index] = True
            self.touched.add(index)
            self._news.nodes_up.append(index)
        assert at == self.now_ms

    def _look_at_rounds(self) -> None:
        """Let those progress that are looked at in rounds."""
        if not self._in_rounds:
            return
        for run in [run for run in self.running.values() if run.progress.rounds and self._advance(run)]:
            self._end(run)

    # -- what schedulers do -----------------------------------------------------------------------------------

    def place(self, index: int, seats: Mapping[int, Seat]) -> None:
        """From now on the job runs on exactly these seats: a first start, a restart, or a change of size or place."""
        self.rearrange({index: seats})

    def rearrange(self, changes: Mapping[int, Mapping[int, Seat]]) -> None:
        """Several at once, so that jobs can swap their seats. No seats: the job is taken out at once, and what its last
        checkpoint does not hold is lost, unless it needs no time to write one."""
        before = {}
        for index, seats in changes.items():
            run = self.runs[index]
            if not run.active:
                raise SimulationError(f"{run.job.name} is placed, but it is not there")
            before[index] = run.seats
            if run.held:
                self.hold(index, {})
            if run.seats and seats:
                self._advance(run)
                self._close_segment(run)
            elif run.seats:
                self._halt(run, graceful=not run.job.grace_ms)
            for ordinal, seat in run.seats.items():
                if seats.get(ordinal) != seat:
                    self._sit(run, seat, -1)
        for index, seats in changes.items():
            run, old = self.runs[index], before[index]
            run.seats = dict(seats)
            if not seats:
                continue
            for ordinal, seat in seats.items():
                if old.get(ordinal) != seat:
                    self._sit(run, seat, 1)
            first = run.record.start_ms is None
            if first:
                run.record.start_ms = self.now_ms
            elif old:
                run.record.resizes += 1
            else:
                run.record.restarts += 1
            self.running[index] = run
            self._begin(run, run.job.start_ms if first else run.job.restart_ms)

    def leave(self, index: int, ordinals: Iterable[int]) -> None:
        """Tell replicas to leave; they are gone after the job's grace, which also saves its work. With none left the
        job waits again; otherwise it goes on with those that stay."""
        run = self.runs[index]
        grace = run.job.grace_ms
        going = {ordinal: run.seats[ordinal] for ordinal in ordinals if ordinal in run.seats}
        if not going:
            return
        staying = {o: s for o, s in run.seats.items() if o not in going}
        if staying:
            self._advance(run)
            self._close_segment(run)
        else:
            self._halt(run, graceful=True)
        run.seats = staying
        for ordinal, seat in going.items():
            run.leaving[ordinal] = seat
            self._push(self.now_ms + grace, _GONE, index, ordinal)
            run.record.leaving_gpu_ms -= self.now_ms * _milli(run, (seat,)) // 1000  # until it is gone
        if staying:
            run.record.resizes += 1
            self._begin(run, run.job.restart_ms)

    def hold(self, index: int, seats: Mapping[int, Seat]) -> None:
        """Keep exactly these seats for a job that waits. It begins to work when it is placed, and not before."""
        run = self.runs[index]
        if not run.waits:
            raise SimulationError(f"seats are kept for {run.job.name}, but it does not wait")
        passed, run.held_since_ms = self.now_ms - run.held_since_ms, self.now_ms
        run.record.held_gpu_ms += passed * _milli(run, run.held.values()) // 1000
        old, run.held = run.held, dict(seats)
        for ordinal, seat in old.items():
            if seats.get(ordinal) != seat:
                self._sit(run, seat, -1)
        for ordinal, seat in seats.items():
            if old.get(ordinal) != seat:
                self._sit(run, seat, 1)

    def remind(self, index: int, at_ms: int) -> None:
        """The scheduler wants to decide then, about this job."""
        self._push(at_ms, _REMINDER, index)

    def reject(self, index: int, why: str) -> None:
        """The job is refused for good, or taken out for good."""
        run = self.runs[index]
        run.record.rejected = why
        run.record.rejected_ms = self.now_ms
        run.record.done = run.progress.done()
        if self.active.pop(index, None) is not None:
            self._over += 1

    # -- progress ---------------------------------------------------------------------------------------------

    def _begin(self, run: Run, pause_ms: int) -> None:
        run.began_ms = run.since_ms = self.now_ms
        run.pause_until_ms = self.now_ms + pause_ms
        run.slowed = self.setup.neighbours.slowed(self, run) if self.setup.neighbours else 1.0
        run.progress.moved(self.spread(run))
        self._expect(run)
        if self.setup.neighbours:
            self._feel({seat.node for seat in run.seats.values()}, run)

    def spread(self, run: Run) -> Spread:
        """Where it is, as its speed sees it."""
        per_node: dict[int, int] = {}
        for seat in run.seats.values():
            per_node[seat.node] = per_node.get(seat.node, 0) + 1
        nodes = list(per_node)
        model = self._models[nodes[0]]
        if len(nodes) > 1:
            models = {self._models[n] for n in nodes}
            if len(models) > 1:
                model = min(models, key=lambda m: (self._speed(run, m), m))
        racks = len({self._racks[n] for n in nodes}) if self.setup.rack_label else 1
        slowed = run.slowed
        job = run.job
        if job.checkpoint_ms and job.checkpoint_cost_ms:
            slowed *= job.checkpoint_ms / (job.checkpoint_ms + job.checkpoint_cost_ms)
        return Spread(tuple(per_node.values()), model, racks, slowed)

    def _speed(self, run: Run, model: str) -> float:
        return float(getattr(run.job.work, "speed_by_model", {}).get(model, 1.0))

    def _expect(self, run: Run) -> None:
        """Put its next end, failure or change of speed into the heap."""
        run.generation += 1
        if run.progress.rounds and self.setup.interval_ms:
            return
        left = run.progress.left_ms()
        if run.failures < len(run.job.fails_at):
            done = run.progress.done()
            rest = run.job.fails_at[run.failures] - done
            if done < 1.0:
                left = min(left, max(rest, 0.0) / (1.0 - done) * left)
        if left < NEVER:
            start = max(run.since_ms, run.pause_until_ms)
            self._push(start + max(-int(-left // 1), 0), _CHANGE, run.index, run.generation)

    def _advance(self, run: Run) -> bool:
        """Count its progress up to now; whether it is over."""
        start = max(run.since_ms, min(run.pause_until_ms, self.now_ms))
        if start > run.since_ms:
            run.record.paused_gpu_ms += (start - run.since_ms) * _milli(run, run.seats.values()) // 1000
        if self.now_ms > start:
            run.progress.pass_ms(self.now_ms - start)
        run.since_ms = self.now_ms
        return run.progress.over

    def _has_failed(self, run: Run) -> bool:
        points = run.job.fails_at
        return run.failures < len(points) and run.progress.done() >= points[run.failures] - 1e-9

    def _fail(self, run: Run) -> None:
        """It fails by itself and starts again where it is."""
        run.failures += 1
        run.record.failures += 1
        self._lose_unsaved(run, graceful=False)
        run.pause_until_ms = self.now_ms + run.job.restart_ms

    def _lose_unsaved(self, run: Run, *, graceful: bool) -> None:
        job, progress = run.job, run.progress
        done = progress.done()
        if job.checkpoint_ms == 0 or (graceful and job.checkpoint_ms is not None):
            run.saved = done
            return
        if job.checkpoint_ms is None:
            kept = 0.0
        else:  # saved every so often since it began to work here
            worked = max(self.now_ms - max(run.began_ms, run.pause_until_ms), 0)
            unsaved = worked % job.checkpoint_ms
            kept = run.saved if not worked else max(run.saved, done - (done - run.saved) * unsaved / worked)
        run.record.lost += done - kept
        progress.back_to(kept)
        run.saved = kept

    def _halt(self, run: Run, *, graceful: bool) -> None:
        """It stops working and waits again."""
        if not run.seats:
            raise SimulationError(f"{run.job.name} is stopped, but it does not run")
        self._advance(run)
        self._close_segment(run)
        self._lose_unsaved(run, graceful=graceful)
        run.generation += 1
        run.record.preemptions += 1
        self.running.pop(run.index, None)

    def _end(self, run: Run) -> None:
        run.record.end_ms = self.now_ms - round(run.progress.over_ago_ms)
        run.record.done = 1.0
        self._close_segment(run)
        run.generation += 1
        self.running.pop(run.index)
        self.active.pop(run.index)
        for seat in run.seats.values():
            self._sit(run, seat, -1)
        for ordinal in list(run.leaving):
            self._free_leaving(run, ordinal)
        run.last_ordinals = tuple(run.seats)
        run.seats = {}
        self._news.ended.append(run.index)
        self._over += 1

    def _close_segment(self, run: Run) -> None:
        end = run.record.end_ms if run.record.end_ms is not None else self.now_ms
        if end > run.began_ms:
            milli = _milli(run, run.seats.values())
            nodes = len({seat.node for seat in run.seats.values()})
            self._segments.append(Segment(run.index, run.began_ms, end, milli, nodes))
            run.record.gpu_ms += (end - run.began_ms) * milli // 1000
            run.record.run_ms += end - run.began_ms

    # -- seats ------------------------------------------------------------------------------------------------

    def _sit(self, run: Run, seat: Seat, sign: int) -> None:
        node, job = seat.node, run.job
        milli = seat.milli or job.gpu_milli
        self.free[node] -= sign * job.gpus * milli
        self.touched.add(node)
        if sign > 0 and (self.free[node] < 0 or not self.up[node]):
            what = "is down" if not self.up[node] else f"has {(self.free[node] + job.gpus * milli) / 1000:g} free"
            raise SimulationError(
                f"{job.name} asks for {job.gpus * milli / 1000:g} GPUs of {self.node_names[node]}, which {what}"
            )
        taken = self._devices[node]
        for device in seat.devices:
            taken[device] = taken.get(device, 0) + sign * milli
            if taken[device] > 1000:
                raise SimulationError(f"{job.name}: device {device} of {self.node_names[node]} is given out twice")
        if job.gpus and not seat.devices:
            unnamed = self._unnamed[node]
            unnamed[milli] = unnamed.get(milli, 0) + sign * job.gpus
        there = self._on_node[node]
        there[run.index] = there.get(run.index, 0) + sign
        if not there[run.index]:
            del there[run.index]
        if sign < 0 and self.setup.neighbours:
            self._feel({node}, run)

    def _free_leaving(self, run: Run, ordinal: int) -> None:
        seat = run.leaving.pop(ordinal, None)
        if seat is not None:
            run.record.leaving_gpu_ms += self.now_ms * _milli(run, (seat,)) // 1000
            self._sit(run, seat, -1)
            self._news.gone.append((run.index, ordinal))

    def free_devices(self, node: int) -> list[int]:
        """Thousandths of each device that are free, in rising order. Seats that do not name their devices have the
        emptiest ones: each has its own as long as there is another."""
        taken = self._devices[node]
        free = sorted(1000 - taken.get(device.index, 0) for device in self.setup.nodes[node].devices)
        for milli, parts in sorted(self._unnamed[node].items(), reverse=True):
            for _ in range(parts):
                free[-1] = max(free[-1] - milli, 0)
                free.sort()
        return free

    def neighbours(self, node: int) -> Mapping[int, int]:
        """Jobs on a node and how many of their replicas."""
        return self._on_node[node]

    def _feel(self, nodes: set[int], mover: Run) -> None:
        """Others on these nodes go faster or slower from now on."""
        assert self.setup.neighbours is not None
        for index in sorted({index for node in nodes for index in self._on_node[node]} - {mover.index}):
            other = self.runs[index]
            if not other.seats:
                continue
            slowed = self.setup.neighbours.slowed(self, other)
            if slowed != other.slowed:
                self._advance(other)
                other.slowed = slowed
                other.progress.moved(self.spread(other))
                self._expect(other)

    def _lose_node(self, node: int) -> None:
        self.up[node] = False
        self.touched.add(node)
        self._news.nodes_down.append(node)
        for index in sorted(self._on_node[node]):
            run = self.runs[index]
            self._lose_held(run, node)
            if run.seats:
                self._halt(run, graceful=False)
                run.record.preemptions -= 1
                run.record.losses += 1
            for ordinal, seat in run.seats.items():
                self._sit(run, seat, -1)
                self._news.gone.append((index, ordinal))
            run.seats = {}
            for ordinal in list(run.leaving):
                self._free_leaving(run, ordinal)

    def _lose_held(self, run: Run, node: int) -> None:
        lost = [ordinal for ordinal, seat in run.held.items() if seat.node == node]
        if lost:
            self.hold(run.index, {o: s for o, s in run.held.items() if o not in lost})
            self._news.gone += [(run.index, ordinal) for ordinal in lost]

    def _node(self, outage: Outage) -> int:
        try:
            return self.node_names.index(outage.node)
        except ValueError:
            raise SimulationError(
                f"an outage names node {outage.node}, and the cluster has none of that name"
            ) from None

    # -- the record -------------------------------------------------------------------------------------------

    def _push(self, at_ms: int, kind: int, index: int, more: int = 0) -> None:
        self._sequence += 1
        heapq.heappush(self._heap, (at_ms, self._sequence, kind, index, more))

    def _record(self, scheduler: Scheduler) -> Record:
        for run in list(self.running.values()):
            if self._advance(run):
                self._end(run)
            else:
                self._close_segment(run)
        for run in self.active.values():
            run.record.done = run.progress.done()
            if run.held:
                self.hold(run.index, {})
        for run in self.runs:
            for ordinal in list(run.leaving):
                self._free_leaving(run, ordinal)
        return Record(
            scheduler=scheduler.name,
            jobs=[run.record for run in self.runs],
            segments=self._segments,
            decisions=self.decisions,
            end_ms=self.now_ms,
        )

    def _stuck(self, scheduler: Scheduler) -> str:
        waiting = [run.job for run in self.active.values()]
        named = ", ".join(f"{job.name} ({job.total_gpus} GPUs)" for job in waiting[:5])
        more = f" and {len(waiting) - 5} more" if len(waiting) > 5 else ""
        return f"{scheduler.name} leaves {len(waiting)} jobs waiting for ever: {named}{more}"
