"""Forecasting: when each waiting workload will start, as a range.

Why: "when will my job start?" has no single answer, because nobody knows when the others end. So the future is played
many times, each time with other run times that fit what is known, by the engine that will really decide.
Owns: drawing run times, playing samples, their quantiles, and learning from past forecasts how wide they must be.
Must not: decide, know a run time before it has ended, or disturb whoever asks: `apart` does the work in a process of
its own, with low priority and a budget.

    Present ─┬─ knowledge ──► draws ──┐
             └─ standing ─────────────┴──► sampling × N (Clockwork, engine) ──► quantiles ──► widening ──► Forecast
"""

from optimus.drivers.sim.forecasting.apart import Apart, ForecastError, forecast_apart
from optimus.drivers.sim.forecasting.arrivals import Past, past_of
from optimus.drivers.sim.forecasting.foreseeing import Asked, Forecast, Quantiles, forecast
from optimus.drivers.sim.forecasting.widening import Judged, Widening, learn_widening

__all__ = [
    "Apart",
    "Asked",
    "Forecast",
    "ForecastError",
    "Judged",
    "Past",
    "Quantiles",
    "Widening",
    "forecast",
    "forecast_apart",
    "learn_widening",
    "past_of",
]
