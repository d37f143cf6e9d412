"""Commands and documents as what is submitted: text that the scheduler reads.

Why: a line in Python, a line in a terminal and a file of YAML are the same UnifiedJob.
Owns: how options become a document, names for jobs that have none, and several documents as one text.
Must not: check what a document says: the scheduler does, in one place and in the same words for everybody.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from optimus.client.connection import JobError

SOURCE = "submission"
"""Stands for the file in errors, until they are told whose line it is."""
API_VERSION = "optimus.dev/v1alpha1"
Document = Mapping[str, Any] | str | os.PathLike[str]
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""Text in JSON, but something else or nothing at all in YAML."""
_LAUNCHERS = re.compile(r"python[\d.]*|bash|sh|torchrun")
_PLACE = re.compile(rf"^{SOURCE}:(\d+):(\d+): ", re.MULTILINE)
_DOCUMENT = re.compile(r"\s*(kind|apiVersion|metadata|spec)\s*:|\s*\{")


def job_document(
    command: str | Sequence[Any],
    *,
    name: str,
    namespace: str,
    queue: str,
    gpu: Any,
    replicas: Any,
    retries: int = 0,
    spec: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """`spec`: whatever else a UnifiedJob knows; what is None or empty counts as not written."""
    words = (
        command if isinstance(command, str) else [word if isinstance(word, str) else _plain(word) for word in command]
    )
    written = {"command": words, "queue": queue, "gpu": gpu, "replicas": replicas, "restart": {"backoffLimit": retries}}
    written |= {key: value for key, value in (spec or {}).items() if value is not None and value != ""}
    return {
        "apiVersion": API_VERSION,
        "kind": "UnifiedJob",
        "metadata": {"name": name or name_for(command), "namespace": namespace},
        "spec": written,
    }


def name_for(command: str | Sequence[Any]) -> str:
    """`python train.py` is train-3f2a90c1. With so many that nobody meets another's in years; who submits asks for it
    to be `fresh`, and then not even once."""
    words = [Path(str(word)).stem for word in _words(command) if not str(word).startswith("-")] or [""]
    chosen = words[1] if len(words) > 1 and _LAUNCHERS.fullmatch(words[0]) else words[0]
    clean = re.sub(r"[^a-z0-9]+", "-", chosen.lower()).strip("-")[:40].strip("-") or "job"
    return f"{clean}-{secrets.token_hex(4)}"


def to_text(document: Any) -> str:
    """JSON that is YAML too, whatever is in it."""
    try:
        text = json.dumps(document, ensure_ascii=False, default=_plain)
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise JobError(f"this cannot be written as a document: {error}") from error
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class Gathered:
    """Several documents, files and texts as one submission; errors name the place in each."""

    def __init__(self, documents: Iterable[Document | Sequence[Document]]) -> None:
        self.text = ""
        self._parts: list[tuple[int, str, bool]] = []
        """The line before it, its name, and whether somebody can look up a line of it."""
        for one in documents:
            for document in [one] if isinstance(one, Mapping | str | os.PathLike) else one:
                self._add(document)

    def place(self, error: str) -> str:
        """An error of the whole, with the name and the line of its part."""
        return _PLACE.sub(self._place, error)

    def _add(self, document: Document) -> None:
        name, text = _read(document, len(self._parts))
        if self._parts:
            self.text += "\n---\n"
        self._parts.append((self.text.count("\n"), name, not isinstance(document, Mapping)))
        self.text += text

    def _place(self, found: re.Match[str]) -> str:
        line = int(found[1])
        before, name, lines = max((part for part in self._parts if part[0] < line), default=(0, SOURCE, True))
        if lines:
            return f"{name}:{line - before}:{found[2]}: "
        return f"{name}: " if len(self._parts) > 1 else ""


def _read(document: Document, number: int) -> tuple[str, str]:
    if isinstance(document, Mapping):
        return f"documents[{number}]", to_text(dict(document))
    if isinstance(document, str) and ("\n" in document or _DOCUMENT.match(document)):
        return f"documents[{number}]", document
    try:
        return os.fspath(document), Path(document).read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise JobError(f"{os.fspath(document)} cannot be read: {why}") from None


def _words(command: str | Sequence[Any]) -> Sequence[Any]:
    if not isinstance(command, str):
        return command
    try:
        return shlex.split(command)
    except ValueError:  # the scheduler will say so
        return command.split()


def _plain(value: Any) -> Any:
    """Paths are text; a number of another library is a number."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "item"):
        return value.item()
    if isinstance(value, bool | int | float):
        return value
    raise TypeError(f"{value!r} is neither text nor a number")
