"""Operators: their modules, what they bring along, and how they are started without a cluster around them.

Two things are different from a cluster. Webhooks are called by address, since nobody resolves Services here, with the
certificate of the plane. And nobody mounts Secrets: programs that look for a mounted certificate find one in a folder
of their own (`TMPDIR`).
"""

from __future__ import annotations

import base64
import functools
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import URLError
from urllib.request import urlopen

import yaml

from hack.controlplane.plane import ControlPlane
from hack.controlplane.processes import Process, ProcessError, free_ports
from hack.controlplane.programs import Module, build

HERE = Path(__file__).parent
LOOKED_FOR = Path("/tmp/k8s-webhook-server/serving-certs/tls.crt")
"""Operators of Kubeflow wait until this file is there, wherever they then read their certificate."""

KUEUE_METRICS = Path("/etc/kueue/metrics/certs")
"""Where Kueue, and nothing can tell it otherwise, looks for the certificate of its metrics."""


class Ports(NamedTuple):
    metrics: int
    health: int
    webhooks: int


class Operator(NamedTuple):
    module: Module
    flags: Callable[[ControlPlane, Ports], list[str]]
    namespace: str = ""
    """Where it keeps its own objects."""
    secret: str = ""
    """Which it fills with certificates, and wants to exist."""
    pods_with: str = ""
    """Webhooks for pods are only for those with this label, as its own installation has it."""
    answers_health: bool = True

    @property
    def name(self) -> str:
        return self.module.name


def _module(name: str, package: str, manifests: dict[str, str]) -> Module:
    return Module(name, HERE / name, {name: package}, manifests=manifests)


def _manager_flags(_: ControlPlane, ports: Ports) -> list[str]:
    return [
        f"--metrics-bind-address=127.0.0.1:{ports.metrics}",
        f"--health-probe-bind-address=127.0.0.1:{ports.health}",
        f"--webhook-server-port={ports.webhooks}",
    ]


def _jobset_flags(plane: ControlPlane, ports: Ports) -> list[str]:
    config = {
        "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "webhook": {"port": ports.webhooks, "host": "127.0.0.1", "certDir": str(_own_folder(plane, "jobset"))},
        "metrics": {"bindAddress": f"127.0.0.1:{ports.metrics}"},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{ports.health}"},
    }
    path = plane.folder / "jobset.yaml"
    path.write_text(json.dumps(config))
    return [f"--config={path}"]


def _kueue_flags(plane: ControlPlane, ports: Ports) -> list[str]:
    KUEUE_METRICS.mkdir(parents=True, exist_ok=True)
    for name in ("tls.crt", "tls.key"):
        (KUEUE_METRICS / name).write_bytes((_own_folder(plane, "kueue") / name).read_bytes())
    config = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "webhook": {"port": ports.webhooks, "host": "127.0.0.1", "certDir": str(_own_folder(plane, "kueue"))},
        "metrics": {"bindAddress": f"127.0.0.1:{ports.metrics}"},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{ports.health}"},
        "clientConnection": {"qps": 2000, "burst": 4000},
        "integrations": {"frameworks": ["batch/job"]},
        # as it is installed
        "controller": {"groupKindConcurrency": {"Job.batch": 5, "Workload.kueue.x-k8s.io": 10}},
    }
    path = plane.folder / "kueue.yaml"
    path.write_text(json.dumps(config))
    return [f"--config={path}", "--feature-gates=VisibilityOnDemand=false", "--zap-log-level=2"]


def _mpi_flags(plane: ControlPlane, _: Ports) -> list[str]:
    return [
        f"--kubeConfig={plane.kubeconfig()}",
        "--lock-namespace=mpi-operator",
        "--kube-api-qps=500",
        "--kube-api-burst=500",
    ]


TRAINING_OPERATOR = Operator(
    _module(
        "training-operator",
        "github.com/kubeflow/training-operator/cmd/training-operator.v1",
        {
            "crds": "github.com/kubeflow/training-operator:manifests/base/crds",
            "webhooks": "github.com/kubeflow/training-operator:manifests/base/webhook/manifests.yaml",
        },
    ),
    _manager_flags,
    namespace="kubeflow",
    secret="training-operator-webhook-cert",
)
JOBSET = Operator(
    _module(
        "jobset",
        "sigs.k8s.io/jobset",
        {
            "crds": "sigs.k8s.io/jobset:config/components/crd/bases",
            "webhooks": "sigs.k8s.io/jobset:config/components/webhook/manifests.yaml",
        },
    ),
    _jobset_flags,
    pods_with="jobset.sigs.k8s.io/jobset-name",
)
MPI_OPERATOR = Operator(
    _module(
        "mpi-operator",
        "github.com/kubeflow/mpi-operator/cmd/mpi-operator",
        {"crds": "github.com/kubeflow/mpi-operator:manifests/base/kubeflow.org_mpijobs.yaml"},
    ),
    _mpi_flags,
    namespace="mpi-operator",
    answers_health=False,
)
TRAINER = Operator(
    _module(
        "trainer",
        "github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager",
        {
            "crds": "github.com/kubeflow/trainer/v2:manifests/base/crds",
            "webhooks": "github.com/kubeflow/trainer/v2:manifests/base/webhook/manifests.yaml",
            "runtimes": "github.com/kubeflow/trainer/v2:manifests/base/runtimes/torch_distributed.yaml",
        },
    ),
    _manager_flags,
    namespace="kubeflow-system",
    secret="kubeflow-trainer-webhook-cert",
)
KUEUE = Operator(
    _module(
        "kueue",
        "sigs.k8s.io/kueue/cmd/kueue",
        {
            "crds": "sigs.k8s.io/kueue:config/components/crd/bases",
            "webhooks": "sigs.k8s.io/kueue:config/components/webhook/manifests.yaml",
        },
    ),
    _kueue_flags,
    namespace="kueue-system",
    pods_with="kueue.x-k8s.io/managed",
)
"""Beside which the benchmark runs; no test needs it."""


