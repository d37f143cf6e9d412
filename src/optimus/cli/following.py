"""Following: the output of a job as it comes, and what happens to it meanwhile."""

from __future__ import annotations

import threading
import time
from typing import Any

import typer
from rich.text import Text

from optimus.cli.showing import console
from optimus.client import ApiError, Connection, Unreachable, waiting

COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "bright_red", "bright_cyan", "bright_magenta")
LOOK_S = 0.3


def to_the_end(target: Connection, job: str) -> str:
    """Show output and changes of phase until it is over. Ctrl-C cancels. Returns the last phase."""
    told = console(stderr=True)
    told.print(f"job {job} submitted", style="dim")
    watching = threading.Thread(target=_phases, args=(Connection(target.address, target.token), job), daemon=True)
    watching.start()
    try:
        show(target, job, follow=True, tail=None, replica="")
        watching.join(10)
        view = target.get(f"/v1/jobs/{job}")
    except KeyboardInterrupt:
        target.delete(f"/v1/jobs/{job}")
        told.print(f"\njob {job} cancelled", style="yellow")
        raise typer.Exit(130) from None
    phase = str(view["phase"])
    reason = f": {view['reason']['text']}" if view.get("reason") else ""
    told.print(f"job {job} {phase}{reason}", style="green" if phase == "Succeeded" else "red", markup=False)
    return phase


def show(target: Connection, job: str, *, follow: bool, tail: int | None, replica: str) -> None:
    """Lines of all replicas; each says whose it is where there are several."""
    out = console()
    view = target.get(f"/v1/jobs/{job}")
    several = view["maxReplicas"] > 1 or bool(view["counts"])
    colours: dict[str, str] = {}
    for line in waiting.lines(target, job, follow=follow, tail=tail, replica=replica):
        if not several:
            out.print(line["text"], markup=False, highlight=False)
            continue
        colour = colours.setdefault(line["replica"], COLOURS[len(colours) % len(COLOURS)])
        out.print(Text(line["replica"], style=colour) + Text(" │ ", style="dim") + Text(line["text"]))


def _phases(target: Connection, job: str) -> None:
    """On the error stream, so that output can be piped on."""
    told, last = console(stderr=True), ("", "")
    while True:
        try:
            view: dict[str, Any] = target.get(f"/v1/jobs/{job}")
        except (ApiError, Unreachable):
            return
        reason = (view.get("reason") or {}).get("text", "")
        now = (str(view["phase"]), str(reason))
        if now != last and not view["final"]:
            told.print(f"job {job} {now[0]}{': ' + now[1] if now[1] else ''}", style="dim", markup=False)
        last = now
        if view["final"]:
            return
        time.sleep(LOOK_S)
