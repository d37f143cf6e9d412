"""What a replica leaves behind is ended: background processes, whatever session they fled to.

Why: a leaked data loader holds a GPU for ever.
Owns: the end of everything below one supervisor, or of what one of its replicas left there: orphans become children of
the supervisor, and their environment says whose they are. One that wiped it goes with the last replica.
Must not: wait for ever for a process that cannot die (one that hangs in a driver).
"""

from __future__ import annotations

import contextlib
import os
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container

PATIENCE_S = 10.0


def sweep(patience_s: float = PATIENCE_S) -> None:
    """End and reap all children of this process, and those that become its children when their parents die."""
    until = time.monotonic() + patience_s
    pause = 0.001
    while not _reaped_all() and time.monotonic() < until:
        for pid in _children():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)  # safe: nobody but us reaps it, so the number is still its own
        time.sleep(pause)
        pause = min(pause * 2, 0.05)


def sweep_marked(mark: bytes, spared: Container[int], patience_s: float = PATIENCE_S) -> None:
    """End those children whose environment has the mark, and what they leave; the spared are others' replicas."""
    until = time.monotonic() + patience_s
    pause = 0.001
    while left := [pid for pid in _children() if pid not in spared and _marked(pid, mark)]:
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, os.WNOHANG)
        if time.monotonic() > until:
            return
        time.sleep(pause)
        pause = min(pause * 2, 0.05)


def _reaped_all() -> bool:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return True
    return False


def _children() -> list[int]:
    me = os.getpid()
    try:
        with open(f"/proc/self/task/{me}/children", "rb") as file:
            return [int(pid) for pid in file.read().split()]
    except OSError:  # a kernel without CONFIG_PROC_CHILDREN
        return [int(name) for name in os.listdir("/proc") if name.isdigit() and _parent(name) == me]


def _parent(pid: str) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return 0
    return int(text[text.rindex(b")") + 2 :].split()[1])


def _marked(pid: int, mark: bytes) -> bool:
    """A zombie has no environment any more; whoever waits for any child reaps it."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return mark in file.read().split(b"\0")
    except OSError:
        return False
