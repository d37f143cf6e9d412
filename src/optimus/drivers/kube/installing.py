"""What an installation consists of: plain objects, in the order in which a server can take them.

Why: `optimus install`, the chart and the tests have the same objects, because they are written once.
Owns: the Deployment and what surrounds it. CRDs, rights and policies come from where they are decided.
Must not: talk to a server (`applying` does), or know Helm.

    Namespace, CRDs ─ ServiceAccount, roles ─ policies ─ ConfigMap of kinds, ResourceQuota ─ Service, Deployment,
    PodDisruptionBudget, NetworkPolicy
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import yaml
from msgspec import Struct

from optimus import __version__
from optimus.api.crds import definitions
from optimus.drivers.kube.grouping import Kinds
from optimus.drivers.kube.job_policies import account_of, job_policies
from optimus.drivers.kube.opting_in import opting_in
from optimus.drivers.kube.policies import policies
from optimus.drivers.kube.rights import (
    ADMIN_RULES,
    VIEWER_RULES,
    controller_rights,
    queue_owner_rules,
    researcher_rules,
    rules_of,
    tenant_rules,
)

NAME = "optimus"
NAMESPACE = "optimus-system"
IMAGE = "optimus-scheduler"
USER = 65532
PORT = 8080
API_PORTS = (443, 6443)
KINDS_AT = "/etc/optimus/kinds"
MANAGED_BY = "app.kubernetes.io/managed-by"
Object = dict[str, Any]


class Installation(Struct, frozen=True, kw_only=True):
    """The defaults of the chart's values.yaml; a test compares them."""

    name: str = NAME
    """Of what is installed, or the beginning of its name."""
    namespace: str = NAMESPACE
    image: str = f"{IMAGE}:{__version__}"
    replicas: int = 2
    scheduler_name: str = "optimus"
    policy: str = "default"
    lease_seconds: int = 15
    respect_budgets: bool = False
    gpu_drivers: tuple[str, ...] = ()
    """Beside those that are known."""
    priority_class: str = "system-cluster-critical"
    crds: bool = True
    opting_in: bool = False
    """The policy that names the scheduler in namespaces labelled optimus.dev/scheduler=enabled: Kubernetes 1.36."""
    kinds: Kinds | None = None
    """With what users have added to the table; None: the shipped one."""
    kinds_files: Mapping[str, str] = {}
    """What they have added, by file."""
    api_ports: tuple[int, ...] = API_PORTS

    @property
    def labels(self) -> dict[str, str]:
        return {**self.picked_by, "app.kubernetes.io/part-of": NAME, MANAGED_BY: "optimus-install"}

    @property
    def picked_by(self) -> dict[str, str]:
        """Of all that is installed; selectors add the component."""
        return {"app.kubernetes.io/name": NAME, "app.kubernetes.io/instance": self.name}

    @property
    def picked(self) -> dict[str, str]:
        return {**self.picked_by, "app.kubernetes.io/component": "controller"}


def objects(asked: Installation) -> list[Object]:
    made = [
        _namespace(asked),
        *(definitions() if asked.crds else ()),
        *_rights(asked),
        *policies(asked.kinds, asked.name),
        *_job_policies(asked),
        *(_opting_in(asked) if asked.opting_in else ()),
        *_kinds(asked),
        *_quota(asked),
        _service(asked),
        _deployment(asked),
        _budget(asked),
        _network(asked),
    ]
    for one in made:
        one["metadata"]["labels"] = {**asked.labels, **one["metadata"].get("labels", {})}
    return made


def as_text(objects: list[Object]) -> str:
    """For `kubectl apply`, and for whoever reads it: a file inside stands there as it was written."""
    return yaml.dump_all(objects, Dumper=_Dumper, sort_keys=False, width=120, allow_unicode=True)


class _Dumper(yaml.SafeDumper):
    pass


def _shown(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _shown)


def _namespace(asked: Installation) -> Object:
    levels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": asked.namespace, "labels": levels}}


