"""What follows from nodes, pools, queues and packing tables alone, remembered from cycle to cycle.

Those change rarely and cycles are many: shapes, compiled tables and the like are worked out once. The same arguments
always give the same result, so remembering changes no decision; the state forgets everything when its layout changes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

MOST_ENTRIES = 8192
"""Beyond this everything is forgotten: a cluster sees new requests for years."""

T = TypeVar("T")


class WorkedOut:
    def __init__(self) -> None:
        self._known: dict[Hashable, Any] = {}
        self._numbers = 0

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` returned the first time it was asked for with this key; never None."""
        found: T | None = self._known.get(key)
        if found is None:
            if len(self._known) >= MOST_ENTRIES:
                self.forget()
            found = self._known[key] = make()
        return found

    def next_number(self) -> int:
        """For things that are told apart by number: never the same twice."""
        self._numbers += 1
        return self._numbers

    def forget(self) -> None:
        self._known.clear()
