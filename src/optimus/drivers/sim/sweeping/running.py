"""Running: one scene under one contender, from the first job to the last.

Why: this is what a process does; it needs no more than what is passed to it, and says no more than what it returns.
Owns: the observer that counts jobs, notes policies that broke, and sees when nothing will ever happen again.
Must not: read a clock unless it is asked for decision times, or share anything with another run.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import numpy as np
from msgspec import Struct, structs

from optimus.decide.policies.policy import POLICY_FAILED
from optimus.drivers.sim.brain import Brain
from optimus.drivers.sim.clockwork import NEVER, Clockwork, News, Scheduler, SimulationError
from optimus.drivers.sim.measuring import Measured, Watched, measure
from optimus.drivers.sim.measuring.columns import Asked
from optimus.drivers.sim.measuring.watching import Fragments
from optimus.drivers.sim.records import Record
from optimus.drivers.sim.setup import Setup, SharedDevice
from optimus.drivers.sim.sweeping.contenders import Contender, make
from optimus.drivers.sim.sweeping.scenes import Scene
from optimus.engine.journal import JournalError, JournalSettings, JournalWriter

Tell = Callable[[int], None]
"""How many jobs are over."""
_PATIENCE_MS = 86_400_000
"""So long nothing has run and nothing came: what still waits will wait for ever."""


class Run(Struct, frozen=True, kw_only=True):
    number: int
    scene: int
    """Its number among the scenes."""
    contender: Contender
    timed: bool = False
    """Decision times are taken; they differ from run to run, and so do the bytes of a report."""
    journal: Path | None = None


class Finished(Struct, frozen=True, kw_only=True):
    record: Record
    samples: tuple[list[float], ...] = ()
    """Columns of the samples of free GPUs."""
    decision_ms: list[float] | None = None
    notes: tuple[str, ...] = ()


class Failed(Struct, frozen=True):
    why: str


def play(scene: Scene, run: Run, tell: Tell) -> Finished | Failed:
    """Whatever goes wrong is returned, so that the others go on."""
    try:
        return _play(scene, run, tell)
    except SimulationError as error:
        return Failed(str(error))
    except JournalError as error:
        return Failed(f"the journal cannot be written: {error}")
    except (ImportError, ModuleNotFoundError) as error:
        return Failed(f"{error}; install the extra: pip install 'optimus-scheduler[sim]'")
    except Exception as error:  # one broken scheduler must not take the others with it
        if os.environ.get("OPTIMUS_DEBUG"):
            raise
        return Failed(f"broke down: {type(error).__name__}: {error} (OPTIMUS_DEBUG=1 --processes 1 shows where)")


def _play(scene: Scene, run: Run, tell: Tell) -> Finished:
    setup = setup_for(scene, run.contender)
    scheduler = make(run.contender, setup)
    journal = _journal(scheduler, run, setup) if run.journal else None
    followed = Followed(scheduler, len(scene.trace.jobs), tell)
    watched = Watched(followed, timer=perf_counter_ns if run.timed else None)
    clock = Clockwork(setup, scene.trace.jobs)
    try:
        record = clock.play(watched, until_ms=NEVER if scene.until_ms is None else scene.until_ms)
        if journal is not None and isinstance(scheduler, Brain):
            scheduler.see_the_end(clock)
    finally:
        if journal is not None:
            journal.close()
    seen, took = watched.fragments(), watched.decision_ms()
    return Finished(
        record=record,
        samples=tuple(getattr(seen, name).tolist() for name in structs.asdict(seen)) if seen else (),
        decision_ms=None if took is None else took.tolist(),
        notes=followed.notes(),
    )


def setup_for(scene: Scene, contender: Contender) -> Setup:
    setup = scene.setup
    if scene.own_rhythm and contender.round_ms:
        setup = structs.replace(setup, interval_ms=contender.round_ms)
    if contender.shares and setup.neighbours is None:  # sharing must not be free for who shares without being asked to
        setup = structs.replace(setup, neighbours=SharedDevice())
    return setup


def measured(finished: Finished, scene: Scene, contender: Contender, asked: Asked) -> Measured:
    columns = {
        name: np.array(column) for name, column in zip(Fragments.__struct_fields__, finished.samples, strict=False)
    }
    return measure(
        finished.record,
        asked,
        setup_for(scene, contender),
        decision_ms=None if finished.decision_ms is None else np.array(finished.decision_ms),
        fragments=Fragments(**columns) if columns else None,
    )


def _journal(scheduler: Scheduler, run: Run, setup: Setup) -> JournalWriter | None:
    if not isinstance(scheduler, Brain) or run.journal is None:
        return None  # peers have no engine that could keep one
    engine = scheduler.engine
    writer = JournalWriter(
        run.journal,
        dump=engine.dump,
        policy=engine.policy_reference,
        seed=setup.seed,
        settings=JournalSettings(keep_bytes=None),
        on_notice=_refuse,
    )
    engine.keep_journal(writer, 0)
    return writer


def _refuse(notice: str) -> None:
    raise JournalError(notice)


class Followed:
    """A scheduler with somebody beside it who counts."""

    def __init__(self, scheduler: Scheduler, jobs: int, tell: Tell) -> None:
        self.name = scheduler.name
        self.every_round = scheduler.every_round
        self._scheduler = scheduler
        self._jobs = jobs
        self._tell = tell
        self._arrived = 0
        self._told = 0
        self._idle_since_ms: int | None = None
        self._broken = 0
        self._how = ""
        self._given_up = 0
        self._why = ""

    def open(self, clock: Clockwork) -> None:
        self._scheduler.open(clock)

    def decide(self, clock: Clockwork, news: News) -> None:
        self._scheduler.decide(clock, news)
        self._arrived += len(news.arrived)
        over = self._arrived - len(clock.active)
        if over - self._told >= max(self._jobs // 100, 1):
            self._told = over
            self._tell(over)
        self._look_for_fallbacks()
        self._look_for_the_end(clock)

    def _look_for_fallbacks(self) -> None:
        plan: Any = getattr(self._scheduler, "plan", None)
        for condition in plan.conditions if plan is not None else ():
            if condition.code == POLICY_FAILED:
                self._broken += 1
                self._how = self._how or condition.message

    def _look_for_the_end(self, clock: Clockwork) -> None:
        """Schedulers are asked again and again while something waits; it must not be for ever."""
        if clock.running or self._arrived < self._jobs or not clock.active:
            self._idle_since_ms = None
            return
        if self._idle_since_ms is None:
            self._idle_since_ms = clock.now_ms
        if clock.now_ms - self._idle_since_ms < _PATIENCE_MS:
            return
        for index in list(clock.active):
            why = self._reason(clock.runs[index].job.id)
            self._why = self._why or f"{clock.runs[index].job.name}{f': {why}' if why else ''}"
            self._given_up += 1
            clock.reject(index, f"would wait for ever{f': {why}' if why else ''}")

    def _reason(self, workload: str) -> str:
        plan: Any = getattr(self._scheduler, "plan", None)
        waiting = plan.waiting if plan is not None else ()
        return next((wait.reason.text() for wait in waiting if wait.workload == workload), "")

    def notes(self) -> tuple[str, ...]:
        notes = []
        if self._broken:
            notes.append(f"{self.name} broke in {self._broken} decisions and the default decided instead: {self._how}")
        if self._given_up:
            notes.append(
                f"{self.name} would have let {self._given_up} jobs wait for ever on an idle cluster; they count as "
                f"refused; the first is {self._why}"
            )
        return tuple(notes)
