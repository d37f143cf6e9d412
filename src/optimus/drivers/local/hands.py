"""What a body needs of whoever runs processes.

Why: the loop is told apart from the processes, so that a test can play a story in which they do as it says.
Owns: the requests.
Must not: know how it is done (`keeping` does).
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from msgspec import Struct

from optimus.drivers.local.keeping.events import Limits


class Spawn(Struct, frozen=True, kw_only=True):
    start: str
    """Unique name of this start; nothing is ever run twice under one name."""
    job: str
    """Of one job, those that are asked for together may be kept together."""
    folder: Path
    command: tuple[str, ...]
    environment: dict[str, str]
    workdir: str
    limits: Limits | None = None
    """None: it asks for neither CPU nor memory."""


class Ask(Struct, frozen=True, kw_only=True):
    """To save its work and leave."""

    start: str
    signal: str
    command: tuple[str, ...] = ()
    """Run beside it instead of the signal, in its surroundings; nothing: it gets the signal."""
    environment: dict[str, str] = {}
    workdir: str = ""


class Hands(Protocol):
    def spawn(self, asked: Spawn) -> None: ...

    def ask(self, asked: Ask) -> None: ...

    def kill(self, start: str) -> None: ...
