"""What a forecast tells: the record that `optimus forecast` shows or dumps.

Why: people read it as a table, programs as JSON.
Owns: its fields. They are a promise: fields may be added, none changes its meaning while `version` stays.
Must not: print, or forecast.
"""

from __future__ import annotations

from msgspec import Struct

from optimus.drivers.sim.forecasting import Asked, Forecast, Past
from optimus.drivers.sim.forecasting.foreseeing import Quantiles, Waiting
from optimus.drivers.sim.forecasting.grounds import grounds_of
from optimus.drivers.sim.forecasting.judging import Coverage
from optimus.drivers.sim.outcome import Why
from optimus.drivers.sim.standing import least_gpus
from optimus.model.units import format_duration_ms, format_time_ms

VERSION = 1
NOW = "now"
FORECAST = "forecast"
NEVER = "never"


class When(Struct, frozen=True, kw_only=True, rename="camel"):
    at_ms: int
    in_ms: int
    """From the moment of the forecast."""
    time: str


class WorkloadForecast(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str
    """`namespace/name`."""
    queue: str
    gpus: float
    """Of its smallest gang."""
    waited_ms: int
    """Since its submission."""
    state: str
    """now: the next decision starts it. forecast. never: somebody has to change something first."""
    p50: When | None
    """It has started by then in half of all futures; null: not before the horizon, or `never`."""
    p90: When | None
    earliest: When | None
    """Before that it starts in one of ten futures at most."""
    started: int
    """Samples in which it started before the horizon."""
    reason: Why | None
    behind: tuple[str, ...]
    """Waiting work that starts before it in more than half of the samples, the nearest first."""
    run_time_from: str
    """What its own run time rests on: declared, family, queue, cluster, guess or endless."""


class WideningTold(Struct, frozen=True, kw_only=True, rename="camel"):
    p50: float
    p90: float
    outcomes: int


class ForecastTold(Struct, frozen=True, kw_only=True, rename="camel"):
    version: int = VERSION
    world: str
    at_ms: int
    time: str
    policy: str
    seed: int
    samples: int
    asked: int
    stopped: str
    """Why there are fewer samples than asked for; empty otherwise."""
    horizon_ms: int
    arrivals_per_hour: float
    """Newcomers that were drawn; 0: nobody comes."""
    claim: str
    """What P50 and P90 are worth (`forecasting.grounds`): range, atLeast or guess."""
    rests_on: dict[str, int]
    """What the run times of running work rest on -> how many."""
    workloads: tuple[WorkloadForecast, ...]
    """By P50."""
    widening: WideningTold | None
    """Learned from the check; null without one, or where too little was known."""
    checked: Coverage | None
    notes: tuple[str, ...]


def young(past: Past) -> str:
    known = format_duration_ms(past.window_ms // 1000 * 1000)
    if past.tells_arrivals:
        return (
            f"The journal knows only {known} before this moment: newcomers come as often as in that time, and in half "
            "of the futures for as long again."
        )
    return (
        f"The journal knows only {known} before this moment and too few who came: nobody else comes, and starts may "
        "well be later than this (--arrivals draws newcomers anyway)."
    )


def told(asked: Asked, forecast: Forecast, checked: Coverage | None) -> ForecastTold:
    present, wider = asked.present, asked.widening
    grounds = grounds_of(present, asked.past)
    rows = [_workload(one, forecast) for one in forecast.waiting]
    return ForecastTold(
        world=present.name,
        at_ms=forecast.now_ms,
        time=format_time_ms(forecast.now_ms),
        policy=present.policy,
        seed=asked.seed,
        samples=forecast.samples,
        asked=forecast.asked,
        stopped=forecast.stopped,
        horizon_ms=forecast.horizon_ms,
        arrivals_per_hour=round(asked.past.rate_per_hour, 3) if asked.past.arrived else 0.0,
        claim=grounds.claim,
        rests_on=grounds.rests_on,
        workloads=tuple(sorted(rows, key=_order)),
        widening=WideningTold(p50=round(wider.p50, 3), p90=round(wider.p90, 3), outcomes=wider.outcomes)
        if wider.outcomes
        else None,
        checked=checked,
        notes=present.notes,
    )


def _workload(one: Waiting, forecast: Forecast) -> WorkloadForecast:
    name = one.workload.id
    found = forecast.quantiles.get(name, Quantiles(p50_ms=None, p90_ms=None, samples=0, started=0))
    return WorkloadForecast(
        name=name,
        queue=one.workload.queue,
        gpus=least_gpus(one.workload),
        waited_ms=max(forecast.now_ms - one.workload.submitted_ms, 0),
        state=NEVER if one.hopeless else NOW if one.reason is None else FORECAST,
        p50=_when(found.p50_ms, forecast.now_ms),
        p90=_when(found.p90_ms, forecast.now_ms),
        earliest=_when(found.p10_ms, forecast.now_ms),
        started=found.started,
        reason=Why.of(one.reason),
        behind=forecast.ahead.get(name, ()),
        run_time_from=str(one.basis),
    )


def _when(at_ms: int | None, now_ms: int) -> When | None:
    return None if at_ms is None else When(at_ms=at_ms, in_ms=at_ms - now_ms, time=format_time_ms(at_ms))


def _order(row: WorkloadForecast) -> tuple[bool, int, int, str]:
    far = 1 << 62
    return row.state == NEVER, row.p50.at_ms if row.p50 else far, row.p90.at_ms if row.p90 else far, row.name
