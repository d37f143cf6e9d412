"""One supervisor: claims an attempt, starts its replica, waits, writes down how it ended, and leaves nothing behind.

Why: somebody has to be the replica's parent while schedulers come and go.
Owns: one attempt, from its claim to its exit record.
Must not: read or change what the replica writes, need anybody, or take memory: there are as many as replicas.

    claim the folder ──► fork ──► (child) becomes the replica
          │                │
       refused             └─► wait ──► end its group ──► `exit` ──► end its orphans ──► gone

The group goes before the record and not after it: as long as the replica is not reaped its number is its own, and the
group that is killed cannot be a stranger's.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import time

from optimus.drivers.local.keeping import cgroups, recording, wire
from optimus.drivers.local.keeping.identity import start_ticks
from optimus.drivers.local.keeping.kernel import adopt_orphans
from optimus.drivers.local.keeping.replica import become
from optimus.drivers.local.keeping.sweeping import sweep

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` itself would double the memory of this process
    from typing import NoReturn

_RETRIES_S = (0.1, 0.3, 1.0, 3.0, 10.0)
"""A full disk may have room again soon, and an exit that is not written down is a replica that is lost."""


def supervise(order: wire.Order, reports: int, boot: str) -> NoReturn:
    status = 1
    try:
        os.setsid()
        if _claim(order, reports):
            _keep(order, reports, boot)
        status = 0
    finally:
        os._exit(status)


def _claim(order: wire.Order, reports: int) -> bool:
    try:
        os.mkdir(order.folder)
    except FileExistsError:
        _refused(order, reports, b"this attempt was claimed before", claimed_before=True)
    except OSError as error:
        _refused(order, reports, b"its folder cannot be made: " + wire.told(error))
    else:
        return True
    return False


def _keep(order: wire.Order, reports: int, boot: str) -> None:
    adopt_orphans()
    me: recording.Fields = {"boot": boot, "supervisor_pid": os.getpid(), "supervisor_ticks": start_ticks(os.getpid())}
    hears, tells = os.pipe()  # both are closed on exec
    try:
        pid = os.fork()
    except OSError as error:
        why = b"no process could be started: " + wire.told(error)
        _refused(order, reports, why)
        _record(order, {"error": why.decode(errors="replace")}, retries_s=())
        return
    if not pid:
        become(order, me, tells)
    os.close(tells)
    on_record, newline, failed = _all_of(hears).partition(b"\n")
    if not newline:
        os.waitpid(pid, 0)
        why = on_record or (b"it was killed before it was on record" + _for_lack_of_memory(order))
        cgroups.remove(order.cgroups)
        _refused(order, reports, why)
        if not os.path.exists(order.folder + recording.STARTED):  # else a later scheduler said that it never runs
            _record(order, {"error": why.decode(errors="replace")}, retries_s=())
        return
    _say(reports, wire.report(wire.STARTED, order.serial, b"%d" % pid, *on_record.split(b" ", 2)))
    os.close(reports)
    status, usage = _outlast(pid)
    code = os.waitstatus_to_exitcode(status)
    _record(
        order,
        {
            "code": code if code >= 0 else None,
            "signal": -code if code < 0 else None,
            "error": failed.decode(errors="replace") or None,
            "ended_ms": recording.now_ms(),
            "max_rss_bytes": usage.ru_maxrss * 1024,
            "user_cpu_ms": round(usage.ru_utime * 1000),
            "system_cpu_ms": round(usage.ru_stime * 1000),
        }
        | _shortage(order),
    )
    used = cgroups.still_used(order.cgroups)
    cgroups.end(used)
    sweep()
    cgroups.remove(used)


def _shortage(order: wire.Order) -> recording.Fields:
    found = cgroups.shortage(order.cgroups)
    return {} if found is None else {"oom_used_bytes": found[0], "oom_limit_bytes": found[1]}


def _for_lack_of_memory(order: wire.Order) -> bytes:
    return b": its memory limit is too small to start anything" if cgroups.shortage(order.cgroups) else b""


def _outlast(pid: int) -> tuple[int, resource.struct_rusage]:
    """Wait for the replica, reap orphans that end before it, and end what is left of its group."""
    while True:
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        if ended is not None and ended.si_pid == pid:
            break
        if ended is not None:
            os.waitpid(ended.si_pid, 0)
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    return status, usage


def _record(order: wire.Order, fields: recording.Fields, retries_s: tuple[float, ...] = _RETRIES_S) -> None:
    for pause in (*retries_s, None):
        try:
            recording.record_exit(order.folder, fields)
        except FileNotFoundError:  # somebody removed the folder, so nobody wants to know
            return
        except OSError:
            if pause is not None:
                time.sleep(pause)
        else:
            return


def _refused(order: wire.Order, reports: int, why: bytes, *, claimed_before: bool = False) -> None:
    _say(reports, wire.report(wire.REFUSED, order.serial, why, b"1" if claimed_before else b""))


def _say(reports: int, message: bytes) -> None:
    with contextlib.suppress(OSError):  # no scheduler listens; the next one will read the files
        os.write(reports, message)


def _all_of(fd: int) -> bytes:
    text = b""
    while part := os.read(fd, 4096):
        text += part
    os.close(fd)
    return text
