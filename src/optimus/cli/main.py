"""The command line from the top: global options, and the commands that are there.

A command imports what it needs when it runs, so that `optimus --help` does not load the brain.
"""

from __future__ import annotations

from typing import Annotated

import typer

from optimus import __version__
from optimus.cli import (
    bench,
    completing,
    config,
    controller,
    describing,
    explain,
    forecast,
    getting,
    install,
    jobs,
    listings,
    replay,
    scenario,
    simulate,
    story,
    submitting,
    target,
    up,
    whatif,
)
from optimus.cli.showing import example
from optimus.cli.top import command as top
from optimus.client.targets import FORMS

app = typer.Typer(
    name="optimus",
    help="Decides who gets which GPUs, when, and for how long.",
    epilog=example("optimus story"),
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(scenario.app, name="scenario")
app.add_typer(bench.app, name="bench")
app.command(name="forecast", epilog=example("optimus forecast journal --samples 100", "optimus forecast world.yaml"))(
    forecast.forecast
)
app.command(name="up", epilog=example("optimus up --nodes 4 --gpus 8", "optimus up --cluster cluster.yaml"))(up.up)
app.command(name="controller", epilog=example("optimus controller --kubeconfig admin.kubeconfig -v"))(
    controller.controller
)
app.command(name="run", epilog=example("optimus run --gpus 2 --queue vision -- python train.py"))(submitting.run)
app.command(name="submit", epilog=example("optimus submit job.yaml queues.yaml"))(submitting.submit)
app.command(name="get", epilog=example("optimus get jobs --phase Pending -w", "optimus get queues -o wide"))(
    getting.get
)
app.command(name="describe", epilog=example("optimus describe job train", "optimus describe queue vision"))(
    describing.describe
)
app.command(name="explain", epilog=example("optimus explain job train", "optimus explain train --no-forecast -o json"))(
    explain.explain
)
app.command(name="logs", epilog=example("optimus logs -f train"))(jobs.logs)
app.command(name="cancel", epilog=example("optimus cancel job train", "optimus cancel --all"))(jobs.cancel)
app.command(name="suspend", epilog=example("optimus suspend job train"))(jobs.suspend)
app.command(name="resume", epilog=example("optimus resume job train"))(jobs.resume)
app.command(name="scale", epilog=example("optimus scale job train --replicas 4"))(jobs.scale)
app.command(name="top", epilog=example("optimus top --queue vision"))(top.top)
app.command(name="delete", epilog=example("optimus delete queue vision"))(jobs.delete)
app.command(name="config", epilog=example("optimus config", "optimus config run -o wide"))(config.config)
app.command(name="completion", epilog=example("source <(optimus completion bash)"))(completing.completion)
app.command(name="crds", epilog=example("optimus crds | kubectl apply -f -"))(listings.crds)
app.command(name="install", epilog=example("optimus install --image registry.example/optimus:1 | kubectl apply -f -"))(
    install.install
)
app.command(name="rights", epilog=example("optimus rights", "optimus rights -o yaml"))(install.rights)
app.command(name="policies", epilog=example("optimus policies -o json"))(listings.policies)
app.command(name="reasons", epilog=example("optimus reasons -o wide"))(listings.reasons)
app.command(name="replay", epilog=example("optimus replay journal --policy shortest-first"))(replay.replay)
app.command(
    name="simulate",
    epilog=example("optimus simulate synthetic:jobs=200,gpus=32 --policy default --policy native --html report.html"),
)(simulate.simulate)
app.command(name="story", epilog=example("optimus story --fast | less -R"))(story.story)
_WHATIF = example("optimus what-if journal --add-nodes 4x8 --quota vision.guarantee=16 --price 2")
app.command(name="what-if", epilog=_WHATIF)(whatif.whatif)
app.command(name="whatif", epilog=_WHATIF, hidden=True)(whatif.whatif)  # as it was called before


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"optimus {__version__}")
        raise typer.Exit


@app.callback()
def main(
    scheduler: Annotated[
        str,
        typer.Option(
            "--target", metavar="TARGET", help=f"Which scheduler: {FORMS}. Also after the command.", show_default=False
        ),
    ] = "",
    _version: Annotated[
        bool, typer.Option("--version", help="Say the version and stop.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    target.choose(scheduler)
