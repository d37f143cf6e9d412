"""`optimus install`: everything a cluster needs, as manifests or applied; `optimus rights`: what it may do there."""

from __future__ import annotations

import asyncio
import re
from typing import Annotated, Any

import typer

from optimus.cli.controller import Context, Drivers, Kubeconfig, LeaseSeconds, Name, OwnKinds, Under
from optimus.cli.showing import Format, FormatOption, dump, say
from optimus.cli.target import demand_kinds, refuse

# Not --namespace: OPTIMUS_NAMESPACE is where a user's jobs go.
Into = Annotated[str, typer.Option("--into", metavar="NAMESPACE", help="Where the controller runs; made if needed.")]
Image = Annotated[str, typer.Option("--image", metavar="IMAGE", help="Of the controller; else that of this version.")]
Replicas = Annotated[int, typer.Option("--replicas", min=1, max=9, metavar="N", help="One of them leads.")]
Budgets = Annotated[bool, typer.Option("--respect-budgets", help="As of `optimus controller`.")]
Priority = Annotated[str, typer.Option("--priority-class", metavar="NAME", help="Empty: none.")]
SkipCrds = Annotated[bool, typer.Option("--skip-crds", help="Leave Queue, NodePool and UnifiedJob out.")]
OptingIn = Annotated[
    bool, typer.Option("--opting-in", help="Namespaces may opt in by a label (needs Kubernetes 1.36).")
]
Apply = Annotated[bool, typer.Option("--apply", help="Apply to the cluster, with your rights, instead of printing.")]
LetGo = Annotated[
    bool,
    typer.Option(
        "--let-go",
        help="Where no controller runs any more: take its finalizers off UnifiedJobs and pods, so that what is deleted"
        " can go. Deletes nothing.",
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="With --apply or --let-go: the server judges, and keeps nothing.")
]

NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def install(
    into: Into = "optimus-system",
    image: Image = "",
    replicas: Replicas = 2,
    scheduler_name: Name = "optimus",
    policy: Under = "default",
    lease_seconds: LeaseSeconds = 15,
    respect_budgets: Budgets = False,
    gpu_driver: Drivers = [],  # noqa: B006 - typer copies it
    priority_class: Priority = "system-cluster-critical",
    kinds: OwnKinds = "",
    skip_crds: SkipCrds = False,
    opting_in: OptingIn = False,
    apply: Apply = False,
    let_go: LetGo = False,
    dry_run: DryRun = False,
    kubeconfig: Kubeconfig = "",
    context: Context = "",
) -> None:
    """Print what a cluster needs to run the controller, for `kubectl apply -f -`; or apply it."""
    from optimus.drivers.kube.grouping.table import files_at
    from optimus.drivers.kube.installing import IMAGE, Installation, as_text, objects

    if apply and let_go:
        raise typer.BadParameter("--apply installs, and this is for when all is removed", param_hint="--let-go")
    if dry_run and not apply and not let_go:
        raise typer.BadParameter("it asks the server: write it with --apply", param_hint="--dry-run")
    if let_go:
        _let_go(kubeconfig, context, dry_run=dry_run)
        return
    for option, name in (("--into", into), ("--scheduler-name", scheduler_name)):
        if not NAME.fullmatch(name):
            raise typer.BadParameter(
                f"{name} is no name in Kubernetes: small letters, digits and -, at most 63", param_hint=option
            )
    known = demand_kinds(kinds)
    asked = Installation(
        namespace=into,
        image=image or Installation().image,
        replicas=replicas,
        scheduler_name=scheduler_name,
        policy=policy,
        lease_seconds=lease_seconds,
        respect_budgets=respect_budgets,
        gpu_drivers=tuple(gpu_driver),
        priority_class=priority_class,
        crds=not skip_crds,
        opting_in=opting_in,
        kinds=known,
        kinds_files={file.name: file.read_text(encoding="utf-8-sig") for file in files_at(kinds)} if kinds else {},
    )
    if not apply:
        typer.echo(as_text(objects(asked)), nl=False)
        return
    if not image and not dry_run:
        refuse(f"name the image that you have built and pushed: --image REGISTRY/{IMAGE}:TAG (docs/guides/install.md)")
    _apply(objects(asked), kubeconfig, context, dry_run=dry_run)


def _apply(objects: list[dict[str, Any]], kubeconfig: str, context: str, *, dry_run: bool) -> None:
    from optimus.drivers.kube.applying import ApplyError, apply
    from optimus.kube import Client, KubeError, load

    async def one_by_one() -> None:
        async with Client(load(kubeconfig, context)) as client:
            async for named in apply(client, objects, dry_run=dry_run):
                say(f"{named} {'would be applied' if dry_run else 'applied'}")

    try:
        asyncio.run(one_by_one())
    except (KubeError, ApplyError) as error:
        refuse(str(error))


def _let_go(kubeconfig: str, context: str, *, dry_run: bool) -> None:
    from optimus.drivers.kube.letting_go import Let, StillRuns, demand_nobody_runs, let_go
    from optimus.kube import Client, KubeError, load

    done = "would be let go" if dry_run else "let go"

    async def one_by_one() -> list[Let]:
        found = []
        async with Client(load(kubeconfig, context)) as client:
            await demand_nobody_runs(client, say)
            async for one in let_go(client, dry_run=dry_run):
                found.append(one)
                say(f"{one.named} {f'is kept: {one.refused}' if one.refused else done}")
        return found

    try:
        found = asyncio.run(one_by_one())
    except (KubeError, StillRuns) as error:
        refuse(str(error))
    going = sum(one.going for one in found if not one.refused)
    kept = sum(bool(one.refused) for one in found)
    if kept:
        refuse(f"{kept} of {len(found)} could not be let go: what is in the way stands above; try again")
    say(f"{len(found)} {done}, {going} of them deleted before" if found else "nothing is held by a controller")


def rights(kinds: OwnKinds = "", output: FormatOption = Format.TABLE) -> None:
    """List what the controller may do in a cluster, and why."""
    from optimus.drivers.kube.rights import as_markdown, controller_rights

    listed = controller_rights(demand_kinds(kinds))
    if output in (Format.JSON, Format.YAML):
        dump(listed, output)
    else:
        typer.echo(as_markdown(listed), nl=False)
