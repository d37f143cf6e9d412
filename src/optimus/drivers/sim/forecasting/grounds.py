"""Grounds: what a forecast rests on, and what it is worth for that.

Why: a range that is drawn from guesses looks like one that is drawn from knowledge. Whoever shows it (explain, forecast
and what-if) says in the same words which of them it is.
Owns: the claim and its words.
Must not: change a number.

    range     run times are known, and so is who else comes
    atLeast   nothing is known of who else comes: it may well be later
    guess     nothing is known about how long most of what runs takes
"""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from optimus.drivers.sim.forecasting.arrivals import Past
from optimus.drivers.sim.forecasting.knowledge import Basis
from optimus.drivers.sim.forecasting.sampling import Futures
from optimus.drivers.sim.present import Present

RANGE = "range"
AT_LEAST = "atLeast"
GUESS = "guess"
DOUBTS = {
    RANGE: "",
    AT_LEAST: "nothing is known of who else comes",
    GUESS: "nothing is known about how long work here takes",
}
"""Beside a time, for people."""


class Grounds(Struct, frozen=True, kw_only=True):
    claim: str
    rests_on: dict[str, int]
    """What the run times of running work rest on -> how many."""

    @property
    def doubt(self) -> str:
        return DOUBTS[self.claim]


def grounds_of(present: Present, past: Past) -> Grounds:
    """`past`: as the futures are drawn from it. It does not matter how many, or how far they go."""
    futures = Futures(present, 1, past)
    running = Counter(str(futures.knowledge.basis(one)) for one in futures.people if one.runs)
    claim = RANGE if past.arrived or past.settled else AT_LEAST
    if 2 * running[Basis.GUESS] > running.total():
        claim = GUESS
    return Grounds(claim=claim, rests_on=dict(sorted(running.items())))
