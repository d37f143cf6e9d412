"""What the API server keeps of UnifiedJobs by itself, beyond what their schema can say: who may write what.

Why: the number of replicas is the scheduler's alone, and nobody gets pods by changing a job that he could not make.
     Both must hold while no process of ours runs.
Owns: one ValidatingAdmissionPolicy without parameters, and its binding.
Must not: look at queues; `policies` does.

A job belongs to the scheduler that its template names; to this one, if it names none. One that names another of ours
(`optimus-staging`) is left to the policy of that installation.
"""

from __future__ import annotations

from optimus.api.crds import GROUP, VERSION
from optimus.drivers.kube.policies import UNIFIED_JOBS, Object, before_and_after, binding, resource_rule

NO_TARGET = "-1"


def account_of(name: str, namespace: str) -> str:
    """How the server calls a service account."""
    return f"system:serviceaccount:{namespace}:{name}"


def job_policies(*, name: str, scheduler: str, account: str) -> list[Object]:
    """`account`: of the controller."""
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            # Nobody's pods wait for it, and what it cannot judge must not pass: it says who may do what.
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [resource_rule(GROUP, VERSION, UNIFIED_JOBS)]},
            "variables": [
                {"name": "controller", "expression": f"'{account}'"},
                {"name": "scheduler", "expression": f"'{scheduler}'"},
                {"name": "named", "expression": _NAMED},
                {"name": "mine", "expression": "variables.named in ['', variables.scheduler]"},
                *before_and_after("target", _target, NO_TARGET),
            ],
            "validations": [
                {
                    "expression": "variables.mine || variables.named.startsWith(variables.scheduler + '-')",
                    "messageExpression": "'schedulerName ' + variables.named + ' would leave its pods to another"
                    " scheduler: leave it out, or write ' + variables.scheduler",
                    "reason": "Invalid",
                },
                {
                    "expression": "!variables.mine || variables.target == variables.oldTarget"
                    " || request.userInfo.username == variables.controller",
                    "message": "targetReplicas is written by the scheduler alone: leave it as it is, and write "
                    "desiredReplicas (kubectl scale)",
                    "reason": "Forbidden",
                },
                {
                    "expression": f"oldObject == null || ({_RUNS_THE_SAME}) || {_MAY_CREATE}",
                    "message": "whoever may not create UnifiedJobs here may stop, order and resize them, but not "
                    "change what they run (template, checkpoint)",
                    "reason": "Forbidden",
                },
            ],
        },
    }
    return [policy, binding(name)]


def _target(whose: str) -> str:
    spec = f"{whose}.spec.replicaSpec"
    there = f"has({spec}) && has({spec}.targetReplicas)"
    return f"({there} ? {spec}.targetReplicas : {NO_TARGET})"


_NAMED = "has(object.spec.template.spec.schedulerName) ? object.spec.template.spec.schedulerName : ''"
_RUNS_THE_SAME = (
    "object.spec.template == oldObject.spec.template"
    " && has(object.spec.checkpoint) == has(oldObject.spec.checkpoint)"
    " && (!has(object.spec.checkpoint) || object.spec.checkpoint == oldObject.spec.checkpoint)"
)
_MAY_CREATE = (
    f"authorizer.group('{GROUP}').resource('{UNIFIED_JOBS}').namespace(request.namespace).check('create').allowed()"
)