def start(plane: ControlPlane, operator: Operator) -> Process:
    """Build it if it has not been before, install it, and wait until it answers."""
    install(plane, operator)
    program = build(module=operator.module)[operator.name]
    ports = Ports(*free_ports(3))
    _own_folder(plane, operator.name)
    if operator.secret and not LOOKED_FOR.exists():
        LOOKED_FOR.parent.mkdir(parents=True, exist_ok=True)
        LOOKED_FOR.touch()
    environment = {"KUBECONFIG": str(plane.kubeconfig()), "TMPDIR": str(plane.folder / operator.name)}
    words = [str(program), *operator.flags(plane, ports)]
    process = Process(operator.name, words, plane.folder, environment=environment)
    plane.beside[operator.name] = process
    process.start()
    if operator.answers_health:
        process.wait_until(lambda: _is_ready(ports.health))
    hooks = [_called_by_address(plane, operator, one, ports.webhooks) for one in _objects(operator, "webhooks")]
    _apply(plane, hooks)
    _apply(plane, _objects(operator, "runtimes"))
    return process


def install(plane: ControlPlane, operator: Operator) -> None:
    """What it brings along, without it."""
    build(module=operator.module)
    _apply(plane, _objects(operator, "crds"))
    _apply(plane, _own_objects(operator))


def _is_ready(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except (URLError, OSError):
        return False


def _own_folder(plane: ControlPlane, name: str) -> Path:
    """With the certificate where the program looks for a mounted one."""
    folder = plane.folder / name / "k8s-webhook-server" / "serving-certs"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tls.crt").write_bytes(plane.credentials.certificate.read_bytes())
    (folder / "tls.key").write_bytes(plane.credentials.key.read_bytes())
    return folder


def _objects(operator: Operator, what: str) -> list[dict[str, Any]]:
    files = sorted((operator.module.built / what).glob("*.yaml"))
    found = [one for file in files for one in yaml.safe_load_all(file.read_text()) if one]
    return [one for one in found if one["kind"] != "Kustomization"]


def _own_objects(operator: Operator) -> list[dict[str, Any]]:
    if not operator.namespace:
        return []
    made: list[dict[str, Any]] = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": operator.namespace}}]
    if operator.secret:
        named = {"name": operator.secret, "namespace": operator.namespace}
        made.append({"apiVersion": "v1", "kind": "Secret", "metadata": named})
    return made


def _called_by_address(plane: ControlPlane, operator: Operator, hooks: dict[str, Any], port: int) -> dict[str, Any]:
    """Named so that the operator does not find it and leaves our certificate alone."""
    hooks["metadata"] = {"name": f"rig-{operator.name}-{hooks['kind'].lower()}"}
    certificate = base64.b64encode(plane.credentials.certificate.read_bytes()).decode()
    for hook in hooks["webhooks"]:
        path = hook["clientConfig"]["service"]["path"]
        hook["clientConfig"] = {"url": f"https://127.0.0.1:{port}{path}", "caBundle": certificate}
        if operator.pods_with and any("pods" in rule["resources"] for rule in hook["rules"]):
            hook["objectSelector"] = {"matchExpressions": [{"key": operator.pods_with, "operator": "Exists"}]}
    return hooks


def _apply(plane: ControlPlane, objects: list[dict[str, Any]]) -> None:
    """On the server's side: CRDs of training jobs are too large for an annotation."""
    if not objects:
        return
    words = plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-")
    text = yaml.safe_dump_all(objects)
    done = subprocess.run(words, input=text, text=True, check=False, capture_output=True)
    if done.returncode:
        raise ProcessError(f"the server refuses objects of an operator: {done.stderr[-1500:]}")
    for one in objects:
        if one["kind"] == "CustomResourceDefinition":
            plane.api_server.wait_until(functools.partial(_is_served, plane, one["metadata"]["name"]))


def _is_served(plane: ControlPlane, crd: str) -> bool:
    found = json.loads(plane.get(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{crd}"))
    conditions = found.get("status", {}).get("conditions") or []
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)
