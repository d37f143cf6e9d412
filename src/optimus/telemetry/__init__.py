"""Telemetry: numbers for Prometheus, logs for people and machines, and the three addresses a cluster asks.

    exposition   samples as text; histograms
    logs         one line per event: plain, or JSON
    serving      /healthz, /readyz, /metrics
    process      what every process tells of itself

Why: whoever runs a scheduler at night looks here first.
Owns: formats. What a number means is said by whoever measures it.
Must not: know a word of scheduling or of Kubernetes, or import anything of Optimus.
"""

from optimus.telemetry.exposition import Family, Histogram, Kind, Metric, text_of

__all__ = ["Family", "Histogram", "Kind", "Metric", "text_of"]
