"""All tests, and a second look at the few that failed.

    python -m tests [options of pytest]

Why: hundreds of stories here are played with real processes and real clocks, several at once on two cores. One in
thousands is late for a reason of the machine's; what is really broken is broken alone, too.
Owns: that a handful of failed tests run once more, one after the other, and are named either way.
Must not: hide anything: whoever passed only alone is listed as such, and more than MOST failures are no accident.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

MOST = 4
FAILED = 1
"""How pytest ends where tests failed; interrupted, wrong calls and nothing to run have other numbers."""
ROOT = Path(__file__).resolve().parents[1]


def main(words: list[str]) -> int:
    cache = ROOT / ".pytest_cache" / "v" / "cache" / "lastfailed"
    cache.unlink(missing_ok=True)  # of an earlier run: not everything that is narrowed down fails again
    ended = _pytest(words)
    failed = sorted(json.loads(cache.read_text(encoding="utf-8"))) if ended == FAILED and cache.exists() else []
    if not 1 <= len(failed) <= MOST:
        return ended
    print(f"\n{len(failed)} failed beside others, and run once more, alone:", *failed, sep="\n  ", flush=True)
    again = _pytest(["-p", "no:cacheprovider", "-n", "0", *failed])
    if again == 0:
        print(f"\n{len(failed)} passed only alone, and want to be looked at:", *failed, sep="\n  ", flush=True)
    return again


def _pytest(words: list[str]) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *words], cwd=ROOT, env=os.environ, check=False).returncode


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
