"""`optimus what-if`: today's world and a changed one, side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from optimus.cli.showing import Format, FormatOption, Printer, console, dump
from optimus.cli.target import Address
from optimus.drivers.sim.threads import one_thread_each

if TYPE_CHECKING:
    from optimus.cli.whatif_asking import Question
    from optimus.cli.whatif_report import WhatIfTold

INTERRUPTED = 130
World = Annotated[
    str,
    typer.Argument(
        metavar="WORLD",
        help="A scenario file, the folder of a journal, or a trace of `simulate`. Else the scheduler that runs.",
        show_default=False,
    ),
]
AddNodes = Annotated[
    list[str] | None,
    typer.Option(
        "--add-nodes",
        metavar="N[xGPUS][:MODEL]",
        help="So many more nodes, like those that are there or with so many GPUs: 2, 4x8, 4x8:a100; several times.",
    ),
]
RemoveNode = Annotated[
    list[str] | None,
    typer.Option("--remove-node", metavar="NAME", help="Without this node, or nodes such as 'gpu-0*'; several times."),
]
QuotaOption = Annotated[
    list[str] | None,
    typer.Option(
        "--queue",
        "--quota",
        metavar="QUEUE.FIELD=N",
        help="GPU guarantee, limit or weight: vision.guarantee=16; several times.",
    ),
]
Under = Annotated[str, typer.Option("--policy", metavar="NAME|FILE.py:NAME", help="Another policy.")]
Price = Annotated[float | None, typer.Option(metavar="PRICE", min=0, help="Of a GPU-hour: shows costs.")]
Ahead = Annotated[
    bool, typer.Option("--ahead", help="From the end of the journal into the future, instead of its past once more.")
]
At = Annotated[
    str, typer.Option(metavar="TIME|CYCLE", help="With --ahead: from this moment of the journal: 4711, 14:20, -10m.")
]
Samples = Annotated[int, typer.Option(metavar="N", min=1, help="Futures that are played, where run times are drawn.")]
Seed = Annotated[int, typer.Option(metavar="N", min=0, help="Of the run times that are drawn.")]
Horizon = Annotated[str, typer.Option(metavar="TIME", help="How far ahead, where the future is played.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notes.")]


def whatif(
    world: World = "",
    add_nodes: AddNodes = None,
    remove_node: RemoveNode = None,
    queue: QuotaOption = None,
    policy: Under = "",
    price: Price = None,
    ahead: Ahead = False,
    at: At = "",
    samples: Samples = 40,
    seed: Seed = 0,
    horizon: Horizon = "7d",
    address: Address = "",
    quiet: Quiet = False,
    output: FormatOption = Format.TABLE,
) -> None:
    """Change nodes, quotas or the policy, and see who waits, who uses what, and what it costs.

    Without WORLD it is tried on a copy of the scheduler that runs, which goes on, and played into the future from now.
    A journal or a trace is played once more as it was recorded and with the change. A scenario, or a journal with
    --ahead, is played into the future from where it stands, with the same drawn run times in both worlds.
    """
    one_thread_each()
    from optimus.cli import whatif_report
    from optimus.cli.whatif_asking import Question

    question = Question(
        world=world,
        add=tuple(add_nodes or ()),
        remove=tuple(remove_node or ()),
        quotas=tuple(queue or ()),
        policy=policy,
        price=price,
        ahead=ahead or bool(at),
        at=at,
        samples=samples,
        seed=seed,
        horizon=horizon,
        address=address,
    )
    try:
        told = _answered(question, quiet)
    except KeyboardInterrupt:
        console(stderr=True).print("Stopped.", style="yellow")
        raise typer.Exit(INTERRUPTED) from None
    if output in (Format.JSON, Format.YAML):
        dump(told, output)
    else:
        whatif_report.report(Printer(), told, wide=output is Format.WIDE, quiet=quiet)


def _answered(question: Question, quiet: bool) -> WhatIfTold:
    from optimus.cli.whatif_asking import answer

    with _progress(quiet) as tell:
        return answer(question, tell)


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[str], None]]:
    """On a terminal, what is being played."""
    errors = console(stderr=True)
    if quiet or not errors.is_terminal:
        yield lambda _text: None
        return
    with errors.status("reading") as status:
        yield status.update
