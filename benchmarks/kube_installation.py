"""Optimus on a control plane as `optimus install --apply` leaves it: definitions, rights, policies, a queue, a token.

Why: what is measured is what people install. Whoever runs with the rights of an administrator, without queues and
without policies, measures something else.
Owns: one queue for everything that is measured, and the words of the controller that the Deployment has.

One thing is different: nobody runs the pods of the Deployment here. The controller is one process beside the server,
with the arguments and the service account of that Deployment; its second pod, which would only stand by, is left out.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import yaml

from benchmarks.kube_world import NAMESPACE, QUEUE
from hack.controlplane import ControlPlane
from hack.controlplane.processes import free_ports
from optimus.drivers.kube import installing


def install(plane: ControlPlane, gpus: int) -> None:
    """`gpus`: what the queue is guaranteed."""
    words = ["-m", "optimus", "install", "--apply", "--image=optimus:bench", f"--kubeconfig={plane.kubeconfig()}"]
    done = subprocess.run([sys.executable, *words], check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"optimus install: {done.stderr}")
    spec = {"gpu": {"guarantee": gpus}, "namespaces": [NAMESPACE]}
    queue = {"apiVersion": "optimus.dev/v1alpha1", "kind": "Queue", "metadata": {"name": QUEUE}, "spec": spec}
    apply = plane.kubectl("apply", "-f", "-")
    subprocess.run(apply, input=yaml.safe_dump(queue), text=True, check=True, stdout=subprocess.DEVNULL)
    create = plane.kubectl("create", "token", installing.NAME, "-n", installing.NAMESPACE, "--duration=2h")
    token = subprocess.run(create, check=True, capture_output=True, text=True).stdout.strip()
    config = json.loads(plane.kubeconfig().read_text())
    config["users"][0]["user"] = {"token": token}
    path = _kubeconfig(plane)
    path.write_text(json.dumps(config))
    path.chmod(0o600)


def controller(plane: ControlPlane) -> list[str]:
    """The words that start it: those of the Deployment, with an address of this machine and a token of its account."""
    (deployment,) = [one for one in installing.objects(installing.Installation()) if one["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    words = [word for word in container["args"] if not word.startswith("--listen=")]
    words += [f"--listen=127.0.0.1:{free_ports(1)[0]}", f"--kubeconfig={_kubeconfig(plane)}"]
    return [sys.executable, "-m", "optimus", *words]


def _kubeconfig(plane: ControlPlane) -> Path:
    return plane.folder / "installed.kubeconfig"
