"""Digests: what stood in a file when it was read, so that whoever does it again can tell whether it still does."""

from __future__ import annotations

import hashlib
from pathlib import Path


def text_digest(path: Path) -> str:
    """Of a file, as `sha256sum` tells it; of a folder, of the names and digests of all its files."""
    if path.is_file():
        with path.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    whole = hashlib.sha256()
    for file in sorted(one for one in path.rglob("*") if one.is_file()):
        whole.update(f"{file.relative_to(path).as_posix()} {text_digest(file)}\n".encode())
    return whole.hexdigest()
