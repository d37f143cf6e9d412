"""Of a lock file, what the package itself needs: for the image, which has neither tests nor checks.

    python hack/image_packages.py pyproject.toml requirements.lock > image.lock

The lock says for each package who asked for it (`# via`); what follows from the dependencies and from the build system
of pyproject.toml is kept, with its hashes. Only the standard library: it runs before anything is installed.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

NAME = re.compile(r"[A-Za-z0-9._-]+")


def needed(pyproject: str, lock: str) -> list[str]:
    """Entries of the lock, each with its hashes."""
    project = tomllib.loads(pyproject)
    entries = {name_of(entry): entry for entry in re.split(r"\n(?=[A-Za-z0-9])", lock) if NAME.match(entry)}
    asked_by = {
        name: set(re.findall(r"#\s+(?:via\s+)?([a-z0-9._-]+)(?= |$)", entry, re.M)) for name, entry in entries.items()
    }
    wanted = {name_of(line) for line in (*project["project"]["dependencies"], *project["build-system"]["requires"])}
    while more := {name for name in entries if name not in wanted and asked_by[name] & wanted}:
        wanted |= more
    missing = wanted - entries.keys()
    if missing:
        raise SystemExit(f"not in the lock: {', '.join(sorted(missing))}; run `make lock`")
    return [entries[name] for name in sorted(wanted)]


def name_of(text: str) -> str:
    match = NAME.match(text)
    assert match, text
    return match[0].lower().replace("_", "-").replace(".", "-")


if __name__ == "__main__":
    print("\n".join(needed(*(Path(path).read_text(encoding="utf-8") for path in sys.argv[1:3]))))
