"""A played scenario in a terminal: cycle by cycle like a story, then who is where, then what was expected.

Why: the reader wants to know what was decided and why, not what the record looks like.
Owns: which lines are worth showing, and folding fifty equal lines into one.
Must not: be read by programs; `-o json` is for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.text import Text

from optimus.api.errors import FileError, SetAside
from optimus.cli.scenario_tables import print_queues, print_workloads
from optimus.cli.showing import Printer
from optimus.drivers.sim.outcome import CycleTold, Outcome
from optimus.drivers.sim.wording import count, fold, fold_counted, short, shorten
from optimus.model.reasons import Code

VERBS = {
    "Start": ("starts", "bold green"),
    "Grow": ("grows", "green"),
    "Hold": ("room held", "cyan"),
    "Shrink": ("shrinks", "yellow"),
    "Evict": ("evicted", "bold magenta"),
    "Move": ("moves", "bold blue"),
    "Drop": ("gives up", "magenta"),
    "Reject": ("refused", "bold red"),
}
SAID_BY_ACTION = {str(Code.WAITING_FOR_ROOM), str(Code.STOPPING)}
WIDEST_NAME = 16
Told = tuple[str, str, str, str]
"""Verb, its style, whom it is about, what is said."""


def report(printer: Printer, outcomes: Sequence[Outcome], *, wide: bool) -> None:
    if len(outcomes) == 1 or wide:
        for i, outcome in enumerate(outcomes):
            if i:
                printer.line()
            tell(printer, outcome, wide=wide)
    else:
        for outcome in outcomes:
            _summarise(printer, outcome)
    if len(outcomes) > 1:
        failed = sum(not outcome.ok for outcome in outcomes)
        printer.line()
        text = f"{count(len(outcomes), 'scenario')}: {len(outcomes) - failed} passed, {failed} failed"
        printer.line(Text(text, style="bold red" if failed else "bold green"))


def tell(printer: Printer, outcome: Outcome, *, wide: bool) -> None:
    printer.line(outcome.name, "bold")
    if outcome.description:
        printer.paragraph(outcome.description.strip(), "italic")
    print_errors(printer, outcome.errors, outcome.set_aside)
    _print_cycles(printer, outcome.cycles, wide=wide)
    if not outcome.crash:
        print_workloads(printer, outcome, wide=wide)
        print_queues(printer, outcome, wide=wide)
    printer.line()
    _print_verdict(printer, outcome)


def print_errors(
    printer: Printer, errors: Sequence[FileError], set_aside: Sequence[SetAside] = (), indent: int = 0
) -> None:
    """Unannounced errors first; the announced ones are only noted."""
    unexpected = [error for error in errors if not error.expected]
    for error in unexpected:
        printer.paragraph(str(error), "red", indent=indent)
    announced = len(errors) - len(unexpected)
    if announced:
        printer.paragraph(f"{count(announced, 'error')} that the file announces", "dim", indent=indent)
    if set_aside:
        names = fold(dict.fromkeys(f"{piece.kind} {piece.name}".strip() for piece in set_aside))
        printer.paragraph(f"set aside: {names}", "dim", indent=indent)


# -- cycles -----------------------------------------------------------------------------------------------------


def _print_cycles(printer: Printer, cycles: Sequence[CycleTold], *, wide: bool) -> None:
    """Cycles in which nothing happens and nobody has anything to say share a line."""
    known: dict[str, str] = {}
    told: list[list[Told]] = []
    for cycle in cycles:
        told.append(list(_lines(cycle, known, wide=wide)))
        known = {wait.workload: wait.reason.text for wait in cycle.waiting}
    widths = [max((len(line[i]) for lines in told for line in lines), default=0) for i in (0, 2)]
    widths[1] = min(widths[1], WIDEST_NAME)
    quiet: list[CycleTold] = []
    for cycle, lines in zip(cycles, told, strict=True):
        if not lines and not cycle.note and not wide:
            quiet.append(cycle)
            continue
        _print_quiet(printer, quiet)
        quiet = []
        _print_cycle(printer, cycle, lines, widths)
    _print_quiet(printer, quiet)


def print_cycle(printer: Printer, cycle: CycleTold, note: str = "") -> None:
    """One cycle by itself, with the reason of everybody who waits."""
    lines = list(_lines(cycle, {}, wide=True))
    widths = [max((len(line[i]) for line in lines), default=0) for i in (0, 2)]
    _print_cycle(printer, cycle, lines, (widths[0], min(widths[1], WIDEST_NAME)), note)


def cycle_lines(cycle: CycleTold, known: dict[str, str]) -> list[tuple[Text, Text, Text]]:
    """Verb, whom, what; `known` is what those that wait were told after the cycle before."""
    return [_styled(line) for line in _lines(cycle, known, wide=False)]


def _styled(line: Told) -> tuple[Text, Text, Text]:
    verb, style, whom, text = line
    return Text(verb, style=style), Text(whom, style="bold"), Text(text)


def _print_cycle(printer: Printer, cycle: CycleTold, lines: list[Told], widths: Sequence[int], note: str = "") -> None:
    printer.line()
    head = Text(f"cycle {cycle.number}", style="bold") + Text(f"  {cycle.clock}", style="bold cyan")
    printer.columns([(head, Text(note or cycle.note.strip(), style="italic"))])
    if not lines:
        printer.line(Text("  nothing to do", style="dim"))
    printer.columns([_styled(line) for line in lines], indent=2, least=widths)


def _print_quiet(printer: Printer, cycles: list[CycleTold]) -> None:
    if not cycles:
        return
    numbers = f"cycle {cycles[0].number}" if len(cycles) == 1 else f"cycles {cycles[0].number}–{cycles[-1].number}"
    clocks = cycles[0].clock if len(cycles) == 1 else f"{cycles[0].clock}–{cycles[-1].clock}"
    printer.line()
    printer.line(Text(numbers, style="bold") + Text(f"  {clocks}", style="bold cyan") + Text("  nothing to do", "dim"))


def _lines(cycle: CycleTold, known: dict[str, str], *, wide: bool) -> Iterator[Told]:
    """`known`: what was said about those that wait after the cycle before."""
    yield from _folded((line.kind, "yellow", line.subject, line.text) for line in cycle.events)
    yield from _folded((*VERBS[action.kind], action.workload, action.text) for action in cycle.actions)
    acted = {action.workload: action.kind for action in cycle.actions}
    waits: list[Told] = []
    unchanged = 0
    for wait in cycle.waiting:
        if acted.get(wait.workload) == "Reject" or (wait.workload in acted and wait.reason.code in SAID_BY_ACTION):
            continue
        if known.get(wait.workload) == wait.reason.text and not wide:
            unchanged += 1
            continue
        text = shorten(wait.reason.text)
        if wait.reservation is not None and wait.reason.code not in (Code.RESERVED, Code.FASTER_LATER):
            text += f"; reserved for about {wait.reservation.clock}"
        waits.append(("waits", "yellow", wait.workload, text))
    yield from _folded(waits)
    if unchanged:
        yield ("waits", "dim", f"{unchanged} more", "as before")
    for condition in cycle.conditions:
        yield ("condition", "red", condition.code, f"{condition.subject}: {condition.message}")
    for problem in cycle.problems:
        yield ("not used", "red", "", problem)
    if not cycle.complete:
        yield ("cut short", "red", "", f"the work budget was used up: {', '.join(cycle.unreached)}")


def _folded(lines: Iterable[Told]) -> Iterator[Told]:
    """Equal sentences about several become one."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for verb, style, whom, text in lines:
        groups.setdefault((verb, style, text), []).append(short(whom))
    for (verb, style, text), names in groups.items():
        yield verb, style, fold_counted(names), text


