"""Small worlds to look ahead from."""

from __future__ import annotations

from optimus.api.loading import load_text
from optimus.drivers.sim.forecasting import Past
from optimus.drivers.sim.present import Present, of_scenario

HOUR_MS = 3_600_000
EXACT = Past(errors=(1.0,) * 5)
"""Declared run times have always been true."""

ONE_GPU = """
name: one GPU
cluster: [{name: n, gpus: 1}]
workloads:
  - {name: runs, gpu: 1, running: {on: n, since: -1h}, expectedDuration: 2h}
  - {name: waits, gpu: 1, submitted: -10m, expectedDuration: 30m}
  - {name: longer, gpu: 1, submitted: -5m, expectedDuration: 3h}
"""


def present(text: str) -> Present:
    return of_scenario(load_text(text).or_raise())
