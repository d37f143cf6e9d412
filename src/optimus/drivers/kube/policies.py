"""Rules that the API server keeps by itself: a tenant names only queues that list its namespace, and no priority above
what its queue allows.

Why: a wrong object is refused when it is written, in words, instead of waiting with a reason; and no process of ours is
in the path of pod creation, so that a dead scheduler blocks nobody.
Owns: one ValidatingAdmissionPolicy and its binding.
Must not: be the only guard. What the policy cannot see (queues above, the default queue of a namespace, a server
without it, an error in it) the brain decides: such work waits with the same words.

Each Queue is a parameter of the policy; the server tries an object against all of them, and each has something to say
only about objects that name it. What is written already may be changed: only a new queue or priority is looked at.
"""

from __future__ import annotations

from typing import Any

from optimus.api.crds import GROUP, VERSION
from optimus.drivers.kube.grouping import Kinds, shipped_kinds
from optimus.drivers.kube.grouping.overrides import PREFIX, QUEUE
from optimus.drivers.kube.rights import plural

POLICY = "optimus-queues"
PRIORITY = PREFIX + "priority"
Object = dict[str, Any]


def policies(kinds: Kinds | None = None) -> list[Object]:
    return [_policy(kinds or shipped_kinds()), _binding()]


def _policy(kinds: Kinds) -> Object:
    groups: dict[str, list[str]] = {}
    for kind in kinds:
        group, _, name = kind.name.rpartition("/")
        groups.setdefault(group, []).append(plural(name))
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": POLICY},
        "spec": {
            # It must never be in anybody's way by itself: what it cannot judge, the scheduler refuses.
            "failurePolicy": "Ignore",
            "paramKind": {"apiVersion": f"{GROUP}/{VERSION}", "kind": "Queue"},
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": [group],
                        "apiVersions": ["*"],
                        "operations": ["CREATE", "UPDATE"],
                        "resources": sorted(resources),
                    }
                    for group, resources in groups.items()
                ]
            },
            "matchConditions": [{"name": "names-a-queue", "expression": f"{_said('object', QUEUE)} != ''"}],
            "variables": [
                {"name": "queue", "expression": _said("object", QUEUE)},
                {"name": "oldQueue", "expression": f"oldObject == null ? '' : {_said('oldObject', QUEUE)}"},
                {"name": "priority", "expression": _said("object", PRIORITY)},
                {"name": "oldPriority", "expression": f"oldObject == null ? '' : {_said('oldObject', PRIORITY)}"},
                {"name": "mine", "expression": "variables.queue == params.metadata.name && has(params.spec)"},
            ],
            "validations": [
                {
                    "expression": "!variables.mine || variables.queue == variables.oldQueue"
                    " || !has(params.spec.namespaces) || size(params.spec.namespaces) == 0"
                    " || request.namespace in params.spec.namespaces",
                    "messageExpression": "'namespace ' + request.namespace + ' may not use queue ' + variables.queue",
                    "reason": "Forbidden",
                },
                {
                    "expression": "!variables.mine || !has(params.spec.maxPriority)"
                    " || (variables.priority == variables.oldPriority && variables.queue == variables.oldQueue)"
                    " || !variables.priority.matches('^-?[0-9]{1,18}$')"
                    " || int(variables.priority) <= params.spec.maxPriority",
                    "messageExpression": "'queue ' + variables.queue + ' allows a priority of '"
                    f" + string(params.spec.maxPriority) + ' at most; {PRIORITY} is ' + variables.priority",
                    "reason": "Forbidden",
                },
            ],
        },
    }


def _binding() -> Object:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": POLICY},
        "spec": {
            "policyName": POLICY,
            "validationActions": ["Deny"],
            "paramRef": {"selector": {}, "parameterNotFoundAction": "Allow"},
        },
    }


def _said(whose: str, word: str) -> str:
    """As `grouping.overrides` reads it: annotations before labels; empty if nothing is said."""
    found = f"has({whose}.metadata.{{0}}) && '{word}' in {whose}.metadata.{{0}}"
    value = f"{whose}.metadata.{{0}}['{word}']"
    first, second = "annotations", "labels"
    return f"({found.format(first)} ? {value.format(first)} : ({found.format(second)} ? {value.format(second)} : ''))"
