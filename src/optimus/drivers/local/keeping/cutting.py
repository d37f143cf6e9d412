"""A log that has no end: its first and its last part are kept, and what was between them is given back to the disk.

Why: a replica writes to its log itself, whoever is up; nothing that it does may fill the disk for everybody.
Owns: what is cut out, and the words at the cut.
Must not: move what is kept, or lose a line that is written meanwhile.

A hole is made in the file: whoever writes goes on at its end, whoever reads finds the words, then zeros up to the place
where the log goes on (`logs` leaves them out). On a file system that has no holes a log is as long as it is.
"""

from __future__ import annotations

import os
from pathlib import Path

from optimus.drivers.local.keeping.kernel import make_hole

FIRST = 1 << 20
"""Kept of the beginning, where there is room for it: what it was called with, and its first mistakes."""
BLOCK = 4096
WORDS = (
    b"\n\xe2\x80\xa6 optimus has cut %d MiB out of this log: a log keeps at most %d MiB, its first and its last lines\n"
)


def cut(log: Path, most: int) -> None:
    """To `most` bytes on the disk; again when it has grown by a quarter of that."""
    try:
        if log.stat().st_blocks * 512 <= most + most // 4:
            return
        with log.open("r+b") as file:
            size, first = os.fstat(file.fileno()).st_size, min(FIRST, most // 4) // BLOCK * BLOCK
            until = (size - (most - first)) // BLOCK * BLOCK
            words = WORDS % ((until - first) >> 20, most >> 20)
            begin = first + BLOCK  # a block for the words, which are written anew each time
            if until <= begin:
                return
            make_hole(file.fileno(), begin, until - begin)
            os.pwrite(file.fileno(), words.ljust(BLOCK, b"\0"), first)
    except OSError:  # nobody writes a log that is not there, and some file systems have no holes
        return
