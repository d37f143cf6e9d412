"""The chart: what it renders is what `optimus install` prints, a real server takes it, and wrong values are refused."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.charting import HELM
from hack.charting.chart import CHART, KEEP, files
from hack.controlplane import ControlPlane
from hack.controlplane.programs import missing_toolchain, program
from optimus import __version__
from optimus.drivers.kube.installing import NAMESPACE, Installation, objects
from tests.kube.body.clusters import until

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


@pytest.fixture(scope="session")
def helm() -> str:
    if why := missing_toolchain(HELM):
        pytest.skip(why)
    return str(program("helm", HELM))


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


def test_install_upgrade_and_uninstall_on_a_real_server(helm: str, plane: ControlPlane, tmp_path: Path) -> None:
    """Helm installs into a server that has nothing; an upgrade changes the controller and keeps queues; removal keeps
    queues, too. Pods are made under the restricted level of pod security; no node runs them here."""
    home = f"{NAMESPACE}-helm"
    _remove_everything_of_others(plane)
    level = "pod-security.kubernetes.io/enforce=restricted"
    for words in (("create", "namespace", home), ("label", "namespace", home, level)):
        subprocess.run(plane.kubectl(*words), check=True, capture_output=True)

    def run(*words: str) -> str:
        at = ("--kubeconfig", str(plane.kubeconfig()), "--namespace", home)
        done = subprocess.run([helm, *words, *at], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def kubectl(*words: str) -> str:
        return subprocess.run(plane.kubectl(*words), check=True, capture_output=True, text=True).stdout

    run("install", "optimus", str(CHART), "--set", "image.tag=v1", "--dry-run=server")
    told = run("install", "optimus", str(CHART), "--set", "image.tag=v1")
    assert "schedulerName: optimus" in told
    made = ("get", "pods", "-n", home, "-o", "jsonpath={.items[*].spec.containers[0].image}")
    until(lambda: kubectl(*made).split() == ["optimus-scheduler:v1"] * 2, "both pods are made: nothing forbids them")
    queue = "apiVersion: optimus.dev/v1alpha1\nkind: Queue\nmetadata: {name: kept}\nspec: {gpu: {guarantee: 4}}\n"
    (tmp_path / "queue.yaml").write_text(queue)
    until(
        lambda: subprocess.run(plane.kubectl("apply", "-f", str(tmp_path / "queue.yaml")), check=False).returncode == 0,
        "queues are served",
    )
    run("upgrade", "optimus", str(CHART), "--set", "image.tag=v2")
    until(lambda: "optimus-scheduler:v2" in kubectl(*made), "an upgrade makes new pods")
    assert kubectl("get", "queue", "kept", "-o", "jsonpath={.spec.gpu.guarantee}") == "4"
    run("uninstall", "optimus")
    gone = ("get", "clusterrole,validatingadmissionpolicy", "-l", "app.kubernetes.io/name=optimus", "-o", "name")
    assert kubectl(*gone).strip() == ""
    assert kubectl("get", "queue", "kept", "-o", "name").strip() == "queue.optimus.dev/kept"
    kubectl("delete", "queue", "kept")
    kubectl("delete", "namespace", home, "--wait=false")
    _remove_everything_of_others(plane)


def _remove_everything_of_others(plane: ControlPlane) -> None:
    """Objects without a namespace that another story has applied: Helm takes over nothing that is not its own."""
    kinds = "crd,clusterrole,clusterrolebinding,validatingadmissionpolicy,validatingadmissionpolicybinding"
    subprocess.run(
        plane.kubectl("delete", kinds, "-l", "app.kubernetes.io/name=optimus"), check=True, capture_output=True
    )
    names = ("crd/queues.optimus.dev", "crd/nodepools.optimus.dev", "--ignore-not-found")
    subprocess.run(plane.kubectl("delete", *names), check=True, capture_output=True)
