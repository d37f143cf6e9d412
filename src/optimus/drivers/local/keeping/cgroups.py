"""Limits of a replica by a cgroup (version 2) of its own, where somebody delegated a root for them.

Why: memory and processor time of everything below a replica, and an end that no process can escape from.
Owns: one cgroup per attempt, named like it, while the attempt lives.
Must not: make a start fail: limits that cannot be kept are said, not enforced otherwise.
"""

from __future__ import annotations

import contextlib
import os
import time

_CPU_PERIOD_US = 100_000


def cpu_max(milli: int) -> bytes:
    return b"%d %d" % (max(milli * _CPU_PERIOD_US // 1000, 1000), _CPU_PERIOD_US)


def prepare(cgroup: bytes, limits: dict[bytes, bytes]) -> str:
    """Make it and set its limits; which ones are skipped and why, or nothing."""
    try:
        os.makedirs(cgroup, exist_ok=True)
    except OSError as error:
        return f"no cgroup: {error.strerror}"
    skipped = []
    for name, value in limits.items():
        try:
            _put(cgroup, name, value)
        except OSError as error:
            skipped.append(f"{name.decode()}: {error.strerror}")
    return ", ".join(skipped)


def enter(cgroup: bytes) -> None:
    """This process, and whatever it becomes."""
    _put(cgroup, b"cgroup.procs", b"0")


def end(cgroup: bytes) -> None:
    """Everything in it, at once. A kernel before 5.14 has no such file; orphans are then found one by one."""
    with contextlib.suppress(OSError):
        _put(cgroup, b"cgroup.kill", b"1")


def remove(cgroup: bytes, patience_s: float = 1.0) -> None:
    """The dead leave it a moment after they died."""
    until = time.monotonic() + patience_s
    while True:
        try:
            os.rmdir(cgroup)
        except OSError as error:
            if error.errno != 16 or time.monotonic() > until:  # EBUSY; what stays is an empty folder
                return
        else:
            return
        time.sleep(0.005)


def _put(cgroup: bytes, name: bytes, value: bytes) -> None:
    fd = os.open(cgroup + b"/" + name, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, value)
    finally:
        os.close(fd)
