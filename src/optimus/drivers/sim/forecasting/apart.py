"""Apart: a forecast in a process of its own, which disturbs nobody and can be stopped at any moment.

Why: a scheduler that lives must not wait for a look into the future, nor lend it the core it decides on.
Owns: the process: its low priority, its budgets, its progress, its end.
Must not: share memory with whoever asks, survive it, or lose samples that are done when it is stopped.

    apart = Apart(asked, cpu_seconds=60)       a new process of low priority, at most so much CPU time
    apart.wait(seconds)                        what came in meanwhile; True when there is no more to come
    apart.forecast()                           from the samples that are there, all or some
    apart.cancel()                             it ends, for certain; also at the end of a `with`
"""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from time import monotonic
from typing import Any, Self

from optimus.drivers.sim.forecasting.foreseeing import (
    Asked,
    Forecast,
    Starts,
    Waiting,
    summary,
    targets_of,
    wanted_of,
    who_waits,
)
from optimus.drivers.sim.forecasting.sampling import Futures
from optimus.drivers.sim.threads import one_thread_each

NICENESS = 10
"""About a ninth of a core beside somebody who wants it, all of it where nobody does."""
_LOOK_SECONDS = 0.2
"""So often the budget is looked at while nothing comes in."""


class ForecastError(Exception):
    """There is no forecast; the message says why."""


class Apart:
    def __init__(self, asked: Asked, *, cpu_seconds: int = 0) -> None:
        """`cpu_seconds`: the process may use so much and is then ended by the system; 0: no bound."""
        self.asked = asked
        self.done = False
        self._waiting: tuple[Waiting, ...] | None = None
        self._drawn: list[Starts] = []
        self._failure = ""
        one_thread_each()
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe(duplex=False)
        self.process = context.Process(target=_work, args=(theirs, asked, cpu_seconds), daemon=True)
        # as in `spreading`: Ctrl-C is for whoever asks, who then cancels
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()

    @property
    def samples(self) -> int:
        """That are done."""
        return len(self._drawn)

    def wait(self, seconds: float) -> bool:
        """Take in what comes within this time; whether it is complete."""
        if not self.done and self._pipe.poll(seconds):
            try:
                while not self._hear(self._pipe.recv()) and self._pipe.poll():
                    pass
            except (EOFError, ConnectionError):
                self._end(f"its process ended without a word (code {self._code()})")
        return self.done

    def forecast(self) -> Forecast:
        """From the samples so far. ForecastError if there is not even one where some are needed."""
        if self._waiting is None:
            raise ForecastError(self._failure or "nothing was drawn yet")
        needed = bool(wanted_of(self.asked, targets_of(self._waiting))) and self.asked.samples > 0
        if needed and not self._drawn:
            raise ForecastError(self._failure or "not one sample was done in time; give it more time")
        stopped = self._failure if len(self._drawn) < self.asked.samples and needed else ""
        return summary(self.asked, self._waiting, self._drawn, stopped)

    def cancel(self, why: str = "it was cancelled") -> None:
        """The process is gone when this returns."""
        if not self.done:
            self._end(why)
        if self.process.is_alive():
            self.process.terminate()
            self.process.join(1)
        if self.process.is_alive():
            self.process.kill()
        self.process.join()
        self._pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.cancel()

    def _hear(self, said: Any) -> bool:
        """Whether that was all."""
        if isinstance(said, dict):
            self._drawn.append(said)
        elif isinstance(said, tuple):
            self._waiting = said
        else:
            self._end(str(said))
        return self.done

    def _end(self, why: str) -> None:
        self.done = True
        self._failure = why

    def _code(self) -> int | None:
        self.process.join(5)
        if self.process.exitcode == -signal.SIGXCPU:
            self._failure = "its CPU time was used up"
        return self.process.exitcode


def forecast_apart(
    asked: Asked,
    *,
    cpu_seconds: int = 0,
    seconds: float = 0,
    tell: Callable[[int], None] = lambda _done: None,
) -> Forecast:
    """Wait for it, at most so long (0: as long as it takes); then from the samples that are there. `tell` hears how
    many are done."""
    until = monotonic() + seconds
    with Apart(asked, cpu_seconds=cpu_seconds) as apart:
        while not apart.wait(_LOOK_SECONDS):
            tell(apart.samples)
            if seconds and monotonic() >= until:
                apart.cancel(f"the {seconds:g} s it was given were over")
        return apart.forecast()


def _work(pipe: Connection, asked: Asked, cpu_seconds: int) -> None:
    """In the new process: say who waits, then each sample, then that it is all."""
    os.nice(max(0, NICENESS - os.nice(0)))  # whoever asks may have stepped back already
    if cpu_seconds:
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
    try:
        futures = Futures(asked.present, asked.horizon_ms, asked.past)
        waiting = who_waits(futures)
        pipe.send(waiting)
        targets = targets_of(waiting)
        wanted = wanted_of(asked, targets)
        failures = []
        for sample in range(asked.samples if wanted else 0):
            try:
                drawn = futures.play(targets, asked.seed, sample, wanted)
            except Exception as error:  # noqa: BLE001  (a future that cannot be played says nothing of the others)
                failures.append(_in_words(error))
                continue
            pipe.send(drawn)
        pipe.send(failures[0] if failures else "")
    except ConnectionError:
        return  # whoever asked is gone
    except Exception as error:  # noqa: BLE001  (told to whoever asked, in words)
        with suppress(ConnectionError):
            pipe.send(_in_words(error))


def _in_words(error: Exception) -> str:
    return f"it broke down: {type(error).__name__}: {error}"
