"""`optimus controller`: the scheduler of a Kubernetes cluster, until it is told to stop."""

from __future__ import annotations

import asyncio
import re
import signal
from typing import TYPE_CHECKING, Annotated

import typer

from optimus.cli.presents import demand_policy
from optimus.cli.showing import say
from optimus.cli.target import demand_kinds, refuse
from optimus.telemetry.logs import LogFormat, set_up

if TYPE_CHECKING:
    from optimus.drivers.kube.controller import Controller

Kubeconfig = Annotated[str, typer.Option("--kubeconfig", metavar="FILE", help="Else KUBECONFIG, or that of the pod.")]
Context = Annotated[str, typer.Option("--context", metavar="NAME", help="Of the kubeconfig; else its current one.")]
Name = Annotated[str, typer.Option("--scheduler-name", metavar="NAME", help="Pods that name it are scheduled.")]
Under = Annotated[str, typer.Option("--policy", metavar="NAME|FILE.py:NAME", help="Decide under this policy.")]
LeaseNamespace = Annotated[str, typer.Option("--lease-namespace", metavar="NAME", help="Where the lease is.")]
LeaseSeconds = Annotated[
    int, typer.Option("--lease-seconds", min=3, max=600, metavar="N", help="Another one follows a dead leader so late.")
]
Budgets = Annotated[
    bool, typer.Option("--respect-budgets", help="A PodDisruptionBudget may keep our own pods where they are.")
]
OwnKinds = Annotated[
    str, typer.Option("--kinds", metavar="PATH", help="Kinds of work of your own: a file, or a folder of them.")
]
OptingIn = Annotated[
    bool,
    typer.Option("--opting-in", help="Namespaces that opt in are its own; those of optimus always are."),
]
Drivers = Annotated[
    list[str],
    typer.Option(
        "--gpu-driver",
        metavar="NAME[=TYPE]",
        help="Devices of this DRA driver are GPUs, too; =TYPE: only those with that attribute `type`.",
    ),
]
Extender = Annotated[
    str,
    typer.Option(
        "--extender", metavar="ADDRESS", help="kube-scheduler binds, and asks here, such as 127.0.0.1:8888, where."
    ),
]
Listen = Annotated[
    str,
    typer.Option(
        "--listen", metavar="HOST:PORT", help="Answer /healthz, /readyz and /metrics there. Port 0: a free one."
    ),
]
Logs = Annotated[LogFormat, typer.Option("--log-format", help="Of the log, on standard error.")]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Tell what it does.")]

LAST_PORT = 65_535
_ADDRESS = re.compile(r"(\[[0-9a-fA-F:]+\]|[^:\[\]]*):\d{1,5}")


def controller(
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    scheduler_name: Name = "optimus",
    policy: Under = "default",
    lease_namespace: LeaseNamespace = "kube-system",
    lease_seconds: LeaseSeconds = 15,
    respect_budgets: Budgets = False,
    kinds: OwnKinds = "",
    opting_in: OptingIn = False,
    gpu_driver: Drivers = [],  # noqa: B006 - typer copies it
    extender: Extender = "",
    listen: Listen = "",
    log_format: Logs = LogFormat.PLAIN,
    verbose: Verbose = False,
) -> None:
    """Schedule the pods of a Kubernetes cluster that ask for it, until Ctrl-C. Several may run; one of them leads."""
    from optimus.drivers.kube.controller import Controller, Settings
    from optimus.drivers.kube.devices import GPU_DRIVERS
    from optimus.drivers.kube.extender.answering import loopback
    from optimus.drivers.kube.watching import Died
    from optimus.kube import KubeError, Times, load

    try:
        loopback(extender) if extender else None
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--extender") from None
    if listen and (not _ADDRESS.fullmatch(listen) or int(listen.rpartition(":")[2]) > LAST_PORT):
        raise typer.BadParameter(
            f"{listen} is no address: write HOST:PORT, such as 0.0.0.0:8080", param_hint="--listen"
        )
    demand_policy(policy)
    known = demand_kinds(kinds)
    set_up(log_format, verbose=verbose)
    settings = Settings(
        scheduler_name=scheduler_name,
        policy=policy,
        lease_namespace=lease_namespace,
        times=Times.of(lease_seconds),
        respect_budgets=respect_budgets,
        opting_in=opting_in,
        gpu_drivers=(*GPU_DRIVERS, *gpu_driver),
        extender=extender,
        listen=listen,
    )
    try:
        asyncio.run(
            _until_told(Controller(load(kubeconfig, context), settings, known), plain=log_format is LogFormat.PLAIN)
        )
    except (KubeError, Died) as error:
        refuse(str(error))
    except OSError as error:
        refuse(f"cannot listen at {listen}: {error.strerror or error}")


async def _until_told(made: Controller, *, plain: bool) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    if plain:  # for people; whoever reads JSON reads nothing but JSON
        say(f"scheduling pods that name {made.settings.scheduler_name}", "bold")
    await made.run(stop)
