"""A linear programme solved from the inside, as interior-point solvers do.

    minimise  cost . x   where  matrix x <= bound

Why: a solver that goes from corner to corner returns some corner of the best face, one that comes from inside a point
in the middle of it; schedules built on them differ by a tenth. Figures that were obtained with one kind can only be
met with the same kind.
A row may stand for several that are alike: its weight says how many, and x is what all of them would give.
Method: Mehrotra's predictor and corrector (SIAM J. Optim. 1992) from the start of Vandenberghe (CVXOPT, 2010), which
ECOS shares; dense matrices, for some hundred rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_MOST_STEPS = 60
_CLOSE = 1e-8
_NOT_QUITE = 0.99
"""Of the way to the border."""


class Inside:
    """A point with its slacks and the prices of the rows, which all stay positive."""

    def __init__(self, cost: Floats, matrix: Floats, bound: Floats, weight: Floats) -> None:
        self._cost, self._matrix, self._bound, self._weight = cost, matrix, bound, weight
        normal = self._normal(weight)
        self.x = _solved(normal, matrix.T @ (weight * bound))
        self._slack = _positive(bound - matrix @ self.x)
        self._price = weight * _positive(-matrix @ _solved(normal, cost))

    def _normal(self, scale: Floats) -> Floats:
        normal: Floats = self._matrix.T @ (scale[:, None] * self._matrix)
        normal[np.diag_indices_from(normal)] += 1e-14 * (1.0 + normal.diagonal())
        return normal

    def improve(self) -> bool:
        """One step; False where it is close enough."""
        slack, price = self._slack, self._price
        dear = self._cost + self._matrix.T @ price
        far = self._matrix @ self.x + slack - self._bound
        gap = float(slack @ price / self._weight.sum())
        if max(gap, float(np.abs(dear).max()), float(np.abs(far).max())) < _CLOSE:
            return False
        normal = self._normal(price / slack)

        def towards(target: Floats) -> tuple[Floats, Floats, Floats, float]:
            """Where slack x price is the target, to first order, and how far one can go there."""
            lack = slack * price - target
            dx = _solved(normal, -dear - self._matrix.T @ ((price * far - lack) / slack))
            ds = -far - self._matrix @ dx
            dz = -(lack + price * ds) / slack
            return dx, ds, dz, min(_reach(slack, ds), _reach(price, dz))

        _, ds, dz, reach = towards(np.zeros_like(slack))
        dx, ds, dz, reach = towards((1.0 - min(reach, 1.0)) ** 3 * gap * self._weight - ds * dz)
        step = min(_NOT_QUITE * reach, 1.0)
        self.x, self._slack, self._price = self.x + step * dx, slack + step * ds, price + step * dz
        return True


def from_inside(cost: Floats, matrix: Floats, bound: Floats, weight: Floats) -> Floats:
    """x. The bounds must hold for some x with room to spare, and the cost must have a least value."""
    point = Inside(cost, matrix, bound, weight)
    for _ in range(_MOST_STEPS):
        if not point.improve():
            break
    return point.x


def _solved(matrix: Floats, right: Floats) -> Floats:
    return np.asarray(np.linalg.solve(matrix, right), dtype=np.float64)


def _positive(values: Floats) -> Floats:
    least = float(values.min())
    return values if least > 0 else values + (1.0 - least)


def _reach(values: Floats, change: Floats) -> float:
    """How much of a change keeps them positive."""
    falling = change < 0
    return float((values[falling] / -change[falling]).min()) if falling.any() else 1e9
