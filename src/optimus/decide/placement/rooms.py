"""Room: what is free on the nodes of one pool, with rows of "how many fit" and scores that are updated, not recomputed.

A change to a node is appended to the room's log. A row remembers how far it has read and looks again only at the
nodes logged since: a gang of 20 costs a few nodes, not five thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from optimus.decide.placement.neighbours import obeying
from optimus.decide.placement.shapes import Shape, count_fits, count_fits_on
from optimus.state.arrays import Bools, Ints
from optimus.state.snapshot import PoolView

FEW = 4
"""Up to so many nodes are looked at one by one; arrays pay off only above."""


@dataclass(slots=True, eq=False)
class Row:
    fits: Ints
    read: int
    """How much of the log is in `fits` and marked in `stale`."""
    score: Ints
    stale: Bools
    """Nodes whose score must be worked out again before it is used."""


ScoreFunction = Callable[["Room", Shape, "Ints | slice"], Ints]


class Room:
    def __init__(
        self,
        view: PoolView,
        scalars: Ints,
        gpus: Ints,
        activity: Ints,
        score: ScoreFunction,
        elsewhere: Callable[[], Sequence[Room]] | None = tuple,
    ) -> None:
        """`elsewhere`: the rooms of all pools, for rules about neighbours; None where those are not looked at, because
        nobody is there yet."""
        self.view = view
        self.scalars = scalars
        self.gpus = gpus
        self.activity = activity
        self._score = score
        self._elsewhere = elsewhere
        self._log: list[int] = []
        self._rows: dict[int, Row] = {}

    def copy(self) -> Room:
        """A room of its own to try things in."""
        ours = self.scalars.copy(), self.gpus.copy(), self.activity.copy()
        return Room(self.view, *ours, self._score, self._elsewhere)

    def touched(self, nodes: Sequence[int] | Ints) -> None:
        """Tell the rows that these nodes have changed."""
        self._log.extend(int(n) for n in nodes)

    def take(
        self, node: int, scalars: Ints, devices: Sequence[int], milli: int, activity_milli: int, sign: int
    ) -> None:
        """One replica takes its place (+1) or gives it back (-1)."""
        self.scalars[node] -= sign * scalars
        for device in devices:
            self.gpus[node, device] -= sign * milli
            self.activity[node, device] += sign * activity_milli
        self._log.append(node)

    def fits(self, shape: Shape) -> Ints:
        """How many replicas of the shape each node can take. Read only; valid until the next change."""
        fits = self._row(shape).fits
        if shape.rules and self._elsewhere is not None:
            return obeying(shape.rules, self, self._elsewhere(), fits)
        return fits

    def fits_anybody(self, shape: Shape) -> Ints:
        """The same without rules about neighbours."""
        return self._row(shape).fits

    def score_at(self, shape: Shape, nodes: Ints) -> Ints:
        """How good these nodes are for one replica of the shape; higher is better, meaningless where none fits."""
        row = self._row(shape)
        stale = nodes[row.stale[nodes]]
        if len(stale):
            if len(stale) * 2 > self.view.size:
                row.score = self._score(self, shape, slice(None))
                row.stale[:] = False
            else:
                row.score[stale] = self._score(self, shape, stale)
                row.stale[stale] = False
        found: Ints = row.score[nodes]
        return found

    def _row(self, shape: Shape) -> Row:
        row = self._rows.get(shape.key)
        if row is None:
            size = self.view.size
            fits = self._count(shape, slice(None))
            row = Row(fits, len(self._log), np.zeros(size, dtype=np.int64), np.ones(size, dtype=np.bool_))
            self._rows[shape.key] = row
        elif row.read < len(self._log):
            self._catch_up(row, shape)
        return row

    def _catch_up(self, row: Row, shape: Shape) -> None:
        """Look again at the nodes that have changed since."""
        changed = set(self._log[row.read :])
        row.read = len(self._log)
        if len(changed) <= FEW:
            for node in changed:
                row.fits[node] = count_fits_on(shape, node, self.scalars[node], self.gpus[node], self.activity[node])
                row.stale[node] = True
        elif len(changed) * 3 > self.view.size + 8:
            row.fits = self._count(shape, slice(None))
            row.stale[:] = True
        else:
            nodes = np.fromiter(changed, dtype=np.int64, count=len(changed))
            row.fits[nodes] = self._count(shape, nodes)
            row.stale[nodes] = True

    def _count(self, shape: Shape, at: Ints | slice) -> Ints:
        return count_fits(shape, self.scalars[at], self.gpus[at], self.activity[at], at)
