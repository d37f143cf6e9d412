"""Where the project's own files are, for the tests that read them instead of running them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "optimus"
GENERATED = {".git", ".venv", "build", "dist", "__pycache__", ".work", "node_modules"}


def python_files(*folders: str) -> list[Path]:
    """All Python files below the folders that exist, in a stable order."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def tracked_files() -> list[Path]:
    """What git knows or would take; without git (an unpacked archive), everything that is not generated."""
    if (ROOT / ".git").exists():
        listing = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        if listing.returncode == 0:
            return [path for name in listing.stdout.split("\0") if name and (path := ROOT / name).is_file()]
    found: list[Path] = []
    for folder, inner, names in os.walk(ROOT):
        inner[:] = [name for name in inner if name not in GENERATED and not name.endswith(("_cache", ".egg-info"))]
        found.extend(Path(folder) / name for name in names)
    return sorted(found)
