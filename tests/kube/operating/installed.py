"""What stories of operating share: an installation, its token, requests as anybody, a controller with its rights."""

from __future__ import annotations

import json
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from hack.controlplane import ControlPlane
from hack.controlplane.processes import free_ports
from optimus.drivers.kube.installing import NAME, NAMESPACE, Installation, objects
from tests.kube.body.clusters import Stand, until

ACCOUNT = f"system:serviceaccount:{NAMESPACE}:{NAME}"
QUIET = ("Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy")
"""Stories start the controller by themselves."""


class Installed(Stand):
    def __init__(self, plane: ControlPlane, namespace: str, token: str) -> None:
        super().__init__(plane, namespace)
        self.token = token
        self.port = 0

    def start(self, *options: str, module: str = "optimus") -> subprocess.Popen[bytes]:
        """As the service account, with its lease where the installation has it, and an address to ask."""
        (self.port,) = free_ports(1)
        mine = (
            f"--kubeconfig={kubeconfig(self.plane, self.namespace, self.token)}",
            f"--lease-namespace={NAMESPACE}",
            f"--listen=127.0.0.1:{self.port}",
            "--log-format=json",
            "--verbose",
        )
        return super().start(*mine, *options, module=module)

    def open_nodes(self) -> list[str]:
        found = json.loads(self.plane.get("/api/v1/nodes"))["items"]
        return [node["metadata"]["name"] for node in found if not node["spec"].get("unschedulable")]

    def close_nodes(self, names: list[str], *, closed: bool = True) -> None:
        if names:
            words = self.plane.kubectl("cordon" if closed else "uncordon", *names)
            subprocess.run(words, check=True, capture_output=True)

    def told(self, path: str) -> tuple[int, str]:
        """What the controller that was started last answers; 0 if it does not."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def leads(self) -> bool:
        return "\noptimus_leader 1\n" in self.told("/metrics")[1]

    def queue(self, name: str, **spec: Any) -> str:
        """Of this story alone; its name is told."""
        full = f"{self.namespace}-{name}"
        made = {"apiVersion": "optimus.dev/v1alpha1", "kind": "Queue", "metadata": {"name": full}, "spec": spec}
        self.apply(yaml.safe_dump(made))
        return full

    def thing(self, path: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.plane.get(path))
        return found


def install(plane: ControlPlane) -> Installed:
    wanted = [one for one in objects(Installation()) if one["kind"] not in QUIET]
    stand = Installed(plane, NAMESPACE, "")
    stand.apply(yaml.safe_dump_all(wanted))
    for name in ("queues", "nodepools", "unifiedjobs"):
        words = plane.kubectl("wait", "--for=condition=Established", f"crd/{name}.optimus.dev", "--timeout=60s")
        subprocess.run(words, check=True, capture_output=True)
    until(lambda: ask(plane, plane.token(), "GET", "/apis/optimus.dev/v1alpha1/queues")[0] == 200, "queues are served")
    words = plane.kubectl("create", "token", NAME, "-n", NAMESPACE, "--duration=1h")
    stand.token = subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
    return stand


def kubeconfig(plane: ControlPlane, name: str, token: str) -> Path:
    path = plane.folder / f"{name}.account.kubeconfig"
    config = json.loads(plane.kubeconfig().read_text())
    config["users"][0]["user"] = {"token": token}
    path.write_text(json.dumps(config))
    return path


def ask(
    plane: ControlPlane, token: str, method: str, path: str, body: Any = None, form: str = "application/json"
) -> tuple[int, str]:
    request = urllib.request.Request(plane.address + path, method=method)
    request.add_header("Authorization", f"Bearer {token}")
    if body is not None:
        request.data = json.dumps(body).encode()
        request.add_header("Content-Type", form)
    trusted = ssl.create_default_context(cafile=str(plane.credentials.certificate))
    try:
        with urllib.request.urlopen(request, timeout=20, context=trusted) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def audited(plane: ControlPlane, user: str = ACCOUNT) -> Iterable[dict[str, Any]]:
    """Every answer that the server has given to this user, as its audit log tells it."""
    for line in (plane.folder / "audit.log").read_text().splitlines():
        event = json.loads(line)
        if event["user"]["username"] == user:
            yield event
