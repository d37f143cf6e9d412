"""Watching: many see the same, and what they are told is written once for all of them.

Why: a thousand who watch, or one who does not read, must cost this process little and the scheduler nothing.
Owns: what has changed since when, the pace of telling, and the bytes, made once for all who have seen as much.
Must not: keep anything for one who is slow. A watcher is a number, the last change it has seen: whoever comes late is
told what is different by then, in one piece, and never more than there is.

    news ─► a change has a number ─► a round (seldomer the more watch) ─► each is told what is newer than its number

A round wakes a few watchers at a time: whoever asks something meanwhile is answered between them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import msgspec

from optimus.drivers.local.line import News

QUICKEST_S = 0.05
"""Changes that come within this time are told together."""
TOLD_PER_S = 1_000
BYTES_PER_S = 50 << 20
"""To all watchers together: the more there are, and the more there is to tell, the seldomer each of them hears."""
AT_ONCE = 10
HEARTBEAT_S = 15.0
GONE_KEPT = 1_000
"""Jobs that are gone of which it is known when they went; whoever has seen less is told everything."""
LISTS = ("queues", "nodes", "pools")
STILL_THERE = b": still there\n\n"
BEHIND = b"event: behind\ndata: {}\n\n"


class Audience:
    def __init__(self) -> None:
        self.shown: dict[str, Any] = {}
        self.watchers = 0
        self._number = 1
        self._changed: dict[str, int] = {}
        """By job or list: the number of its last change, the oldest first."""
        self._oldest = 0
        """Who has seen less than this is told everything."""
        self._written: dict[tuple[int, str], bytes] = {}
        """What is told to those who have seen so much, of all or of one job. Of this moment only."""
        self._world = 0
        """Another one with each time that the scheduler is lost."""
        self._waiting: list[asyncio.Future[None]] = []
        """Those who wait for the next round, the first to come first."""
        self._round: list[asyncio.Future[None]] = []
        """Those whose turn is in this one."""
        self._began_at = 0.0
        self._gap_s = QUICKEST_S
        self._spoken = 0
        """Bytes told since the last round began."""
        self._next: asyncio.TimerHandle | None = None

    def begin(self, shown: dict[str, Any]) -> None:
        """The whole state; news follow."""
        self.shown = shown
        self._forget_changes()

    def take(self, news: News) -> None:
        jobs = self.shown.setdefault("jobs", {})
        self._number += 1
        self._written.clear()
        for job, view in news.jobs.items():
            if view is None:
                jobs.pop(job, None)
            else:
                jobs[job] = view
            self._note(job)
        for name in LISTS:
            value = getattr(news, name)
            if value is not None:
                self.shown[name] = value
                self._note(name)
        self.shown["version"], self.shown["trouble"] = news.version, news.trouble
        if len(self._changed) > 2 * (len(jobs) + GONE_KEPT):
            recent = list(self._changed.items())[-len(jobs) - GONE_KEPT :]
            self._oldest, self._changed = recent[0][1], dict(recent)
        if self._waiting:
            self._plan_round()

    def lose(self) -> None:
        """The scheduler is gone: everybody is sent away, and may come again."""
        self._world += 1
        self.begin({})
        self._begin_round()

    async def watch(self, job: str = "") -> AsyncGenerator[bytes, None]:
        """What to tell: everything that is there, of one job if it is named, and then what changes, as long as the
        scheduler is there. Between two pieces the watcher may take its time."""
        if not self.shown:  # it was lost since anybody looked
            yield BEHIND
            return
        world, loop = self._world, asyncio.get_running_loop()
        self.watchers += 1
        try:
            seen, spoke_at = self._number, loop.time()
            yield self._counted(self._everything(job))
            while world == self._world:
                await self._turn(seen)
                if world != self._world:
                    break
                told = self._since(seen, job)
                seen = self._number
                if not told and loop.time() < spoke_at + HEARTBEAT_S:
                    continue
                spoke_at = loop.time()
                yield self._counted(told or STILL_THERE)
            yield BEHIND
        finally:
            self.watchers -= 1

    # -- what is told ---------------------------------------------------------------------------------------------

    def _everything(self, job: str) -> bytes:
        known = self._written.get((0, job))
        if known is None:
            known = self._written[0, job] = _event(b"everything", self._picture(job))
        return known

    def _picture(self, job: str) -> dict[str, Any]:
        if not job:
            return self.shown
        known = self.shown.get("jobs", {})
        mine = {job: known[job]} if job in known else {}
        return {"version": self.shown.get("version"), "jobs": mine, "trouble": self.shown.get("trouble", "")}

    def _since(self, seen: int, job: str) -> bytes:
        """Nothing, if nothing has changed that concerns it."""
        if seen == self._number or (job and self._changed.get(job, self._oldest) <= seen >= self._oldest):
            return b""
        if seen < self._oldest:
            return self._everything(job)
        known = self._written.get((seen, job))
        if known is None:
            known = self._written[seen, job] = _event(b"change", self._change(seen, job))
        return known

    def _change(self, seen: int, job: str) -> dict[str, Any]:
        newer = {job} if job else set(self._newer(seen))
        there = self.shown.get("jobs", {})
        lists = {name: self.shown.get(name) if name in newer else None for name in LISTS}
        jobs = {name: there.get(name) for name in sorted(newer.difference(LISTS))}
        return {"version": self.shown["version"], "jobs": jobs, **lists, "trouble": self.shown["trouble"]}

    def _newer(self, seen: int) -> list[str]:
        found = []
        for name, number in reversed(self._changed.items()):
            if number <= seen:
                break
            found.append(name)
        return found

    def _note(self, name: str) -> None:
        self._changed.pop(name, None)  # it moves to the end
        self._changed[name] = self._number

    def _forget_changes(self) -> None:
        self._number += 1
        self._oldest = self._number
        self._changed.clear()
        self._written.clear()

    # -- when it is told ------------------------------------------------------------------------------------------

    def _counted(self, told: bytes) -> bytes:
        self._spoken += len(told)
        return told

    async def _turn(self, seen: int) -> None:
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        self._waiting.append(turn)
        if seen != self._number:  # it took its time
            self._plan_round()
        elif self._next is None:
            self._next = loop.call_later(HEARTBEAT_S, self._begin_round)
        await turn

    def _plan_round(self) -> None:
        """At once after a quiet time, else when the last one is over for long enough."""
        due = self._began_at + self._gap_s
        if self._next is not None:
            if self._next.when() <= due:
                return
            self._next.cancel()
        self._next = asyncio.get_running_loop().call_at(due, self._begin_round)

    def _begin_round(self) -> None:
        if self._next is not None:
            self._next.cancel()
            self._next = None
        self._began_at = asyncio.get_running_loop().time()
        idle = not self._round
        self._round += self._waiting
        self._waiting = []
        self._gap_s = max(QUICKEST_S, len(self._round) / TOLD_PER_S, self._spoken / BYTES_PER_S)
        self._spoken = 0
        if idle:
            self._wake_some()

    def _wake_some(self) -> None:
        for turn in self._round[:AT_ONCE]:
            if not turn.done():  # else it has gone
                turn.set_result(None)
        del self._round[:AT_ONCE]
        if self._round:
            asyncio.get_running_loop().call_later(AT_ONCE / TOLD_PER_S, self._wake_some)


def _event(kind: bytes, told: dict[str, Any]) -> bytes:
    return b"event: " + kind + b"\ndata: " + msgspec.json.encode(told) + b"\n\n"
