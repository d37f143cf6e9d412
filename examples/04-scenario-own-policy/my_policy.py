"""An order of your own: whoever came last goes first."""

from __future__ import annotations

from optimus.decide.policies import NumberArray, WorkloadColumns


def newest_first(jobs: WorkloadColumns) -> NumberArray:
    """Last come, first served."""
    return -jobs.submitted_ms
