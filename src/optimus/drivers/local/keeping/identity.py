"""Who a process is: its number alone is reused, its number with its start time and the boot is not."""

from __future__ import annotations

import os

BOOT_ID = "/proc/sys/kernel/random/boot_id"


def boot_id() -> str:
    with open(BOOT_ID, encoding="ascii") as file:
        return file.read().strip()


def start_ticks(pid: int) -> int | None:
    """When it started, in clock ticks since boot; None if there is no such process, or only what is left of it."""
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        text = os.read(fd, 4096)
    except ProcessLookupError:
        return None
    finally:
        os.close(fd)
    fields = text[text.rindex(b")") + 2 :].split()  # the name in front of it may hold spaces and parentheses
    return None if fields[0] in (b"Z", b"X") else int(fields[19])
