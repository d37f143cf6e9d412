"""Growable numpy columns with stable row numbers.

Rows are handed out from a free list, so a row number stays valid as long as its owner lives. Columns double
when full: adding is amortised constant time and views stay contiguous.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class Columns:
    """A set of equally long columns, one or two dimensional, declared once by name."""

    def __init__(self, **declared: int | tuple[int, int]) -> None:
        """`name=fill` for one dimension, `name=(fill, width)` for two."""
        self._fill = {name: (spec if isinstance(spec, int) else spec[0]) for name, spec in declared.items()}
        self._rows = 64
        self._vacant: list[int] = []
        self.size = 0
        """Rows ever used; vacant rows inside hold the fill values."""
        for name, spec in declared.items():
            shape: tuple[int, ...] = (self._rows,) if isinstance(spec, int) else (self._rows, spec[1])
            setattr(self, name, np.full(shape, self._fill[name], dtype=np.int64))

    def __getattr__(self, name: str) -> Any:  # columns are declared at run time
        raise AttributeError(name)

    def add(self) -> int:
        if self._vacant:
            return self._vacant.pop()
        row = self.size
        self.size += 1
        if row == self._rows:
            self._rows *= 2
            for name in self._fill:
                old: Ints = getattr(self, name)
                new = np.full((self._rows, *old.shape[1:]), self._fill[name], dtype=np.int64)
                new[:row] = old
                setattr(self, name, new)
        return row

    def free(self, row: int) -> None:
        for name, fill in self._fill.items():
            getattr(self, name)[row] = fill
        self._vacant.append(row)

    def widen(self, name: str, width: int) -> None:
        old: Ints = getattr(self, name)
        if width > old.shape[1]:
            new = np.full((old.shape[0], width), self._fill[name], dtype=np.int64)
            new[:, : old.shape[1]] = old
            setattr(self, name, new)

    def view(self, name: str) -> Ints:
        """A read-only view of the used rows."""
        column: Ints = getattr(self, name)[: self.size]
        column.flags.writeable = False
        return column
