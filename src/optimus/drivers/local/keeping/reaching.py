"""Reaching a process, and never a stranger that got its number later.

Why: numbers of processes are reused, and a signal to the wrong one ends somebody else's work.
Owns: pidfds that are opened first and checked then (a pidfd stays with its process, so the check stays true), signals
through them, and the search for what an attempt left behind.
Must not: send a signal to a bare number that was not checked.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from optimus.drivers.local.keeping.identity import start_ticks
from optimus.drivers.local.keeping.replica import MARK

_WHOLE_GROUP = 1 << 2  # PIDFD_SIGNAL_PROCESS_GROUP, since Linux 6.9


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    ticks: int
    """When it started, since boot. Nobody else with this number did."""


def opened(process: Process) -> int | None:
    """A pidfd; None if it is gone, or dead and not yet reaped. OSError: this process has no descriptor left."""
    if process.pid <= 0:
        return None
    try:
        pidfd = os.pidfd_open(process.pid)
    except (ProcessLookupError, ValueError):
        return None
    if start_ticks(process.pid) != process.ticks:
        os.close(pidfd)
        return None
    return pidfd


def send(process: Process, signum: int, *, whole_group: bool) -> bool:
    """Whether it was there to be told. The group is the one it leads."""
    pidfd = opened(process)
    if pidfd is None:
        return False
    try:
        if whole_group:
            _send_group(pidfd, process, signum)
        else:
            signal.pidfd_send_signal(pidfd, signum)
    except (ProcessLookupError, PermissionError):
        return False
    finally:
        os.close(pidfd)
    return True


def _send_group(pidfd: int, process: Process, signum: int) -> None:
    try:
        signal.pidfd_send_signal(pidfd, signum, None, _WHOLE_GROUP)
    except OSError as error:
        if isinstance(error, ProcessLookupError | PermissionError):
            raise
        # An older kernel: the number is checked once more, and microseconds remain in which it could be reused.
        if start_ticks(process.pid) == process.ticks:
            os.killpg(process.pid, signum)


def end_marked(folder: Path, patience_s: float = 5.0) -> int:
    """End everything whose environment says that it belongs to the attempt of this folder; how many there were.

    Only needed where the supervisor is gone, which would have found them as its children.
    """
    mark = MARK + os.fsencode(folder)
    ended: set[int] = set()
    until = time.monotonic() + patience_s
    while time.monotonic() < until:  # what they fork meanwhile is found the next time
        found = [pid for name in os.listdir("/proc") if name.isdigit() and _end_if_marked(pid := int(name), mark)]
        if not found:
            break
        ended.update(found)
        time.sleep(0.01)
    return len(ended)


def _end_if_marked(pid: int, mark: bytes) -> bool:
    if not _marked(pid, mark):
        return False
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if not _marked(pid, mark):  # again: now that it is held, it cannot become another
            return False
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except OSError:
        return False
    finally:
        os.close(pidfd)
    return True


def _marked(pid: int, mark: bytes) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return mark in file.read().split(b"\0")
    except OSError:
        return False
