"""Both worlds, played with the same work.

Why: a difference is the change's only if everything else is the same: jobs, run times, newcomers, seeds.
Owns: playing today's world and the changed one, from the beginning of a trace or from a present.
Must not: measure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from msgspec import Struct, structs

from optimus.drivers.sim.brain import Brain
from optimus.drivers.sim.clockwork import NEVER, Clockwork
from optimus.drivers.sim.forecasting.arrivals import Past
from optimus.drivers.sim.forecasting.sampling import HOPELESS, Futures
from optimus.drivers.sim.measuring import Measured, ask, measure
from optimus.drivers.sim.measuring.columns import Asked
from optimus.drivers.sim.present import Present
from optimus.drivers.sim.records import Record
from optimus.drivers.sim.resuming import Resumed
from optimus.drivers.sim.setup import Setup
from optimus.drivers.sim.standing import Standing, least_gpus
from optimus.drivers.sim.sweeping.running import Followed
from optimus.drivers.sim.traces.trace import ENDLESS_MS, Trace
from optimus.engine.engine import Engine
from optimus.model.plans import Plan

_PATIENCE_MS = 86_400_000
"""So long nothing has run and nothing came: what still waits will wait for ever."""
_SIZE_ENDS = (1, 8, 64)
Tell = Callable[[], None]


class Played(Struct, frozen=True, kw_only=True, eq=False):
    """One world, once."""

    setup: Setup
    measured: Measured
    starts: dict[str, int | None]
    """Workload -> its first start; what ran already when it began is not in it."""
    ran: frozenset[str] = frozenset()
    """What ran already."""
    preemptions: dict[str, int]
    """Workload -> how often it was stopped while it ran."""
    end_ms: int


Pair = tuple[Played, Played]
"""Today and changed."""


def play_again(
    trace: Trace, worlds: tuple[tuple[Setup, str], tuple[Setup, str]], tell: Tell, *, until_ms: int | None = None
) -> Pair:
    """The jobs of a trace from the beginning, in two set-ups with their policies; `until_ms` where jobs never end."""
    asked = ask(trace.jobs)
    played = []
    for setup, policy in worlds:
        brain = Brain(Engine(policy=policy, settings=setup.settings, seed=setup.seed))
        followed = Followed(brain, len(trace.jobs), lambda _over: None)
        record = Clockwork(setup, trace.jobs).play(followed, until_ms=NEVER if until_ms is None else until_ms)
        played.append(
            Played(
                setup=setup,
                measured=measure(record, asked, setup),
                starts={job.name: job.start_ms for job in record.jobs},
                preemptions={job.name: job.preemptions for job in record.jobs},
                end_ms=record.end_ms,
            )
        )
        tell()
    return played[0], played[1]


def play_ahead(
    today: Present, changed: Present, *, samples: int, seed: int, horizon_ms: int, past: Past, tell: Tell
) -> list[Pair]:
    """The future from a present, as it is and as it would be, with the same run times in both."""
    ours = Futures(today, horizon_ms, past)
    theirs = Futures(changed, horizon_ms, past, ours.knowledge)
    pairs = []
    for sample in range(samples):
        pairs.append((_ahead(ours, seed, sample), _ahead(theirs, seed, sample)))
        tell()
    return pairs


def _ahead(futures: Futures, seed: int, sample: int) -> Played:
    jobs, people = futures.cast(seed, sample)
    watcher = _Watcher(len(people), frozenset(job.name for job in jobs if job.work.ideal_ms() >= ENDLESS_MS))
    resumed = Resumed(futures.engine(), people, after=watcher.look)
    record = Clockwork(futures.setup, jobs).play(resumed, until_ms=futures.until_ms)
    _refuse(record, watcher.hopeless)
    asked = _with_sizes(ask(jobs), people)
    return Played(
        setup=futures.setup,
        measured=measure(record, asked, futures.setup),
        starts={job.name: resumed.starts.get(job.name) for job in jobs},
        preemptions={job.name: job.preemptions for job in record.jobs},
        ran=frozenset(name for name, one in people.items() if one.runs),
        end_ms=record.end_ms,
    )


def _refuse(record: Record, hopeless: Mapping[str, str]) -> None:
    """Once all is played, so that the engine decides at the moments at which it decides in a forecast."""
    for job in record.jobs:
        if job.name in hopeless and job.end_ms is None:
            job.rejected = hopeless[job.name]
            job.rejected_ms = job.submit_ms if job.start_ms is None else record.end_ms


def _with_sizes(asked: Asked, people: dict[str, Standing]) -> Asked:
    """Jobs of a present carry their sizes on their seats; what they ask for is told by their workloads."""
    gpus = np.array([least_gpus(people[name].workload) for name in asked.names], np.float64)
    return structs.replace(asked, gpus=gpus, size=np.searchsorted(_SIZE_ENDS, gpus).astype(np.int64))


class _Watcher:
    """Knows what time alone does not help, and sees when nothing more will happen: all else is over but what never
    ends, or nothing has moved for a day."""

    def __init__(self, people: int, endless: frozenset[str]) -> None:
        self._people = people
        self._endless = endless
        self._still_since_ms: int | None = None
        self.hopeless: dict[str, str] = {}
        """Who waits in vain, and why, by the last plan."""

    def look(self, clock: Clockwork, plan: Plan) -> None:
        self.hopeless = {wait.workload: wait.reason.text() for wait in plan.waiting if wait.reason.code in HOPELESS}
        if sum(run.arrived for run in clock.runs) < self._people:
            return
        working = [run for run in clock.running.values() if run.job.name not in self._endless]
        waiting = sum(
            run.job.name not in self.hopeless and run.index not in clock.running for run in clock.active.values()
        )
        if not working and not waiting:
            clock.stop()
        elif working or plan.actions:
            self._still_since_ms = None
        elif self._still_since_ms is None:
            self._still_since_ms = clock.now_ms
        elif clock.now_ms - self._still_since_ms >= _PATIENCE_MS:
            clock.stop()
