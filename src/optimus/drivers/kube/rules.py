"""Where a pod may be, as it is written: node selector and affinity, tolerations, neighbours.

Why: one place that reads what kube-scheduler reads, in its sense.
Owns: the translation, field by field. What Kubernetes says of nonsense counts: a term without requirements matches no
node, a toleration with an unknown operator tolerates nothing.
Must not: look at other pods or at nodes; count (`counting`); know volumes (`volumes`).

Preferences (`preferredDuringScheduling…`, `ScheduleAnyway`, `PreferNoSchedule`) are not read: they forbid nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from optimus.drivers.kube.counting import Social, Spreading, Term
from optimus.drivers.kube.objects import Expression, NodeSelector, Pod, PodTerm, Spread, TolerationSpec
from optimus.drivers.kube.requests import MalformedError
from optimus.drivers.kube.selectors import Requirement, Selector, Whom, read_selector
from optimus.model.nodes import Toleration
from optimus.model.reasons import Code, Reason, reason
from optimus.model.rules import NAME_FIELD, NodeRequirement, Operator

NodeTerms = tuple[tuple[NodeRequirement, ...], ...]
NO_NODE: NodeTerms = ((NodeRequirement(NAME_FIELD, Operator.IN),),)
_KNOWN = {str(one): one for one in Operator}
_COMPARING = ("Lt", "Gt")


# -- nodes ------------------------------------------------------------------------------------------------------------


def affinity_of(pod: Pod) -> NodeTerms:
    """Node selector and required node affinity together; empty means any node. Raises MalformedError."""
    spec = pod.spec
    selected = tuple(NodeRequirement(key, Operator.IN, (value,)) for key, value in (spec.node_selector or {}).items())
    affinity = spec.affinity and spec.affinity.node_affinity
    required = affinity and affinity.required_during_scheduling_ignored_during_execution
    if not required:
        return (selected,) if selected else ()
    return tuple((*selected, *term) for term in node_terms(required))


def node_terms(selector: NodeSelector, *, fields: bool = True) -> NodeTerms:
    """`fields`: requirements about the name of a node count; those of volumes do not. Raises MalformedError."""
    found = []
    for term in selector.node_selector_terms or ():
        if not term.match_expressions and not term.match_fields:
            continue
        parts = [_requirement(one, "label") for one in term.match_expressions or ()]
        if any(one.key == NAME_FIELD for one in parts):
            raise MalformedError(f"node affinity: a label {NAME_FIELD} cannot be told from the name; use matchFields")
        found.append((*parts, *(_requirement(one, "field") for one in (term.match_fields or ()) if fields)))
    return tuple(found) or NO_NODE


def _requirement(written: Expression, what: str) -> NodeRequirement:
    if written.operator not in _KNOWN:
        told = f"unknown operator {written.operator!r} for {written.key}"
        raise MalformedError(f"node affinity: {told}; known are {', '.join(_KNOWN)}")
    if what == "field" and written.key != NAME_FIELD:
        raise MalformedError(f"node affinity: unknown field {written.key}; known is {NAME_FIELD}")
    return NodeRequirement(written.key, _KNOWN[written.operator], tuple(written.values or ()))


def tolerations_of(pod: Pod) -> tuple[Toleration, ...]:
    return tuple(found for one in pod.spec.tolerations or () if (found := read_toleration(one)) is not None)


def read_toleration(written: TolerationSpec) -> Toleration | None:
    """None for one that tolerates nothing."""
    key, value, effect = written.key or "", written.value or "", written.effect or ""
    match written.operator or "Equal":
        case "Exists":
            return Toleration(key, "", effect)
        case "Equal":
            return Toleration(key, value, effect, equal=True)
    return None


# -- neighbours -------------------------------------------------------------------------------------------------------


def social_of(pod: Pod, sole_claims: tuple[str, ...] = ()) -> Social:
    """Raises MalformedError."""
    affinity = pod.spec.affinity
    near = (
        affinity and affinity.pod_affinity and affinity.pod_affinity.required_during_scheduling_ignored_during_execution
    )
    apart = (
        affinity
        and affinity.pod_anti_affinity
        and affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution
    )
    labels = pod.metadata.labels or {}
    hard = [one for one in pod.spec.topology_spread_constraints or () if one.when_unsatisfiable == "DoNotSchedule"]
    return Social(
        namespace=pod.metadata.namespace,
        labels=tuple(sorted(labels.items())),
        leaving=pod.metadata.deletion_timestamp is not None,
        near=tuple(_term(pod, one) for one in near or ()),
        apart=tuple(_term(pod, one) for one in apart or ()),
        spread=tuple(_spreading(pod, one) for one in hard),
        sole_claims=sole_claims,
    )


def _term(pod: Pod, written: PodTerm) -> Term:
    named = set(written.namespaces or ())
    if not named and written.namespace_selector is None:
        named = {pod.metadata.namespace}
    also = _by_keys(pod, written)
    selector = read_selector(written.label_selector, also)
    among = read_selector(written.namespace_selector)
    return Term(Whom(selector, tuple(sorted(named)), among), written.topology_key)


def _by_keys(pod: Pod, written: PodTerm) -> list[Requirement]:
    """`matchLabelKeys` and `mismatchLabelKeys`: the server writes them into the selector when the pod is made; in a
    template they are still to be added."""
    labels = pod.metadata.labels or {}
    there = {one.key for one in (written.label_selector and written.label_selector.match_expressions) or ()}
    same, other = written.match_label_keys or (), written.mismatch_label_keys or ()
    return [
        *_with_values(Operator.IN, (key for key in same if key not in there), labels),
        *_with_values(Operator.NOT_IN, (key for key in other if key not in there), labels),
    ]


def _with_values(operator: Operator, keys: Iterable[str], labels: dict[str, str]) -> list[Requirement]:
    return [Requirement(key, operator, (labels[key],)) for key in keys if key in labels]


def _spreading(pod: Pod, written: Spread) -> Spreading:
    labels = pod.metadata.labels or {}
    selector = read_selector(written.label_selector, _with_values(Operator.IN, written.match_label_keys or (), labels))
    if selector == Selector():  # Kubernetes counts nobody then, not everybody
        selector = None
    return Spreading(
        Whom(selector, (pod.metadata.namespace,), staying=True),
        written.topology_key,
        max_skew=written.max_skew,
        min_domains=written.min_domains or 1,
        counts_tainted=(written.node_taints_policy or "Ignore") != "Honor",
        counts_all=written.node_affinity_policy == "Ignore",
    )


# -- what stands in the way -------------------------------------------------------------------------------------------


def gates_of(pod: Pod) -> list[Reason]:
    names = [one.name for one in pod.spec.scheduling_gates or ()]
    if not names:
        return []
    told = f"scheduling gate{'s' if len(names) > 1 else ''} {', '.join(names)}"
    return [reason(Code.NOT_READY, missing=f"{told} must be taken away first")]


def unsupported_by_rules(pod: Pod) -> list[Reason]:
    """Features that choose nodes in ways that are not followed here."""
    spec, found = pod.spec, []
    comparing = [one for one in spec.tolerations or () if one.operator in _COMPARING]
    for one in comparing[:1]:
        told = f"a toleration that compares numbers ({one.key} {one.operator} {one.value})"
        found.append(_unsupported(told, "tolerate the value itself (Equal) or any (Exists)"))
    containers = (*spec.containers, *(spec.init_containers or ()))
    rules = [rule for container in containers for rule in container.restart_policy_rules or ()]
    if any(rule.action == "RestartAllContainers" for rule in rules):
        found.append(_unsupported("the restart rule RestartAllContainers", "leave it out"))
    if spec.host_network and spec.host_users is False:
        found.append(_unsupported("the host's network with users of its own", "set hostUsers or leave hostNetwork out"))
    return found


def _unsupported(feature: str, instead: str) -> Reason:
    return reason(Code.UNSUPPORTED, feature=feature, instead=instead)