def _rights(asked: Installation) -> list[Object]:
    name = asked.name
    rights = controller_rights(asked.kinds, respect_budgets=asked.respect_budgets)
    account = {"kind": "ServiceAccount", "name": name, "namespace": asked.namespace}
    here = {"name": name, "namespace": asked.namespace}
    everywhere = [right for right in rights if not right.at_home]
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": dict(here)},
        _role("ClusterRole", {"name": name}, rules_of(everywhere)),
        _bound("ClusterRoleBinding", {"name": name}, "ClusterRole", account),
        _role("Role", dict(here), rules_of(right for right in rights if right.at_home)),
        _bound("RoleBinding", dict(here), "Role", account),
        _role("ClusterRole", {"name": f"{name}-tenant"}, tenant_rules(asked.kinds)),
        _role("ClusterRole", {"name": f"{name}-researcher"}, researcher_rules()),
        _role("ClusterRole", {"name": f"{name}-queue-owner"}, queue_owner_rules()),
        _role("ClusterRole", {"name": f"{name}-viewer"}, VIEWER_RULES),
        _role("ClusterRole", {"name": f"{name}-admin"}, ADMIN_RULES),
    ]


def _role(kind: str, meta: Object, rules: list[Object]) -> Object:
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": meta, "rules": rules}


def _bound(kind: str, meta: Object, role: str, account: Object) -> Object:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": meta,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": account["name"]},
        "subjects": [account],
    }


def _opting_in(asked: Installation) -> list[Object]:
    return opting_in(name=f"{asked.name}-scheduler", scheduler=asked.scheduler_name, home=asked.namespace)


def _job_policies(asked: Installation) -> list[Object]:
    account = account_of(asked.name, asked.namespace)
    return job_policies(name=f"{asked.name}-jobs", scheduler=asked.scheduler_name, account=account)


def _kinds(asked: Installation) -> list[Object]:
    if not asked.kinds_files:
        return []
    meta = {"name": f"{asked.name}-kinds", "namespace": asked.namespace}
    return [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": dict(asked.kinds_files)}]


def _quota(asked: Installation) -> list[Object]:
    """Some clusters admit the classes of the system only where a quota names them. It counts pods of this class alone,
    and has room for all of them; kube-system has one of its own where it needs one."""
    if not asked.priority_class.startswith("system-") or asked.namespace == "kube-system":
        return []
    named = {"scopeName": "PriorityClass", "operator": "In", "values": [asked.priority_class]}
    return [
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": f"{asked.name}-priority", "namespace": asked.namespace},
            "spec": {"hard": {"pods": "1G"}, "scopeSelector": {"matchExpressions": [named]}},
        }
    ]


def _service(asked: Installation) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": f"{asked.name}-metrics", "namespace": asked.namespace, "labels": asked.picked},
        "spec": {
            "clusterIP": "None",  # each of them has numbers of its own
            "selector": asked.picked,
            "ports": [{"name": "metrics", "port": PORT, "targetPort": "metrics"}],
        },
    }


def _deployment(asked: Installation) -> Object:
    meta: Object = {"labels": {**asked.picked, "app.kubernetes.io/part-of": NAME}}
    if asked.kinds_files:  # another table, other pods: it is read when they start
        text = "\n".join(f"{name}\n{text}" for name, text in sorted(asked.kinds_files.items()))
        meta["annotations"] = {"optimus.dev/kinds": hashlib.sha256(text.encode()).hexdigest()}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": asked.name, "namespace": asked.namespace, "labels": asked.picked},
        "spec": {
            "replicas": asked.replicas,
            "selector": {"matchLabels": asked.picked},
            # One more while it changes: whoever leads gives its lease back and is followed within seconds.
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
            "template": {"metadata": meta, "spec": _pod(asked)},
        },
    }


def _pod(asked: Installation) -> Object:
    own = bool(asked.kinds_files)
    spread = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": asked.picked},
    }
    return {
        "serviceAccountName": asked.name,
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
                **({"volumeMounts": [{"name": "kinds", "mountPath": KINDS_AT, "readOnly": True}]} if own else {}),
            }
        ],
        **({"volumes": [{"name": "kinds", "configMap": {"name": f"{asked.name}-kinds"}}]} if own else {}),
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
        *(["--opting-in"] if asked.opting_in else ()),
        *([f"--kinds={KINDS_AT}"] if asked.kinds_files else ()),
        *(f"--gpu-driver={one}" for one in asked.gpu_drivers),
    ]


def _budget(asked: Installation) -> Object:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": asked.name, "namespace": asked.namespace},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": asked.picked}},
    }


def _network(asked: Installation) -> Object:
    """In: probes and whoever scrapes. Out: names, and the API server, whose address differs from cluster to cluster."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": asked.name, "namespace": asked.namespace},
        "spec": {
            "podSelector": {"matchLabels": asked.picked},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"ports": [{"protocol": "TCP", "port": PORT}]}],
            "egress": [
                {"ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]},
                {"ports": [{"protocol": "TCP", "port": port} for port in asked.api_ports]},
            ],
        },
    }
