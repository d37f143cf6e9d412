"""`optimus top`: the command."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from optimus.cli.showing import console
from optimus.cli.target import Address, connection_to, reached
from optimus.cli.top.watching import Changes, Source, Stream
from optimus.client.connection import find_name
from optimus.client.targets import Target, is_cluster, target_of

OnlyQueue = Annotated[str, typer.Option("--queue", metavar="NAME", help="Jobs of this queue, and of those below it.")]


def top(queue: OnlyQueue = "", address: Address = "") -> None:
    """Watch GPUs, queues and jobs live; explain, suspend and cancel jobs with a key.

    Needs a terminal. It waits for a scheduler that is not up, and finds it again after a restart.
    """
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        told = "Error: `optimus top` needs a terminal: into a pipe or a file, use `optimus get jobs` (or -o json)"
        console(stderr=True).print(told, style="red", markup=False)
        raise typer.Exit(1)
    if is_cluster(find_name(address)):
        with reached(address) as cluster:
            _run(Changes(cluster), cluster, queue, address)
        return
    _run(Stream(connection_to(address)), target_of(connection_to(address)), queue, address)


def _run(source: Source, target: Target, queue: str, address: str) -> None:
    for said in ("COLUMNS", "LINES"):  # the terminal knows better, and may be resized
        os.environ.pop(said, None)
    from optimus.cli.top.app import Top

    Top(source, target, queue=queue, address=address).run()
