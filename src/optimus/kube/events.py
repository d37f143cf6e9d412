"""Events of Kubernetes (`kubectl events`): best effort, and never a flood.

Why: people look there first. A reason that is said a thousand times is one event with a count.
Owns: a bounded queue, and which event a repetition belongs to.
Must not: make anybody wait, or fail anything: what cannot be written is dropped and counted.

A series is one object, type, reason and action. The server does not let its words change, so other words begin a new
event, at most once in RENEW_S; in between they count as repetitions.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from datetime import UTC, datetime
from typing import Any

import msgspec

from optimus.kube.resources import EVENTS
from optimus.kube.writing import Done, Gone, Writer

WAITING = 1_000
REMEMBERED = 10_000
COUNT_EVERY_S = 10.0
RENEW_S = 300.0
LONGEST_NOTE = 1_024
NORMAL, WARNING = "Normal", "Warning"


class Regarding(msgspec.Struct, frozen=True):
    """The object an event is about."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""


_Key = tuple[Regarding, str, str, str]


class _Series:
    def __init__(self, key: _Key, note: str, name: str) -> None:
        self.key = key
        self.regarding = key[0]
        self.note = note
        self.name = name
        self.begun = time.monotonic()
        self.count = 1
        self.last = datetime.now(UTC)
        self.written = 0
        """The count the server knows; 0: not even the event."""


class Recorder:
    def __init__(self, writer: Writer, *, controller: str, instance: str, waiting: int = WAITING) -> None:
        """`controller`: a name like `example.com/scheduler`; `instance`: which one of them."""
        self.dropped = 0
        self._writer = writer
        self._controller, self._instance = controller, instance[:128]
        self._waiting: asyncio.Queue[tuple[_Series, dict[str, Any]]] = asyncio.Queue(waiting)
        self._series: OrderedDict[_Key, _Series] = OrderedDict()
        self._repeated: dict[str, _Series] = {}
        self._number = time.time_ns()

    def say(self, regarding: Regarding, reason: str, note: str, *, action: str, kind: str = NORMAL) -> None:
        """`reason` and `action` are words in CamelCase of a small vocabulary; facts belong into the note."""
        note = _cut(note)
        key = (regarding, kind, reason, action)
        series = self._series.get(key)
        if series is not None and (series.note == note or time.monotonic() - series.begun < RENEW_S):
            series.count += 1
            series.last = datetime.now(UTC)
            self._repeated[series.name] = series
            self._series.move_to_end(key)
            return
        self._number += 1
        series = _Series(key, note, f"{regarding.name[:200]}.{self._number:x}")
        try:
            self._waiting.put_nowait((series, self._event(series, reason, action, kind)))
        except asyncio.QueueFull:
            self.dropped += 1
            return
        self._series[key] = series
        if len(self._series) > REMEMBERED:
            self._series.popitem(last=False)

    async def run(self) -> None:
        """Until it is cancelled."""
        async with asyncio.TaskGroup() as both:
            both.create_task(self._begin_series())
            both.create_task(self._count_series())

    async def flush(self) -> None:
        """What is waiting now, at the end of a life."""
        while not self._waiting.empty():
            await self._begin(*self._waiting.get_nowait())
        await self._count()

    async def _begin_series(self) -> None:
        while True:
            await self._begin(*await self._waiting.get())

    async def _begin(self, series: _Series, event: dict[str, Any]) -> None:
        outcome = await self._writer.create(EVENTS, event, namespace=event["metadata"]["namespace"])
        if isinstance(outcome, Done):
            series.written = 1
        else:
            self.dropped += 1
            self._forget(series)

    async def _count_series(self) -> None:
        while True:
            await asyncio.sleep(COUNT_EVERY_S)
            await self._count()

    async def _count(self) -> None:
        repeated, self._repeated = self._repeated, {}
        for series in repeated.values():
            if not series.written:
                continue
            count = series.count
            change = {"series": {"count": count, "lastObservedTime": _micro(series.last)}}
            namespace = series.regarding.namespace or "default"
            outcome = await self._writer.patch(EVENTS, series.name, change, namespace=namespace)
            if isinstance(outcome, Done):
                series.written = count
            else:
                self.dropped += count - series.written
                if isinstance(outcome, Gone):  # events live for an hour
                    self._forget(series)

    def _forget(self, series: _Series) -> None:
        """The next of its kind is a new event."""
        if self._series.get(series.key) is series:
            del self._series[series.key]

    def _event(self, series: _Series, reason: str, action: str, kind: str) -> dict[str, Any]:
        about = series.regarding
        named = {"apiVersion": about.api_version, "kind": about.kind, "name": about.name}
        named |= {name: value for name, value in (("namespace", about.namespace), ("uid", about.uid)) if value}
        return {
            "apiVersion": EVENTS.api_version,
            "kind": "Event",
            "metadata": {"name": series.name, "namespace": about.namespace or "default"},
            "eventTime": _micro(series.last),
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "action": action,
            "reason": reason,
            "type": kind,
            "note": series.note,
            "regarding": named,
        }


def _cut(note: str) -> str:
    raw = note.encode()
    return note if len(raw) <= LONGEST_NOTE else raw[: LONGEST_NOTE - 3].decode(errors="ignore") + "…"


def _micro(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z"
