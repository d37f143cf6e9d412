"""`optimus bench`: how fast the scheduler is on this machine, or on a cluster."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import Struct
from rich.text import Text

from optimus.cli.showing import Format, FormatOption, Printer, console, dump, example, tracked
from optimus.cli.target import refuse
from optimus.drivers.sim.threads import one_thread_each

if TYPE_CHECKING:
    from optimus.measuring.binding import Measured

app = typer.Typer(
    help="Measure how fast the scheduler is on this machine.",
    epilog=example("optimus bench decide", "optimus bench kube --context kind-bench"),
    no_args_is_help=True,
    rich_markup_mode=None,
)
Only = Annotated[
    list[str] | None,
    typer.Argument(metavar="ROW…", help="Only these: empty, shapes, steady, reclaim, consolidate."),
]


Context = Annotated[
    str, typer.Option("--context", metavar="NAME", help="The cluster, by its name in the kubeconfig. Must be said.")
]
Kubeconfig = Annotated[str, typer.Option("--kubeconfig", metavar="FILE", help="Else KUBECONFIG, or that of the user.")]
Nodes = Annotated[int, typer.Option(min=1, max=5_000, metavar="N", help="Nodes of eight GPUs that are made for it.")]
Pods = Annotated[int, typer.Option(min=2, max=40_000, metavar="N", help="Pods of one GPU, in gangs of twenty.")]
Yes = Annotated[bool, typer.Option("-y", "--yes", help="Do not ask before.")]
Anyway = Annotated[
    bool, typer.Option("--anyway", help="Also on a cluster with real nodes, or one that Optimus is installed on.")
]


class Row(Struct, frozen=True, rename="camel"):
    row: str
    title: str
    seconds: float
    measured_seconds: float
    """When this version was made, on the machine of `measuredOn`."""
    target_seconds: float
    peak_mib: int


class Bench(Struct, frozen=True, rename="camel"):
    machine: dict[str, str]
    measured_on: dict[str, str]
    rows: tuple[Row, ...]


@app.command(epilog=example("optimus bench decide", "optimus bench decide empty reclaim -o json"))
def decide(row: Only = None, output: FormatOption = Format.TABLE) -> None:
    """Let the brain decide five large worlds, and say how long each takes. About a minute.

    Times are CPU seconds of one core, the best of three.
    """
    one_thread_each()
    from optimus.measuring.decide import MEASURED, ROWS, in_own_process
    from optimus.measuring.timing import machine

    for name in row or ():
        if name not in ROWS:
            raise typer.BadParameter(f"there is no row {name}; known are {', '.join(ROWS)}", param_hint="ROW")
    chosen = [name for name in ROWS if not row or name in row]
    before: dict[str, Any] = json.loads(MEASURED.read_text(encoding="utf-8"))
    here = machine()
    found = []
    for name in tracked(chosen, len(chosen), "measuring", lambda name: f"measuring {name}", at_once=True):
        title, target = ROWS[name]
        try:
            told = in_own_process(name)
        except subprocess.CalledProcessError as error:
            why = (error.stderr or "").strip().splitlines() or [f"it ended with {error.returncode}"]
            console(stderr=True).print(f"Error: {name} could not be measured: {why[-1]}", style="red", markup=False)
            raise typer.Exit(1) from None
        measured = before["rows"][name]["seconds"]
        found.append(Row(name, title, round(told["seconds"], 3), measured, target, told["peak_mib"]))
    bench = Bench(here, before["machine"], tuple(found))
    if output in (Format.JSON, Format.YAML):
        dump(bench, output)
    else:
        _show(Printer(), bench)


@app.command(
    epilog=example(
        "optimus bench kube --context kind-bench",
        "optimus bench kube --context kwok --nodes 500 --pods 4000 --yes -o json",
    )
)
def kube(
    context: Context = "",
    nodes: Nodes = 125,
    pods: Pods = 1_000,
    kubeconfig: Kubeconfig = "",
    yes: Yes = False,
    anyway: Anyway = False,
    output: FormatOption = Format.TABLE,
) -> None:
    """Bind pods on a cluster: by a bare loop, then by `optimus controller`; and how much of the one the other reaches.

    It makes a namespace, nodes that only seem to be there, and pods of one GPU that fit nowhere else. Nothing runs, and
    all of it is removed at the end, also after Ctrl-C. A cluster with real nodes is refused.
    """
    from optimus.kube import KubeError
    from optimus.measuring.binding import GPUS, BenchError, Where, measure

    if not context:
        raise typer.BadParameter(
            "say which cluster: --context NAME (kubectl config get-contexts)", param_hint="--context"
        )
    if pods > nodes * GPUS:
        raise typer.BadParameter(
            f"{pods} pods of one GPU do not fit on {nodes} nodes of {GPUS}: --nodes {-(-pods // GPUS)}",
            param_hint="--pods",
        )
    if not yes and not sys.stdin.isatty():
        raise typer.BadParameter("nobody is there to be asked: add --yes", param_hint="--yes")
    if not yes and not typer.confirm(
        f"Make {nodes} nodes and three times {pods} pods in {context}, and remove them?", err=True
    ):
        raise typer.Exit(1)
    where = Where(kubeconfig=kubeconfig, context=context)
    errors = console(stderr=True)

    def say(text: str) -> None:
        errors.print(f"{text} …", style="dim", markup=False)

    try:
        measured = asyncio.run(measure(where, nodes=nodes, pods=pods, anyway=anyway, say=say))
    except (BenchError, KubeError) as error:
        refuse(str(error))
    if output in (Format.JSON, Format.YAML):
        dump(measured, output)
    else:
        _show_binding(Printer(), measured)


def _show_binding(printer: Printer, measured: Measured) -> None:
    rows = [
        (name, f"{one.pods_per_second}", f"{one.from_start_per_second}", f"{one.first_after_seconds} s")
        for name, one in (("a bare loop of binds", measured.bare), ("optimus controller", measured.optimus))
    ]
    printer.columns(rows, header=["", "pods/s", "from its start", "first after"], right=(1, 2, 3))
    printer.line()
    what = f"{measured.pods} pods on {measured.nodes} nodes of {measured.server}"
    printer.paragraph(f"{what}: {measured.ratio:g} of what a bare loop reaches")
    printer.paragraph(_told("from here", measured.machine), "dim")


def _show(printer: Printer, bench: Bench) -> None:
    rows = [
        (
            Text(f"{one.seconds:.2f} s", style="green" if one.seconds <= one.target_seconds else "yellow"),
            f"{one.measured_seconds:.2f} s",
            f"{one.target_seconds:.1f} s",
            f"{one.peak_mib} MiB",
            one.title,
        )
        for one in bench.rows
    ]
    printer.columns(rows, header=["here", "measured", "target", "memory", "one cycle of"], right=(0, 1, 2, 3))
    printer.line()
    for what, machine in (("here", bench.machine), ("measured", bench.measured_on)):
        printer.paragraph(_told(what, machine), "dim")


def _told(what: str, machine: dict[str, str]) -> str:
    return f"{what}: {machine['cpu']}, Python {machine['python']}, load {machine['load_when_started']} when it started"
