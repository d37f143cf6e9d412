"""Installing, upgrading and removing on a real server that has nothing: by `optimus install`, and by Helm.

No node runs the pods here; that the server makes them under the restricted level of pod security is seen.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from hack.charting.chart import CHART
from hack.controlplane import ControlPlane, missing_toolchain
from optimus.api.crds import VERSION, definitions
from optimus.cli.main import app
from optimus.drivers.kube.applying import ApplyError, apply
from optimus.drivers.kube.installing import NAMESPACE, Installation, objects
from optimus.kube import Client, load
from tests.kube.body.clusters import until

QUEUE = {
    "apiVersion": "optimus.dev/v1alpha1",
    "kind": "Queue",
    "metadata": {"name": "kept"},
    "spec": {"gpu": {"guarantee": 4}},
}


# Some clusters admit the classes of the system only where a quota of the namespace names them.
STRICT = """
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
  - name: ResourceQuota
    configuration:
      apiVersion: apiserver.config.k8s.io/v1
      kind: ResourceQuotaConfiguration
      limitedResources:
        - resource: pods
          matchScopes: [{scopeName: PriorityClass, operator: In, values: [system-cluster-critical]}]
"""


class Server:
    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane

    def kubectl(self, *words: str, given: str = "") -> str:
        done = subprocess.run(self.plane.kubectl(*words), input=given, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def optimus(self, *words: str, user: str = "admin") -> Result:
        return CliRunner().invoke(app, ["install", *words, f"--kubeconfig={self.plane.kubeconfig(user)}"])

    def images(self, namespace: str) -> list[str]:
        at = "jsonpath={.items[*].spec.containers[0].image}"
        return self.kubectl("get", "pods", "-n", namespace, "-o", at).split()

    def keep_a_queue(self) -> None:
        words = self.plane.kubectl("apply", "-f", "-")

        def applied() -> bool:
            made = subprocess.run(words, input=yaml.safe_dump(QUEUE), text=True, check=False, capture_output=True)
            return made.returncode == 0

        until(applied, "queues are served")

    def has_the_queue(self) -> bool:
        return self.kubectl("get", "queue", "kept", "-o", "jsonpath={.spec.gpu.guarantee}") == "4"

    def versions(self) -> dict[str, str]:
        """Of everything that an installation has; a generation where there is one, since status changes by itself."""
        given = yaml.safe_dump_all(objects(Installation()))
        found: list[dict[str, Any]] = json.loads(self.kubectl("get", "-f", "-", "-o", "json", given=given))["items"]
        return {
            f"{one['kind']}/{one['metadata']['name']}": str(
                one["metadata"].get("generation", one["metadata"]["resourceVersion"])
            )
            for one in found
        }


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Of this story alone: what has no namespace cannot be shared."""
    if why := missing_toolchain():
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("new")
    (folder / "admission.yaml").write_text(STRICT)
    flags = (f"--admission-control-config-file={folder / 'admission.yaml'}",)
    with ControlPlane(folder, controllers=True, users={"alice": "guests"}, api_server_flags=flags) as plane:
        yield Server(plane)


def test_applied_upgraded_and_removed(server: Server) -> None:
    refused = server.optimus("--apply", "--image=optimus:v1", user="alice")
    assert refused.exit_code == 1 and "namespace/optimus-system" in refused.stderr, "as whoever asks, not as somebody"
    assert "forbidden" in refused.stderr and "Traceback" not in refused.stderr

    _before_there_were_priorities(server)
    server.keep_a_queue()
    tried = server.optimus("--apply", "--dry-run", "--image=optimus:v1")
    assert tried.exit_code == 0, tried.stderr
    assert server.kubectl("get", "namespace", NAMESPACE, "--ignore-not-found") == "", "trying changes nothing"

    done = server.optimus("--apply", "--image=optimus:v1")
    assert done.exit_code == 0, done.stderr
    until(lambda: server.images(NAMESPACE) == ["optimus:v1"] * 2, "both pods are made: nothing forbids them")
    assert server.has_the_queue(), "what was written under the old definition is there under the new one"
    assert "maxPriority" in server.kubectl("get", "crd", "queues.optimus.dev", "-o", "yaml")

    before = server.versions()
    assert server.optimus("--apply", "--image=optimus:v1").exit_code == 0
    assert server.versions() == before, "the second time changes nothing"
    assert server.optimus("--apply", "--image=optimus:v2").exit_code == 0
    until(lambda: "optimus:v2" in server.images(NAMESPACE), "another image makes other pods")
    assert server.has_the_queue()

    rest = server.optimus("--skip-crds").stdout
    server.kubectl("delete", "--wait=false", "-f", "-", given=rest)
    mine = ("get", "clusterrole,validatingadmissionpolicy", "-l", "app.kubernetes.io/name=optimus", "-o", "name")
    assert server.kubectl(*mine).strip() == ""
    assert server.has_the_queue(), "queues outlive an installation"


def test_what_the_server_does_not_serve_is_said_before_anything_is_applied(server: Server) -> None:
    asked = objects(Installation(opting_in=True))
    for one in asked:
        if one["kind"].startswith("MutatingAdmissionPolicy"):
            one["apiVersion"] = "admissionregistration.k8s.io/v9"

    async def try_it() -> None:
        async with Client(load(str(server.plane.kubeconfig()))) as client:
            async for _ in apply(client, asked):
                pass

    with pytest.raises(
        ApplyError, match=r"nothing was applied: the server \(Kubernetes 1.36\) does not serve MutatingAdm"
    ):
        asyncio.run(try_it())
    assert server.kubectl("get", "namespace", NAMESPACE, "--ignore-not-found") == ""


def _before_there_were_priorities(server: Server) -> None:
    """The definitions of an earlier version: fewer fields, and the same name of the version."""
    old = definitions()
    for one in old:
        (version,) = one["spec"]["versions"]
        assert version["name"] == VERSION and version["served"], "a version that was served once stays served"
        schema = version["schema"]["openAPIV3Schema"]["properties"]
        schema["spec"]["properties"].pop("maxPriority", None)
        schema["status"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version["additionalPrinterColumns"] = []
    server.kubectl(
        "apply", "--server-side", "--field-manager=optimus-install", "-f", "-", given=yaml.safe_dump_all(old)
    )


def test_by_helm(server: Server, helm: str) -> None:
    home = "gpu-scheduling"
    server.kubectl("create", "namespace", home)
    server.kubectl("label", "namespace", home, "pod-security.kubernetes.io/enforce=restricted")

    def run(*words: str) -> str:
        at = ("--kubeconfig", str(server.plane.kubeconfig()), "--namespace", home)
        done = subprocess.run([helm, *words, *at], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("install", "optimus", str(CHART), "--set", "image.tag=v1", "--dry-run=server")
    assert "schedulerName: optimus" in run("install", "optimus", str(CHART), "--set", "image.tag=v1")
    until(lambda: server.images(home) == ["optimus-scheduler:v1"] * 2, "both pods are made")
    server.keep_a_queue()
    run("upgrade", "optimus", str(CHART), "--set", "image.tag=v2")
    until(lambda: "optimus-scheduler:v2" in server.images(home), "an upgrade makes new pods")
    assert server.has_the_queue()
    run("uninstall", "optimus")
    assert server.kubectl("get", "clusterrole", "-l", "app.kubernetes.io/name=optimus", "-o", "name").strip() == ""
    assert server.has_the_queue(), "queues outlive a release"
