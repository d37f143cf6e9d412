"""Words around the panes: the head, titles, the keys, and what is asked before a job is cancelled."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from rich.text import Text

from optimus.cli.job_tables import gpus, rough
from optimus.cli.top.gpu_grid import in_use
from optimus.cli.top.job_rows import group
from optimus.cli.top.pieces import Line, Piece, clean, cut, fit
from optimus.cli.top.world import World

KEYS = (
    ("Tab", "to the next pane: GPUs, queues, jobs"),
    ("↑ ↓ j k", "choose; also PgUp, PgDn, Home, End; a click on a GPU: its job"),
    ("Enter d", "describe the job; on a queue: only its jobs, or all again"),
    ("e", "explain: why it waits, what would start it, and when"),
    ("l", "logs, as they come"),
    ("s r", "suspend, resume"),
    ("c", "cancel; you are asked first"),
    ("+ -", "one replica more or less, at most"),
    ("/", "only jobs with these words; Esc shows all again"),
    ("o", "order: line, end, GPUs, age, queue, name"),
    ("q", "quit; jobs go on"),
)
MARKS = (
    ("A", "queue A has all of this GPU; see the letters of the queues"),
    ("a", "it has a part of it"),
    ("+", "several queues share it"),
    ("!", "it is being left"),
    ("○", "it is idle: held for a job that waits; a click says for which"),
    ("◆ ◇", "all or a part of it is of the chosen job"),
    ("·  ×", "free; the node is not ready"),
)
NUMBERS = (
    ("█ ▓ ░", "in use as guaranteed; borrowed; guaranteed and not in use"),
    ("guar.", "what the queue gets back whenever it asks"),
    ("share", "what it is due at the moment, of all that is there"),
    ("borrowed", "in use above the guarantee"),
    ("lent", "of its guarantee, what others have and is not idle"),
    ("in 12m", "when it ends, as it reports; quiet: it has long said nothing"),
)


def page() -> list[Line]:
    lines: list[Line] = []
    for title, rows in (("Keys", KEYS), ("GPUs", MARKS), ("Queues and jobs", NUMBERS)):
        lines += [
            (Piece(title, "bold"),),
            *((Piece("  " + fit(key, 10), "cyan"), Piece(text)) for key, text in rows),
            (),
        ]
    return lines[:-1]


def head(world: World, address: str, now_s: float, width: int) -> Text:
    used, there = in_use(world.nodes)
    groups = [group(view) for view in world.jobs.values()]
    facts = f"{gpus(used)} of {there} GPUs   {groups.count(0)} running   {groups.count(1)} waiting"
    if world.lost_s is not None:
        since = f"no answer since {rough(int((now_s - world.lost_s) * 1000))}, trying again"
        since += "; this is how it was" if world.seen else ""
        return Text.assemble((" optimus top ", "bold reverse"), ("  " + cut(since, width - 16), "red"))
    if not world.seen:
        return Text.assemble((" optimus top ", "bold reverse"), f"  waiting for {cut(address, width - 30)} …")
    if world.trouble:
        return Text.assemble(
            (" optimus top ", "bold reverse"), ("  " + cut(f"trouble: {world.trouble}", width - 16), "red")
        )
    end = "live "
    room = width - 13 - len(end)
    left = next((one for one in (f"  {facts}   {address}", f"  {facts}") if len(one) < room), cut(facts, room))
    return Text.assemble((" optimus top ", "bold reverse"), fit(left, room), (end, "green"))


def jobs_title(world: World, shown: int, order: str, words: str, only: str, queues: Collection[str] | None) -> str:
    parts = [f"Jobs {shown}" + (f" of {len(world.jobs)}" if shown != len(world.jobs) else ""), f"by {order}"]
    if only:
        parts.append(f"queue {only}" + ("" if queues or not world.seen else ": there is none"))
    if words:
        parts.append(f"/{words}")
    return f" {' · '.join(parts)} ".replace("[", r"\[")


def no_jobs(world: World, words: str, only: str) -> Line:
    if not world.seen:
        return (Piece("  Nothing is known yet. Start a scheduler:  optimus up", "dim"),)
    if world.jobs and (words or only):
        return (Piece("  No such jobs. Esc shows all of them.", "dim"),)
    return (Piece("  No jobs. Submit one:  optimus run --gpus 1 -- python -c 'print(1)'", "dim"),)


def before_cancelling(job: str, view: Mapping[str, Any]) -> str:
    running = view["runningReplicas"]
    loses = f"\nIts {running} running replica{'s get' if running > 1 else ' gets'} the grace to end." if running else ""
    return f"Cancel {clean(job)} ({view['phase']}, queue {view['queue']})?{loses}"


def next_size(view: Mapping[str, Any], by: int) -> int:
    """One replica more or less, or the next of its sizes; beyond them, what will be refused in words."""
    most, sizes = view["maxReplicas"], view.get("sizes") or ()
    above, below = [size for size in sizes if size > most], [size for size in sizes if size < most]
    if by > 0:
        return int(above[0]) if above else most + by
    return int(below[-1]) if below else max(most + by, 1)
