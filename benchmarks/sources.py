"""Of which source a result of Kubernetes is, and whether the code has changed since.

    python -m benchmarks.sources        one line for each result file; ends with 1 if one of them is of other code

A source is named by the trees of the packages that were measured, not by a commit: a commit that changes only words or
tests makes no result old, and a result stays true when branches are merged.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

from benchmarks.measuring import RESULTS

ROOT = RESULTS.parents[1]
KUBE = tuple(f"src/optimus/{name}" for name in ("model", "state", "decide", "engine", "kube", "drivers/kube"))
"""What decides and acts on a cluster."""
FILES = ("kube_differential", "kube_faults")


def source_of(paths: tuple[str, ...] = KUBE, root: Path = ROOT) -> str:
    """Of what is committed; `-dirty` behind it if something is not. `unknown` where there is no repository."""
    trees = [_git(root, "rev-parse", f"HEAD:{path}") for path in paths]
    if not all(trees):
        return "unknown"
    dirty = "-dirty" if _git(root, "status", "--porcelain", "--", *paths) else ""
    return hashlib.sha256(" ".join(trees).encode()).hexdigest()[:10] + dirty


def told(name: str) -> str:
    """What a result file says of its source."""
    return str(json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8")).get("source") or "none")


def judged(name: str, source: str, now: str) -> str:
    """Empty if the file is of this source."""
    return "" if source == now else f"{name}.json is of source {source}, and the code is {now}: run it again"


def main() -> int:
    now = source_of()
    old = [why for name in FILES if (why := judged(name, told(name), now))]
    print("\n".join(old) or f"all results are of source {now}")
    return 1 if old else 0


def _git(root: Path, *words: str) -> str:
    try:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


if __name__ == "__main__":
    sys.exit(main())
