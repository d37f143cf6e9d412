"""Measuring: what a simulation shows, in numbers that are defined once.

Why: results are compared across schedulers, traces and papers; that only works when everybody means the same by a word.
Owns: the metrics (docs/reference/metrics.md), the paired comparison, and the standard a claim has to meet.
Must not: simulate, draw, or print. Everything is computed from records and jobs.

    Record + jobs + Setup ── measure ──► Measured ─┬─ compare ──► Comparison
                                                   └─ study ────► Study ──► report
"""

from optimus.drivers.sim.measuring.columns import MeasureError, ask
from optimus.drivers.sim.measuring.comparing import Comparison, compare
from optimus.drivers.sim.measuring.metrics import Measured, Metrics, measure
from optimus.drivers.sim.measuring.study import Provenance, Study, provenance_of, study
from optimus.drivers.sim.measuring.watching import Watched

__all__ = [
    "Comparison",
    "MeasureError",
    "Measured",
    "Metrics",
    "Provenance",
    "Study",
    "Watched",
    "ask",
    "compare",
    "measure",
    "provenance_of",
    "study",
]
