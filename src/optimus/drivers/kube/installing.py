"""What an installation consists of: plain objects, in the order in which a server can take them.

Why: `optimus install`, the chart and the tests have the same objects, because they are written once.
Owns: the Deployment and what surrounds it. CRDs, rights and policies come from where they are decided.
Must not: talk to a server (`applying` does), or know Helm.

    Namespace, CRDs ─ ServiceAccount, roles ─ policies ─ Service, Deployment, PodDisruptionBudget, NetworkPolicy
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import yaml
from msgspec import Struct

from optimus import __version__
from optimus.api.crds import definitions
from optimus.drivers.kube.policies import policies
from optimus.drivers.kube.rights import ADMIN_RULES, VIEWER_RULES, controller_rights, rules_of, tenant_rules

NAME = "optimus"
NAMESPACE = "optimus-system"
IMAGE = "optimus-scheduler"
USER = 65532
PORT = 8080
LABELS = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/part-of": NAME}
PICKED = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/component": "controller"}
Object = dict[str, Any]


class Installation(Struct, frozen=True, kw_only=True):
    """The defaults of the chart's values.yaml; a test compares them."""

    namespace: str = NAMESPACE
    image: str = f"{IMAGE}:{__version__}"
    replicas: int = 2
    scheduler_name: str = "optimus"
    policy: str = "default"
    lease_seconds: int = 15
    respect_budgets: bool = False
    priority_class: str = ""
    crds: bool = True
    opting_in: bool = False
    """The policy that names the scheduler in namespaces labelled optimus.dev/scheduler=enabled: Kubernetes 1.36."""


def objects(asked: Installation) -> list[Object]:
    made = [
        _namespace(asked),
        *(definitions() if asked.crds else ()),
        *_rights(asked),
        *policies(),
        *(_opting_in() if asked.opting_in else ()),
        _service(asked),
        _deployment(asked),
        _budget(asked),
        _network(asked),
    ]
    for one in made:
        one["metadata"]["labels"] = {**LABELS, **one["metadata"].get("labels", {})}
    return made


def _namespace(asked: Installation) -> Object:
    levels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": asked.namespace, "labels": levels}}


def _rights(asked: Installation) -> list[Object]:
    rights = controller_rights()
    account = {"kind": "ServiceAccount", "name": NAME, "namespace": asked.namespace}
    here = {"name": NAME, "namespace": asked.namespace}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": dict(here)},
        _role("ClusterRole", {"name": NAME}, rules_of(right for right in rights if not right.at_home)),
        _bound("ClusterRoleBinding", {"name": NAME}, "ClusterRole", account),
        _role("Role", dict(here), rules_of(right for right in rights if right.at_home)),
        _bound("RoleBinding", dict(here), "Role", account),
        _role("ClusterRole", {"name": f"{NAME}-tenant"}, tenant_rules()),
        _role("ClusterRole", {"name": f"{NAME}-viewer"}, VIEWER_RULES),
        _role("ClusterRole", {"name": f"{NAME}-admin"}, ADMIN_RULES),
    ]


def _role(kind: str, meta: Object, rules: list[Object]) -> Object:
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": meta, "rules": rules}


def _bound(kind: str, meta: Object, role: str, account: Object) -> Object:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": meta,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": NAME},
        "subjects": [account],
    }


def _opting_in() -> list[Object]:
    return list(yaml.safe_load_all(files("optimus.drivers.kube").joinpath("opting_in.yaml").read_text()))


def _service(asked: Installation) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": f"{NAME}-metrics", "namespace": asked.namespace, "labels": PICKED},
        "spec": {
            "clusterIP": "None",  # each of them has numbers of its own
            "selector": PICKED,
            "ports": [{"name": "metrics", "port": PORT, "targetPort": "metrics"}],
        },
    }


def _deployment(asked: Installation) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": asked.namespace, "labels": PICKED},
        "spec": {
            "replicas": asked.replicas,
            "selector": {"matchLabels": PICKED},
            # One more while it changes: whoever leads gives its lease back and is followed within seconds.
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
            "template": {"metadata": {"labels": {**LABELS, **PICKED}}, "spec": _pod(asked)},
        },
    }


def _pod(asked: Installation) -> Object:
    spread = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": PICKED},
    }
    return {
        "serviceAccountName": NAME,
        **({"priorityClassName": asked.priority_class} if asked.priority_class else {}),
        "terminationGracePeriodSeconds": 30,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "affinity": {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": spread}]
            }
        },
        "containers": [
            {
                "name": "controller",
                "image": asked.image,
                "args": _args(asked),
                "ports": [{"name": "metrics", "containerPort": PORT}],
                "livenessProbe": {
                    "httpGet": {"path": "/healthz", "port": "metrics"},
                    "initialDelaySeconds": 10,
                    "periodSeconds": 10,
                    "timeoutSeconds": 5,
                    "failureThreshold": 6,  # a decision of a large cluster may keep it busy for seconds
                },
                "readinessProbe": {
                    "httpGet": {"path": "/readyz", "port": "metrics"},
                    "periodSeconds": 5,
                    "timeoutSeconds": 5,
                },
                "resources": {"requests": {"cpu": "500m", "memory": "512Mi"}, "limits": {"memory": "4Gi"}},
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
            }
        ],
    }


def _args(asked: Installation) -> list[str]:
    return [
        "controller",
        f"--scheduler-name={asked.scheduler_name}",
        f"--policy={asked.policy}",
        f"--lease-namespace={asked.namespace}",
        f"--lease-seconds={asked.lease_seconds}",
        f"--listen=0.0.0.0:{PORT}",
        "--log-format=json",
        "--verbose",
        *(["--respect-budgets"] if asked.respect_budgets else ()),
    ]


def _budget(asked: Installation) -> Object:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": NAME, "namespace": asked.namespace},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": PICKED}},
    }


def _network(asked: Installation) -> Object:
    """In: probes and whoever scrapes. Out: names, and the API server, whose address differs from cluster to cluster."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": NAME, "namespace": asked.namespace},
        "spec": {
            "podSelector": {"matchLabels": PICKED},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"ports": [{"protocol": "TCP", "port": PORT}]}],
            "egress": [
                {"ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]},
                {"ports": [{"protocol": "TCP", "port": 443}, {"protocol": "TCP", "port": 6443}]},
            ],
        },
    }
