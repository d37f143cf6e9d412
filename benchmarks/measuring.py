"""How things are timed here: best of several runs, collector quiet, machine described beside the numbers."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from optimus.measuring.timing import best_seconds, machine, peak_memory_mib

__all__ = ["RESULTS", "best_seconds", "folder_of", "growth_exponent", "machine", "parser", "peak_memory_mib", "write"]
RESULTS = Path(__file__).parent / "results"


def parser(name: str, what: str | None) -> argparse.ArgumentParser:
    """Of `python -m benchmarks.NAME`; `what` is its docstring, shown as it stands."""
    form = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=what, formatter_class=form)


def folder_of(traces: Path, kind: str) -> Path:
    """The folder of one kind of data: FOLDER means the one that holds all of them, and its own is taken, too."""
    return traces / kind if (traces / kind).is_dir() else traces


def growth_exponent(sizes: list[int], seconds: list[float]) -> float:
    """Slope in the log-log plane, by least squares: 1 is linear, n log n over a factor of 16 looks like 1.1."""
    slope, _ = np.polyfit(np.log(sizes), np.log(seconds), 1)
    return float(slope)


def write(name: str, content: dict[str, Any]) -> Path:
    """The result file, with how it was made: by which command, when, and on which state of the source."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({**content, "made": _made()}, indent=2, sort_keys=True) + "\n")
    return path


def _made() -> dict[str, str]:
    module = Path(sys.argv[0]).stem
    words = ["FOLDER" if Path(word).is_dir() else word for word in sys.argv[1:]]
    commit = _git("describe", "--always", "--dirty") or "unknown"
    command = " ".join(["python -m", "benchmarks" if module == "__main__" else f"benchmarks.{module}", *words])
    return {"command": command, "on": f"{datetime.now(UTC):%Y-%m-%d}", "source": commit}


def _git(*words: str) -> str:
    try:
        done = subprocess.run(["git", *words], cwd=RESULTS, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()