# -- verdict ----------------------------------------------------------------------------------------------------


def _print_verdict(printer: Printer, outcome: Outcome) -> None:
    printer.line(_verdict(outcome))
    for failure in outcome.failures:
        printer.paragraph(shorten(str(failure)), "red", indent=2)
    if outcome.crash:
        printer.paragraph(f"{', '.join(outcome.files)}: {outcome.crash}", "red", indent=2)


def _verdict(outcome: Outcome) -> Text:
    wrong = sum(not error.expected for error in outcome.errors)
    places = {(failure.path, failure.line, failure.column, failure.cycle) for failure in outcome.failures}
    if outcome.crash:
        return Text("✗ could not be played", style="bold red")
    if places:
        whole = f"{len(places)} of {count(outcome.checked, 'expectation')} {_verb(len(places))} not hold"
        return Text(f"✗ {whole}", style="bold red")
    if wrong:
        played = "" if outcome.cycles else "not played: "
        return Text(f"✗ {played}{count(wrong, 'error')} in the file", style="bold red")
    if not outcome.checked:
        return Text("✓ played; the file expects nothing", style="green")
    return Text(
        f"✓ {count(outcome.checked, 'expectation')} {'holds' if outcome.checked == 1 else 'hold'}", "bold green"
    )


def _verb(number: int) -> str:
    return "does" if number == 1 else "do"


def _summarise(printer: Printer, outcome: Outcome) -> None:
    verdict = _verdict(outcome)
    mark, rest = verdict[:2], verdict[2:]
    cycles = count(len(outcome.cycles), "cycle")
    printer.line(mark + Text(", ".join(outcome.files), style="bold") + Text(f"  {cycles}, ") + rest)
    if outcome.ok:
        return
    print_errors(printer, outcome.errors, indent=4)
    for failure in outcome.failures:
        printer.paragraph(shorten(str(failure)), "red", indent=4)
    if outcome.crash:
        printer.paragraph(outcome.crash, "red", indent=4)
