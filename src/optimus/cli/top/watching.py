"""Watching: the stream of a scheduler in a thread of its own, taken up again whenever it ends."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from typing import Any, Protocol

from optimus.cli.top.world import LOST
from optimus.client import Connection, JobError
from optimus.client.targets import Target

PAUSES_S = (0.2, 0.5, 1.0, 2.0)


class Source(Protocol):
    """Where news come from: the stream of a scheduler, or a story in a test."""

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def news(self) -> list[tuple[str, Any]]:
        """What has come since the last time, the oldest first."""
        ...


class _Beside(ABC):
    """A thread that gathers what comes, until somebody asks."""

    def __init__(self) -> None:
        self._came: deque[tuple[str, Any]] = deque()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()

    def news(self) -> list[tuple[str, Any]]:
        return [self._came.popleft() for _ in range(len(self._came))]

    @abstractmethod
    def _watch(self) -> None: ...


class Stream(_Beside):
    """Of `optimus up`."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._connection = connection

    def stop(self) -> None:
        super().stop()
        self._connection.hang_up()

    def _watch(self) -> None:
        times = 0
        while not self._over.is_set():
            try:
                for event, told in self._connection.events():
                    times = 0 if event != "behind" else times
                    self._came.append((event, told))
                lost = "it ended the stream"
            except JobError as error:
                lost = str(error)
            except (ValueError, AttributeError, TypeError) as error:
                lost = f"what it says cannot be read: {error}"
            self._came.append((LOST, lost))
            self._over.wait(PAUSES_S[min(times, len(PAUSES_S) - 1)])
            times += 1
            self._connection.look_again()


class Changes(_Beside):
    """Of a target that is no connection, such as a cluster."""

    def __init__(self, target: Target) -> None:
        super().__init__()
        self._target = target

    def _watch(self) -> None:
        times = 0
        while not self._over.is_set():
            event, lost = "everything", "it told nothing more"
            try:
                for told in self._target.changes():
                    if self._over.is_set():
                        return
                    self._came.append((event, told))
                    event, times = "change", 0
            except JobError as error:
                lost = str(error)
            self._came.append((LOST, lost))
            self._over.wait(PAUSES_S[min(times, len(PAUSES_S) - 1)])
            times += 1
