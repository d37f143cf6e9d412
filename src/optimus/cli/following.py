"""Following: the output of a job as it comes, and what happens to it meanwhile."""

from __future__ import annotations

import signal
import sys
import threading
from typing import NoReturn

import typer
from rich.text import Text

from optimus.cli.showing import console, hang_up, say
from optimus.client import JobError
from optimus.client.targets import Target, View

COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "bright_red", "bright_cyan", "bright_magenta")
INTERRUPTED = 130


def to_the_end(target: Target, job: str) -> str:
    """Show output and changes of phase until it is over. Ctrl-C cancels, and so does SIGTERM: nobody would know of a
    job that a script has given up. Returns the last phase."""
    say(f"job {job} submitted", "dim")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    watching = threading.Thread(target=_phases, args=(target, job), daemon=True)
    watching.start()
    try:
        show(target, job, follow=True, tell=False)
        watching.join(10)
        view = target.job(job)
    except KeyboardInterrupt:
        _cancel(target, job)
    except BrokenPipeError:
        hang_up()
        say(f"nobody reads its output any more; job {job} goes on", "yellow")
        raise typer.Exit(1) from None
    phase = str(view["phase"])
    say(f"job {job} {_phase(view)}", "green" if phase == "Succeeded" else "red")
    return phase


def show(
    target: Target,
    job: str,
    *,
    follow: bool,
    tail: int | None = None,
    replica: str = "",
    attempt: int | None = None,
    part: int | None = None,
    tell: bool = True,
) -> None:
    """Lines of all replicas, as they were written; each says whose it is where there are several. `tell`: where there
    is nothing to show, say why."""
    out = console()
    view = target.job(job)
    several = view["maxReplicas"] > 1 or bool(view["counts"])
    colours: dict[str, str] = {}
    wrote = False
    if tell and follow and not view["final"] and not view["replicas"]:
        say(f"job {job} {_phase(view)}", "dim")
    for line in target.output(job, follow=follow, tail=tail, replica=replica, attempt=attempt, part=part):
        wrote = True
        if several:
            colour = colours.setdefault(line["replica"], COLOURS[len(colours) % len(COLOURS)])
            wide = max(map(len, colours))
            out.print(Text(f"{line['replica']:<{wide}}", style=colour) + Text(" │ ", style="dim"), end="")
        sys.stdout.write(line["text"] + "\n")
        if follow:
            sys.stdout.flush()
    sys.stdout.flush()
    if tell and not wrote and tail != 0:
        who = f"job {job}" if part is None else f"part {part} of job {job}"
        say(f"{who} has written nothing ({_phase(view)})", "dim")


def _cancel(target: Target, job: str) -> NoReturn:
    try:
        target.cancel(job)
        say(f"\njob {job} cancelled", "yellow")
    except JobError as error:
        say(f"\njob {job} was not cancelled: {error}", "red")
    raise typer.Exit(INTERRUPTED) from None


def _phases(target: Target, job: str) -> None:
    """On the error stream, so that output can be piped on."""
    last = ""
    try:
        for view in target.watch(job):
            if view["final"]:
                return
            if _phase(view) != last:
                last = _phase(view)
                say(f"job {job} {last}", "dim")
                warn_of_waiting(view)
    except JobError:  # whoever follows the output says so
        return


def warn_of_waiting(view: View) -> None:
    """For something that never comes, as long as nobody changes anything."""
    from optimus.model.reasons import NEVER_AS_IT_IS

    reason = view["reason"]
    if reason is not None and reason["code"] in NEVER_AS_IT_IS:
        told = f"Warning: as it is, it never starts: {reason['text']}"
        console(stderr=True).print(told, style="yellow", markup=False)


def _phase(view: View) -> str:
    reason = f": {view['reason']['text']}" if view.get("reason") else ""
    return f"{view['phase']}{reason}"
