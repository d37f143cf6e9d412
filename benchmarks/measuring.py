"""How things are timed here: best of several runs, collector quiet, machine described beside the numbers."""

from __future__ import annotations

import gc
import json
import os
import platform
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results"


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
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")
    return path
