"""The chart: what it renders is what `optimus install` prints, and wrong values are refused in words."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
import yaml

from hack.charting.chart import CHART, KEEP, files
from optimus import __version__
from optimus.drivers.kube.grouping.table import KindSpec, load_text
from optimus.drivers.kube.installing import MANAGED_BY, NAMESPACE, Installation, objects

OWN = """
- kind: acme.io/Study
  plural: studies
  roles: [{name: trial, count: spec.trials, template: spec.template}]
  suspend: spec.paused
  stop: suspend
- {kind: acme.io/Probe, gang: pod}
- {kind: batch/Job, class: interactive}
"""
OWN_FILE = "kinds:\n" + OWN.strip()
CHANGED = Installation(
    name="gpus", replicas=3, scheduler_name="other", policy="fifo", lease_seconds=30, respect_budgets=True,
    priority_class="", opting_in=True, crds=False, api_ports=(8443,),
    kinds=load_text(OWN_FILE)[0], kinds_files={"kinds.yaml": OWN_FILE},
)  # fmt: skip
AS_VALUES: dict[str, Any] = {
    "fullnameOverride": "gpus", "replicas": 3, "schedulerName": "other", "policy": "fifo", "leaseSeconds": 30,
    "respectBudgets": True, "priorityClassName": "", "optingIn": True, "crds": {"install": False},
    "networkPolicy": {"apiServerPorts": [8443]}, "kinds": yaml.safe_load(OWN),
}  # fmt: skip
SERVED = "admissionregistration.k8s.io/{}/MutatingAdmissionPolicy"
INSTANCE = "app.kubernetes.io/instance"
WRONG_VALUES = {
    "replicas=0": "replicas",
    "replicas=many": "replicas",
    "replica=3": "additional properties 'replica' not allowed",
    "image.repository=": "repository",
    "image.pullPolicy=Sometimes": "pullPolicy",
    "schedulerName=Two Words": "schedulerName",
    "leaseSeconds=1": "leaseSeconds",
    "crds.install=perhaps": "install",
    "serviceMonitor.interval=often": "interval",
    "fullnameOverride=Not_A_Name": "fullnameOverride",
    "image.digest=sha256:short": "digest",
    "networkPolicy.apiServerPorts={0}": "apiServerPorts",
    "extraArgs={verbose}": "extraArgs",
    "extraVolumes[0].configMap.name=x": "name",
    "kinds[0].plural=studies": "kind",
    "kinds[0].kind=acme.io/v1/Study": "kind",
    "kinds[0].kind=acme.io/Study,kinds[0].suspends=spec.paused": "additional properties 'suspends' not allowed",
}
Made = dict[tuple[str, str], dict[str, Any]]


def template(
    helm: str, values: dict[str, Any], *words: str, namespace: str = NAMESPACE
) -> subprocess.CompletedProcess[str]:
    said = [helm, "template", "optimus", str(CHART), "--namespace", namespace, "--values", "-", *words]
    return subprocess.run(said, input=yaml.safe_dump(values), capture_output=True, text=True, check=False)


def rendered(helm: str, values: dict[str, Any], served: str = "v1", namespace: str = NAMESPACE) -> Made:
    done = template(helm, values, "--api-versions", SERVED.format(served), namespace=namespace)
    assert done.returncode == 0, done.stderr
    return {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(done.stdout) if one}


def installed(asked: Installation) -> Made:
    """As `optimus install` prints it; the namespace is Helm's business, and CRDs are kept by an annotation."""
    made = {(one["kind"], one["metadata"]["name"]): one for one in objects(asked) if one["kind"] != "Namespace"}
    for (kind, _), one in made.items():
        if kind == "CustomResourceDefinition":
            one["metadata"]["annotations"] = dict([KEEP])
    return made


