"""What `optimus simulate` shows: problems of the trace, the study, and how far it is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from optimus.cli.showing import Format, Printer, console, dump
from optimus.cli.simulate_files import at_loads
from optimus.drivers.sim.report import as_json, by_load, print_study
from optimus.drivers.sim.report.terminal import print_table
from optimus.drivers.sim.sweeping import Run, Scene, Told, Watcher
from optimus.drivers.sim.traces.trace import TraceProblem, Verdict

MOST_KINDS = 8
MOST_LINES = 5
_PARTICULAR = re.compile(r"'[^']*'|\S*\d\S*")
"""What differs between two problems of one kind: numbers, and names with numbers in them."""


def show(printer: Printer, told: Sequence[Told], *, wide: bool, quiet: bool) -> None:
    if not quiet:
        show_problems(printer, told, wide=wide)
    for number, one in enumerate(told):
        if number:
            printer.line()
        if one.study is not None:
            print_study(printer.console, one.study, wide=wide)
        if not quiet:
            for note in one.notes:
                printer.paragraph(note, "yellow")
    loads = at_loads(told)
    if len(loads) > 1:
        printer.line()
        print_table(printer.console, by_load(loads))


def dump_study(told: Told, output: Format) -> None:
    if told.study is not None:
        dump(json.loads(as_json(told.study)), output)


# -- problems -------------------------------------------------------------------------------------------------------


def show_problems(printer: Printer, told: Sequence[Told], *, wide: bool = False) -> None:
    """By file and kind, with the first lines; all of them are in the JSON and on the page."""
    most = None if wide else MOST_KINDS
    problems = dict.fromkeys(problem for one in told for scene in one.scenes for problem in scene.trace.problems)
    if not problems:
        return
    kinds: dict[tuple[str, str, str], list[TraceProblem]] = {}
    for problem in problems:
        kind = _PARTICULAR.sub("…", problem.message)
        kinds.setdefault((problem.file, str(problem.verdict), kind), []).append(problem)
    ordered = sorted(kinds.values(), key=lambda found: (-len(found), found[0].file, found[0].line))
    left = sum(problem.verdict is Verdict.LEFT_OUT for problem in problems)
    out = f", {left} job{'s are' if left > 1 else ' is'} left out" if left else ""
    printer.line(Text(f"Problems of the traces: {len(problems)}{out}", style="bold"))
    printer.columns(
        [(str(len(found)), str(found[0].verdict), _places(found), found[0].message) for found in ordered[:most]],
        header=("", "what", "where", "for example"),
        right=(0,),
    )
    rest = ordered[len(ordered) if most is None else most :]
    if rest:
        lines = sum(map(len, rest))
        told_more = f"and {lines} more of {len(rest)} other kind{'s' * (len(rest) > 1)}"
        printer.line(f"{told_more}; -o wide shows every kind, --json FILE every line", "dim")
    printer.line()


def _places(found: Sequence[TraceProblem]) -> str:
    lines = [str(problem.line) for problem in found if problem.line]
    if not lines:
        return found[0].file
    more = "…" if len(lines) > MOST_LINES else ""
    return f"{found[0].file}:{','.join(lines[:MOST_LINES])}{more}"


# -- progress -------------------------------------------------------------------------------------------------------


class _Silent:
    def began(self, run: Run) -> None: ...

    def went_on(self, run: Run, jobs_over: int) -> None: ...

    def ended(self, run: Run) -> None: ...


class _Bars:
    """One over all runs, and one for each that is being played."""

    def __init__(self, progress: Progress, scenes: Sequence[Scene], runs: Sequence[Run]) -> None:
        self._progress = progress
        self._scenes = scenes
        self._all = progress.add_task("runs", total=len(runs))
        self._bars: dict[int, TaskID] = {}

    def began(self, run: Run) -> None:
        scene = self._scenes[run.scene]
        load = "" if scene.load is None else f", load {scene.load:g}"
        name = f"  {run.contender.label} · {scene.name}{load}"
        self._bars[run.number] = self._progress.add_task(name, total=len(scene.trace.jobs))

    def went_on(self, run: Run, jobs_over: int) -> None:
        self._progress.update(self._bars[run.number], completed=jobs_over)

    def ended(self, run: Run) -> None:
        if run.number in self._bars:
            self._progress.remove_task(self._bars.pop(run.number))
        self._progress.advance(self._all)


@contextmanager
def watching(scenes: Sequence[Scene], runs: Sequence[Run], *, quiet: bool) -> Iterator[Watcher]:
    errors = console(stderr=True)
    if quiet or not errors.is_terminal:
        yield _Silent()
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:.0f}/{task.total:.0f}"))
    with Progress(*columns, TimeElapsedColumn(), console=errors, transient=True) as progress:
        yield _Bars(progress, scenes, runs)


# -- what there is --------------------------------------------------------------------------------------------------


def show_list(printer: Printer) -> None:
    from importlib.metadata import entry_points

    from optimus.decide import policies
    from optimus.drivers.sim.peers.registry import PEERS
    from optimus.drivers.sim.sweeping.contenders import ALIASES, PEER
    from optimus.drivers.sim.traces.formats import FORMATS
    from optimus.engine.policy_loading import ENTRY_POINT_GROUP

    traces = [(form.name, form.doc + _options(form.options)) for form in FORMATS.values()]
    mix = (
        "jobs as large clusters publish them, drawn by a seed; options: jobs, days, gpus, gpus_per_node, load, "
        "tenants, elastic, shared, deadlines, models"
    )
    ours = [(name, policies.get(name).doc) for name in policies.names()]
    ours += [(point.name, f"installed: {point.value}") for point in entry_points(group=ENTRY_POINT_GROUP)]
    ours.append(("FILE.py:NAME", "one of your own; see docs/guides/write-a-policy.md"))
    known = {name for name, _ in ours}
    peers = [(f"{PEER}{peer.name}" if peer.name in known else peer.name, peer.line()) for peer in PEERS.values()]
    peers += [(alias, f"short for {name}") for alias, name in ALIASES.items()]
    sections = (
        ("Traces (TRACE, --format)", [("synthetic", mix), *traces]),
        ("Policies of Optimus (--policy)", ours),
        ("Peers: what others have published (--policy)", peers),
    )
    width = max(len(name) for _, rows in sections for name, _ in rows)
    for number, (title, rows) in enumerate(sections):
        if number:
            printer.line()
        printer.line(Text(title, style="bold"))
        printer.columns([(Text(name, style="cyan"), about) for name, about in rows], indent=2, least=(width,))


def _options(options: Sequence[str]) -> str:
    return f"; options: {', '.join(options)}" if options else ""
