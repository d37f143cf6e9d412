"""Random worlds, a pretend body and the nine invariants, for everybody who changes the brain or writes a policy.

Why: a scheduler is right when nine sentences hold in every world, so worlds are drawn and the sentences are checked.
Owns: `random_world`, `PretendBody` with its own ledger of what is true, and one checker per invariant.
Must not: ask the brain. The ledger is built from observations and plans alone, and shares, fits, guarantees and
rights are worked out again here, slowly and in plain Python. Only `invariants.repeatable` looks at the state, to
see that deciding leaves it alone.
"""

from optimus.testing.body import Cycle, PretendBody
from optimus.testing.examining import examine, live
from optimus.testing.invariants import INVARIANTS, Violation, check_cycle, check_world
from optimus.testing.ledger import Ledger
from optimus.testing.worlds import World, random_world

__all__ = [
    "INVARIANTS",
    "Cycle",
    "Ledger",
    "PretendBody",
    "Violation",
    "World",
    "check_cycle",
    "check_world",
    "examine",
    "live",
    "random_world",
]
