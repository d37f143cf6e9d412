"""Namespaces that opt in: the server itself names the scheduler on their pods, and nobody edits a manifest.

    kubectl label namespace team-a optimus.dev/scheduler=enabled

Why: a whole team comes or goes with one label. All pods, not only those with GPUs: a gang often has a member without
one (the launcher of an MPIJob, the head of a RayCluster), and half a gang at another scheduler never starts.
Owns: one MutatingAdmissionPolicy and its binding: `optimus install --opting-in`, `optingIn` of the chart.
Must not: give us pods that must come up without us. Those of DaemonSets, of namespaces called kube-… and of the one
that the scheduler itself runs in are left alone whatever their labels: who is dead could not come back.

No process of ours is in the path of a pod. Kubernetes 1.36 serves it. Where a server has it as v1beta1 only (a feature
gate of 1.34 and 1.35), the chart writes that; nobody has tried it.
"""

from __future__ import annotations

from typing import Any

from optimus.drivers.kube.grouping.overrides import SCHEDULER

GROUP = "admissionregistration.k8s.io"
SYSTEM = ("kube-system", "kube-public", "kube-node-lease")
Object = dict[str, Any]


def is_system(namespace: str) -> bool:
    """Of the cluster itself."""
    return namespace.startswith("kube-")


def opting_in(*, name: str, scheduler: str, home: str, version: str = "v1") -> list[Object]:
    """`home`: the namespace that the scheduler runs in."""
    return [
        {
            "apiVersion": f"{GROUP}/{version}",
            "kind": "MutatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {
                # An expression that fails would leave a pod to a scheduler that does not know what we have promised.
                "failurePolicy": "Fail",
                "reinvocationPolicy": "IfNeeded",
                "matchConstraints": {
                    "resourceRules": [
                        {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
                    ]
                },
                "matchConditions": [{"name": why, "expression": when} for why, when in _CONDITIONS.items()],
                "mutations": [
                    {
                        "patchType": "ApplyConfiguration",
                        "applyConfiguration": {
                            "expression": f"Object{{spec: Object.spec{{schedulerName: '{scheduler}'}}}}"
                        },
                    }
                ],
            },
        },
        {
            "apiVersion": f"{GROUP}/{version}",
            "kind": "MutatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": {
                "policyName": name,
                "matchResources": {
                    "namespaceSelector": {
                        "matchLabels": {SCHEDULER: "enabled"},
                        # Here, and not only as a condition: in these not even an expression is evaluated.
                        "matchExpressions": [
                            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [home, *SYSTEM]}
                        ],
                    }
                },
            },
        },
    ]


_CONDITIONS = {
    "names-no-other-scheduler": "!has(object.spec.schedulerName)"
    " || object.spec.schedulerName in ['', 'default-scheduler']",
    "names-no-node": "!has(object.spec.nodeName) || object.spec.nodeName == ''",
    "is-not-of-the-cluster-itself": "!request.namespace.startsWith('kube-')",
    "is-no-daemon": "!has(object.metadata.ownerReferences)"
    " || !object.metadata.ownerReferences.exists(owner, owner.kind == 'DaemonSet')",
    "has-not-opted-out": f"!has(object.metadata.labels) || !('{SCHEDULER}' in object.metadata.labels)"
    f" || object.metadata.labels['{SCHEDULER}'] != 'disabled'",
}