def compared(made: Made, instance: str) -> Made:
    """Without what each says of itself, with rules one by one, and with files read."""
    for (kind, _), one in made.items():
        for own in (MANAGED_BY, "helm.sh/chart", "app.kubernetes.io/version"):
            one["metadata"]["labels"].pop(own, None)
        if kind in ("ClusterRole", "Role"):
            one["rules"] = _one_by_one(one["rules"], "verbs")
        if kind == "ValidatingAdmissionPolicy":
            match = one["spec"]["matchConstraints"]
            match["resourceRules"] = _one_by_one(match["resourceRules"], "operations")
        if kind == "ConfigMap":
            one["data"] = {name: yaml.safe_load(text) for name, text in one["data"].items()}
        if kind == "Deployment" and "annotations" in (meta := one["spec"]["template"]["metadata"]):
            assert len(meta["annotations"].pop("optimus.dev/kinds")) == 64
    text = json.dumps([*made.items()]).replace(f'"{INSTANCE}": "{instance}"', f'"{INSTANCE}": "it"')
    return {(kind, name): one for (kind, name), one in json.loads(text)}


def _one_by_one(rules: list[dict[str, Any]], verbs: str) -> list[tuple[Any, ...]]:
    return sorted(
        {
            (group, resource, verb, *rule.get("resourceNames", ()), *rule.get("apiVersions", ()))
            for rule in rules
            for group in rule["apiGroups"]
            for resource in rule["resources"]
            for verb in rule[verbs]
        }
    )


def test_written_parts_follow_from_the_code() -> None:
    stale = [path.name for path, text in files().items() if not path.exists() or path.read_text() != text]
    assert stale == [], "run `make chart`"


@pytest.mark.parametrize(("values", "asked"), [({}, Installation()), (AS_VALUES, CHANGED)], ids=["default", "changed"])
def test_it_renders_what_install_prints(helm: str, values: dict[str, Any], asked: Installation) -> None:
    assert compared(rendered(helm, values), "optimus") == compared(installed(asked), asked.name)


def test_every_object_says_whose_it_is(helm: str) -> None:
    made = rendered(helm, {**AS_VALUES, "crds": {"install": True}, "commonLabels": {"cost": "gpus"}})
    for name, one in made.items():
        labels = one["metadata"]["labels"]
        assert (labels[INSTANCE], labels[MANAGED_BY], labels["cost"]) == ("optimus", "Helm", "gpus"), name
        assert labels["helm.sh/chart"] == f"optimus-{__version__}", name
    names = {name for kind, name in made if kind != "CustomResourceDefinition"}
    assert {name for name in names if name != "gpus" and not name.startswith("gpus-")} == set()
    chosen = made["Deployment", "gpus"]["spec"]
    assert chosen["selector"]["matchLabels"].items() <= chosen["template"]["metadata"]["labels"].items()
    assert "helm.sh/chart" not in chosen["template"]["metadata"]["labels"], "a new chart alone starts no new pods"


