"""How a fork becomes a replica: it puts itself on record, and only then runs what somebody wants to be run.

Why: there is no moment in which user code runs and nobody has it on record.
Owns: the last steps before exec, and the sentence that says which of them failed.
Must not: leave anything of the supervisor to user code: files, signals, session.

    session ─► log ─► cgroup ─► `started` ─► workdir ─► exec
    └────── refused: it never ran ──────┘    └─ exited, error ─┘

Its parent hears of it through a pipe that exec closes: one line once it is on record, then nothing, or what failed.
"""

from __future__ import annotations

import os

from optimus.drivers.local.keeping import cgroups, recording, wire
from optimus.drivers.local.keeping.identity import start_ticks

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` itself would double the memory of a supervisor
    from typing import NoReturn

MARK = b"OPTIMUS_ATTEMPT_FOLDER="
"""By its environment a process is known to belong to an attempt, even if its parents are gone and it fled its group."""
_NOT_FOUND, _CANNOT_RUN = 127, 126  # as shells have it


def become(order: wire.Order, supervisor: recording.Fields, tells: int) -> NoReturn:
    code = _CANNOT_RUN
    try:
        code, failed = _try(order, supervisor, tells)
        os.write(tells, failed)
    finally:
        os._exit(code)


def _try(order: wire.Order, supervisor: recording.Fields, tells: int) -> tuple[int, bytes]:
    """Comes back only if something failed."""
    os.setsid()
    try:
        _put_on_record(order, supervisor, tells)
    except FileExistsError:
        return _CANNOT_RUN, b"a scheduler that came later has seen to it that this never runs"
    except OSError as error:
        return _CANNOT_RUN, b"its start cannot be written down: " + wire.told(error)
    try:
        os.chdir(order.workdir)
    except OSError as error:
        return _CANNOT_RUN, b"workdir %s: %s" % (order.workdir, wire.told(error))
    try:
        _execute(order)
    except FileNotFoundError:
        return _NOT_FOUND, b"command not found: " + order.argv[0]
    except OSError as error:
        return _CANNOT_RUN, b"%s cannot be run: %s" % (order.argv[0], wire.told(error))


def _put_on_record(order: wire.Order, supervisor: recording.Fields, tells: int) -> None:
    log = os.open(order.folder + recording.LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    for stream in (1, 2):  # what is read, 0, is /dev/null since the nursery began
        os.dup2(log, stream)
    skipped = _enter_limits(order)
    ticks, wall_ms = start_ticks(os.getpid()), recording.now_ms()
    own: recording.Fields = {"pid": os.getpid(), "ticks": ticks, "wall_ms": wall_ms, "limits_skipped": skipped}
    if order.cgroups:
        own["cgroups"] = os.fsdecode(b"\n".join(order.cgroups))
    recording.record_start(order.folder, own | supervisor)
    os.write(tells, b"%d %d %s\n" % (ticks or 0, wall_ms, skipped.encode()))


def _enter_limits(order: wire.Order) -> str:
    if not order.cgroups:
        return ""
    skipped = cgroups.prepare(order.cgroups, order.settings)
    try:
        cgroups.enter(order.cgroups)
    except OSError as error:
        return skipped or f"no cgroup: {error.strerror}"
    return skipped


def _execute(order: wire.Order) -> NoReturn:
    """Or raises: what is in the way where the command was found, else that it was not found."""
    env = dict(item.split(b"=", 1) for item in order.env) | {MARK[:-1]: order.folder}
    command = order.argv[0]
    if b"/" in command:
        os.execve(command, order.argv, env)  # noqa: S606 - to run it is what we are for
    denied: OSError | None = None
    for folder in env.get(b"PATH", os.fsencode(os.defpath)).split(b":"):
        try:
            os.execve((folder or b".") + b"/" + command, order.argv, env)  # noqa: S606 - as above
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError as error:
            denied = error
    raise denied or FileNotFoundError(2, os.strerror(2))
