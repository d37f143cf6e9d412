"""What is asked of a keeper, and what it tells: plain data, each said at most once for an attempt."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_ATTEMPT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


@dataclass(frozen=True, slots=True)
class Limits:
    """Kept by cgroups as far as the machine lets the keeper (`limiting`). None: not limited in this."""

    cpu_milli: int | None = None
    """What it asks for: its weight against others where there is not enough for all."""
    cpu_limit_milli: int | None = None
    """What it never gets more of, even of idle cores."""
    memory_bytes: int | None = None
    """Whoever needs more is ended."""


@dataclass(frozen=True, slots=True)
class Request:
    """One start. It happens at most once, whoever asks how often."""

    attempt: str
    """A file name that is never used again."""
    argv: tuple[str, ...]
    env: Mapping[str, str]
    """All of it. `OPTIMUS_ATTEMPT_FOLDER` is added: what a replica leaves behind is recognised by it."""
    workdir: str
    limits: Limits | None = None
    job: str = ""
    """Starts of one job that are asked for together may share a supervisor, and so its fate; empty: not this one."""

    def __post_init__(self) -> None:
        checked(self.attempt)
        if not self.argv or not self.argv[0]:
            raise ValueError(f"{self.attempt}: argv names no command")
        if any("\0" in word for word in (*self.argv, *self.env, *self.env.values(), self.workdir, self.job)):
            raise ValueError(f"{self.attempt}: a NUL character in argv, env or workdir cannot be handed to a process")
        if bad := [name for name in self.env if "=" in name or not name]:
            raise ValueError(f"{self.attempt}: {bad[0]!r} cannot be the name of an environment variable")


def checked(attempt: str) -> str:
    """It becomes a folder, so it must not be able to leave the folder of runs."""
    if not _ATTEMPT.fullmatch(attempt):
        raise ValueError(
            f"{attempt!r} cannot be the name of an attempt: letters, digits, '.', '_' and '-', at most 200"
        )
    return attempt


@dataclass(frozen=True, slots=True)
class Shortage:
    """A process of the replica was ended for lack of memory."""

    used_bytes: int
    """The most that all of them used together."""
    limit_bytes: int | None
    """The limit of the replica that was reached; None: it was the machine that had nothing left."""


@dataclass(frozen=True, slots=True)
class Exit:
    code: int | None
    """None where a signal ended it."""
    signal: int | None
    error: str | None
    """Why user code could not be run, though it was about to: no such command, no such workdir."""
    ended_ms: int
    max_rss_bytes: int
    user_cpu_ms: int
    system_cpu_ms: int
    shortage: Shortage | None = None


@dataclass(frozen=True, slots=True)
class Started:
    attempt: str
    pid: int
    wall_ms: int
    limits_skipped: str = ""
    """Which limits could not be set for it, and why."""


@dataclass(frozen=True, slots=True)
class Exited:
    """It ended, and so did everything it had started."""

    attempt: str
    exit: Exit


@dataclass(frozen=True, slots=True)
class Refused:
    """It did not run because of this request."""

    attempt: str
    why: str
    claimed_before: bool = False
    """The name was used before: that earlier start has its own events. Otherwise it never ran, and never will."""


@dataclass(frozen=True, slots=True)
class Lost:
    """It had started, how it ended is not known, and nothing of it is left."""

    attempt: str
    why: str


Event = Started | Exited | Refused | Lost
