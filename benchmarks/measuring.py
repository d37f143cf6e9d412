"""How things are timed here: best of several runs, collector quiet, machine described beside the numbers."""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results"


def parser(name: str, what: str | None) -> argparse.ArgumentParser:
    """Of `python -m benchmarks.NAME`; `what` is its docstring, shown as it stands."""
    form = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=what, formatter_class=form)


def folder_of(traces: Path, kind: str) -> Path:
    """The folder of one kind of data: FOLDER means the one that holds all of them, and its own is taken, too."""
    return traces / kind if (traces / kind).is_dir() else traces


def machine() -> dict[str, str]:
    """Enough to judge the figures by, nothing that names the machine."""
    model = "unknown"
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    return {
        "cpu": model,
        "cores": str(os.cpu_count()),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "load_when_started": f"{os.getloadavg()[0]:.1f}",
    }


def best_seconds(work: Callable[[], object], *, runs: int = 3) -> float:
    """The least disturbed of several runs, in seconds of this process."""
    gc.collect()
    times = []
    for _ in range(runs):
        begun = time.process_time()
        work()
        times.append(time.process_time() - begun)
    return min(times)


def peak_memory_mib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


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