def test_namespaces_opt_in_to_the_scheduler_that_is_installed(helm: str) -> None:
    values = {"optingIn": True, "schedulerName": "other"}
    for served in ("v1", "v1beta1"):
        made = rendered(helm, values, served)
        policy, binding = (made[f"MutatingAdmissionPolicy{end}", "optimus-scheduler"] for end in ("", "Binding"))
        assert policy["apiVersion"] == binding["apiVersion"] == f"admissionregistration.k8s.io/{served}"
        assert "'other'" in policy["spec"]["mutations"][0]["applyConfiguration"]["expression"]
        [left_out] = binding["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
        assert NAMESPACE in left_out["values"] and "kube-system" in left_out["values"]
    done = template(helm, values)
    assert done.returncode != 0
    assert "does not serve MutatingAdmissionPolicy" in done.stderr and "schedulerName: other" in done.stderr


def test_what_a_cluster_needs_beside(helm: str) -> None:
    """A policy in Python from a ConfigMap, a kube-scheduler in the same pod, and a way out through a proxy."""
    values: dict[str, Any] = {
        "policy": "/policies/ours.py:ours",
        "kinds": yaml.safe_load(OWN),
        "extraArgs": ["--extender=127.0.0.1:8888"],
        "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
        "extraVolumes": [{"name": "policies", "configMap": {"name": "policies"}}],
        "extraVolumeMounts": [{"name": "policies", "mountPath": "/policies"}],
        "extraContainers": [{"name": "kube-scheduler", "image": "kube-scheduler:v1.36.0"}],
        "networkPolicy": {"extraEgress": [{"ports": [{"port": 3128}]}]},
        "image": {"digest": "sha256:" + "0" * 64},
    }
    made = rendered(helm, values)
    pod = made["Deployment", "optimus"]["spec"]["template"]["spec"]
    ours, beside = pod["containers"]
    assert beside["name"] == "kube-scheduler" and ours["image"] == "optimus-scheduler@sha256:" + "0" * 64
    assert {"--extender=127.0.0.1:8888", "--policy=/policies/ours.py:ours"} <= set(ours["args"])
    assert [one["name"] for one in ours["volumeMounts"]] == [one["name"] for one in pod["volumes"]]
    assert {one["name"] for one in pod["volumes"]} == {"kinds", "policies"}
    assert ours["env"] == values["extraEnv"]
    names, server, proxy = made["NetworkPolicy", "optimus"]["spec"]["egress"]
    assert [one["port"] for one in names["ports"]] == [53, 53]
    assert [one["port"] for one in server["ports"]] == [443, 6443] and proxy == {"ports": [{"port": 3128}]}


def test_the_example_has_kube_scheduler_and_its_extender_in_one_pod(helm: str) -> None:
    example = CHART.parents[1] / "examples" / "15-kubernetes-extender"
    values = yaml.safe_load((example / "values.yaml").read_text())
    pod = rendered(helm, values)["Deployment", "optimus"]["spec"]["template"]["spec"]
    ours, theirs = pod["containers"]
    [extender] = yaml.safe_load((example / "kube-scheduler.yaml").read_text())["extenders"]
    assert f"--extender={extender['urlPrefix'].removeprefix('http://')}" in ours["args"]
    assert [one["name"] for one in theirs["volumeMounts"]] == [one["name"] for one in pod["volumes"]]


def test_who_respects_budgets_may_not_delete_pods(helm: str) -> None:
    def may(values: dict[str, Any]) -> set[tuple[Any, ...]]:
        return set(_one_by_one(rendered(helm, values)["ClusterRole", "optimus"]["rules"], "verbs"))

    assert may({}) - may({"respectBudgets": True}) == {("", "pods", "delete")}


def test_a_quota_admits_its_priority_class_where_that_is_needed(helm: str) -> None:
    key = ("ResourceQuota", "optimus-priority")
    [scope] = rendered(helm, {})[key]["spec"]["scopeSelector"]["matchExpressions"]
    assert scope["values"] == ["system-cluster-critical"]
    for values in ({"priorityClassName": ""}, {"priorityClassName": "ours"}):
        assert key not in rendered(helm, values)
    assert key not in rendered(helm, {}, namespace="kube-system"), "others live there, and it has its own"


def test_its_schema_knows_every_key_of_a_kind() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())["properties"]["kinds"]["items"]["properties"]
    assert set(schema) == {field.alias or name for name, field in KindSpec.model_fields.items()}


def test_versions_are_those_of_the_program() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == chart["version"] == __version__


def test_lint_finds_nothing(helm: str) -> None:
    words = [helm, "lint", "--strict", str(CHART)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("value", WRONG_VALUES)
def test_wrong_values_are_refused(helm: str, value: str) -> None:
    words = [helm, "template", "x", str(CHART), "--set", value]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and WRONG_VALUES[value] in done.stderr, done.stderr


def test_monitoring_is_there_when_it_is_asked_for(helm: str) -> None:
    made = rendered(helm, {name: {"enabled": True} for name in ("serviceMonitor", "alerts", "boards")})
    monitor, service = made["ServiceMonitor", "optimus"], made["Service", "optimus-metrics"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["spec"]["endpoints"][0]["port"] == service["spec"]["ports"][0]["name"]
    rule = made["PrometheusRule", "optimus"]["spec"]
    assert rule == yaml.safe_load((CHART / "alerts" / "optimus.yaml").read_text())
    for name in ("queues", "scheduler"):
        board = made["ConfigMap", f"optimus-board-{name}"]
        assert board["data"][f"{name}.json"] == (CHART / "boards" / f"{name}.json").read_text().rstrip("\n")
