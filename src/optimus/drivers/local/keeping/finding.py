"""What the folder of an attempt says about it, for whoever comes later.

Why: after a restart nothing is in memory, and messages that were missed are missed for good.
Owns: reading `started` and `exit`, and the verdict on an attempt nobody started.
Must not: end or signal anything.

    `started`   `exit`   supervisor    verdict
    none        none     –             never: the name is taken now, so it never will
    none        there    –             never, for the reason that is written there
    "never"     –        –             never
    there       there    –             ended
    there       none     lives         living: its process is watched; a moment before and after, it cannot be told
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
    """Of the replica; the finder's to close."""


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
    """To be asked again: this process has no file descriptor left, or the disk no room, or it is just changing."""

    why: str
    soon: bool = False


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
            replica=Process(int(fields.get("pid", 0)), int(fields.get("ticks", 0))),
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
    if not fields or not fields.keys() & {"ended_ms", "error"}:
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
    if ended is not None and read_start(folder) is not None:
        return None  # since the first look it has started and ended
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
    lives = same_boot and not supervisor_gone and _is_there(started.supervisor)
    ended = read_exit(folder)  # after the look at its supervisor: it writes first and goes then
    if ended is not None:
        return Ended(started, ended)
    if lives:
        pidfd = opened(started.replica)
        if pidfd is None:
            return Unsure(f"{folder}: it is just being started, or has just ended", soon=True)
        return Living(started, pidfd)
    why = "its supervisor is gone and left no exit record" if same_boot else "the machine was started anew"
    return Gone(started, why, same_boot)


def _is_there(process: Process) -> bool:
    pidfd = opened(process)
    if pidfd is not None:
        os.close(pidfd)
    return pidfd is not None


def _fields(path: Path) -> dict[str, Any] | None:
    """Of all its lines; the later ones add to the earlier."""
    try:
        text = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    fields: dict[str, Any] = {}
    for line in text.splitlines(keepends=True):
        try:
            more = json.loads(line if line.endswith(b"\n") else b"")
        except ValueError:  # it is just being written, or the machine went down before it reached the disk
            continue
        fields |= more if isinstance(more, dict) else {}
    return fields
