"""Saying: the status file of a replica, read without believing that it is one.

Why: a job writes what it likes, where it likes: a pipe that nobody feeds, a gigabyte, brackets in brackets, a number
that fits nowhere. None of that may cost others their scheduler.
Owns: what of such a file is taken, and the words for what is not.
Must not: wait for the file, or know what its words mean (`progress`).
"""

from __future__ import annotations

import math
import os
import stat
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

LARGEST = 64 << 10
DEEPEST = 8
"""Objects and lists in one another."""
WHOLE = range(-(1 << 63), 1 << 63)
"""What whole numbers can be on the way to those who look."""
LONGEST_NAME = 60


class UnreadableError(Exception):
    """There is something, but no report; the text says why."""


class Said(NamedTuple):
    written_ns: int
    words: dict[str, Any]
    left_out: tuple[str, ...]
    """Where something stood that cannot be passed on."""


def read(file: Path, known_ns: int | None = None) -> Said | None:
    """None: there is nothing, or nothing else than at `known_ns`. Raises `UnreadableError`."""
    try:
        found = _bytes(file, known_ns)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnreadableError(f"it cannot be read ({(error.strerror or str(error)).lower()})") from error
    if found is None:
        return None
    written_ns, raw = found
    try:
        told = msgspec.json.decode(raw)
    except RecursionError as error:
        raise UnreadableError("it is nested too deep") from error
    except (msgspec.MsgspecError, ValueError) as error:
        raise UnreadableError(f"it is no JSON ({str(error).lower()[:LONGEST_NAME]})") from error
    if not isinstance(told, dict):
        raise UnreadableError("it is no JSON object")
    left_out: list[str] = []
    words = _passable(told, "", 1, left_out)
    return Said(written_ns, words, tuple(left_out))


def _bytes(file: Path, known_ns: int | None) -> tuple[int, bytes] | None:
    """Opening must not wait either: a pipe has no end, and perhaps no beginning."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        there = os.fstat(descriptor)
        if not stat.S_ISREG(there.st_mode):
            raise UnreadableError("it is no file")
        if there.st_mtime_ns == known_ns:
            return None
        raw = os.read(descriptor, LARGEST + 1)
    finally:
        os.close(descriptor)
    if len(raw) > LARGEST:
        raise UnreadableError(f"it is larger than {LARGEST >> 10} KiB")
    return there.st_mtime_ns, raw


def _passable(value: Any, where: str, depth: int, left_out: list[str]) -> Any:
    """Without what no frame, table or page could take; where that was is added to `left_out`."""
    if isinstance(value, dict):
        inside = [(name, one, f"{where}.{name}" if where else name) for name, one in value.items()]
        return {
            name: _passable(one, at, depth + 1, left_out) for name, one, at in inside if _fits(one, at, depth, left_out)
        }
    if isinstance(value, list):
        return [_passable(one, where, depth + 1, left_out) for one in value if _fits(one, where, depth, left_out)]
    return value


def _fits(value: Any, where: str, depth: int, left_out: list[str]) -> bool:
    if isinstance(value, dict | list):
        fits = depth < DEEPEST
    elif isinstance(value, int):
        fits = value in WHOLE
    else:
        fits = not isinstance(value, float) or math.isfinite(value)
    if not fits:
        left_out.append(where[:LONGEST_NAME])
    return fits
