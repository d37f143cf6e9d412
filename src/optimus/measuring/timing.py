"""How time is taken: the best of several runs, the collector quiet, the machine described beside the figures."""

from __future__ import annotations

import gc
import os
import platform
import resource
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np


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
