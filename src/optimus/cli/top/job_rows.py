"""Jobs as lines: who runs and until when, who waits and for what, who has ended."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from optimus.cli.job_tables import STYLES, done, ends, held, name, rough
from optimus.cli.top.pieces import Line, Piece, bar, cut, fit, fit_right
from optimus.client.progress import progress_of

View = dict[str, Any]
WAITS = ("Admitted", "Pending", "Preempted")
SUSPENDED = "Suspended"
RUNS = ("Running", "Rescaling", "Starting")
LONGEST_BAR = 24
LEAST_BAR = 6
CURSOR = "›"
NEVER = 1 << 62


def group(view: View) -> int:
    """Runs, waits, is suspended, has ended."""
    if view["final"]:
        return 3
    return 1 if view["phase"] in WAITS else 2 if view["phase"] == SUSPENDED else 0


def _in_line(view: View, _now_ms: int) -> tuple[Any, ...]:
    """What runs by when it started; what waits by priority and when it came; what has ended, the last one first."""
    place = group(view)
    if place == 3:
        return place, -(view["endedMs"] or 0)
    if place == 1:
        return place, -view["priority"], view["submittedMs"]
    return place, view["startedMs"] or view["submittedMs"]


def _by_end(view: View, now_ms: int) -> tuple[Any, ...]:
    left = progress_of(view, now_ms).left_ms
    return group(view), NEVER if left is None else left, view["submittedMs"]


ORDERS: dict[str, Callable[[View, int], tuple[Any, ...]]] = {
    "line": _in_line,
    "end": _by_end,
    "GPUs": lambda view, _: (group(view), -view["gpuMilli"], view["submittedMs"]),
    "age": lambda view, _: (group(view), -view["submittedMs"]),
    "queue": lambda view, now_ms: (view["queue"], *_in_line(view, now_ms)),
    "name": lambda view, _: (view["name"], view["namespace"]),
}


def chosen(
    jobs: Mapping[str, View], *, order: str, words: str, queues: Collection[str] | None, now_ms: int
) -> list[str]:
    """Names of the jobs that are shown, in order. Each of the words is in what is shown of it."""
    wanted = words.lower().split()
    found = [
        job for job, view in jobs.items() if (queues is None or view["queue"] in queues) and _has(job, view, wanted)
    ]
    key = ORDERS[order]
    return sorted(found, key=lambda job: (*key(jobs[job], now_ms), job))


def _has(job: str, view: View, words: Sequence[str]) -> bool:
    if not words:
        return True
    text = f"{job} {view['queue']} {view['phase']} {view['jobClass']}".lower()
    return all(word in text for word in words)


class Columns(NamedTuple):
    name: int
    queue: int
    job_class: int
    phase: int
    replicas: int
    gpus: int
    age: int
    rest: int


def columns_for(width: int, names: int = 99, queues: int = 99) -> Columns:
    """`names`, `queues`: as long as the longest one."""
    wide = width >= 110
    name_width = max(min(names, max(width // 5, 14)), 8)
    queue_width = max(min(queues, max(width // 10, 8)), 5)
    fixed = (11 if wide else 0, 13 if wide else 9, 9 if wide else 7, 5, 4)
    gaps = sum(one > 0 for one in (name_width, queue_width, *fixed))
    used = 2 + name_width + queue_width + sum(fixed) + gaps
    return Columns(name_width, queue_width, *fixed, max(width - used - 1, 0))


def header(columns: Columns) -> Line:
    wanted = "replicas" if columns.replicas > 7 else "repl."
    titles = [("job", columns.name), ("queue", columns.queue), ("class", columns.job_class), ("phase", columns.phase)]
    text = "  " + "".join(fit(title, width) + " " for title, width in titles if width)
    text += f"{fit(wanted, columns.replicas)} {fit_right('GPUs', columns.gpus)} {fit_right('age', columns.age)} "
    return (Piece(text + fit("done, ends, or why not", columns.rest), "dim"),)


def drawn(view: View, columns: Columns, now_ms: int, queue_style: str, *, is_chosen: bool) -> Line:
    phase = view["phase"]
    quiet = "dim" if view["final"] else ""
    cells = [
        Piece(f"{CURSOR} " if is_chosen else "  ", "bold"),
        Piece(fit(name(view), columns.name) + " ", quiet or "bold"),
        Piece(fit(view["queue"], columns.queue) + " ", quiet or queue_style),
    ]
    if columns.job_class:
        cells.append(Piece(fit(view["jobClass"], columns.job_class) + " ", "dim"))
    cells += [
        Piece(fit(phase, columns.phase) + " ", STYLES.get(phase, "")),
        Piece(fit(replicas(view), columns.replicas) + " ", quiet),
        Piece(fit_right(held(view), columns.gpus) + " ", quiet),
        Piece(fit_right(rough(now_ms - view["submittedMs"]), columns.age) + " ", quiet),
    ]
    return (*cells, *how_it_goes(view, now_ms, columns.rest))


def replicas(view: View) -> str:
    """Running and wanted: `4/8`, elastic `4/2–8`, of an array the parts that are done."""
    if view["counts"]:
        return f"{view['counts'].get('Succeeded', 0)}/{sum(view['counts'].values())}"
    least, most = view["minReplicas"], view["maxReplicas"]
    wanted = str(most) if least == most else f"{least}–{most}"
    return wanted if view["final"] else f"{view['runningReplicas']}/{wanted}"


def how_it_goes(view: View, now_ms: int, width: int) -> Line:
    """How far it is and when it ends; why it waits; how it ended."""
    why = (view["reason"] or {}).get("text", "")
    if view["final"]:
        ended = f"{rough(now_ms - view['endedMs'])} ago" if view["endedMs"] else ""
        said = f"{ended}  {why}" if why else ended
        return (Piece(cut(said, width), "red" if view["phase"] == "Failed" else "dim"),)
    told = progress_of(view, now_ms)
    if view["phase"] not in RUNS and not (view["counts"] and told.fraction):
        so_far = f"{done(told)} done, " if told.fraction else ""
        waits = why or ("until it is resumed" if view["phase"] == SUSPENDED else "")
        return (Piece(cut((so_far + waits).removesuffix(", "), width), ""),)
    if told.fraction is None:
        ran = rough(now_ms - view["sinceMs"]) if view["sinceMs"] else ""
        return (Piece(cut(why or (f"for {ran}" if ran else ""), width), "" if why else "dim"),)
    end = ends(told)
    after = f" {fit_right(done(told), 4)}" + (f"  {end}" if end else "")
    steps = f"  {told.step:,} of {told.total:,}" if told.step is not None and told.total else ""
    if width >= LONGEST_BAR + 14 + len(steps):
        after = fit(after, 14) + steps
    room = min(width - max(len(after), 13), LONGEST_BAR)
    drawn_bar = (Piece(bar(told.fraction, room), "green"),) if room >= LEAST_BAR else ()
    return (*drawn_bar, Piece(cut(after if drawn_bar else after.strip(), width), "yellow" if told.quiet_ms else ""))


def _on(devices: list[int]) -> str:
    """Empty where nobody tells which: a cluster counts them."""
    return f"[{','.join(map(str, sorted(set(devices))))}]" if devices else ""


def in_full(view: View) -> str:
    """Of the chosen job: what its line had no room for."""
    why = view["reason"]
    if why and why["text"]:
        return f"{name(view)}: {why['text']}"
    places: dict[str, list[int]] = {}
    for one in view["replicas"]:
        if one["node"]:
            places.setdefault(one["node"], []).extend(one["devices"])
    where = ", ".join(f"{node} {_on(gpu)}".rstrip() for node, gpu in sorted(places.items()))
    command = " ".join(view["command"])
    return f"{name(view)}: on {where}  {command}" if where else f"{name(view)}: {command}"
