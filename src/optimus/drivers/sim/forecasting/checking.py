"""Checking: forecasts at earlier moments of a journal, judged by what the journal says came of them.

Why: whether forecasts hold on somebody's own cluster is written in its own journal.
Owns: the choice of moments, and the true starts.
Must not: let a forecast see anything of the journal after its moment.
"""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct, structs

from optimus.drivers.sim.forecasting.apart import forecast_apart
from optimus.drivers.sim.forecasting.arrivals import Past, past_of
from optimus.drivers.sim.forecasting.foreseeing import Asked
from optimus.drivers.sim.forecasting.judging import judge
from optimus.drivers.sim.forecasting.widening import Judged
from optimus.drivers.sim.present import of_moment
from optimus.engine.journal import Cycle, Journal
from optimus.model.plans import Start


class Recorded(Struct, frozen=True, kw_only=True):
    """What a journal says of waiting and starting until a moment."""

    starts: dict[str, list[int]]
    waits: tuple[int, ...]
    """Moments of cycles in which something waited."""


def read_starts(folder: Path, until_ms: int) -> Recorded:
    starts: dict[str, list[int]] = {}
    waits = []
    for item in Journal(folder).read():
        if not isinstance(item, Cycle):
            continue
        if item.now_ms > until_ms:
            break
        if item.plan.waiting:
            waits.append(item.now_ms)
        for action in item.plan.actions:
            if isinstance(action, Start):
                starts.setdefault(action.workload, []).append(item.now_ms)
    return Recorded(starts=starts, waits=tuple(dict.fromkeys(waits)))


def chosen_moments(folder: Path, now_ms: int, count: int) -> list[int]:
    """So many before `now_ms`, evenly chosen from those in which something waited."""
    before = [at for at in read_starts(folder, now_ms).waits if at < now_ms]
    count = min(count, len(before))
    return [before[number * len(before) // count] for number in range(count)]


def check_journal(folder: Path, at_ms: int, asked: Asked, *, arrivals: bool) -> list[Judged]:
    """A forecast of that moment, asked for in the same way, beside what came of it until the moment asked about."""
    now_ms = asked.present.now_ms
    present = of_moment(Journal(folder).seek(now_ms=at_ms), asked.present.name)
    past = past_of(folder, at_ms)
    known = past if arrivals else Past(errors=past.errors)
    told = forecast_apart(structs.replace(asked, present=present, past=known))
    return judge(told, read_starts(folder, now_ms).starts, now_ms)
