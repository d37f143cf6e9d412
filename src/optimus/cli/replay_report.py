"""A replay in a terminal: how many cycles agree, where the first one does not, and who decided how much."""

from __future__ import annotations

from collections.abc import Sequence

from optimus.cli.replaying import MomentTold, ReplayTold, Tally
from optimus.cli.scenario_report import print_cycle
from optimus.cli.showing import Printer
from optimus.drivers.sim.wording import count
from optimus.engine.journal import Flaw, FlawKind
from optimus.model.plans import QueueShare
from optimus.model.units import format_resource

COLUMNS = ("starts", "grows", "shrinks", "evictions", "moves", "refused")


def report(printer: Printer, told: ReplayTold | MomentTold, *, wide: bool) -> None:
    if isinstance(told, MomentTold):
        _report_moment(printer, told)
    else:
        _report_replay(printer, told, wide=wide)


def _report_replay(printer: Printer, told: ReplayTold, *, wide: bool) -> None:
    printer.line(told.folder, "bold")
    if told.cycles:
        policies = ("policy " if len(told.policies) == 1 else "policies ") + ", ".join(told.policies)
        numbers = f"cycles {told.first}–{told.last}" if told.cycles > 1 else f"cycle {told.first}"
        printer.line(f"{numbers}, {told.begins} to {told.ends}, {policies}")
    _print_flaws(printer, told.flaws)
    printer.line()
    agreed = f"{told.equal} of {count(told.cycles, 'cycle')}"
    if told.policy:
        printer.line(f"{told.policy} decides {agreed} as recorded", "bold")
        printer.paragraph(
            "Each is decided from the situation as it was recorded; what would follow is not played.", "dim"
        )
    elif told.equal == told.cycles:
        printer.line(f"✓ {agreed} agree", "bold green")
    else:
        printer.line(f"✗ {agreed} agree", "bold red")
    shown = told.differences if wide else told.differences[:1]
    for number, one in enumerate(shown):
        first = "first difference: " if number == 0 else ""
        printer.paragraph(f"{first}cycle {one.cycle}, {one.clock}: {one.text}", indent=2)
    if len(told.differences) > len(shown):
        printer.paragraph(f"{len(told.differences) - 1} more; -o wide shows all", "dim", indent=2)
    if told.policy and told.cycles:
        _print_tallies(printer, told.tallies, told.cycles)


def _print_tallies(printer: Printer, tallies: Sequence[Tally], cycles: int) -> None:
    """`waiting` is what a look at the line would have shown, on average."""
    rows = [
        (tally.policy, *(str(getattr(tally, name)) for name in COLUMNS), _mean(tally.waiting, cycles))
        for tally in tallies
    ]
    header = ("policy", *COLUMNS, "waiting")
    printer.line()
    printer.columns(rows, header=header, right=range(1, len(header)))


def _mean(total: int, number: int) -> str:
    tenths = (total * 10 + number // 2) // number
    return f"{tenths // 10}.{tenths % 10}"


def _report_moment(printer: Printer, told: MomentTold) -> None:
    _print_flaws(printer, told.flaws)
    print_cycle(printer, told.cycle, note=f"policy {told.policy}, seed {told.seed}")
    rows = [
        (one.queue, one.pool, one.resource, *(format_resource(one.resource, n) for n in _amounts(one)))
        for one in told.shares
    ]
    printer.line()
    printer.columns(rows, header=("queue", "pool", "resource", "has", "share", "wants"), right=(3, 4, 5))
    printer.line()
    if told.difference:
        printer.paragraph(f"✗ decided again: {told.difference}", "bold red")
    else:
        printer.line("✓ decided again: the same plan", "green")
    if told.other is not None:
        printer.line()
        printer.line(f"{told.other_policy} would have decided:", "bold")
        print_cycle(printer, told.other)


def _amounts(share: QueueShare) -> tuple[int, int, int]:
    return share.allocated, share.share, share.demand


def _print_flaws(printer: Printer, flaws: Sequence[Flaw]) -> None:
    for flaw in flaws:
        harmless = flaw.kind in (FlawKind.TORN, FlawKind.GAP)
        printer.paragraph(f"{flaw.kind}: {flaw}", "yellow" if harmless else "red")
