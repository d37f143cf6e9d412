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
    """A set of equally long columns, one or two dimensional, declared once by name.

    The one-dimensional ones are the rows of one block, so that a row is emptied with one assignment.
    """

    def __init__(self, **declared: int | tuple[int, int]) -> None:
        """`name=fill` for one dimension, `name=(fill, width)` for two."""
        self._fill = {name: (spec if isinstance(spec, int) else spec[0]) for name, spec in declared.items()}
        self._flat = [name for name, spec in declared.items() if isinstance(spec, int)]
        self._wide = [name for name, spec in declared.items() if not isinstance(spec, int)]
        self._fills: Ints = np.array([self._fill[name] for name in self._flat], dtype=np.int64)
        self._rows = 64
        self._vacant: list[int] = []
        self.size = 0
        """Rows ever used; vacant rows inside hold the fill values."""
        self._set_block(np.tile(self._fills[:, None], self._rows))
        for name in self._wide:
            width = declared[name][1]  # type: ignore[index]
            setattr(self, name, np.full((self._rows, width), self._fill[name], dtype=np.int64))

    def __getattr__(self, name: str) -> Any:  # columns are declared at run time
        raise AttributeError(name)

    def add(self) -> int:
        if self._vacant:
            return self._vacant.pop()
        row = self.size
        self.size += 1
        if row == self._rows:
            self._double()
        return row

    def free(self, row: int) -> None:
        self._block[:, row] = self._fills
        for name in self._wide:
            getattr(self, name)[row] = self._fill[name]
        self._vacant.append(row)

    def _double(self) -> None:
        self._set_block(np.hstack((self._block, np.tile(self._fills[:, None], self._rows))))
        for name in self._wide:
            old: Ints = getattr(self, name)
            setattr(self, name, np.vstack((old, np.full_like(old, self._fill[name]))))
        self._rows *= 2

    def _set_block(self, block: Ints) -> None:
        self._block = block
        for name, column in zip(self._flat, block, strict=True):
            setattr(self, name, column)

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
