"""What if: the same work in today's world and in a changed one, side by side.

Why: before somebody buys nodes, changes a quota or a policy, the people who pay for it should be known.
Owns: the changes, playing both worlds with the same work, and the difference.
Must not: change anything but what was asked, or draw different run times for the two worlds.

    a trace or a journal ──► the recorded jobs once more ─────────┐
    a scenario, a moment ──► the future, N times, from the present ┴─► played (today, changed) ──► effects ──► Effect
"""

from optimus.drivers.sim.whatif.changes import ChangeError, Changes, changed_present, changed_setup, read_changes
from optimus.drivers.sim.whatif.effects import Effect, effect
from optimus.drivers.sim.whatif.worlds import Played, play_again, play_ahead

__all__ = [
    "ChangeError",
    "Changes",
    "Effect",
    "Played",
    "changed_present",
    "changed_setup",
    "effect",
    "play_again",
    "play_ahead",
    "read_changes",
]
