"""The options of `optimus simulate`, each with its line of help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from optimus.cli import completing

Traces = Annotated[
    list[str] | None,
    typer.Argument(metavar="TRACE", help="A file or folder of a known format, or synthetic[:jobs=2000,load=0.9,…]."),
]
Policies = Annotated[
    list[str] | None,
    typer.Option(
        "--policy",
        metavar="NAME",
        help="A policy, FILE.py:NAME or a peer; several are compared.",
        autocompletion=completing.policies,
    ),
]
FormatOfTrace = Annotated[
    str, typer.Option("--format", metavar="NAME", help="Format of the trace, where its columns do not tell it.")
]
Options = Annotated[
    list[str] | None, typer.Option("--option", metavar="KEY=VALUE", help="An option of the format; several times.")
]
ClusterFile = Annotated[
    Path | None,
    typer.Option("--cluster", metavar="FILE", help="Cluster, pools, queues and settings, as in scenario files."),
]
Nodes = Annotated[
    list[str] | None,
    typer.Option("--nodes", metavar="60x8[:MODEL]", help="So many nodes with so many GPUs; several are mixed."),
]
Loads = Annotated[
    list[float] | None,
    typer.Option("--load", metavar="LOAD", help="Arrivals are stretched to offer this load; a study for each."),
]
Seeds = Annotated[list[int] | None, typer.Option("--seed", metavar="N", help="Of synthetic jobs, lots and errors.")]
Interval = Annotated[
    str, typer.Option(metavar="TIME", help="Decisions only so often (60s), for all; 0 is at once. Else as published.")
]
Tick = Annotated[str, typer.Option(metavar="TIME", help="Without news, ask again so often (5m).")]
DecisionMs = Annotated[
    int,
    typer.Option("--decision-ms", metavar="N", min=0, help="Decisions take so long on the clock of the simulation."),
]
FirstJobs = Annotated[int | None, typer.Option("--jobs", metavar="N", min=1, help="Only the first N jobs.")]
Predict = Annotated[
    float | None,
    typer.Option(
        metavar="SIGMA", min=0, help="Run times are told with a log-normal error; 0 is an oracle. Else nothing is told."
    ),
]
Start = Annotated[str, typer.Option("--start", metavar="TIME", help="A first start takes so long (free).")]
Restart = Annotated[
    str, typer.Option("--restart", metavar="TIME", help="A later start, a new size or place takes so long (30s).")
]
CheckpointEvery = Annotated[
    str,
    typer.Option("--checkpoint", metavar="TIME", help="Work is saved so often (30m); 0: always; never: not at all."),
]
CheckpointCost = Annotated[
    str, typer.Option("--checkpoint-cost", metavar="TIME", help="Saving takes so long, each time (20s).")
]
JobFailures = Annotated[
    float, typer.Option("--job-failures", metavar="PART", min=0, max=1, help="This part of the jobs fails once.")
]
NodeFailures = Annotated[
    str, typer.Option("--node-failures", metavar="mtbf=30d,repair=2h", help="Nodes fail and are repaired, on average.")
]
Racks = Annotated[int, typer.Option("--racks", metavar="N", min=0, help="Nodes are in so many racks.")]
Spreading = Annotated[
    str,
    typer.Option("--spreading", metavar="nodes=0.95,racks=0.8", help="Speed on more nodes or racks than needed."),
]
NeighboursCost = Annotated[
    str,
    typer.Option("--neighbours", metavar="devices,network=0.3", help="Who shares devices or the network slows down."),
]
Reference = Annotated[str, typer.Option(metavar="NAME", help="Compare with this one instead of the first.")]
Html = Annotated[
    Path | None,
    typer.Option("--html", "--report", metavar="FILE", help="Write the report, one page that opens anywhere."),
]
Json = Annotated[Path | None, typer.Option(metavar="FILE", help="Write everything for programs.")]
Csv = Annotated[Path | None, typer.Option(metavar="FILE", help="Write one row per metric.")]
JobsCsv = Annotated[Path | None, typer.Option("--jobs-csv", metavar="FILE", help="Write one row per job and policy.")]
JournalFolder = Annotated[
    Path | None,
    typer.Option("--journal", metavar="DIR", help="Record every decision of our policies; `optimus replay` reads it."),
]
Keep = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Store every finished run there, and use those that are there.")
]
Processes = Annotated[
    int,
    typer.Option(metavar="N", min=0, envvar="OPTIMUS_PROCESSES", help="How many runs at once; 0: one for each core."),
]
Timed = Annotated[
    bool, typer.Option("--decision-times", help="Take the time of decisions; the bytes of a report then differ.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no notes, no list of problems.")]
Listing = Annotated[bool, typer.Option("--list", help="Show formats, policies and peers, and stop.")]
