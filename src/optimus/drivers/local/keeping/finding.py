"""What the folder of an attempt says about it, for whoever comes later.

Why: after a restart nothing is in memory, and messages that were missed are missed for good.
Owns: reading `started` and `exit`, and the verdict on an attempt nobody started.
Must not: end or signal anything.

    `started`   `exit`   supervisor    verdict
    none        none     –             never: the name is taken now, so it never will
    none        there    –             never, for the reason that is written there
    "never"     –        –             never
    there       –        lives         living: it is watched (with an exit, it still cleans up)
    there       there    is gone       ended
    there       none     is gone       gone: another boot, or it was killed
"""

from __future__ import annotations

import errno
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optimus.drivers.local.keeping import recording
from optimus.drivers.local.keeping.events import Exit, Shortage
from optimus.drivers.local.keeping.reaching import Process, opened


@dataclass(frozen=True, slots=True)
class StartRecord:
    replica: Process
    supervisor: Process
    boot: str
    """Empty where the record cannot be read: as if the machine had been started anew."""
    wall_ms: int
    cgroups: tuple[str, ...] = ()
    limits_skipped: str = ""


@dataclass(frozen=True, slots=True)
class Living:
    started: StartRecord
    pidfd: int
    """Of its supervisor; the finder's to close."""


@dataclass(frozen=True, slots=True)
class Ended:
    started: StartRecord
    exit: Exit


@dataclass(frozen=True, slots=True)
class Gone:
    started: StartRecord
    why: str
    same_boot: bool


@dataclass(frozen=True, slots=True)
class Never:
    why: str


@dataclass(frozen=True, slots=True)
class Unsure:
    """To be asked again: this process has no file descriptor left, or the disk no room."""

    why: str


Finding = Living | Ended | Gone | Never | Unsure


def find(folder: Path, boot: str, *, supervisor_gone: bool = False) -> Finding:
    try:
        started = read_start(folder)
        if started is None:
            never = _never(folder)
            if never is not None:
                return never
            started = read_start(folder)  # it was written in between
        if started is None:
            return Never("a restarted scheduler found it not started")
        return _standing(folder, started, boot, supervisor_gone=supervisor_gone)
    except OSError as error:
        return Unsure(f"{folder}: {error.strerror}")


def read_start(folder: Path) -> StartRecord | None:
    """None: there is none, or it says that there never will be one."""
    fields = _fields(folder / "started")
    if fields is None or fields.get("never"):
        return None
    try:
        return StartRecord(
            replica=Process(int(fields["pid"]), int(fields["ticks"])),
            supervisor=Process(int(fields["supervisor_pid"]), int(fields["supervisor_ticks"])),
            boot=str(fields["boot"]),
            wall_ms=int(fields["wall_ms"]),
            cgroups=_groups(folder, str(fields.get("cgroups", ""))),
            limits_skipped=str(fields.get("limits_skipped", "")),
        )
    except (KeyError, TypeError, ValueError):  # the machine went down before it reached the disk
        return StartRecord(replica=Process(0, 0), supervisor=Process(0, 0), boot="", wall_ms=0)


def read_exit(folder: Path) -> Exit | None:
    fields = _fields(folder / "exit")
    if not fields:
        return None
    return Exit(
        code=fields.get("code"),
        signal=fields.get("signal"),
        error=fields.get("error"),
        ended_ms=fields.get("ended_ms", 0),
        max_rss_bytes=fields.get("max_rss_bytes", 0),
        user_cpu_ms=fields.get("user_cpu_ms", 0),
        system_cpu_ms=fields.get("system_cpu_ms", 0),
        shortage=_shortage(fields),
    )


def _shortage(fields: dict[str, Any]) -> Shortage | None:
    used = fields.get("oom_used_bytes")
    return None if used is None else Shortage(used, fields.get("oom_limit_bytes"))


def _groups(folder: Path, written: str) -> tuple[str, ...]:
    """Only its own: everything in them is going to be ended."""
    return tuple(group for group in written.split("\n") if os.path.basename(group) == folder.name)


def _never(folder: Path) -> Never | None:
    """The reason, if it has not run and never will; this sees to the latter."""
    ended = read_exit(folder)
    if ended is not None:
        return Never(ended.error or "it ended before it started")
    try:
        if recording.forestall(os.fsencode(folder)):
            return Never("it had not started when a scheduler looked for it, and now never will")
    except OSError as error:
        if error.errno != errno.EROFS:
            raise
        return Never(f"its folder cannot be made: {error.strerror}")  # nor by anybody who comes late
    return None


def _standing(folder: Path, started: StartRecord, boot: str, *, supervisor_gone: bool) -> Finding:
    same_boot = started.boot == boot
    if same_boot and not supervisor_gone:
        pidfd = opened(started.supervisor)
        if pidfd is not None:
            return Living(started, pidfd)
    ended = read_exit(folder)  # after the look at its supervisor: it writes first and goes then
    if ended is not None:
        return Ended(started, ended)
    why = "its supervisor is gone and left no exit record" if same_boot else "the machine was started anew"
    return Gone(started, why, same_boot)


def _fields(path: Path) -> dict[str, Any] | None:
    try:
        text = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        fields = json.loads(text)
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}
