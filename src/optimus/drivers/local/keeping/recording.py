"""The names that decide about an attempt, written so that nobody ever reads half of one.

Why: supervisors and restarted schedulers do not wait for each other; the file system is their referee.
Owns: `started` and `exit` in an attempt's folder, and how they come into being.
Must not: read them (that is `finding`), or replace a `started` that is there.

    started   one line when the name is taken, one when the process is there, one when it has ended; each a JSON object
    exit      a second name of the same file, given when the last line is in it

One file with two names: what ended can be put on record although the disk is full, since the line goes into a block
that is there already; and a file less to be made is a good part of what a short job costs.
"""

from __future__ import annotations

import os
import time

STARTED, EXIT, LOG = b"/started", b"/exit", b"/log"
Fields = dict[str, int | str | None]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def record_start(folder: bytes, fields: Fields) -> None:
    """FileExistsError: somebody else took the name; user code must not be run.

    A link, not a rename: a rename would replace what is there.
    """
    draft = folder + b"/started.%d" % os.getpid()
    _write(draft, fields, os.O_CREAT | os.O_TRUNC)
    try:
        os.link(draft, folder + STARTED)
    finally:
        os.unlink(draft)


def add(folder: bytes, fields: Fields, *, durable: bool = False) -> None:
    """One more line on what was started."""
    _write(folder + STARTED, fields, os.O_APPEND, durable=durable)


def record_exit(folder: bytes, fields: Fields, *, durable: bool) -> None:
    """`durable`: it is still there after a power failure that comes before any scheduler has read it."""
    add(folder, fields, durable=durable)
    os.link(folder + STARTED, folder + EXIT)


def record_refusal(folder: bytes, why: str) -> None:
    """That it never started, and why."""
    draft = folder + b"/exit.tmp"
    _write(draft, {"error": why}, os.O_CREAT | os.O_TRUNC)
    os.rename(draft, folder + EXIT)


def forestall(folder: bytes) -> bool:
    """See to it that this attempt never runs; False: it did already, or is about to.

    Whichever step a late supervisor has reached, one of the two names is in its way.
    """
    os.makedirs(folder, exist_ok=True)
    try:
        record_start(folder, {"never": True, "wall_ms": now_ms()})
    except FileExistsError:
        return False
    return True


def _write(path: bytes, fields: Fields, flags: int, *, durable: bool = False) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC | flags, 0o644)
    try:
        text = as_json(fields)
        if os.write(fd, text) != len(text):  # the disk filled up in the middle
            raise OSError(28, os.strerror(28))
        if durable:
            os.fsync(fd)
    finally:
        os.close(fd)


def as_json(fields: Fields) -> bytes:
    """Flat, and so small that `json` is not missed: in a fork, each page that it touches has to be copied."""
    return b"{%s}\n" % b", ".join(b'"%s": %s' % (name.encode(), _value(value)) for name, value in fields.items())


def _value(value: int | str | None) -> bytes:
    if value is None:
        return b"null"
    if isinstance(value, int):
        return b"true" if value is True else b"%d" % value
    plain = value.isprintable() and value.isascii() and '"' not in value and "\\" not in value
    return b'"%s"' % (value.encode() if plain else _escaped(value))


def _escaped(text: str) -> bytes:
    units = text.encode("utf-16-be", "surrogatepass")
    return b"".join(b"\\u%04x" % int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2))
