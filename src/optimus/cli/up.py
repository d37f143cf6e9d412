"""`optimus up`: this machine as a cluster."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optimus.cli import completing
from optimus.cli.job_tables import VIRTUAL
from optimus.cli.showing import say
from optimus.cli.target import refuse
from optimus.client.connection import DEFAULT_PORT, JobError, store_folder
from optimus.drivers.sim.threads import one_thread_each

if TYPE_CHECKING:
    from optimus.drivers.local.clusters import Cluster

ClusterFile = Annotated[
    Path | None, typer.Option("--cluster", metavar="FILE", help="Nodes, pools and queues, as in a scenario.")
]
Nodes = Annotated[int | None, typer.Option(min=1, max=10_000, metavar="N", help="Virtual nodes; 1 with --gpus alone.")]
Gpus = Annotated[
    int | None, typer.Option(min=0, max=64, metavar="N", help="Virtual GPUs of each node; 8 with --nodes alone.")
]
Real = Annotated[bool, typer.Option("--real", help="This machine as it is, with its GPUs or without.")]
StoreFolder = Annotated[
    Path | None,
    typer.Option("--store", envvar="OPTIMUS_STORE", metavar="FOLDER", help="Where everything is kept."),
]
Host = Annotated[str, typer.Option(metavar="ADDRESS", help="To listen on; beyond this machine a token is needed.")]
Port = Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="0 takes any that is free.")]
Demo = Annotated[bool, typer.Option("--demo", help="A cluster of 16 virtual GPUs, two teams, and jobs that compete.")]
JournalSize = Annotated[
    str, typer.Option("--journal", metavar="SIZE", help="So much of the journal is kept, for a week; 0: none.")
]
KeepJobs = Annotated[
    int, typer.Option(min=1, metavar="N", help="So many jobs that are over are remembered, for a week.")
]
KeepParts = Annotated[
    int, typer.Option(min=1, metavar="N", help="So many parts of them, and the folders of so many starts.")
]
KeepRuns = Annotated[str, typer.Option(metavar="SIZE", help="That the folders of starts which are over may take.")]
KeepLog = Annotated[str, typer.Option(metavar="SIZE", help="Of any single log: its first and its last lines.")]
Set = Annotated[
    list[str],
    typer.Option(
        "--set", metavar="NAME=VALUE", help="A setting of the cluster, such as sizingInterval=10s; also several."
    ),
]
Under = Annotated[
    str,
    typer.Option(
        "--policy",
        metavar="NAME|FILE.py:NAME",
        help="Decide under this policy.",
        autocompletion=completing.policies,
    ),
]


EXPLAINER = "optimus.explaining.answering"
TRY = ("optimus run{queue} --gpus 1 -- python3 -c 'print(1)'", "optimus get jobs", "optimus top")
TRY_DEMO = (
    "optimus top",
    "optimus get jobs",
    "optimus logs -f train",
    "optimus run --queue vision --gpus 4 -- sleep 20",
)


def up(
    cluster: ClusterFile = None,
    nodes: Nodes = None,
    gpus: Gpus = None,
    real: Real = False,
    store: StoreFolder = None,
    host: Host = "127.0.0.1",
    port: Port = DEFAULT_PORT,
    policy: Under = "default",
    journal: JournalSize = "512Mi",
    keep_jobs: KeepJobs = 2_000,
    keep_parts: KeepParts = 20_000,
    keep_runs: KeepRuns = "2Gi",
    keep_log: KeepLog = "256Mi",
    demo: Demo = False,
    settings: Set = [],  # noqa: B006 - typer wants a list, and nobody changes it
) -> None:
    """Schedule real work on this machine: scheduler and HTTP API, until Ctrl-C.

    Work that runs outlives it, and is taken over by the next `optimus up` on the same store. Where nothing is said of
    the cluster, it is the one the store remembers; at first this machine's GPUs, or virtual ones where it has none.
    Fails (1) with a word if the port, the store or the cluster file cannot be used.
    """
    one_thread_each()
    from optimus.api.settings import SettingsError, with_settings
    from optimus.cli.presents import demand_policy
    from optimus.drivers.local.retention import Keep
    from optimus.drivers.local.up import Begun, UpError, run
    from optimus.model.settings import Settings

    journal_mib, runs_mib = _size("--journal", journal), _size("--keep-runs", keep_runs)
    log_mib = _size("--keep-log", keep_log)
    if not log_mib:
        raise typer.BadParameter("of a log at least 1Mi is kept", param_hint="--keep-log")
    demand_policy(policy)
    try:
        with_settings(Settings(), settings)
    except SettingsError as error:
        raise typer.BadParameter(str(error), param_hint="--set") from None
    folder = _folder(store)
    found = _named(cluster, nodes, gpus, real=real, demo=demo)

    def ready(begun: Begun) -> None:
        say(f"optimus is up at {begun.address}: {begun.cluster}", "bold")
        say(f"store {folder}, policy {policy}", "dim")
        say(f"limits: {begun.limits}", "dim")
        if begun.machine:
            say(f"virtual nodes: {VIRTUAL.format(machine=begun.machine)}", "dim")
        for text in begun.changed:
            say(text, "yellow")
        if folder != _folder(None):
            say(f"other commands find it with OPTIMUS_STORE={shlex.quote(str(folder))}", "yellow")
        if begun.token:
            say(f"token for others than this machine: {folder / 'token'}")
        called = _called()
        named = f" --queue {begun.queue}" if begun.queue not in ("", "default") else ""
        for number, line in enumerate(TRY_DEMO if demo else TRY):
            command = line.format(queue=named)
            say(f"{'try:' if not number else '':5} {called}{command.removeprefix('optimus')}")

    try:
        left = run(
            found,
            folder,
            host=host,
            port=port,
            policy=policy,
            ready=ready,
            tell=lambda text: say(text, "yellow"),
            journal_mib=journal_mib,
            keep=Keep(jobs=keep_jobs, parts=keep_parts, runs_mib=runs_mib, log_mib=log_mib),
            settings=lambda base: with_settings(base, settings),
            explainer=EXPLAINER,
        )
    except UpError as error:
        say(f"Error: {error}", "red")
        raise typer.Exit(1) from None
    if left:
        goes_on = "1 replica goes" if left == 1 else f"{left} replicas go"
        called = _called()
        say(f"{goes_on} on running; `{called} up` on the same store takes over what runs.")
        say(f"To end it: `{called} cancel --all`, while that is up.")


def _called() -> str:
    """As `make run` is called where nothing is on the path."""
    return os.environ.get("OPTIMUS_CALLED", "optimus")


def _named(cluster: Path | None, nodes: int | None, gpus: int | None, *, real: bool, demo: bool) -> Cluster | None:
    """None: nothing is said of it."""
    from optimus.drivers.local import clusters

    virtual = nodes is not None or gpus is not None
    if cluster is not None and virtual:
        raise typer.BadParameter(
            "nodes come from the file or from --nodes and --gpus, not from both", param_hint="--cluster"
        )
    if demo and (cluster is not None or virtual or real):
        raise typer.BadParameter("the demo has a cluster of its own", param_hint="--demo")
    if real and (cluster is not None or virtual):
        raise typer.BadParameter("is this machine as it is: without --cluster, --nodes and --gpus", param_hint="--real")
    if demo:
        return _demo()
    if cluster is not None:
        return _from_file(cluster)
    if virtual:
        return clusters.virtual(nodes or 1, clusters.VIRTUAL_GPUS if gpus is None else gpus)
    return clusters.real_machine() if real else None


def _folder(store: Path | None) -> Path:
    try:
        return (store or store_folder()).absolute()
    except JobError as error:  # nobody has a home folder here
        refuse(str(error))


def _size(option: str, text: str) -> int:
    """In MiB."""
    from optimus.model.units import UnitError, parse_memory

    try:
        return parse_memory(text)
    except UnitError as error:
        raise typer.BadParameter(f"{error}; write a size such as 512Mi", param_hint=option) from None


def _demo() -> Cluster:
    from msgspec import structs

    folder = Path(__file__).parent / "demo"
    opening = (folder / "jobs.yaml").read_text(encoding="utf-8")
    opening = opening.replace("[python3,", f"[{json.dumps(sys.executable)},")  # the one that has optimus.steps
    return structs.replace(
        _from_file(folder / "cluster.yaml"),
        told="16 virtual GPUs on 4 nodes, teams vision and speech",
        opening=opening,
        passing=True,
        where=str(folder),
    )


def _from_file(path: Path) -> Cluster:
    from optimus.api.loading import load_files
    from optimus.drivers.local.clusters import DEFAULT_QUEUE, Cluster
    from optimus.model.reasons import counted

    if not path.is_file():
        why = "is a folder; name a file" if path.is_dir() else "there is no such file"
        raise typer.BadParameter(f"{path}: {why}", param_hint="--cluster")
    loaded = load_files(path)
    for error in loaded.errors:
        say(f"Error: {error}", "red")
    if loaded.errors:
        raise typer.Exit(1)
    world = loaded.scenario
    if not world.nodes:
        say(f"Error: {path}: no nodes in it; write nodes: [{{name: a, count: 2, gpus: 8}}]", "red")
        raise typer.Exit(1)
    devices = sum(len(node.devices) for node in world.nodes)
    return Cluster(
        nodes=world.nodes,
        pools=world.pools,
        queues=world.queues or (DEFAULT_QUEUE,),
        settings=world.settings,
        told=f"{counted(len(world.nodes), 'virtual node')} with {counted(devices, 'GPU')} from {path}",
    )
