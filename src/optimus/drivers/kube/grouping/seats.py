"""Which pod of a role is which replica: ordinals that stay while the pod lives.

A pod with an index has the ordinal of its index. Where another pod with the same index still holds it (it is on its
way out), the newcomer waits for it; where somebody else does, or the index is beyond what runs at a time, it takes the
first free ordinal, as pods without an index do.

Why: the brain promises places to (workload, role, ordinal), so that a pod that comes back finds its place.
Owns: the ordinals of one role, in O(log n) for each change.
Must not: know what a pod is.
"""

from __future__ import annotations

import heapq
from collections.abc import Container, Mapping


class _Lowest:
    """The lowest of numbers that come and go; those that went are thrown away when they come up."""

    def __init__(self) -> None:
        self._heap: list[int] = []
        self._inside: set[int] = set()

    def add(self, number: int) -> None:
        if number not in self._inside:
            self._inside.add(number)
            heapq.heappush(self._heap, number)

    def look(self, among: Container[int], *, wanted: bool) -> int | None:
        """The lowest that is (`wanted`) or is not among those."""
        while self._heap and (self._heap[0] in among) is not wanted:
            self._inside.discard(heapq.heappop(self._heap))
        return self._heap[0] if self._heap else None


class Seats:
    def __init__(self) -> None:
        self._holders: dict[int, str] = {}
        self._ordinals: dict[str, int] = {}
        self._indices: dict[str, int | None] = {}
        self._waiting: dict[int, set[str]] = {}
        self._held = _Lowest()
        self._free = _Lowest()
        self._next = 0
        """All below it are held, or in `_free`."""

    @property
    def empty(self) -> bool:
        return not self._indices

    @property
    def holders(self) -> Mapping[int, str]:
        return self._holders

    def ordinal_of(self, uid: str) -> int | None:
        """None while it waits for the one before it."""
        return self._ordinals.get(uid)

    def lowest(self) -> str | None:
        ordinal = self._held.look(self._holders, wanted=True)
        return None if ordinal is None else self._holders[ordinal]

    def sit(self, uid: str, index: int | None, size: int | None, kept: int | None = None) -> None:
        """`size`: how many run at a time, None if nobody knows. `kept`: the ordinal that it had, after a restart."""
        self._indices[uid] = index
        holder = None if index is None else self._holders.get(index)
        if kept is not None and kept not in self._holders:
            self._take(uid, kept)
        elif index is not None and holder is not None and self._indices[holder] == index:
            self._waiting.setdefault(index, set()).add(uid)
        elif index is not None and holder is None and (size is None or index < size):
            self._take(uid, index)
        else:
            self._take(uid, self._first_free())

    def leave(self, uid: str) -> str | None:
        """Returns who has its seat now, if somebody waited for it."""
        index = self._indices.pop(uid, None)
        ordinal = self._ordinals.pop(uid, None)
        if ordinal is None:
            if index is not None:
                self._stop_waiting(index, uid)
            return None
        del self._holders[ordinal]
        self._free.add(ordinal)
        heir = min(self._waiting.get(ordinal, ()), default=None)
        if heir is not None:
            self._stop_waiting(ordinal, heir)
            self._take(heir, ordinal)
        return heir

    def waiting_for(self, uid: str) -> list[str]:
        """Those who wait for the seat of this one."""
        ordinal = self._ordinals.get(uid)
        return sorted(self._waiting.get(ordinal, ())) if ordinal is not None else []

    def index_anew(self, uid: str, index: int | None) -> None:
        """Another index for one who has a seat, and keeps it."""
        if uid in self._ordinals:
            self._indices[uid] = index

    def _stop_waiting(self, ordinal: int, uid: str) -> None:
        if queue := self._waiting.get(ordinal):
            queue.discard(uid)
            if not queue:
                del self._waiting[ordinal]

    def _take(self, uid: str, ordinal: int) -> None:
        self._holders[ordinal] = uid
        self._ordinals[uid] = ordinal
        self._held.add(ordinal)

    def _first_free(self) -> int:
        given_back = self._free.look(self._holders, wanted=False)
        if given_back is not None and given_back < self._next:
            return given_back
        while self._next in self._holders:
            self._next += 1
        return self._next
