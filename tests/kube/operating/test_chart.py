"""The chart: what it renders is what `optimus install` prints, and wrong values are refused in words."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
import yaml

from hack.charting.chart import CHART, KEEP, files
from optimus import __version__
from optimus.drivers.kube.installing import NAMESPACE, Installation, objects

CHANGED = Installation(
    replicas=3, scheduler_name="other", policy="fifo", lease_seconds=30, respect_budgets=True,
    priority_class="system-cluster-critical", opting_in=True, crds=False,
)  # fmt: skip
AS_VALUES = (
    "replicas=3", "schedulerName=other", "policy=fifo", "leaseSeconds=30", "respectBudgets=true",
    "priorityClassName=system-cluster-critical", "optingIn=true", "crds.install=false",
)  # fmt: skip
WRONG_VALUES = {
    "replicas=0": "replicas",
    "replicas=many": "replicas",
    "replica=3": "additional properties 'replica' not allowed",
    "image.repository=": "repository",
    "image.pullPolicy=Sometimes": "pullPolicy",
    "schedulerName=Two Words": "schedulerName",
    "leaseSeconds=1": "leaseSeconds",
    "crds.install=perhaps": "install",
    "serviceMonitor.interval=often": "interval",
}


def rendered(helm: str, *values: str) -> dict[tuple[str, str], dict[str, Any]]:
    sets = [word for value in values for word in ("--set", value)]
    words = [helm, "template", "any-name", str(CHART), "--namespace", NAMESPACE, *sets]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(done.stdout) if one}


def installed(asked: Installation) -> dict[tuple[str, str], dict[str, Any]]:
    """As `optimus install` prints it; the namespace is Helm's business, and CRDs are kept by an annotation."""
    made = {(one["kind"], one["metadata"]["name"]): one for one in objects(asked) if one["kind"] != "Namespace"}
    for (kind, _), one in made.items():
        if kind == "CustomResourceDefinition":
            one["metadata"]["annotations"] = dict([KEEP])
    return made


def test_written_parts_follow_from_the_code() -> None:
    stale = [path.name for path, text in files().items() if not path.exists() or path.read_text() != text]
    assert stale == [], "run `make chart`"


@pytest.mark.parametrize(("values", "asked"), [((), Installation()), (AS_VALUES, CHANGED)], ids=["default", "changed"])
def test_it_renders_what_install_prints(helm: str, values: tuple[str, ...], asked: Installation) -> None:
    assert rendered(helm, *values) == installed(asked)


def test_versions_are_those_of_the_program() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == chart["version"] == __version__


def test_lint_finds_nothing(helm: str) -> None:
    words = [helm, "lint", "--strict", str(CHART)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("value", WRONG_VALUES)
def test_wrong_values_are_refused(helm: str, value: str) -> None:
    words = [helm, "template", "x", str(CHART), "--set", value]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and WRONG_VALUES[value] in done.stderr, done.stderr


def test_monitoring_is_there_when_it_is_asked_for(helm: str) -> None:
    made = rendered(helm, "serviceMonitor.enabled=true", "alerts.enabled=true", "boards.enabled=true")
    monitor, service = made["ServiceMonitor", "optimus"], made["Service", "optimus-metrics"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["spec"]["endpoints"][0]["port"] == service["spec"]["ports"][0]["name"]
    rule = made["PrometheusRule", "optimus"]["spec"]
    assert rule == yaml.safe_load((CHART / "alerts" / "optimus.yaml").read_text())
    for name in ("queues", "scheduler"):
        board = made["ConfigMap", f"optimus-board-{name}"]
        assert board["data"][f"{name}.json"] == (CHART / "boards" / f"{name}.json").read_text().rstrip("\n")
