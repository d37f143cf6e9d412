"""Older versions of Kubernetes, as the API server of 1.36 emulates them: what is installed is taken, gangs are bound,
and who asks for what such a server does not have is told that.

1.33 is the oldest that it emulates; the guide and the chart claim no older one.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from hack.charting.chart import CHART
from hack.controlplane import ControlPlane, missing_toolchain
from optimus.cli.main import app
from optimus.drivers.kube.installing import NAMESPACE
from tests.kube.body import claims
from tests.kube.body.clusters import Stand, until

ROOT = Path(__file__).parents[3]
VERSIONS = ("1.33", "1.34", "1.35")
WITH_CLAIMS = ("1.34", "1.35")
WITH_AN_OLD_KIND_OF_CLAIMS = (
    "--feature-gates=DynamicResourceAllocation=true",
    "--runtime-config=resource.k8s.io/v1beta1=true",
)
UNSERVED = "this server does not serve resource.k8s.io/v1"
JOB = """
apiVersion: optimus.dev/v1alpha1
kind: UnifiedJob
metadata: {{name: train, namespace: {namespace}}}
spec:
  replicaSpec: {{minReplicas: 2, maxReplicas: 2, gpu: {{count: 1}}}}
  template: {{spec: {{schedulerName: {scheduler}, containers: [{{name: main, image: none}}]}}}}
"""


class Old(Stand):
    def install(self, *words: str) -> Result:
        named = f"--kubeconfig={self.plane.kubeconfig()}"
        return CliRunner().invoke(app, ["install", "--apply", "--image=optimus:v1", *words, named])

    def got(self, path: str) -> Any:
        done = subprocess.run(self.plane.kubectl("get", "--raw", path), capture_output=True, text=True, check=False)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def checked(self) -> dict[str, str | None]:
        """What the server says of the types in each policy; None: nothing yet."""
        found = self.got("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies")["items"]
        assert found
        told = {one["metadata"]["name"]: one["status"].get("typeChecking") for one in found}
        return {name: None if one is None else str(one.get("expressionWarnings") or "") for name, one in told.items()}

    def shown(self, job: str) -> dict[str, Any]:
        """By the command line, which looks for itself."""
        environment = {
            "KUBECONFIG": str(self.plane.kubeconfig()),
            "OPTIMUS_TARGET": "kube:",
            "OPTIMUS_NAMESPACE": self.namespace,
            "OPTIMUS_CONTROLLER_SCHEDULER_NAME": self.scheduler,
        }
        done = CliRunner(env=environment).invoke(app, ["get", "jobs", job, "-o", "json"])
        assert done.exit_code == 0, done.stderr
        (row,) = json.loads(done.stdout)
        return dict(row)


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    if why := missing_toolchain():
        pytest.skip(why)

    @contextmanager
    def started(version: str, *flags: str) -> Iterator[Old]:
        folder = tmp_path_factory.mktemp("old")
        flags = (f"--emulated-version={version}", *flags)
        with ControlPlane(folder, controllers=True, kwok=True, api_server_flags=flags) as plane:
            stand = Old(plane, "team")
            stand.nodes(1, gpus=8)
            yield stand
            stand.stop()

    return started


@pytest.mark.parametrize("version", VERSIONS)
def test_installed_and_a_gang_runs(server: Callable[..., Any], version: str) -> None:
    with server(version) as stand:
        refused = stand.install("--opting-in")
        assert refused.exit_code == 1
        told = " ".join(refused.stderr.split())
        assert f"nothing was applied: the server (Kubernetes {version}) does not serve MutatingAdmissionPolicy" in told
        assert "as Kubernetes does from 1.36 on; without --opting-in it is not needed" in told
        assert stand.got(f"/api/v1/namespaces/{NAMESPACE}") is None, "half an installation helps nobody"

        done = stand.install()
        assert done.exit_code == 0, done.stderr
        until(lambda: len(stand.got(f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]) == 2, "its pods are made")
        until(lambda: None not in stand.checked().values(), "the server has looked at the policies")
        assert set(stand.checked().values()) == {""}, stand.checked()

        stand.start()
        stand.gang("gang", 4)
        until(lambda: len(stand.bound("gang")) == 4, "a gang is bound")
        stand.apply(JOB.format(namespace=stand.namespace, scheduler=stand.scheduler))
        until(lambda: len(stand.bound("train")) == 2, "a UnifiedJob has its pods, and they are bound")
        assert stand.shown("unifiedjob/train")["phase"] in ("Starting", "Running")
        if version in WITH_CLAIMS:
            claims.publish(stand, stand.mine()[0], [claims.gpu(0)])
            claims.claim(stand, "mine", claims.asking(claims.gpu_class(stand)))
            claims.pod(stand, "claims-0", uses="mine")
            until(lambda: stand.bound("claims"), "a pod with a claim has its device")
            assert claims.all_given(stand) == [f"{stand.mine()[0]}/gpu-0"]


def test_a_claim_that_the_server_has_in_another_version_only(server: Callable[..., Any]) -> None:
    with server("1.33", *WITH_AN_OLD_KIND_OF_CLAIMS) as stand:
        stand.serve_queues()
        stand.start()
        claims.pod(stand, "claims-0", uses="mine")
        claims.told(stand, "claims-0", UNSERVED)
        assert "does not exist" not in stand.condition("claims-0")
        assert UNSERVED in stand.shown("pod/claims-0")["reason"]["text"], "the command line says the same"
        stand.gang("gang", 2)
        until(lambda: len(stand.bound("gang")) == 2, "nobody else waits for that")
        assert not stand.bound("claims")


def test_a_server_that_is_upgraded_under_the_controller(server: Callable[..., Any]) -> None:
    with server("1.33", *WITH_AN_OLD_KIND_OF_CLAIMS) as stand:
        stand.serve_queues()
        stand.start("--lease-seconds=3")
        claims.pod(stand, "claims-0", uses="mine")
        claims.told(stand, "claims-0", UNSERVED)
        plane = stand.plane
        plane.api_server.stop()
        plane.api_server.words = [
            word
            for word in plane.api_server.words
            if not word.startswith(("--emulated-version", "--feature-gates", "--runtime-config"))
        ]
        plane.start_again(plane.api_server)
        claims.told(stand, "claims-0", "resource claim mine does not exist")  # now that is true
        claims.publish(stand, stand.mine()[0], [claims.gpu(0)])
        claims.claim(stand, "mine", claims.asking(claims.gpu_class(stand)))
        until(lambda: stand.bound("claims"), "it is bound, by the same process")
        assert len(stand.logs) == 1


def test_no_older_version_is_claimed_than_the_oldest_that_is_tried() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["kubeVersion"] == f">={VERSIONS[0]}.0-0"
    guide = (ROOT / "docs/guides/install.md").read_text()
    assert re.search(r"Needs Kubernetes (\S+) or newer", guide)[1] == VERSIONS[0]  # type: ignore[index]
    assert f"({', '.join(VERSIONS)} and 1.36" in guide
