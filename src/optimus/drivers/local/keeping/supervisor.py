"""A supervisor: claims attempts, starts their replicas, waits, writes down how each ended, and leaves nothing behind.

Why: somebody has to be the parent of replicas while schedulers come and go.
Owns: its attempts (one, or several of one job that were started together), from the claim to the exit record.
Must not: read or change what a replica writes, need anybody, or take memory.

    claim the folder ─► log ─► `started` ─► spawn ─► its number ─► wait ─► end its group ─► `exit` ─► end its orphans
    └──── refused: it never ran ─────┘       └── it could not be run: `exit` says why ──────┘             │
                                                                        its lifeline is closed, and the keeper looks

There is no moment in which user code runs and its supervisor is not on record. The number of the replica follows a
moment later; should its supervisor be killed between the two, the replica is found by its environment.

The group goes before the record and not after it: as long as the replica is not reaped its number is its own, and the
group that is killed cannot be a stranger's.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time

from optimus.drivers.local.keeping import cgroups, recording, wire
from optimus.drivers.local.keeping.identity import start_ticks
from optimus.drivers.local.keeping.kernel import adopt_orphans
from optimus.drivers.local.keeping.replica import MARK, NotStartedError, spawned
from optimus.drivers.local.keeping.sweeping import sweep, sweep_marked

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` itself would double the memory of this process
    from typing import NoReturn

_RETRIES_S = (0.1, 0.3, 1.0, 3.0, 10.0)
"""A full disk may have room again soon, and an exit that is not written down is a replica that is lost."""
_WORTH_A_SYNC_MS = 1000
"""Shorter work is sooner done again than its exit is written through, should the power fail and no scheduler be up."""


class Kept:
    """A replica that runs."""

    __slots__ = ("begun_ms", "lifeline", "order")

    def __init__(self, order: wire.Order, lifeline: int, begun_ms: int) -> None:
        self.order, self.lifeline, self.begun_ms = order, lifeline, begun_ms


def supervise(orders: list[wire.Order], lifelines: list[int], reports: int, boot: str) -> NoReturn:
    """`lifelines`: the write end of a pipe for each, closed when it is over; the kernel does so if this is killed."""
    status = 1
    try:
        os.setsid()
        adopt_orphans()
        running: dict[int, Kept] = {}
        for order, lifeline in zip(orders, lifelines, strict=True):
            begun_ms = recording.now_ms()
            pid = _begin(order, reports, boot, begun_ms) if _claim(order, reports) else 0
            if pid:
                running[pid] = Kept(order, lifeline, begun_ms)
            else:
                cgroups.remove(order.cgroups)
                os.close(lifeline)
        os.close(reports)
        while running:
            _outlast_one(running)
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


def _begin(order: wire.Order, reports: int, boot: str, begun_ms: int) -> int:
    """The number of the process; 0 if there is none, and why is on record."""
    skipped = cgroups.prepare(order.cgroups, order.settings)
    fields: recording.Fields = {"boot": boot, "wall_ms": begun_ms, "limits_skipped": skipped}
    if order.cgroups:
        fields["cgroups"] = os.fsdecode(b"\n".join(order.cgroups))
    try:
        log = os.open(order.folder + recording.LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        ticks = start_ticks(os.getpid())
        recording.record_start(order.folder, fields | {"supervisor_pid": os.getpid(), "supervisor_ticks": ticks})
    except FileExistsError:
        _refused(order, reports, b"a scheduler that came later has seen to it that this never runs")
        return 0
    except OSError as error:
        why = b"its start cannot be written down: " + wire.told(error)
        _refused(order, reports, why)
        with contextlib.suppress(OSError):
            recording.record_refusal(order.folder, why.decode(errors="replace"))
        return 0
    try:
        pid = spawned(order, log)
    except NotStartedError as error:
        why = error.why
        _record(order, {"code": error.code, "error": why.decode(errors="replace"), "ended_ms": recording.now_ms()})
        return 0
    finally:
        os.close(log)
    ticks = start_ticks(pid) or 0
    with contextlib.suppress(OSError):  # its block is there already; if it still fails, it is found by its environment
        recording.add(order.folder, {"pid": pid, "ticks": ticks})
    numbers = (b"%d" % number for number in (pid, ticks, begun_ms))
    _say(reports, wire.report(wire.STARTED, order.serial, *numbers, skipped.encode()))
    return pid


def _outlast_one(running: dict[int, Kept]) -> None:
    """Wait for any replica, and reap orphans that end meanwhile."""
    ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
    assert ended is not None
    pid = ended.si_pid
    kept = running.pop(pid, None)
    if kept is None:
        os.waitpid(pid, 0)
        return
    order = kept.order
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    ended_ms = recording.now_ms()
    how: recording.Fields = {
        "code": code if code >= 0 else None,
        "signal": -code if code < 0 else None,
        "error": None,
        "ended_ms": ended_ms,
        "max_rss_bytes": usage.ru_maxrss * 1024,
        "user_cpu_ms": round(usage.ru_utime * 1000),
        "system_cpu_ms": round(usage.ru_stime * 1000),
    }
    _record(order, how | _shortage(order), durable=ended_ms - kept.begun_ms >= _WORTH_A_SYNC_MS)
    used = cgroups.still_used(order.cgroups)
    cgroups.end(used)
    if running:
        sweep_marked(MARK + order.folder, running)
    else:
        sweep()
    cgroups.remove(used)
    os.close(kept.lifeline)


def _record(order: wire.Order, fields: recording.Fields, *, durable: bool = False) -> None:
    for pause in (*_RETRIES_S, None):
        try:
            recording.record_exit(order.folder, fields, durable=durable)
        except FileNotFoundError:  # somebody removed the folder, so nobody wants to know
            return
        except OSError:
            if pause is not None:
                time.sleep(pause)
        else:
            return


def _shortage(order: wire.Order) -> recording.Fields:
    found = cgroups.shortage(order.cgroups)
    return {} if found is None else {"oom_used_bytes": found[0], "oom_limit_bytes": found[1]}


def _refused(order: wire.Order, reports: int, why: bytes, *, claimed_before: bool = False) -> None:
    _say(reports, wire.report(wire.REFUSED, order.serial, why, b"1" if claimed_before else b""))


def _say(reports: int, message: bytes) -> None:
    with contextlib.suppress(OSError):  # no scheduler listens; the next one will read the files
        os.write(reports, message)
