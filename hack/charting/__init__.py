"""Programs that judge the chart, the boards and the alerts: helm and promtool, built once from their Go modules.

Why: what Helm renders and what Prometheus computes is what they say, not what we think.
Owns: two modules of programs, in the same cache as the control plane.
Must not: be needed by anything under src.
"""

from pathlib import Path

from hack.controlplane.programs import MAJOR, MINOR, Module

_STAMPS = {
    "helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor": MAJOR,
    "helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor": MINOR,
}
"""Without them it takes any cluster for 1.20."""
HELM = Module(
    "helm",
    Path(__file__).parent / "helm",
    {"helm": "helm.sh/helm/v3/cmd/helm"},
    "-s -w " + " ".join(f"-X {name}={value}" for name, value in _STAMPS.items()),
)
PROMTOOL = Module(
    "promtool", Path(__file__).parent / "promtool", {"promtool": "github.com/prometheus/prometheus/cmd/promtool"}
)

__all__ = ["HELM", "PROMTOOL"]
