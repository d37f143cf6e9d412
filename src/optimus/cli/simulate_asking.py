"""What was asked of `optimus simulate`: words of the command line become sources, a cluster and wishes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import typer

from optimus.drivers.sim.sweeping import (
    Complaint,
    Contender,
    Source,
    SweepError,
    Wishes,
    cluster_of_file,
    cluster_of_nodes,
    source_of,
)
from optimus.drivers.sim.traces import shaping
from optimus.drivers.sim.traces.trace import TraceError
from optimus.model.units import UnitError, parse_duration

LEAST_RHYTHM_MS = 1_000


def sources_of(texts: Sequence[str], form: str, options: Sequence[str]) -> list[Source]:
    if not texts:
        raise typer.BadParameter("name a file, or synthetic:jobs=500; --list shows the formats", param_hint="TRACE")
    given: dict[str, str] = {}
    for text in options:
        key, equals, value = text.partition("=")
        if not equals or not key or not value:
            raise typer.BadParameter(f"{text}: write KEY=VALUE", param_hint="--option")
        given[key] = value
    found: list[Source] = []
    wrong: list[Complaint] = []
    for text in texts:
        try:
            found.append(source_of(text, form, given))
        except SweepError as error:
            wrong += error.complaints
    if all(source.drawn for source in found) and (given or form) and not wrong:
        which = "--option" if given else "--format"
        hint = "those of synthetic stand behind its name: synthetic:jobs=2000,load=0.9"
        wrong.append(Complaint(option=which, message=f"is for files; {hint}"))
    if wrong:
        raise SweepError(dict.fromkeys(wrong))
    return found


def reference_of(name: str, people: Sequence[Contender]) -> str:
    """The label of the one that was named."""
    if not name:
        return people[0].label
    for one in people:
        if name in (one.asked, one.label):
            return one.label
    known = ", ".join(one.asked for one in people)
    raise typer.BadParameter(f"{name} is none of the policies {known}; add --policy {name}", param_hint="--reference")


def wishes_of(
    cluster: Path | None,
    nodes: Sequence[str] | None,
    loads: tuple[float, ...],
    seeds: Sequence[int] | None,
    interval: str,
    tick: str,
    decision_ms: int,
    jobs: int | None,
    sigma: float | None,
) -> Wishes:
    if cluster and nodes:
        raise typer.BadParameter("the cluster is named twice; give --cluster or --nodes", param_hint="--nodes")
    if any(seed < 0 for seed in seeds or ()):
        raise typer.BadParameter("a seed is 0 or more", param_hint="--seed")
    try:
        for load in loads:
            shaping.demand_load(load)
    except TraceError as error:
        raise typer.BadParameter(str(error), param_hint="--load") from None
    if sigma is not None and not sigma <= shaping.MOST_SIGMA:
        raise typer.BadParameter(
            f"an error of {sigma:g} is no prediction; write 0 to {shaping.MOST_SIGMA:g}", param_hint="--predict"
        )
    return Wishes(
        cluster=cluster_of_file(cluster) if cluster else cluster_of_nodes(nodes) if nodes else None,
        loads=loads,
        seeds=tuple(dict.fromkeys(seeds or ())),
        interval_ms=_rhythm("--interval", interval) if interval else None,
        tick_ms=_rhythm("--tick", tick) or _refuse_nothing() if tick else None,
        decision_ms=decision_ms,
        first_jobs=jobs,
        sigma=sigma,
    )


def _duration(option: str, text: str) -> int:
    try:
        return parse_duration(text)
    except UnitError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def _rhythm(option: str, text: str) -> int:
    """Time counts in milliseconds, but a scheduler that is asked in each of them never comes to an end."""
    every = _duration(option, text)
    if 0 < every < LEAST_RHYTHM_MS:
        raise typer.BadParameter(f"{text} is too often; write at least 1s", param_hint=option)
    return every


def _refuse_nothing() -> NoReturn:
    raise typer.BadParameter("is 0; without news somebody must ask again, write 5m", param_hint="--tick")
