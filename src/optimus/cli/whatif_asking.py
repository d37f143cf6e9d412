"""What was asked of `optimus what-if`, and the answer: words become two worlds, and these a comparison.

Why: a journal's past, a trace, a journal's end and a scenario take different ways to the same table.
Owns: the ways, and the refusals.
Must not: print a result.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import typer
from msgspec import Struct

from optimus.cli import live, presents
from optimus.cli.moments import describe_moment
from optimus.cli.target import reached
from optimus.cli.whatif_report import WhatIfTold
from optimus.decide.policies import DEFAULT
from optimus.drivers.sim.clockwork import SimulationError
from optimus.drivers.sim.forecasting import Past, past_of
from optimus.drivers.sim.forecasting.foreseeing import SAMPLES
from optimus.drivers.sim.forecasting.grounds import GUESS, Grounds, grounds_of
from optimus.drivers.sim.present import Present
from optimus.drivers.sim.setup import Setup
from optimus.drivers.sim.sweeping import SweepError, Wishes, scenes, source_of
from optimus.drivers.sim.sweeping.scenes import Scene
from optimus.drivers.sim.traces.trace import Verdict
from optimus.drivers.sim.whatif import (
    ChangeError,
    Changes,
    changed_present,
    changed_setup,
    effect,
    play_again,
    play_ahead,
    read_changes,
)
from optimus.drivers.sim.whatif.changes import setup_now

NOTHING = "--add-nodes 2, --remove-node NAME, --queue QUEUE.guarantee=16 or --policy NAME"
Tell = Callable[[str], None]


class Question(Struct, frozen=True, kw_only=True):
    world: str
    """Empty: the scheduler that runs."""
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    quotas: tuple[str, ...] = ()
    policy: str = ""
    price: float | None = None
    ahead: bool = False
    at: str = ""
    samples: int = SAMPLES
    seed: int = 0
    horizon: str = "7d"
    address: str = ""
    """Of the scheduler."""


def answer(question: Question, tell: Tell) -> WhatIfTold:
    path = Path(question.world)
    if not (question.add or question.remove or question.quotas or question.policy):
        raise typer.BadParameter(f"nothing is changed; add {NOTHING}", param_hint="WORLD")
    if question.policy:
        presents.demand_policy(question.policy)
    if not question.world:
        return _live(question, tell)
    if presents.is_story(path) or (presents.is_journal(path) and question.ahead):
        return _ahead(question, path, tell)
    if question.ahead:
        message = f"{question.world}: only a journal or a scenario has a moment to go on from"
        raise typer.BadParameter(message, param_hint="--ahead")
    return _again(question, path, tell)


# -- the future ---------------------------------------------------------------------------------------------------


def _live(question: Question, tell: Tell) -> WhatIfTold:
    presents.demand_nothing_of_journals({"--at": question.at, "--ahead": question.ahead})
    horizon_ms = presents.duration("--horizon", question.horizon)
    tell("asking the scheduler")
    with reached(question.address) as target:
        today, past = live.fetch_world(target)
    return _played(question, today, past, horizon_ms, tell)


def _ahead(question: Question, path: Path, tell: Tell) -> WhatIfTold:
    presents.demand_world(path)
    horizon_ms = presents.duration("--horizon", question.horizon)
    today = presents.present_of(path, question.at)
    past = past_of(path, today.now_ms) if presents.is_journal(path) else Past()
    return _played(question, today, past, horizon_ms, tell)


def _played(question: Question, today: Present, past: Past, horizon_ms: int, tell: Tell) -> WhatIfTold:
    presents.demand_policy(today.policy, today.name)
    changes = _changes(question, setup_now(today))
    changed = changed_present(today, changes)
    alone = past.without_arrivals()
    grounds = grounds_of(today, alone)
    done = [0]

    def count() -> None:
        done[0] += 1
        tell(f"playing futures: {done[0]} of {question.samples}")

    tell("playing futures")
    pairs = play_ahead(
        today,
        changed,
        samples=question.samples,
        seed=question.seed,
        horizon_ms=horizon_ms,
        past=alone,
        tell=count,
    )
    if not any(pair[0].starts for pair in pairs):
        presents.fail(f"{today.name}: no workload in it, so nothing could change")
    return WhatIfTold(
        world=today.name,
        played=f"from {describe_moment(today.now_ms)} on, run times drawn from what is known then, nobody else comes",
        at_ms=today.now_ms,
        claim=grounds.claim,
        changes=changes.words,
        seed=question.seed,
        horizon_ms=horizon_ms,
        price=question.price,
        effect=effect(pairs, (today.policy, changed.policy), question.price),
        notes=(*today.notes, *_worth(past, grounds)),
    )


def _worth(past: Past, grounds: Grounds) -> tuple[str, ...]:
    """What these times are worth, and why a forecast of the same moment may say others."""
    notes = [f"All times are guesses: {grounds.doubt}."] if grounds.claim == GUESS else []
    if past.tells_arrivals:
        often = f"{past.rate_per_hour:.2g}" if past.rate_per_hour < 10 else f"{past.rate_per_hour:,.0f}"
        notes.append(
            "Nobody else comes here, so that both worlds are compared by the same work. Starts are those of `optimus "
            f"forecast --no-arrivals`; `optimus forecast` draws {often} newcomers an hour, and then they are later."
        )
    return tuple(notes)


# -- the past -----------------------------------------------------------------------------------------------------


def _again(question: Question, path: Path, tell: Tell) -> WhatIfTold:
    journal = presents.is_journal(path)
    tell("reading jobs")
    scene = _scene(question)
    policy = _recorded_policy(path) if journal else DEFAULT.name
    if journal:
        presents.demand_policy(policy, question.world)
    changes = _changes(question, scene.setup)
    worlds = ((scene.setup, policy), (changed_setup(scene.setup, changes), question.policy or policy))
    tell("playing today's world")
    try:
        pair = play_again(scene.trace, worlds, lambda: tell("playing the changed world"), until_ms=scene.until_ms)
    except SimulationError as error:
        presents.fail(f"{question.world}: {error}")
    return WhatIfTold(
        world=question.world,
        played=f"the {len(scene.trace.jobs)} {'recorded ' if journal else ''}jobs once more",
        changes=changes.words,
        seed=question.seed,
        price=question.price,
        effect=effect([pair], (worlds[0][1], worlds[1][1]), question.price),
        notes=_notes(scene),
        left_out=scene.trace.left_out,
    )


def _scene(question: Question) -> Scene:
    try:
        source = source_of(question.world)
        return scenes([source], Wishes(seeds=(question.seed,)))[0]
    except SweepError as error:
        typed = [complaint for complaint in error.complaints if complaint.option]
        text = "\n".join(complaint.message for complaint in error.complaints)
        if typed:
            raise typer.BadParameter(_named_here(text), param_hint="WORLD") from None
        presents.fail(_named_here(text) + _nothing_ended(question))


def _named_here(text: str) -> str:
    """A list without a cluster: this command has no option that names one."""
    return text.replace("give --nodes 60x8 or --cluster FILE", "this command needs a trace that says so")


def _nothing_ended(question: Question) -> str:
    if not presents.is_journal(Path(question.world)):
        return ""
    return "; only work that ended tells how long it runs. --ahead plays on from the end of the journal instead"


def _recorded_policy(path: Path) -> str:
    from optimus.cli.moments import END
    from optimus.engine.journal import Journal, JournalError

    try:
        cycles = Journal(path).seek(sequence=END).cycles
    except JournalError as error:
        presents.fail(str(error))
    return cycles[-1].policy if cycles else DEFAULT.name


def _notes(scene: Scene) -> tuple[str, ...]:
    """Every kind once: a journal may have left out thousands."""
    out = [problem for problem in scene.trace.problems if problem.verdict is Verdict.LEFT_OUT]
    notes = [str(problem) for problem in scene.trace.problems if problem.verdict is not Verdict.LEFT_OUT]
    if out:
        more = f" and {len(out) - 1} more" if len(out) > 1 else ""
        notes.insert(0, f"{len(out)} left out: {out[0].message}{more}")
    return tuple(notes[:5])


def _changes(question: Question, setup: Setup) -> Changes:
    try:
        return read_changes(
            setup, add=question.add, remove=question.remove, quotas=question.quotas, policy=question.policy
        )
    except ChangeError as error:
        _refuse(error)


def _refuse(error: ChangeError) -> NoReturn:
    hints = list(dict.fromkeys(one.option for one in error.wrong))
    raise typer.BadParameter(str(error), param_hint=", ".join(hints)) from None
