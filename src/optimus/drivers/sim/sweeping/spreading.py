"""Spreading: runs over processes, one at a time in each.

Why: runs know nothing of each other, so all cores can work; the order of results is that of the runs, however they end.
Owns: the processes, what is sent to them, and their end: also when one dies, or somebody presses Ctrl-C.
Must not: look into a run.

    parent ── (scene, when it is another one) run ──► worker: play
           ◄── jobs over, jobs over, … Finished | Failed ──

Processes are spawned, not forked: nothing of the parent (threads, locks, generators) reaches a result.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol

from optimus.drivers.sim.sweeping.running import Failed, Finished, Run, play
from optimus.drivers.sim.sweeping.scenes import Scene
from optimus.drivers.sim.threads import one_thread_each


class Watcher(Protocol):
    """Told what happens, for a progress bar."""

    def began(self, run: Run) -> None: ...

    def went_on(self, run: Run, jobs_over: int) -> None: ...

    def ended(self, run: Run) -> None:
        """Its result is safe."""


Result = tuple[Run, Finished | Failed]


def play_all(scenes: Sequence[Scene], runs: Sequence[Run], processes: int, watcher: Watcher) -> Iterator[Result]:
    """Each as soon as it has ended."""
    if processes < 2 or len(runs) < 2:
        for run in runs:
            watcher.began(run)
            yield run, play(scenes[run.scene], run, lambda over, run=run: watcher.went_on(run, over))  # type: ignore[misc]
        return
    one_thread_each()
    team = _Team(scenes, runs, watcher)
    try:
        team.hire(min(processes, len(runs)))
        yield from team.results()
    finally:
        team.dismiss()


class _Worker:
    def __init__(self) -> None:
        context = get_context("spawn")
        self.pipe, self._theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(self._theirs,), daemon=True)
        self.scene = -1
        self.run: Run | None = None

    def start(self) -> None:
        with _whole_before_an_interrupt():
            self.process.start()
            self._theirs.close()


@contextmanager
def _whole_before_an_interrupt() -> Iterator[None]:
    """Ctrl-C reaches every process of a terminal. Blocked now, it stays blocked in the new process for good. In the
    parent another thread may still receive it, and half a process would complain; so it is told when the other is
    whole."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, _frame: came.append(number))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        signal.signal(signal.SIGINT, handler)
        if came:
            signal.raise_signal(signal.SIGINT)


class _Team:
    def __init__(self, scenes: Sequence[Scene], runs: Sequence[Run], watcher: Watcher) -> None:
        self._scenes = scenes
        self._todo = list(reversed(runs))
        self._watcher = watcher
        self._workers: dict[Connection, _Worker] = {}

    def hire(self, count: int) -> None:
        for _ in range(count):
            worker = _Worker()
            self._workers[worker.pipe] = worker
            worker.start()
            self._give(worker)

    def results(self) -> Iterator[Result]:
        while busy := [pipe for pipe, worker in self._workers.items() if worker.run is not None]:
            for pipe in wait(busy):
                assert isinstance(pipe, Connection)
                ended = self._hear(self._workers[pipe])
                if ended is not None:
                    yield ended

    def _hear(self, worker: _Worker) -> Result | None:
        run = worker.run
        assert run is not None
        try:
            said: Any = worker.pipe.recv()
        except (EOFError, ConnectionError):
            said = Failed(f"its process ended without a word (code {self._bury(worker)}); is there enough memory?")
        if isinstance(said, int):
            self._watcher.went_on(run, said)
            return None
        worker.run = None
        if worker.pipe in self._workers:
            self._give(worker)
        return run, said

    def _give(self, worker: _Worker) -> None:
        if not self._todo:
            return
        run = worker.run = self._todo.pop()
        scene = None if worker.scene == run.scene else self._scenes[run.scene]
        worker.scene = run.scene
        self._watcher.began(run)
        with suppress(ConnectionError):  # it is dead; that is heard next
            worker.pipe.send((scene, run))

    def _bury(self, worker: _Worker) -> int | None:
        """One that died is replaced while there is something to do."""
        del self._workers[worker.pipe]
        worker.process.join(5)
        if self._todo:
            self.hire(1)
        return worker.process.exitcode

    def dismiss(self) -> None:
        for worker in self._workers.values():
            worker.pipe.close()
            if worker.process.pid is not None:
                worker.process.terminate()
        for worker in self._workers.values():
            if worker.process.pid is not None:
                worker.process.join(5)


def _work(pipe: Connection) -> None:
    """In a process of its own, until the parent is gone."""
    scene: Scene | None = None
    try:
        while True:
            another, run = pipe.recv()
            scene = another or scene
            assert scene is not None
            pipe.send(play(scene, run, pipe.send))
    except (EOFError, ConnectionError):
        return
