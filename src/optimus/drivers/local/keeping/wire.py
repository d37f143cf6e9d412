"""Messages between keeper and nursery: NUL-joined fields, since no argument, variable or path can hold a NUL.

Why: orders may be as large as an environment is and go through a stream with lengths; reports come from many processes
at once, so each is one packet. Both sides import this, and the small side must stay small.
Owns: the bytes.
Must not: import what takes memory.

    order   serial, job, folder, workdir, number of cgroups, their number of settings and of arguments,
            cgroups…, settings…, arguments…, NAME=value…
    report  born, serial… (with one lifeline each) | started, serial, pid, ticks, wall_ms, skipped
            | refused, serial, why, claimed_before
"""

from __future__ import annotations

from collections.abc import Iterator

BORN, STARTED, REFUSED = b"born", b"started", b"refused"
BATCH = 32
"""Starts that are made and reported together; their lifelines must fit one packet (253)."""
LARGEST_REPORT = 1 << 16


class Order:
    """One start, as the nursery sees it: bytes throughout, since paths and arguments are."""

    __slots__ = ("argv", "cgroups", "env", "folder", "job", "serial", "settings", "workdir")

    def __init__(
        self,
        *,
        serial: bytes,
        folder: bytes,
        workdir: bytes,
        argv: list[bytes],
        env: list[bytes],
        cgroups: list[bytes],
        settings: list[bytes],
        job: bytes = b"",
    ) -> None:
        self.serial = serial
        """Of the request, not of the attempt: an answer that comes late belongs to nobody else."""
        self.job = job
        """Orders of the same one may share a supervisor; empty: this one has its own."""
        self.folder, self.workdir, self.argv, self.env = folder, workdir, argv, env
        self.cgroups, self.settings = cgroups, settings
        """Folders to be made, and `path=value` of what is written into them; none: it is not limited."""


def packed(order: Order) -> bytes:
    lists = (order.cgroups, order.settings, order.argv)
    counts = (b"%d" % len(entries) for entries in lists)
    head = (order.serial, order.job, order.folder, order.workdir, *counts)
    body = b"\0".join((*head, *order.cgroups, *order.settings, *order.argv, *order.env))
    return len(body).to_bytes(4, "big") + body


def unpacked(body: bytes) -> Order:
    serial, job, folder, workdir, groups, settings, words, *rest = body.split(b"\0")
    first = int(groups)
    second = first + int(settings)
    third = second + int(words)
    return Order(
        serial=serial,
        job=job,
        folder=folder,
        workdir=workdir,
        cgroups=rest[:first],
        settings=rest[first:second],
        argv=rest[second:third],
        env=rest[third:],
    )


def complete(buffer: bytearray) -> Iterator[bytes]:
    """The messages that are there in full; they are taken out of the buffer."""
    begin = 0
    while len(buffer) - begin >= 4:
        end = begin + 4 + int.from_bytes(buffer[begin : begin + 4], "big")
        if len(buffer) < end:
            break
        yield bytes(buffer[begin + 4 : end])
        begin = end
    del buffer[:begin]


def report(*fields: bytes) -> bytes:
    return b"\0".join(fields)


def told(error: BaseException | str) -> bytes:
    """A sentence that fits a field."""
    if isinstance(error, OSError) and error.strerror:
        error = error.strerror
    return str(error).encode("utf-8", "replace").replace(b"\0", b"?")[:2000]
