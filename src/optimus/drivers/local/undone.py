"""What is written down and not done yet: processes to be started, asked to leave, killed.

Why: nothing is done that a restart would not know of; what a turn decides waits here until the store has it.
Owns: the order (starts, then asking, then killing), and what is held back while nothing new may begin.
Must not: decide any of it, or know how it is done (`hands`).
"""

from __future__ import annotations

from collections.abc import Callable

from optimus.drivers.local.hands import Ask, Hands, Spawn
from optimus.lives import Place

Asked = tuple[str, Place, str]
"""A start, its place, its workload."""


class Undone:
    def __init__(self) -> None:
        self.spawns: list[Asked] = []
        self.asks: list[str] = []
        self.kills: list[str] = []

    def do(
        self,
        hands: Hands,
        spawn_of: Callable[[Asked], Spawn],
        ask_of: Callable[[str], Ask | None],
        *,
        held_back: bool,
    ) -> list[str]:
        """All of it; starts not while they are `held_back`. Returns those of them that are to leave already: they have
        never begun, and never will. `ask_of`: how a start is asked; None for one that nobody knows."""
        never = []
        if held_back:
            leaving = {*self.asks, *self.kills}
            never = [start for start, _, _ in self.spawns if start in leaving]
            self.spawns = [asked for asked in self.spawns if asked[0] not in leaving]
        else:
            spawns, self.spawns = self.spawns, []
            for asked in spawns:
                hands.spawn(spawn_of(asked))
        asks, self.asks = self.asks, []
        for start in asks:
            ask = ask_of(start)
            if ask is not None:
                hands.ask(ask)
        kills, self.kills = self.kills, []
        for start in kills:
            hands.kill(start)
        return never
