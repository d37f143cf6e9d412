"""Files for programs: JSON with everything, CSV with one row per metric or per job.

Fields are documented in docs/reference/metrics.md. The same study gives the same bytes: keys in a fixed order, numbers
rounded once in the metrics, and no clock.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from optimus.drivers.sim.measuring.columns import SIZES
from optimus.drivers.sim.measuring.metrics import Measured
from optimus.drivers.sim.measuring.study import Study

METRIC_FIELDS = ("trace", "scheduler", "metric", "value")
JOB_FIELDS = (
    "scheduler",
    "job",
    "queue",
    "gpus",
    "size",
    "state",
    "submitMs",
    "jctMs",
    "firstWaitMs",
    "waitMs",
    "longestWaitMs",
    "idealMs",
    "rho",
    "gpuMs",
    "usefulGpuMs",
    "pausedGpuMs",
    "lostGpuMs",
)


def as_json(study: Study) -> str:
    plain: dict[str, Any] = {
        "version": study.version,
        "optimus": study.optimus,
        "provenance": msgspec.to_builtins(study.provenance),
        "cluster": msgspec.to_builtins(study.cluster),
        "intervalSeed": study.seed,
        "reference": study.measured[0].name,
        "metrics": [{"trace": i} | msgspec.to_builtins(m) for i, row in enumerate(study.each) for m in row],
        "comparisons": [msgspec.to_builtins(comparison) for comparison in study.comparisons],
    }
    return json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def metrics_csv(study: Study) -> str:
    """One number per row; names are the paths of the JSON, `jctMs.average`."""
    rows = (
        (i, m.scheduler, path, value)
        for i, row in enumerate(study.each)
        for m in row
        for path, value in flat(msgspec.to_builtins(m))
        if path != "scheduler"
    )
    return _written(METRIC_FIELDS, rows)


def flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Lists of queues are named by their queue."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from flat(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for i, inner in enumerate(value):
            name = inner.get("queue", i) if isinstance(inner, dict) else i
            yield from flat(inner, f"{path}.{name}")
    else:
        yield path, "" if value is None else value


def jobs_csv(study: Study) -> str:
    """One row per job and scheduler, of the first trace."""
    return _written(JOB_FIELDS, (row for measured in study.measured for row in _jobs(measured)))


def _jobs(measured: Measured) -> Iterator[tuple[Any, ...]]:
    table, asked = measured.columns, measured.columns.asked
    states = np.select(
        [table.rejected, table.finished, table.started], ["rejected", "finished", "unfinished"], "waiting"
    )
    for i, name in enumerate(asked.names):
        yield (
            measured.name,
            name,
            asked.queues[asked.queue[i]],
            f"{asked.gpus[i]:g}",
            SIZES[asked.size[i]],
            states[i],
            asked.submit_ms[i],
            *(_whole(x[i]) for x in (table.jct_ms, table.first_wait_ms, table.wait_ms, table.longest_wait_ms)),
            _whole(asked.ideal_ms[i]),
            "" if np.isnan(measured.rho[i]) else f"{measured.rho[i]:.6f}",
            *(_whole(x[i]) for x in (table.gpu_ms, table.useful_gpu_ms, table.paused_gpu_ms, table.lost_gpu_ms)),
        )


def _whole(value: float) -> int | str:
    return "" if np.isnan(value) else round(float(value))


def _written(fields: tuple[str, ...], rows: Iterator[tuple[Any, ...]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(fields)
    writer.writerows(rows)
    return text.getvalue()
