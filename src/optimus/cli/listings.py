"""Small lists to look things up: policies, and the reasons that the scheduler gives."""

from __future__ import annotations

import typer
from msgspec import Struct
from rich.text import Text

from optimus.cli.showing import Format, FormatOption, Printer, dump


class PolicyListed(Struct, frozen=True):
    name: str
    doc: str


class ReasonListed(Struct, frozen=True):
    code: str
    sentence: str
    facts: tuple[str, ...]


def crds() -> None:
    """Print the resources of Optimus for Kubernetes: Queue, NodePool and UnifiedJob, for `kubectl apply -f -`."""
    import yaml

    from optimus.api.crds import definitions

    typer.echo(yaml.safe_dump_all(definitions(), sort_keys=False, width=120, allow_unicode=True), nl=False)


def policies(output: FormatOption = Format.TABLE) -> None:
    """List the policies there are."""
    from importlib.metadata import entry_points

    from optimus.decide import policies as built_in
    from optimus.engine.policy_loading import ENTRY_POINT_GROUP

    listed = [PolicyListed(name, built_in.get(name).doc) for name in built_in.names()]
    listed += [
        PolicyListed(point.name, f"from {point.dist.name if point.dist else 'an installed package'}: {point.value}")
        for point in entry_points(group=ENTRY_POINT_GROUP)
    ]
    if output in (Format.JSON, Format.YAML):
        dump(listed, output)
        return
    printer = Printer()
    printer.columns([(Text(policy.name, style="bold"), policy.doc) for policy in listed])
    printer.line()
    printer.paragraph("A policy of your own is a function in a file: policy: my_policy.py:shortest_first", "dim")


def reasons(output: FormatOption = Format.TABLE) -> None:
    """List the reasons for which work waits or is stopped."""
    from optimus.model.reasons import FACTS, SENTENCES

    listed = [ReasonListed(str(code), text, FACTS[code]) for code, text in SENTENCES.items()]
    if output in (Format.JSON, Format.YAML):
        dump(listed, output)
        return
    printer = Printer()
    printer.columns([(Text(reason.code, style="bold"), _sentence(reason.sentence)) for reason in listed])


def _sentence(sentence: str) -> Text:
    text = Text(sentence)
    text.highlight_regex(r"\{\w+\}", "cyan")
    return text
