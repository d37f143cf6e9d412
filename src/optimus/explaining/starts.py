"""When it starts: the forecast of the simulator's body on the copy, as far as one job needs it."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct, structs

from optimus.drivers.sim.forecasting import Asked, Forecast, ForecastError, Past, forecast_apart
from optimus.drivers.sim.forecasting.foreseeing import HORIZON_MS, SAMPLES
from optimus.drivers.sim.forecasting.grounds import RANGE, grounds_of
from optimus.drivers.sim.forecasting.sampling import HOPELESS
from optimus.drivers.sim.present import of_copy
from optimus.engine.copying import EngineCopy
from optimus.model.reasons import Reason
from optimus.model.units import format_time_ms

NOW = "now"
FORECAST = "forecast"
NEVER = "never"
UNKNOWN = "unknown"
Tell = Callable[[int], None]


class Ask(Struct, frozen=True, kw_only=True):
    samples: int = SAMPLES
    seed: int = 0
    horizon_ms: int = HORIZON_MS
    seconds: float = 30.0
    """Then the samples that are done have to do."""
    past: Past = Past()
    """Without arrivals nobody comes."""


class When(Struct, frozen=True, kw_only=True, rename="camel"):
    at_ms: int
    in_ms: int
    time: str


class StartTold(Struct, frozen=True, kw_only=True, rename="camel"):
    state: str
    """now: the next decision starts it. forecast. never: somebody has to change something first. unknown: it was not
    forecast."""
    p50: When | None = None
    """It has started by then in half of all futures; null: not before the horizon, or not forecast."""
    p90: When | None = None
    earliest: When | None = None
    """Before that it starts in one of ten futures at most."""
    claim: str = RANGE
    """What P50 and P90 are worth (`forecasting.grounds`): range, atLeast or guess."""
    reserved: When | None = None
    """The engine keeps others from delaying it beyond this time, which it counts cautiously. It starts as soon as there
    is room."""
    behind: tuple[str, ...] = ()
    """Waiting work, of all queues, that starts before it in more than half of the futures; the nearest first."""
    samples: int = 0
    started: int = 0
    """Samples in which it starts before the horizon."""
    horizon_ms: int = 0
    rests_on: dict[str, int] = {}
    """What the run times of running work rest on: progress, declared, family, queue, cluster, guess, endless -> how
    many."""
    arrivals_per_hour: float = 0.0
    """Newcomers that were drawn; 0: nobody comes."""
    arrivals_known_ms: int = 0
    """From how long a time that is known."""
    note: str = ""
    """Why there are fewer samples than asked for, or none."""


def start_of(
    copied: EngineCopy,
    name: str,
    reason: Reason | None,
    reserved_ms: int | None,
    ask: Ask | None,
    tell: Tell,
) -> StartTold:
    """`reason`: why it waits; None: it does not, the next decision starts it. Without an `ask` nothing is played."""
    reserved = _when(reserved_ms, copied.now_ms)
    if reason is None:
        return StartTold(state=NOW)
    if reason.code in HOPELESS:
        return StartTold(state=NEVER)
    if ask is None:
        return StartTold(state=UNKNOWN, reserved=reserved)
    asked = Asked(
        present=of_copy(copied, "live"),
        samples=ask.samples,
        seed=ask.seed,
        horizon_ms=ask.horizon_ms,
        past=ask.past,
        only=frozenset({name}),
    )
    try:
        found = forecast_apart(asked, seconds=ask.seconds, tell=tell)
    except ForecastError as error:
        return StartTold(state=UNKNOWN, reserved=reserved, note=str(error))
    return structs.replace(_told(found, name, asked), reserved=reserved)


def _told(found: Forecast, name: str, asked: Asked) -> StartTold:
    quantiles = found.quantiles.get(name)
    if quantiles is None:
        return StartTold(state=UNKNOWN, note="it does not wait for room")
    grounds, past = grounds_of(asked.present, asked.past), asked.past
    return StartTold(
        state=FORECAST,
        p50=_when(quantiles.p50_ms, found.now_ms),
        p90=_when(quantiles.p90_ms, found.now_ms),
        earliest=_when(quantiles.p10_ms, found.now_ms),
        claim=grounds.claim,
        behind=found.ahead.get(name, ()),
        samples=quantiles.samples,
        started=quantiles.started,
        horizon_ms=found.horizon_ms,
        rests_on=grounds.rests_on,
        arrivals_per_hour=round(past.rate_per_hour, 3) if past.arrived else 0.0,
        arrivals_known_ms=past.window_ms if past.arrived else 0,
        note=found.stopped,
    )


def _when(at_ms: int | None, now_ms: int) -> When | None:
    return None if at_ms is None else When(at_ms=at_ms, in_ms=at_ms - now_ms, time=format_time_ms(at_ms))
