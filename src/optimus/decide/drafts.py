"""What a plan has done so far: to each workload (`Draft`), and as a list of actions (`Script`).

Actions of the plan that is being made can still be taken back: a start, a growth or a promise that turns out to be in
the way of somebody with a better right is simply not done.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from optimus.decide.placement.seating import Seating
from optimus.model.plans import Action, Evict, Shrink
from optimus.model.reasons import Reason
from optimus.state.arrays import Ints


@dataclass(slots=True, eq=False)
class Addition:
    """Seats that this plan gives to a workload."""

    seating: Seating
    promised: bool
    action: int = -1
    """Number of the action they belong to."""


@dataclass(slots=True, eq=False)
class Draft:
    """What this plan has done to one workload so far."""

    change: Ints
    """By resource: what it holds more or less than in the snapshot."""
    additions: list[Addition] = field(default_factory=list)
    removed: set[int] = field(default_factory=set)
    """Slots of the snapshot that were stopped or dropped."""
    kept: list[int] = field(default_factory=list)
    """Slots whose promise is kept by this plan."""
    kept_by: int = -1
    start: int | None = None
    """Number of the action that starts it."""
    base: int = 1
    """How many of the additions are what it starts with."""
    evicted: bool = False
    """Told to stop; it waits again only when its last replica has ended."""
    eviction: int = -1
    if_not_moved: Reason | None = None
    """Why it is evicted, should its new place be taken from it again."""

    @property
    def pool(self) -> int | None:
        return self.additions[0].seating.pool if self.additions else None

    def growth(self) -> list[Addition]:
        """Seats beyond those it starts with."""
        return self.additions[self.base :] if self.start is not None else list(self.additions)

    def only_starts(self) -> bool:
        """Whether this plan does nothing to it but to start it in room that is free."""
        return not self.removed and not self.evicted and not any(addition.promised for addition in self.additions)

    def split_base(self) -> None:
        """One addition for each replica it starts with, so that any of them can be given up when it has grown."""
        whole = self.additions[0]
        parts = [
            Addition(Seating(whole.seating.pool, [replica]), whole.promised, whole.action)
            for seats in whole.seating.seats
            for replica in seats.split()
        ]
        self.additions[:1] = parts
        self.base = len(parts)


class Script:
    """The actions so far, by number; an action can be replaced or struck out."""

    def __init__(self) -> None:
        self._lines: list[Action | None] = []
        self._asked: list[int] = []
        """Numbers of the actions that told somebody to leave."""
        self.version = 0
        """Changes with everything that is done; equal numbers mean that nothing has happened in between."""
        self.departures = 0
        """Changes when room may have become larger for somebody: others leave, or are not started after all."""

    def add(self, action: Action) -> int:
        self._lines.append(action)
        self.version += 1
        if isinstance(action, Evict | Shrink):
            self.departures += 1
            self._asked.append(len(self._lines) - 1)
        return len(self._lines) - 1

    def replace(self, number: int, action: Action | None) -> None:
        self._lines[number] = action
        self.version += 1

    def __getitem__(self, number: int) -> Action | None:
        return self._lines[number]

    def asked_since(self, number: int, beneficiary: str) -> bool:
        """Whether anybody was told to leave after this action, for somebody else."""
        for later in reversed(self._asked):
            if later < number:
                break
            action = self._lines[later]
            if isinstance(action, Evict | Shrink) and action.beneficiary not in ("", beneficiary):
                return True
        return False

    def numbered(self) -> list[tuple[int, Action]]:
        return [(number, action) for number, action in enumerate(self._lines) if action is not None]

    def actions(self) -> tuple[Action, ...]:
        return tuple(action for action in self._lines if action is not None)
