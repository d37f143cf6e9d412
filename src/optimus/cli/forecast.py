"""`optimus forecast`: when each waiting workload starts, as a range, and why it waits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optimus.cli.showing import Format, FormatOption, Printer, console, dump, tracked
from optimus.cli.target import Address, reached
from optimus.drivers.sim.threads import one_thread_each

if TYPE_CHECKING:
    from optimus.drivers.sim.forecasting import Asked, Forecast
    from optimus.drivers.sim.forecasting.judging import Coverage

INTERRUPTED = 130
World = Annotated[
    Path | None,
    typer.Argument(
        metavar="WORLD",
        help="A scenario file, or the folder of a journal. Else the scheduler that runs.",
        show_default=False,
    ),
]
At = Annotated[
    str, typer.Option(metavar="TIME|CYCLE", help="From this moment of the journal: 4711, 14:20, -10m. Else its end.")
]
Under = Annotated[
    str, typer.Option("--policy", metavar="NAME|FILE.py:NAME", help="Decide under this policy instead of its own.")
]
Samples = Annotated[int, typer.Option(metavar="N", min=1, help="Futures that are played.")]
Seed = Annotated[int, typer.Option(metavar="N", min=0, help="Of the run times that are drawn.")]
Horizon = Annotated[str, typer.Option(metavar="TIME", help="How far ahead.")]
Arrivals = Annotated[
    bool | None,
    typer.Option(
        "--arrivals/--no-arrivals",
        help="Newcomers as in the day before, or nobody else. Else newcomers, if the journal knows enough of them.",
        show_default=False,
    ),
]
Check = Annotated[
    int,
    typer.Option(metavar="N", min=0, help="Forecast N earlier moments of the journal too, count, and widen by it."),
]
Within = Annotated[str, typer.Option(metavar="TIME", help="Stop after this time and use the samples that are done.")]


def forecast(
    world: World = None,
    at: At = "",
    policy: Under = "",
    samples: Samples = 40,
    seed: Seed = 0,
    horizon: Horizon = "7d",
    arrivals: Arrivals = None,
    check: Check = 0,
    within: Within = "",
    address: Address = "",
    output: FormatOption = Format.TABLE,
) -> None:
    """Say when each waiting workload starts (P50 to P90), why it waits, and behind whom.

    Without WORLD the scheduler that runs is asked: it hands out a copy of its state and goes on.
    The future is played many times by the real engine, each time with other run times that fit what is known. A process
    of low priority does the work. Fails (1) if the world cannot be used.
    """
    one_thread_each()
    from msgspec import structs

    from optimus.cli import forecast_report, forecasting, live, presents
    from optimus.drivers.sim.forecasting import Asked, ForecastError, Past, past_of

    if world is None:
        presents.demand_nothing_of_journals({"--at": at, "--check": check})
    else:
        presents.demand_world(world)
    journal = world is not None and presents.is_journal(world)
    for wanted, name in ((arrivals, "--arrivals"), (check, "--check")):
        if wanted and world is not None and not journal:
            raise typer.BadParameter(f"{world}: a scenario has no past; name a journal", param_hint=name)
    ahead_ms = presents.duration("--horizon", horizon)
    seconds = presents.duration("--within", within) / 1000 if within else 0.0
    if policy:
        presents.demand_policy(policy)
    if world is None:
        with reached(address) as target:
            present, past = live.fetch_world(target)
    else:
        present = presents.present_of(world, at)
        past = past_of(world, present.now_ms) if journal else Past()
    if policy:
        present = structs.replace(present, policy=policy)
    else:
        presents.demand_policy(present.policy, present.name)
    recorded = journal or world is None
    if arrivals is None and recorded and not past.settled:
        present = structs.replace(present, notes=(*present.notes, forecasting.young(past)))
    arrivals = recorded and past.tells_arrivals if arrivals is None else arrivals
    past = past if arrivals else past.without_arrivals()
    asked = Asked(present=present, samples=samples, seed=seed, horizon_ms=ahead_ms, past=past)
    try:
        checked = None
        if check and world is not None:
            asked, checked = _checked(asked, world, check, arrivals)
        found = _forecast(asked, seconds)
    except ForecastError as error:
        presents.fail(f"{present.name}: there is no forecast: {error}")
    except KeyboardInterrupt:
        console(stderr=True).print("Stopped.", style="yellow")
        raise typer.Exit(INTERRUPTED) from None
    told = forecasting.told(asked, found, checked)
    if output in (Format.JSON, Format.YAML):
        dump(told, output)
    else:
        forecast_report.report(Printer(), told, wide=output is Format.WIDE)


def _forecast(asked: Asked, seconds: float) -> Forecast:
    """In a process of its own; on a terminal with its progress."""
    from optimus.drivers.sim.forecasting import forecast_apart

    errors = console(stderr=True)
    if not errors.is_terminal:
        return forecast_apart(asked, seconds=seconds)
    with errors.status("playing futures") as status:
        return forecast_apart(
            asked,
            seconds=seconds,
            tell=lambda done: status.update(f"playing futures: {done} of {asked.samples}"),
        )


def _checked(asked: Asked, folder: Path, moments: int, arrivals: bool) -> tuple[Asked, Coverage]:
    from msgspec import structs

    from optimus.drivers.sim.forecasting import learn_widening
    from optimus.drivers.sim.forecasting.checking import check_journal, chosen_moments
    from optimus.drivers.sim.forecasting.judging import coverage

    chosen = chosen_moments(folder, asked.present.now_ms, moments)
    judged = []
    for at in tracked(chosen, len(chosen), "checking", lambda _at: "checking earlier moments"):
        judged += check_journal(folder, at, asked, arrivals=arrivals)
    learned = learn_widening(judged, asked.present.now_ms)
    return structs.replace(asked, widening=learned), coverage(judged)
