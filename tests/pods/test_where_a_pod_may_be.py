"""Node selector and affinity, tolerations and neighbours, as they are written."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from optimus.drivers.kube.nodes import read_node
from optimus.drivers.kube.objects import Pod
from optimus.drivers.kube.pods import read_pod
from optimus.drivers.kube.rules import affinity_of, social_of, tolerations_of
from optimus.drivers.kube.selectors import Requirement, Selector, Whom
from optimus.drivers.kube.volumes import Around
from optimus.model.nodes import Taint
from optimus.model.reasons import Code
from optimus.model.rules import Where
from tests.pods.writing import node, pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def with_node_terms(*terms: Any, **spec: Any) -> Pod:
    return pod(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}, **spec)


def accepts(written: Pod, *, name: str = "n0", **labels: str) -> bool:
    return Where(any_of=affinity_of(written)).accepts(read_node(node(name, labels=labels)))


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def test_the_node_selector_holds_in_every_term() -> None:
    written = with_node_terms(
        expression("zone", "In", "a"), expression("zone", "In", "b"), nodeSelector={"disk": "ssd"}
    )
    assert accepts(written, zone="a", disk="ssd") and accepts(written, zone="b", disk="ssd")
    assert not accepts(written, zone="a") and not accepts(written, disk="ssd")


@pytest.mark.parametrize(
    ("operator", "values", "label", "matches"),
    [
        ("In", ("1", "2"), "2", True),
        ("NotIn", ("1",), None, True),
        ("NotIn", ("1",), "1", False),
        ("Exists", (), "x", True),
        ("DoesNotExist", (), "x", False),
        ("Gt", ("7",), "8", True),
        ("Gt", ("7",), "7", False),
        ("Lt", ("7",), "007", False),
        ("Gt", ("7",), "1_0", False),
        ("Gt", ("7",), None, False),
        ("Gt", ("7",), "9" * 30, False),
    ],
)
def test_operators_mean_what_they_mean_in_kubernetes(
    operator: str, values: tuple[str, ...], label: str | None, matches: bool
) -> None:
    labels = {} if label is None else {"gen": label}
    assert accepts(with_node_terms(expression("gen", operator, *values)), **labels) is matches


def test_names_of_nodes_are_fields_and_an_empty_term_matches_nothing() -> None:
    named = with_node_terms({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]})
    assert accepts(named, name="n1") and not accepts(named, name="n0")
    assert not accepts(with_node_terms({}))
    assert accepts(with_node_terms({}, expression("zone", "Exists")), zone="a")


def tolerated(taint: Taint, **toleration: str) -> bool:
    return any(one.accepts(taint) for one in tolerations_of(pod(tolerations=[toleration])))


def test_tolerations_of_keys_values_and_effects() -> None:
    taint = Taint("spot", "yes", "NoExecute")
    assert tolerated(taint, operator="Exists")
    assert tolerated(taint, key="spot", operator="Exists")
    assert tolerated(taint, key="spot", value="yes")
    assert not tolerated(taint, key="spot")
    assert not tolerated(taint, key="spot", operator="Exists", effect="NoSchedule")
    assert not tolerated(taint, key="spot", operator="Unheard", value="yes")
    assert tolerated(Taint("spot"), key="spot")


def test_a_term_is_about_its_own_namespace_unless_it_names_others() -> None:
    def whom(**term: Any) -> Whom:
        affinity = {"podAffinity": {REQUIRED: [{"topologyKey": "zone", **term}]}}
        return social_of(pod(labels={"rev": "2"}, affinity=affinity)).near[0].whom

    web = {"matchLabels": {"app": "web"}}
    one = Selector((Requirement("app", "In", ("web",)),))
    assert whom(labelSelector=web) == Whom(one, ("team",))
    assert whom(labelSelector=web, namespaces=["b", "a"]) == Whom(one, ("a", "b"))
    assert whom(labelSelector=web, namespaceSelector={}) == Whom(one, (), Selector())
    assert whom() == Whom(None, ("team",))
    assert whom(labelSelector={}).selector == Selector()
    same = whom(labelSelector=web, matchLabelKeys=["rev", "none"]).selector
    assert same is not None and Requirement("rev", "In", ("2",)) in same.requirements
    other = whom(labelSelector=web, mismatchLabelKeys=["rev"]).selector
    assert other is not None and Requirement("rev", "NotIn", ("2",)) in other.requirements


def test_only_hard_spreading_counts_and_an_empty_selector_counts_nobody() -> None:
    hard = {"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 3}
    soft = {**hard, "whenUnsatisfiable": "ScheduleAnyway", "minDomains": None}
    policies = {"nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor"}
    written = pod(topologySpreadConstraints=[{**hard, "labelSelector": {}}, soft, {**hard, **policies}])
    first, second = social_of(written).spread
    assert first.whom == Whom(None, ("team",), staying=True)
    assert (first.max_skew, first.min_domains, first.counts_tainted, first.counts_all) == (2, 3, True, False)
    assert (second.counts_tainted, second.counts_all) == (False, True)


def told(written: Pod) -> list[tuple[Code, str]]:
    return [(one.code, one.text()) for one in read_pod(written, Around()).obstacles]


def test_scheduling_gates_are_waited_for() -> None:
    found = told(pod(schedulingGates=[{"name": "a.example/x"}, {"name": "b.example/y"}]))
    words = "cannot be placed yet: scheduling gates a.example/x, b.example/y must be taken away first"
    assert found == [(Code.NOT_READY, words)]


def test_what_is_not_supported_is_told_with_what_to_do_instead() -> None:
    comparing = pod(tolerations=[{"key": "power", "operator": "Gt", "value": "3"}])
    words = (
        "uses a toleration that compares numbers (power Gt 3), which is not supported; "
        "tolerate the value itself (Equal) or any (Exists)"
    )
    assert told(comparing) == [(Code.UNSUPPORTED, words)]
    restarting = pod(containers=[{"name": "c", "restartPolicyRules": [{"action": "RestartAllContainers"}]}])
    assert [code for code, _ in told(restarting)] == [Code.UNSUPPORTED]
    assert [code for code, _ in told(pod(hostNetwork=True, hostUsers=False))] == [Code.UNSUPPORTED]


def test_a_pod_that_cannot_be_read_has_a_reason_and_no_place() -> None:
    """The server refuses these; whoever reads a template may meet them."""
    wrong = with_node_terms(expression("zone", "Near", "a"), schedulingGates=[{"name": "gate"}])
    (malformed, gate) = told(wrong)
    assert malformed[0] is Code.MALFORMED and gate[0] is Code.NOT_READY
    assert "unknown operator 'Near' for zone; known are In" in malformed[1]
    labelled = with_node_terms(expression("metadata.name", "In", "n0"))
    assert "use matchFields" in told(labelled)[0][1]
    field = with_node_terms({"matchFields": [{"key": "spec.x", "operator": "In", "values": ["y"]}]})
    assert "unknown field spec.x" in told(field)[0][1]
    selecting = {"topologyKey": "zone", "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Gt"}]}}
    assert "unknown operator 'Gt' for app" in told(pod(affinity={"podAntiAffinity": {REQUIRED: [selecting]}}))[0][1]


def test_the_priority_is_that_of_the_pod() -> None:
    assert read_pod(pod(priority=1000), Around()).priority == 1000
    assert read_pod(pod(), Around()).priority == 0


def test_fields_of_the_server_that_are_null_are_nothing() -> None:
    text = b'{"metadata":{"name":"p","labels":null},"spec":{"containers":[],"tolerations":null,"affinity":null}}'
    assert read_pod(msgspec.json.decode(text, type=Pod), Around()).obstacles == ()
