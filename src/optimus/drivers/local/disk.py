"""The disk under the store: whether there is room, and the words when there is none.

Why: a disk that is found full only by what fails on it has made somebody's work fail. Nothing new is begun while the
last room is needed for what runs: the ends of jobs, and the answers to those who want to end one.
Owns: how much is too little, and what people are told.
Must not: write anything.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path

LEAST_FREE = 64 << 20
LEAST_PART = 50
"""Of a small disk, so many parts of a hundred are two."""
LEAST_FILES = 64
GOES_ON = "what runs goes on, and nothing new starts until then"


def trouble(folder: Path) -> str:
    """Why nothing new should be begun; empty if it may."""
    try:
        disk = os.statvfs(folder)
    except OSError as error:
        return advice(folder, error)
    if disk.f_flag & os.ST_RDONLY:
        return advice(folder, OSError(errno.EROFS, os.strerror(errno.EROFS)))
    free = disk.f_bavail * disk.f_frsize
    if free < min(LEAST_FREE, disk.f_blocks * disk.f_frsize // LEAST_PART):
        return f"the disk of {folder} is full ({free / 2**20:.1f} MiB are left): make room; {GOES_ON}"
    if disk.f_files and disk.f_favail < LEAST_FILES:
        return f"the disk of {folder} has no room for more files ({disk.f_favail} are left): remove some; {GOES_ON}"
    return ""


def _refused(folder: Path) -> int | None:
    """Why the kernel takes nothing, where a library only knows that it failed: a disk that has had an error can only be
    read from then on, and does not say so before somebody tries."""
    try:
        os.utime(folder)
    except OSError as error:
        return error.errno
    return None


def advice(folder: Path, error: Exception) -> str:
    """What an error of the store means, and what to do."""
    text, number = str(error), getattr(error, "errno", None) or _refused(folder)
    if number in (errno.ENOSPC, errno.EDQUOT) or (isinstance(error, sqlite3.Error) and "full" in text):
        return f"the disk of {folder} is full: make room; {GOES_ON}"
    if number == errno.EROFS or "readonly" in text or "read-only" in text.lower():
        return f"{folder} is on a disk that can only be read: make it writable; {GOES_ON}"
    if isinstance(error, PermissionError):
        return f"{folder} cannot be written: {text}; allow it, or name another folder (--store)"
    if isinstance(error, FileExistsError | NotADirectoryError):
        return f"{folder} is a file, or below one: name a folder (--store)"
    if "malformed" in text or "not a database" in text:
        return f"the store in {folder} is damaged ({text}): move it away, or name another folder (--store)"
    return f"the store in {folder} cannot be used: {text}"
