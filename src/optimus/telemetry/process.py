"""What every process tells of itself, under the names that boards everywhere know."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

from optimus.telemetry.exposition import Family, Kind, Metric

CPU = Metric("process_cpu_seconds_total", Kind.COUNTER, "Processor time, in seconds.")
MEMORY = Metric("process_resident_memory_bytes", Kind.GAUGE, "Memory that is in use.")
STARTED = Metric("process_start_time_seconds", Kind.GAUGE, "When the process began, in seconds since 1970.")
FILES = Metric("process_open_fds", Kind.GAUGE, "Open files and connections.")
METRICS = (CPU, MEMORY, STARTED, FILES)
_STARTED_AT = time.time()
_PROC = Path("/proc/self")


def families() -> list[Family]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    told = [Family(CPU, {(): used.ru_utime + used.ru_stime}), Family(STARTED, {(): _STARTED_AT})]
    try:
        pages = int((_PROC / "statm").read_text().split()[1])
        told.append(Family(MEMORY, {(): pages * os.sysconf("SC_PAGESIZE")}))
        told.append(Family(FILES, {(): len(os.listdir(_PROC / "fd"))}))
    except OSError:
        pass  # not Linux: these two are not told
    return told
