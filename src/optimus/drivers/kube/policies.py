"""Rules that the API server keeps by itself: a tenant names only queues that list or choose its namespace, and a
priority that is a number, and not above what its queue allows.

Why: a wrong object is refused when it is written, in words, instead of waiting with a reason; and no process of ours is
in the path of pod creation, so that a dead scheduler blocks nobody.
Owns: one ValidatingAdmissionPolicy and its binding for objects that say it in annotations, and one for UnifiedJobs,
      which have fields for it. What else is kept of UnifiedJobs is in `job_policies`.
Must not: be the only guard. What the policy cannot see (queues above, the default queue of a namespace, a server
without it, an error in it) the brain decides: such work waits with the same words.

Each Queue is a parameter of the policy; the server tries an object against all of them, and each has something to say
only about objects that name it. What is written already may be changed: only a new queue or priority is looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from optimus.api.building.jobs import default_class
from optimus.api.crds import GROUP, VERSION
from optimus.drivers.kube.grouping import Kinds, shipped_kinds
from optimus.drivers.kube.grouping.overrides import LARGEST_NUMBER, PREFIX, QUEUE
from optimus.model.jobs import JobType
from optimus.model.workloads import WorkloadClass

PRIORITY = PREFIX + "priority"
UNIFIED_JOBS = "unifiedjobs"
Object = dict[str, Any]
_A_NUMBER = "variables.priority.matches('^-?[0-9]{1,18}$')"


class Saying(Struct, frozen=True, kw_only=True):
    """How objects say what they want, as expressions about one of them; empty text if they do not."""

    queue: Callable[[str], str]
    priority: Callable[[str], str]
    priority_field: str
    """As people write it."""
    workload_class: Callable[[str], str] | None = None
    """Where it is known without looking at owners."""


def policies(kinds: Kinds | None = None, name: str = "optimus") -> list[Object]:
    """`name`: the beginning of their names."""
    groups: dict[str, list[str]] = {}
    for kind in kinds or shipped_kinds():
        if kind.group != GROUP:  # ours have fields
            groups.setdefault(kind.group, []).append(kind.resource)
    by_notes = [resource_rule(group, "*", *sorted(resources)) for group, resources in groups.items()]
    by_fields = [resource_rule(GROUP, VERSION, UNIFIED_JOBS)]
    return [
        *_policy(f"{name}-queues", by_notes, _IN_NOTES),
        *_policy(f"{name}-queues-of-jobs", by_fields, _IN_FIELDS),
    ]


def resource_rule(group: str, version: str, *resources: str) -> Object:
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": ["CREATE", "UPDATE"],
        "resources": list(resources),
    }


def _policy(named: str, rules: list[Object], saying: Saying) -> list[Object]:
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": named},
        "spec": {
            # It must never be in anybody's way by itself: what it cannot judge, the scheduler refuses.
            "failurePolicy": "Ignore",
            "paramKind": {"apiVersion": f"{GROUP}/{VERSION}", "kind": "Queue"},
            "matchConstraints": {"resourceRules": rules},
            "matchConditions": [{"name": "names-a-queue", "expression": f"{saying.queue('object')} != ''"}],
            "variables": [
                *before_and_after("queue", saying.queue),
                *before_and_after("priority", saying.priority),
                {"name": "mine", "expression": "variables.queue == params.metadata.name && has(params.spec)"},
                {"name": "listed", "expression": "has(params.spec.namespaces) ? params.spec.namespaces : []"},
                {
                    "name": "labels",
                    "expression": "namespaceObject != null && has(namespaceObject.metadata.labels)"
                    " ? namespaceObject.metadata.labels : {}",
                },
                {"name": "chosen", "expression": _CHOSEN},
                *(before_and_after("class", saying.workload_class) if saying.workload_class else ()),
            ],
            "validations": [
                _ITS_NAMESPACE,
                _a_number(saying.priority_field),
                _not_above(saying.priority_field),
                *([_ITS_CLASS] if saying.workload_class else ()),
            ],
        },
    }
    return [policy, binding(named, paramRef={"selector": {}, "parameterNotFoundAction": "Allow"})]


def before_and_after(name: str, said: Callable[[str], str], nothing: str = "''") -> list[dict[str, str]]:
    """`queue` is what the object says, `oldQueue` what it said."""
    return [
        {"name": name, "expression": said("object")},
        {
            "name": f"old{name[0].upper()}{name[1:]}",
            "expression": f"oldObject == null ? {nothing} : {said('oldObject')}",
        },
    ]


_ITS_NAMESPACE = {
    "expression": "!variables.mine || variables.queue == variables.oldQueue"
    " || (size(variables.listed) == 0 && !has(params.spec.namespaceSelector))"
    " || request.namespace in variables.listed || variables.chosen",
    "messageExpression": "'namespace ' + request.namespace + ' may not use queue ' + variables.queue",
    "reason": "Forbidden",
}
_ITS_CLASS = {
    "expression": "!variables.mine || !has(params.spec.allowedClasses) || size(params.spec.allowedClasses) == 0"
    " || (variables.class == variables.oldClass && variables.queue == variables.oldQueue)"
    " || variables.class in params.spec.allowedClasses",
    "messageExpression": "'queue ' + variables.queue + ' does not take ' + variables.class + ' work, only '"
    " + params.spec.allowedClasses.join(', ')",
    "reason": "Forbidden",
}


def _a_number(field: str) -> Object:
    return {
        "expression": "!variables.mine || variables.priority == ''"
        " || variables.priority == variables.oldPriority"
        f" || ({_A_NUMBER} && {LARGEST_NUMBER} >= int(variables.priority)"
        f" && int(variables.priority) >= -{LARGEST_NUMBER})",
        "messageExpression": f"'{field} must be a whole number between -{LARGEST_NUMBER} and "
        f"{LARGEST_NUMBER}, not ' + variables.priority.substring(0, "
        "size(variables.priority) < 40 ? size(variables.priority) : 40)",
        "reason": "Invalid",
    }


def _not_above(field: str) -> Object:
    return {
        "expression": "!variables.mine || !has(params.spec.maxPriority)"
        " || (variables.priority == variables.oldPriority && variables.queue == variables.oldQueue)"
        f" || !{_A_NUMBER} || int(variables.priority) <= params.spec.maxPriority",
        "messageExpression": "'queue ' + variables.queue + ' allows a priority of '"
        f" + string(params.spec.maxPriority) + ' at most; {field} is ' + variables.priority",
        "reason": "Forbidden",
    }


_CHOSEN = (
    "has(params.spec.namespaceSelector)"
    " && (!has(params.spec.namespaceSelector.matchLabels) || params.spec.namespaceSelector.matchLabels.all(key,"
    " key in variables.labels && variables.labels[key] == params.spec.namespaceSelector.matchLabels[key]))"
    " && (!has(params.spec.namespaceSelector.matchExpressions)"
    " || params.spec.namespaceSelector.matchExpressions.all(rule,"
    " rule.operator == 'Exists' ? rule.key in variables.labels :"
    " rule.operator == 'DoesNotExist' ? !(rule.key in variables.labels) :"
    " (rule.operator == 'In')"
    " == (rule.key in variables.labels && has(rule.values) && variables.labels[rule.key] in rule.values)))"
)
"""Whether labels of the namespace are those that the queue asks for: as `selectors` judges them."""


def binding(name: str, **more: Any) -> Object:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"], **more},
    }


def _said(whose: str, word: str) -> str:
    """As `grouping.overrides` reads it: annotations before labels; empty if nothing is said."""
    found = f"has({whose}.metadata.{{0}}) && '{word}' in {whose}.metadata.{{0}}"
    value = f"{whose}.metadata.{{0}}['{word}']"
    first, second = "annotations", "labels"
    return f"({found.format(first)} ? {value.format(first)} : ({found.format(second)} ? {value.format(second)} : ''))"


def _class_of_job(whose: str) -> str:
    """As `optimus.api.building.jobs` has it where nothing is said."""
    by_type = " : ".join(
        f"{whose}.spec.jobType == '{job_type}' ? '{default_class(job_type)}'"
        for job_type in JobType
        if default_class(job_type) is not WorkloadClass.UNATTENDED
    )
    return f"(has({whose}.spec.class) ? {whose}.spec.class : {by_type} : '{WorkloadClass.UNATTENDED}')"


_IN_NOTES = Saying(
    queue=lambda whose: _said(whose, QUEUE),
    priority=lambda whose: _said(whose, PRIORITY),
    priority_field=PRIORITY,
)
_IN_FIELDS = Saying(
    queue=lambda whose: f"(has({whose}.spec.queue) ? {whose}.spec.queue : '')",
    priority=lambda whose: f"(has({whose}.spec.priority) ? string({whose}.spec.priority) : '')",
    priority_field="spec.priority",
    workload_class=_class_of_job,
)
