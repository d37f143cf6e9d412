"""`kubectl optimus …`: the same commands on the context that kubectl uses.

Why: people who live in kubectl find everything there, with the flags they know.
Owns: the flags of kubectl that plugins have to read themselves: --context, --kubeconfig, -n.
Must not: know any command: flags become variables that all commands hear.

As with kubectl, what is not told otherwise is about the namespace of the context, and `get jobs -A` about all of them.
"""

from __future__ import annotations

import os
import sys

from optimus.cli import calling
from optimus.cli.showing import say
from optimus.cli.target import VARIABLE, WRONG_USAGE
from optimus.client.targets import KUBE

FLAGS = {"--context": "context", "--kubeconfig": "kubeconfig", "-n": "namespace", "--namespace": "namespace"}


def call() -> None:
    words, told = taken(sys.argv[1:])
    if missing := next((flag for flag, value in told.items() if value is None), ""):
        say(f"Error: --{missing}: a value is missing", "red")
        sys.exit(WRONG_USAGE)
    for variable, value in variables(told).items():
        os.environ[variable] = value
    sys.argv[1:] = words
    calling.call("kubectl optimus")


def taken(words: list[str]) -> tuple[list[str], dict[str, str | None]]:
    """The words without kubectl's flags, and what those say; of the command after `--` nothing is taken."""
    kept: list[str] = []
    told: dict[str, str | None] = {}
    rest = iter(words)
    for word in rest:
        if word == "--":
            return [*kept, word, *rest], told
        flag, sign, value = word.partition("=")
        if flag not in FLAGS:
            kept.append(word)
        else:
            told[FLAGS[flag]] = value if sign else next(rest, None)
    return kept, told


def variables(told: dict[str, str | None]) -> dict[str, str]:
    context, file, namespace = (told.get(name) or "" for name in ("context", "kubeconfig", "namespace"))
    found = {VARIABLE: f"{KUBE}{context}", "OPTIMUS_CONTROLLER_CONTEXT": context}
    if file:
        found["KUBECONFIG"] = os.path.expanduser(file)
    namespace = namespace or _of_context(context, file)
    return {**found, **({"OPTIMUS_NAMESPACE": namespace} if namespace else {})}


def _of_context(context: str, file: str) -> str:
    """Nothing where there is no such context: the command says so."""
    from optimus.kube import KubeError, load

    try:
        return load(file, context).namespace
    except KubeError:
        return ""
