"""Wrong usage in our words: what the parser found wrong, said as everything else here is said.

Why: a message of a library names its own types; a person wants the option, and what to write instead.
Owns: these sentences.
Must not: decide what is wrong.
"""

from __future__ import annotations

import re
from typing import Any

WORDS: tuple[tuple[str, Any], ...] = (
    (r"\.? ?Choose from:.*", "."),
    (r" \(env var: .*?\)(?=: |$)", ""),
    (r"Invalid value for ((?:'[^']*'(?: / )?)+): ", lambda found: f"{_longest(found[1])}: "),
    (r"Invalid value for ([^:]+): ", r"\1: "),
    (r"^Invalid value: ", ""),
    (r"Value error, ", ""),
    (r"Input should be a valid integer, .*", "must be a whole number"),
    (r"Input should be a valid number, .*", "must be a number"),
    (r"Input should be a finite number", "must be a number"),
    (r"Input should be greater than or equal to (\S+)", r"must be at least \1"),
    (r"Input should be less than or equal to (\S+)", r"must be at most \1"),
    (r"Missing (argument|option) '(.*?)'\.", r"\2 is missing"),
    (r"Option '(.*?)' requires an argument\.", r"\1: its value is missing"),
    (r"Got unexpected extra argument\(?s?\)? \((.*)\)", r"there is nothing to do with: \1"),
    (r"No such command '(.*?)'\.?", r"there is no command \1;"),
    (r"; Did you mean '(.*?)'\?", r"; did you mean \1?"),
    (r";$", "; -h lists those that there are"),
    (r"No such option: (\S+)(?: \(Possible options: (.*)\))?", lambda found: _no_option(found[1], found[2])),
    (r"(is not one of .*)\.$", r"\1"),
)
"""What the parser says, and what is said instead; one after the other."""


def plain(text: str) -> str:
    for pattern, instead in WORDS:
        text = re.sub(pattern, instead, text, flags=re.DOTALL)
    return text


def told(error: Any) -> tuple[str, str]:
    """How the command is used, and what is wrong. Of a group without a command its help is the answer."""
    message = str(error.format_message())
    if message.startswith("Usage:"):
        return message + "\n", ""
    context = getattr(error, "ctx", None)
    used = re.sub(r"\{(.*?)\}\.\.\.", r"\1", context.get_usage()) if context is not None else ""
    usage = f"{used}\nTry '{context.command_path} -h' for help.\n\n" if context is not None else ""
    return usage, plain(message)


def _longest(names: str) -> str:
    """'-o' / '--output' is --output."""
    return str(max(re.findall(r"'([^']*)'", names), key=len))


def _no_option(name: str, known: str | None) -> str:
    return f"there is no option {name}; " + (
        f"did you mean {known.replace(', ', ' or ')}?" if known else "-h lists them"
    )
