"""Names beside lines: where each can be read and hides no other line.

Every line offers places along its way, four corners each. The best place is near its own line, far from the others and
from names already there, and inside the frame. Where there is none the name is left out; the bar above has it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from optimus.drivers.sim.measuring.columns import Floats

LETTER = 7.0
"""Width of a letter, roughly."""
HEIGHT = 13.0
_NEAR, _CLEAR = 3.0, 7.0
_OFFERS = 60

Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""


def places(names: Sequence[str], lines: Sequence[Floats], frame: Box) -> list[Box | None]:
    """`lines`: points in pixels, one row each."""
    dense = [_dense(line) for line in lines]
    found: list[Box | None] = []
    for i, name in enumerate(names):
        others = np.concatenate([line for k, line in enumerate(dense) if k != i] or [np.empty((0, 2))])
        found.append(_best(LETTER * len(name), dense[i], others, [box for box in found if box], frame))
    return found


def _dense(line: Floats, step: float = 4.0) -> Floats:
    """Points close enough that no name fits between two of them."""
    if len(line) < 2:
        return line
    along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(line, axis=0).T))])
    at = np.arange(0.0, along[-1] + step, step)
    return np.stack([np.interp(at, along, line[:, 0]), np.interp(at, along, line[:, 1])], axis=1)


def _best(width: float, own: Floats, others: Floats, taken: Sequence[Box], frame: Box) -> Box | None:
    best, best_score = None, 0.0
    for x, y in own[np.unique(np.linspace(0, len(own) - 1, _OFFERS).astype(np.int64))] if len(own) else ():
        for left, top in (
            (x + 6, y - HEIGHT - 3),
            (x + 6, y + 3),
            (x - width - 6, y - HEIGHT - 3),
            (x - width - 6, y + 3),
        ):
            box = (left, top, left + width, top + HEIGHT)
            if left < frame[0] or top < frame[1] or box[2] > frame[2] or box[3] > frame[3]:
                continue
            if any(left < b[2] + 6 and b[0] < box[2] + 6 and top < b[3] + 4 and b[1] < box[3] + 4 for b in taken):
                continue
            near, clear = _distance(box, own), _distance(box, others)
            if near >= _NEAR and clear >= _CLEAR:
                score = min(clear, 40.0) - 2 * near + 20
                if score > best_score:
                    best, best_score = box, score
    return best


def _distance(box: Box, points: Floats) -> float:
    if not len(points):
        return np.inf
    dx = np.maximum(np.maximum(box[0] - points[:, 0], points[:, 0] - box[2]), 0.0)
    dy = np.maximum(np.maximum(box[1] - points[:, 1], points[:, 1] - box[3]), 0.0)
    return float(np.hypot(dx, dy).min())
