"""Messages between keeper and nursery: NUL-joined fields, since no argument, variable or path can hold a NUL.

Why: orders may be as large as an environment is and go through a stream with lengths; reports come from many processes
at once, so each is one packet. Both sides import this, and the small side must stay small.
Owns: the bytes.
Must not: import what takes memory.

    order   serial, job, folder, workdir, cgroup, memory, cpu, number of arguments, arguments…, NAME=value…
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

    __slots__ = ("argv", "cgroup", "cpu_max", "env", "folder", "job", "memory_max", "serial", "workdir")

    def __init__(
        self,
        *,
        serial: bytes,
        folder: bytes,
        workdir: bytes,
        argv: list[bytes],
        env: list[bytes],
        job: bytes = b"",
        cgroup: bytes = b"",
        memory_max: bytes = b"",
        cpu_max: bytes = b"",
    ) -> None:
        self.serial = serial
        """Of the request, not of the attempt: an answer that comes late belongs to nobody else."""
        self.job = job
        """Orders of the same one may share a supervisor; empty: this one has its own."""
        self.folder, self.workdir, self.argv, self.env = folder, workdir, argv, env
        self.cgroup, self.memory_max, self.cpu_max = cgroup, memory_max, cpu_max
        """Empty: there is no such limit, or nobody to keep it."""


def packed(order: Order) -> bytes:
    head = (order.serial, order.job, order.folder, order.workdir, order.cgroup, order.memory_max, order.cpu_max)
    body = b"\0".join((*head, b"%d" % len(order.argv), *order.argv, *order.env))
    return len(body).to_bytes(4, "big") + body


def unpacked(body: bytes) -> Order:
    serial, job, folder, workdir, cgroup, memory_max, cpu_max, count, *rest = body.split(b"\0")
    return Order(
        serial=serial,
        job=job,
        folder=folder,
        workdir=workdir,
        argv=rest[: int(count)],
        env=rest[int(count) :],
        cgroup=cgroup,
        memory_max=memory_max,
        cpu_max=cpu_max,
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
