"""An order of your own, to try on what was decided before."""

from __future__ import annotations

from optimus.decide.policies import NumberArray, WorkloadColumns


def largest_first(jobs: WorkloadColumns) -> NumberArray:
    """Who asks for most goes first."""
    return -jobs.size_milli
