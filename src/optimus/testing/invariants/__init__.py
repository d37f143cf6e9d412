"""The nine invariants of scheduling.md, each as a check that knows nothing of the brain.

Why: "a broken one is a defect" needs somebody who notices.
Owns: one module per invariant (and `well_formed` for what every plan owes its readers), and the two doors:
`check_cycle` for one step of a `PretendBody`, `check_world` for what can only be seen over a whole story.
Must not: use anything of `optimus.decide` or `optimus.state` but the engine as a black box.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from optimus.testing.body import Cycle
from optimus.testing.invariants.draining import everybody_starts
from optimus.testing.invariants.entitled import nobody_waits_inside_guarantee
from optimus.testing.invariants.gangs import whole_gangs
from optimus.testing.invariants.guarantees import inside_guarantees
from optimus.testing.invariants.overcommitment import no_overcommitment
from optimus.testing.invariants.refusals import first_in_empty_line, never_refused, same_answers_in_any_order
from optimus.testing.invariants.repeatable import CarefulEngine, order_of_facts
from optimus.testing.invariants.statements import complete_statements
from optimus.testing.invariants.steady import reaches_steady_state
from optimus.testing.invariants.violations import Violation
from optimus.testing.invariants.well_formed import well_formed
from optimus.testing.worlds import World

INVARIANTS = {
    0: "every plan is well formed, with a reason for whoever waits",
    1: "no over-commitment of a device, a node or a limit",
    2: "gangs start whole or not at all, and do not go on below their minimum",
    3: "non-preemptible work inside the guarantee, limits at every level",
    4: "what fits is not refused; identical work gets the same answers in any order",
    5: "nobody waits inside its guarantee beside preemptible work outside its own",
    6: "complete statements, minimal victims, nobody evicted for nothing",
    7: "a steady state is reached",
    8: "with finite work everybody starts",
    9: "plans are deterministic and idempotent",
}

CYCLE_CHECKS: dict[int, Callable[[Cycle], list[str]]] = {
    0: well_formed,
    1: no_overcommitment,
    2: whole_gangs,
    3: inside_guarantees,
    4: never_refused,
    5: nobody_waits_inside_guarantee,
    6: complete_statements,
}
"""What one step shows."""

WORLD_CHECKS: dict[int, tuple[Callable[[World], list[str]], ...]] = {
    4: (first_in_empty_line, same_answers_in_any_order),
    7: (reaches_steady_state,),
    8: (everybody_starts,),
    9: (order_of_facts,),
}
"""What only a whole story shows."""


def check_cycle(cycle: Cycle, invariants: Iterable[int] = CYCLE_CHECKS) -> list[Violation]:
    return [
        Violation(number, cycle.seed, cycle.number, what)
        for number in invariants
        if number in CYCLE_CHECKS
        for what in CYCLE_CHECKS[number](cycle)
    ]


def check_world(world: World, invariants: Iterable[int] = WORLD_CHECKS) -> list[Violation]:
    return [
        Violation(number, world.seed, 0, what)
        for number in invariants
        for check in WORLD_CHECKS.get(number, ())
        for what in check(world)
    ]


__all__ = [
    "CYCLE_CHECKS",
    "INVARIANTS",
    "WORLD_CHECKS",
    "CarefulEngine",
    "Violation",
    "check_cycle",
    "check_world",
]
