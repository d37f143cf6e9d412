"""What `optimus scenario check` finds in files."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct
from rich.text import Text

from optimus.api.errors import FileError, SetAside
from optimus.cli.scenario_report import print_errors
from optimus.cli.showing import Format, Printer, dump
from optimus.drivers.sim.playing import load_story
from optimus.drivers.sim.wording import count


class Checked(Struct, frozen=True, kw_only=True, rename="camel"):
    files: tuple[str, ...]
    ok: bool
    name: str
    nodes: int
    queues: int
    workloads: int
    cycles: int
    errors: tuple[FileError, ...]
    set_aside: tuple[SetAside, ...]

    def summary(self) -> str:
        """`2 nodes, 3 queues, 3 workloads, 3 cycles`."""
        sizes = (("node", self.nodes), ("queue", self.queues), ("workload", self.workloads), ("cycle", self.cycles))
        return ", ".join(count(number, noun) for noun, number in sizes)


class AllChecked(Struct, frozen=True, kw_only=True):
    version: int = 1
    ok: bool
    scenarios: tuple[Checked, ...]


def check_world(files: tuple[Path, ...]) -> Checked:
    loaded = load_story(*files)
    scenario = loaded.scenario
    return Checked(
        files=tuple(map(str, files)),
        ok=not loaded.unexpected,
        name=scenario.name,
        nodes=len(scenario.nodes),
        queues=len(scenario.queues),
        workloads=len(scenario.workloads),
        cycles=len(scenario.cycles),
        errors=loaded.errors,
        set_aside=loaded.set_aside,
    )


def report_checks(checked: list[Checked], output: Format) -> None:
    if output in (Format.JSON, Format.YAML):
        dump(AllChecked(ok=all(one.ok for one in checked), scenarios=tuple(checked)), output)
        return
    printer = Printer()
    for one in checked:
        mark = Text("✓ ", style="green") if one.ok else Text("✗ ", style="red")
        unexpected = sum(not error.expected for error in one.errors)
        found = one.summary() if one.ok else count(unexpected, "error")
        printer.columns([(mark + Text(", ".join(one.files), style="bold"), found)])
        print_errors(printer, one.errors, one.set_aside, indent=4)
