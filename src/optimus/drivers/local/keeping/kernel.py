"""Calls to the kernel that Python has no function for."""

from __future__ import annotations

import ctypes
import os

_SET_NAME = 15
_SET_CHILD_SUBREAPER = 36
_KEEP_SIZE, _PUNCH_HOLE = 1, 2
_libc = ctypes.CDLL(None, use_errno=True)
_fallocate = getattr(_libc, "fallocate64", None) or _libc.fallocate  # of musl, the one that it has is the long one


def adopt_orphans() -> None:
    """What the replica leaves behind becomes a child of this process instead of init's, and can be found and ended."""
    if _libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def be_called(name: bytes) -> None:
    """As `ps` and `top` show it; at most 15 bytes."""
    _libc.prctl(_SET_NAME, name, 0, 0, 0)


def make_hole(fd: int, begin: int, length: int) -> None:
    """What is there reads as zeros from now on, and takes no room."""
    offset, size = ctypes.c_longlong(begin), ctypes.c_longlong(length)
    if _fallocate(fd, _KEEP_SIZE | _PUNCH_HOLE, offset, size):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
