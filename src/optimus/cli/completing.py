"""Completion: words for the shell to offer, also names that only the running scheduler knows.

Why: nobody types the name of a job twice.
Owns: which words are offered where, and the scripts for the shells.
Must not: make anybody wait or say anything: where nobody answers at once, nothing is offered.
"""

from __future__ import annotations

from contextlib import suppress
from enum import StrEnum
from typing import Annotated, Any

import typer

PATIENCE_S = 0.5
KINDS = ("jobs", "queues", "pools", "nodes")
ONE_OF_KIND = {"job": "jobs", "queue": "queues", "pool": "pools", "node": "nodes"}
"""How one of them is called, and how they are listed."""


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


SCRIPTS = {
    Shell.BASH: """\
_optimus_words() {
    local IFS=$'\\n'
    COMPREPLY=($(COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD _OPTIMUS_COMPLETE=complete_bash "$1" 2>/dev/null))
}
complete -o default -F _optimus_words optimus
""",
    Shell.ZSH: """\
#compdef optimus
_optimus_words() {
    eval "$(_TYPER_COMPLETE_ARGS="${words[1,$CURRENT]}" _OPTIMUS_COMPLETE=complete_zsh "${words[1]}" 2>/dev/null)"
}
compdef _optimus_words optimus
""",
    Shell.FISH: """\
function __optimus_words
    env _OPTIMUS_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=$argv[1] \\
        _TYPER_COMPLETE_ARGS=(commandline -cp | string collect) optimus 2>/dev/null
end
complete -c optimus -f -n "__optimus_words is-args" -a "(__optimus_words get-args)"
""",
}


def completion(shell: Annotated[Shell, typer.Argument(metavar="bash|zsh|fish", help="For this shell.")]) -> None:
    """Print the lines that make a shell complete commands, options, and names of jobs and queues.

    bash: source <(optimus completion bash), in ~/.bashrc. zsh: the same with zsh, after compinit. fish:
    optimus completion fish > ~/.config/fish/completions/optimus.fish
    """
    typer.echo(SCRIPTS[shell], nl=False)


# -- words --------------------------------------------------------------------------------------------------------


def jobs(ctx: typer.Context, incomplete: str) -> list[str]:
    """Of the verbs that take a job; those that are over are offered too: logs and describe know them."""
    return _with_kind(ctx, incomplete, ("job",), "jobs")


def described(ctx: typer.Context, incomplete: str) -> list[str]:
    return _with_kind(ctx, incomplete, tuple(ONE_OF_KIND), "jobs")


def deleted(ctx: typer.Context, incomplete: str) -> list[str]:
    return _with_kind(ctx, incomplete, ("queue", "pool"), "")


def kinds(incomplete: str) -> list[str]:
    return [kind for kind in KINDS if kind.startswith(incomplete)]


def names(ctx: typer.Context, incomplete: str) -> list[str]:
    """After `get jobs`."""
    kind = str(ctx.params.get("what") or "")
    return _starting(_known(ctx, ONE_OF_KIND.get(kind, kind)), incomplete)


def queues(ctx: typer.Context, incomplete: str) -> list[str]:
    return _starting(_known(ctx, "queues"), incomplete)


def pools(ctx: typer.Context, incomplete: str) -> list[str]:
    return _starting(_known(ctx, "pools"), incomplete)


def phases(incomplete: str) -> list[str]:
    from optimus.lives.phases import JobPhase

    return _starting([phase.value for phase in JobPhase], incomplete)


def classes(incomplete: str) -> list[str]:
    return _starting(["interactive", "unattended", "inference"], incomplete)


def policies(incomplete: str) -> list[str]:
    from optimus.decide import policies as built_in

    return _starting(list(built_in.names()), incomplete)


def _with_kind(ctx: typer.Context, incomplete: str, kinds_here: tuple[str, ...], otherwise: str) -> list[str]:
    """`queue ` is followed by names of queues; the first word may be a kind, or a name of the usual kind."""
    before = [str(word) for word in ctx.params.get("words") or ()]
    before = before[:-1] if before and before[-1] == incomplete else before
    if before and before[0] in kinds_here:
        return _starting(_known(ctx, ONE_OF_KIND[before[0]]), incomplete)
    found = _known(ctx, otherwise) if otherwise else []
    return _starting([*(() if before else kinds_here), *found], incomplete)


def _starting(words: list[str], incomplete: str) -> list[str]:
    return [word for word in words if word.startswith(incomplete)]


def _known(ctx: typer.Context, kind: str) -> list[str]:
    """Names of the running scheduler; nothing where nobody answers soon."""
    from optimus.client import Connection, JobError

    if kind not in KINDS:
        return []
    named = ctx.params.get("address") or ctx.find_root().params.get("scheduler") or ""
    with suppress(JobError, KeyError, TypeError):
        rows: list[dict[str, Any]] = Connection(str(named), timeout=PATIENCE_S).get(f"/v1/{kind}")
        return [_shown(row) for row in rows]
    return []


def _shown(row: dict[str, Any]) -> str:
    apart = row.get("namespace", "default") != "default"
    return f"{row['namespace']}/{row['name']}" if apart else str(row["name"])
