"""The cgroups of one replica: made, entered, read, ended and removed. Version 1 and 2 alike.

Why: memory and processor time of everything below a replica, and an end that no process can escape from.
Owns: the cgroups of an attempt while it lives: one on version 2, one for each controller that is needed on version 1.
Must not: make a start fail: limits that cannot be kept are said, not enforced otherwise. Nor know what limits are:
`limiting` says what is written where.
"""

from __future__ import annotations

import errno
import os
import signal
import time

OPTIONAL = b"?"
"""In front of a setting that not every kernel has."""
_PATIENCE_S = 5.0
_HUGE_PAGE = 2 << 20
"""What could not be had in one piece when the limit was reached."""


def prepare(groups: list[bytes], settings: list[bytes]) -> str:
    """Make them and write the settings, each `path=value`; which are skipped and why, or nothing."""
    skipped = []
    for group in groups:
        try:
            os.mkdir(group)
        except FileExistsError:
            pass
        except OSError as error:
            return f"no cgroup: {error.strerror}"
    for setting in settings:
        path, _, value = setting.rpartition(b"=")
        try:
            _put(path.removeprefix(OPTIONAL), value)
        except OSError as error:
            if not path.startswith(OPTIONAL):
                skipped.append(f"{os.path.basename(path).decode()}: {error.strerror}")
    return ", ".join(skipped)


def enter(groups: list[bytes]) -> None:
    """This process, and whatever it becomes."""
    for group in groups:
        _put(group + b"/cgroup.procs", b"0")


def shortage(groups: list[bytes]) -> tuple[int, int | None] | None:
    """If a process in them was ended for lack of memory: the most that was used, and the limit that was reached.

    No limit: it was the machine that had nothing left, or whoever limits us.
    """
    for group in groups:
        events = _numbers(group + b"/memory.events") or _numbers(group + b"/memory.oom_control")
        if events.get(b"oom_kill"):
            peak = _number(group, b"memory.peak", b"memory.max_usage_in_bytes")
            limit = _number(group, b"memory.max", b"memory.limit_in_bytes")
            if b"oom" not in events and limit is not None:  # version 1 does not count it where swap is limited, too
                events[b"oom"] = (peak or 0) + _HUGE_PAGE >= limit
            return peak or limit or 0, limit if events.get(b"oom") else None
    return None


def still_used(groups: list[bytes]) -> list[bytes]:
    """Those that cannot be removed yet, because something is in them; the others are removed."""
    return [group for group in groups if not _removed(group)]


def end(groups: list[bytes], patience_s: float = _PATIENCE_S) -> None:
    """Everything in them and below."""
    for group in groups:
        try:
            _put(group + b"/cgroup.kill", b"1")
        except OSError:  # version 1, or a kernel before 5.14
            _end_one_by_one(group, patience_s)


def remove(groups: list[bytes], patience_s: float = 1.0) -> None:
    """The dead leave them a moment after they died."""
    until = time.monotonic() + patience_s
    for group in groups:
        while not _removed(group) and time.monotonic() < until:  # what stays is an empty folder
            for below in _below(group):
                remove([below], until - time.monotonic())
            time.sleep(0.005)


def _removed(group: bytes) -> bool:
    try:
        os.rmdir(group)
    except OSError as error:
        return error.errno != errno.EBUSY
    return True


def _end_one_by_one(group: bytes, patience_s: float) -> None:
    until = time.monotonic() + patience_s
    pause = 0.001
    while time.monotonic() < until:  # what they fork meanwhile is found the next time
        found = [pid for folder in (group, *_all_below(group)) for pid in _processes(folder) if _end(pid, folder)]
        if not found:
            return
        time.sleep(pause)
        pause = min(pause * 2, 0.05)


def _end(pid: int, group: bytes) -> bool:
    """Whether it was there. It is held first and looked for again then: its number may be another's by now."""
    try:
        held = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if pid in _processes(group):
            signal.pidfd_send_signal(held, signal.SIGKILL)
    except OSError:
        return False
    finally:
        os.close(held)
    return True


def _processes(group: bytes) -> list[int]:
    return [int(pid) for pid in _text(group + b"/cgroup.procs").split()]


def _all_below(group: bytes) -> list[bytes]:
    found = _below(group)
    return found + [deeper for folder in found for deeper in _all_below(folder)]


def _below(group: bytes) -> list[bytes]:
    try:
        return [entry.path for entry in os.scandir(group) if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _number(group: bytes, *names: bytes) -> int | None:
    """Of the first of these files that is there; `max` is none."""
    for name in names:
        text = _text(group + b"/" + name).strip()
        if text:
            return int(text) if text.isdigit() else None
    return None


def _numbers(path: bytes) -> dict[bytes, int]:
    words = _text(path).split()
    return {name: int(value) for name, value in zip(words[::2], words[1::2], strict=False)}


def _text(path: bytes) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    text = b""
    try:
        while part := os.read(fd, 4096):
            text += part
    except OSError:  # the group is gone
        return b""
    finally:
        os.close(fd)
    return text


def _put(path: bytes, value: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, value)
    finally:
        os.close(fd)
