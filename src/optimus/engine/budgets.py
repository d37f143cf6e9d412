"""Budgets from measured speed: counts of work that keep a step near its target time.

A budget is an input like any other and is journaled, so a plan that was cut short replays to the same plan.
"""

from __future__ import annotations

from optimus.model.plans import Budget, Plan

LARGEST = Budget()
SMALLEST = Budget(passes=2, starts=100, victim_searches=10, trial_fits=200, growth_steps=100)


def next_budget(budget: Budget, plan: Plan, step_ms: int, target_ms: int) -> Budget:
    """Half of everything after a step that took too long; twice as much after a cut plan that was quick."""
    if step_ms > target_ms:
        return _scaled(budget, 1, 2)
    if not plan.complete and step_ms * 2 < target_ms:
        return _scaled(budget, 2, 1)
    return budget


def _scaled(budget: Budget, times: int, over: int) -> Budget:
    def scale(name: str) -> int:
        value = getattr(budget, name) * times // over
        return int(min(max(value, getattr(SMALLEST, name)), getattr(LARGEST, name)))

    return Budget(
        passes=scale("passes"),
        starts=scale("starts"),
        victim_searches=scale("victim_searches"),
        trial_fits=scale("trial_fits"),
        growth_steps=scale("growth_steps"),
        reservations_per_pool=budget.reservations_per_pool,
    )
