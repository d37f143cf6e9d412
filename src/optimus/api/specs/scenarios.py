"""The root of a file: a scenario, of which a cluster spec or a list of queues is a part.

Why: one format; a cluster file, a queue file and a story are the same thing with more or fewer sections.
Owns: the sections, the settings and budgets, and what happens between cycles.
Must not: look from one section into another.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import structs
from pydantic import BeforeValidator

from optimus.api.scenario import Between
from optimus.api.specs.clusters import ClusterSpec, PoolSpec
from optimus.api.specs.cycles import MOST_CYCLES, CycleSpec
from optimus.api.specs.expectations import FinalExpectSpec
from optimus.api.specs.fields import Count, Duration, Flag, Percent, Spec, Text, When, complain, shown
from optimus.api.specs.queues import QueueSpec
from optimus.api.specs.workloads import ScenarioWorkloadSpec
from optimus.model.plans import Budget
from optimus.model.settings import Settings

DEFAULT_START_MS = 1_767_614_400_000
"""2026-01-05 12:00 UTC, a Monday."""
_BETWEEN = Between()
_BUDGET = Budget()
_SETTINGS = Settings()


class BetweenSpec(Spec):
    advance: Duration = _BETWEEN.advance_ms
    starts_in: Duration = _BETWEEN.starts_in_ms
    slow_stop: Flag = _BETWEEN.slow_stop
    ends_on_time: Flag = _BETWEEN.ends_on_time

    def to_between(self) -> Between:
        return Between(
            advance_ms=self.advance,
            starts_in_ms=self.starts_in,
            slow_stop=self.slow_stop,
            ends_on_time=self.ends_on_time,
        )


class BudgetSpec(Spec):
    passes: Count = _BUDGET.passes
    starts: Count = _BUDGET.starts
    victim_searches: Count = _BUDGET.victim_searches
    trial_fits: Count = _BUDGET.trial_fits
    growth_steps: Count = _BUDGET.growth_steps
    reservations_per_pool: Count = _BUDGET.reservations_per_pool

    def to_budget(self) -> Budget:
        return Budget(**self.model_dump())


class SettingsSpec(Spec):
    history_half_life: Duration = _SETTINGS.history_half_life_ms
    history_factor: Percent = _SETTINGS.history_factor_percent
    hold: Duration = _SETTINGS.hold_ms
    unready_timeout: Duration = _SETTINGS.unready_timeout_ms
    unknown_duration: Duration = _SETTINGS.unknown_duration_ms
    resize_interval: Duration = _SETTINGS.resize_interval_ms
    resize_payback: Count = _SETTINGS.resize_payback
    sizing_interval: Duration = _SETTINGS.sizing_interval_ms
    consolidation: Flag = _SETTINGS.consolidation
    consolidation_payback: Count = _SETTINGS.consolidation_payback

    def to_settings(self, base: Settings = _SETTINGS) -> Settings:
        """What is written here, over the others."""
        written = {_named(name): getattr(self, name) for name in self.model_fields_set}
        changed: Settings = structs.replace(base, **written)
        return changed


def _named(field: str) -> str:
    """As the model calls it, with its unit."""
    return next(name for name in _SETTINGS.__struct_fields__ if name in (field, f"{field}_ms", f"{field}_percent"))


def _number_of_cycles(value: Any) -> Any:
    """`cycles: 3` is three cycles in which nothing happens."""
    if isinstance(value, bool) or not isinstance(value, int):
        if isinstance(value, list | tuple):
            return value
        raise complain(f"must be a number or a list of cycles, not {shown(value)}")
    if not 0 <= value <= MOST_CYCLES:
        raise complain(f"must be 0 to {MOST_CYCLES}: {value}")
    return [{}] * value


class ScenarioSpec(Spec):
    name: Text = ""
    description: Text = ""
    start: When | None = None
    seed: Count = 0
    policy: Text = ""
    settings: SettingsSpec = SettingsSpec()
    budget: BudgetSpec = BudgetSpec()
    cluster: ClusterSpec = ClusterSpec()
    pools: tuple[PoolSpec, ...] = ()
    queues: tuple[QueueSpec, ...] = ()
    workloads: tuple[ScenarioWorkloadSpec, ...] = ()
    between: BetweenSpec = BetweenSpec()
    cycles: Annotated[tuple[CycleSpec, ...], BeforeValidator(_number_of_cycles)] = (CycleSpec(),)
    expect: FinalExpectSpec = FinalExpectSpec()

    def start_ms(self) -> int:
        """A time of day is one of the default day; an offset counts from its noon."""
        if self.start is None:
            return DEFAULT_START_MS
        return self.start.resolve(DEFAULT_START_MS)
