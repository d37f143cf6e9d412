"""The frame of schedulers that keep a line and start who fits: no rounds, no preemption.

    arrivals ──► line, by key ──► head fits? start : skip (or stop, where the order is strict)
    an end ────► all are looked at again

Jobs that need the same share a lane: when its head does not fit, none of it does, until something ends. So a decision
costs as much as there are lanes, not as many as wait.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from optimus.drivers.sim.clockwork import Clockwork, News, Run
from optimus.drivers.sim.peers.room import Ints, Need, Room, need_of, refuse_impossible, seats_on

Key = Any
"""Anything that can be compared; the smallest is first."""


class Line:
    """Who waits, in order, in lanes of those who need the same."""

    def __init__(self) -> None:
        self._lanes: dict[Hashable, list[tuple[Key, int]]] = {}
        self._shut: set[Hashable] = set()
        """Lanes whose head did not fit."""

    def add(self, lane: Hashable, key: Key, index: int) -> None:
        heapq.heappush(self._lanes.setdefault(lane, []), (key, index))

    def remove(self, lane: Hashable, index: int) -> None:
        self._lanes[lane] = [entry for entry in self._lanes[lane] if entry[1] != index]
        heapq.heapify(self._lanes[lane])

    def open_all(self) -> None:
        """Something came free: who did not fit is asked again."""
        self._shut.clear()

    def heads(self) -> list[tuple[Hashable, int]]:
        """The first of each lane, in order."""
        entries = [(*lane[0], number, what) for number, (what, lane) in enumerate(self._lanes.items()) if lane]
        return [(what, index) for _, index, _, what in sorted(entries)]

    def first(self) -> tuple[Hashable, int] | None:
        """The first of all that may fit, and its lane."""
        return next(((what, index) for what, index in self.heads() if what not in self._shut), None)

    def shut(self, lane: Hashable) -> None:
        self._shut.add(lane)

    def pop(self, lane: Hashable) -> None:
        heapq.heappop(self._lanes[lane])

    def serve(self, fits: Callable[[int], bool], *, strict: bool = False) -> None:
        """Ask each in order; who fits leaves the line. Strict: nobody is asked behind one who does not fit."""
        queue = [
            (*lane[0], number, what)  # the number only keeps lanes from being compared
            for number, (what, lane) in enumerate(self._lanes.items())
            if lane and (strict or what not in self._shut)
        ]
        heapq.heapify(queue)
        while queue:
            _, index, number, what = heapq.heappop(queue)
            if what in self._shut or not fits(index):
                self._shut.add(what)
                if strict:
                    return
                continue
            lane = self._lanes[what]
            heapq.heappop(lane)
            if lane:
                heapq.heappush(queue, (*lane[0], number, what))


Seating = Callable[[Room, Need, int, np.random.Generator], list[int]]
"""Nodes of so many replicas, which are known to fit, and the room they take is taken."""


class LineScheduler:
    def __init__(
        self, name: str, key: Callable[[Run], Key], seating: Seating, *, strict: bool = False, seed: int = 0
    ) -> None:
        self.name = name
        self.every_round = False
        self._key, self._seating = key, seating
        self._strict = strict
        self._seed = seed

    def open(self, clock: Clockwork) -> None:
        self.room = Room(clock)
        self.line = Line()
        self.placed: dict[int, list[int]] = {}
        self._random = np.random.default_rng(self._seed)

    def decide(self, clock: Clockwork, news: News) -> None:
        self.take_back(clock, news)
        for index in news.arrived:
            if not refuse_impossible(clock, self.room, index):
                self.wait(clock.runs[index])
        self.line.serve(lambda index: self._start(clock, index), strict=self._strict)

    def wait(self, run: Run) -> None:
        self.line.add((need_of(run.job), run.job.replicas), self._key(run), run.index)

    def take_back(self, clock: Clockwork, news: News) -> None:
        """Room of those who ended, and of those who lost a node and wait again."""
        for node in news.nodes_down:
            self.room.up[node] = False
        for node in news.nodes_up:
            self.room.up[node] = True
        lost = {index for index, _ in news.gone if index in clock.active}
        for index in (*news.ended, *sorted(lost)):
            need = need_of(clock.runs[index].job)
            for node in self.placed.pop(index, ()):
                self.room.move(need, node, -1)
            if index in lost:
                self.wait(clock.runs[index])
        if news.ended or news.gone or news.nodes_up:
            self.line.open_all()

    def _start(self, clock: Clockwork, index: int) -> bool:
        job = clock.runs[index].job
        need = need_of(job)
        if not self.room.holds(need, job.replicas):
            return False
        self.placed[index] = self._seating(self.room, need, job.replicas, self._random)
        clock.place(index, seats_on(self.placed[index]))
        return True


def together(room: Room, need: Need, replicas: int, random: np.random.Generator) -> list[int]:  # noqa: ARG001
    """On as few nodes as possible; among those that hold the rest alone, the one with least room."""
    nodes: list[int] = []
    counts: Ints = room.counts(need)
    while len(nodes) < replicas:
        left = replicas - len(nodes)
        enough = np.flatnonzero(counts >= left)
        node = int(enough[np.argmin(room.gpus[enough])]) if len(enough) else int(np.argmax(counts))
        here = min(int(counts[node]), left)
        nodes += [node] * here
        counts[node] = 0
        for _ in range(here):
            room.move(need, node)
    return nodes
