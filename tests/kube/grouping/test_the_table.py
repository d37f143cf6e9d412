"""The table of kinds: files of users over the shipped one, mistakes with their place, and the page that shows it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from optimus.drivers.kube.grouping import Groups, load_kinds, shipped_kinds
from optimus.drivers.kube.grouping.kinds import StopHow
from optimus.drivers.kube.grouping.table import load_text
from optimus.model.workloads import WorkloadClass
from tests.kube.grouping import telling
from tests.kube.grouping.cluster import Cluster
from tests.kube.grouping.making import a_pod, a_thing

EXAMPLE = re.search(r"## A kind of your own\n\n```yaml\n(.*?)```", telling.PAGE.read_text(), re.DOTALL)[1]  # type: ignore[index]
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "sweeps.acme.io"},
    "spec": {
        "group": "acme.io",
        "names": {"kind": "Sweep", "plural": "sweeps"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
SWEEP = """
apiVersion: acme.io/v1
kind: Sweep
metadata: {name: search, labels: {optimus.dev/queue: vision}}
spec:
  paused: true
  tuner: {spec: {containers: [{name: main, image: none}]}}
  trials: {replicas: 4, least: 2, template: {spec: {containers: [{name: main, image: none}]}}}
"""


def test_the_page_shows_the_table() -> None:
    assert telling.written() == telling.rows(), "python -m tests.kube.grouping.telling writes it anew"


def test_a_made_up_kind_is_grouped_by_the_example_of_the_page(cluster: Cluster) -> None:
    kinds, errors = load_text(EXAMPLE)
    assert not errors
    cluster.groups = Groups(kinds)
    cluster.apply(yaml.safe_dump(CRD))
    cluster.until(lambda: "sweeps" in str(served(cluster)))
    [made] = cluster.apply(SWEEP)
    cluster.look()
    group = cluster.group("sweep/search")
    assert group.suspended and group.admit and group.suspend_field == ("spec", "paused")
    assert cluster.roles("sweep/search") == {"tuner": (1, 1), "trial": (2, 4)}
    owner = f"[{{apiVersion: acme.io/v1, kind: Sweep, name: search, uid: {made['metadata']['uid']}, controller: true}}]"
    for name, labels in {"t": "{acme.io/role: tuner}", "x": '{acme.io/role: trial, acme.io/trial: "3"}'}.items():
        cluster.apply(
            f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, labels: {labels}, ownerReferences: {owner}}}\n"
            "spec: {schedulerName: optimus, containers: [{name: main, image: none}]}"
        )
    cluster.look()
    assert cluster.slots("sweep/search") == {"t": "tuner-0", "x": "trial-3"}
    cluster.change(f"/apis/acme.io/v1/namespaces/{cluster.namespace}/sweeps/search", {"status": {"phase": "Done"}})
    cluster.until(lambda: cluster.group("sweep/search").over)


def served(cluster: Cluster) -> object:
    try:
        return cluster.send("GET", "/apis/acme.io/v1")
    except OSError:
        return None


def test_without_an_entry_a_pod_of_an_unknown_kind_is_by_itself_and_left_running() -> None:
    groups = Groups(shipped_kinds())
    sweep = a_thing("acme.io/v1 Sweep", "s")
    groups.pod(a_pod("x", sweep))
    [ref] = groups.missing()
    assert (ref.kind, ref.name) == ("acme.io/Sweep", "s"), "its owner could be owned by a kind that is known"
    groups.owner_absent(ref)
    group = groups.group("a/pod/x")
    assert group is not None and group.stop.how is StopHow.NEVER
    assert "acme.io/Sweep is not in the table of kinds" in group.not_preemptible_why


def test_a_file_changes_one_key_and_keeps_the_rest(tmp_path: Path) -> None:
    file = tmp_path / "ours.yaml"
    file.write_text("kinds:\n  - {kind: batch/Job, class: interactive}\n")
    kinds, errors = load_kinds(file)
    ours, shipped = kinds.get("batch/Job"), shipped_kinds().get("batch/Job")
    assert not errors and ours is not None and shipped is not None
    assert ours.workload_class is WorkloadClass.INTERACTIVE
    assert (ours.roles, ours.suspend, ours.stop) == (shipped.roles, shipped.suspend, shipped.stop)


ENTRY = "kinds:\n  - kind: a.io/B\n    "
MISTAKES = [
    ("kinds: 3", "1:1: must have `kinds:` with a list below it"),
    ("kinds:\n  - batch/Job", "2:5: kinds[0]: must be a mapping, not batch/Job"),
    ("kinds:\n  - {class: inference}", "2:5: kinds[0]: kind is missing (write kind: group/Kind)"),
    ("kinds:\n  - {kind: a/v1/B}", "2:12: kind a/v1/B: kind: is no kind: a/v1/B (write group/Kind"),
    ("kinds:\n  - {kind: batch/Job, klass: x}", "2:23: kind batch/Job: klass: unknown key klass (did you mean class?)"),
    ("kinds:\n  - {kind: batch/Job, class: gpu}", "2:30: kind batch/Job: class: must be one of interactive"),
    ("kinds: [", ": is not YAML"),
    (ENTRY, "2:5: kind a.io/B: roles: are missing"),
    (f"{ENTRY}stop: kill\n    gang: pod", "3:11: kind a.io/B: stop: is no way to stop: kill (write suspend, pods"),
    (f"{ENTRY}stop: suspend\n    gang: pod", "3:11: kind a.io/B: stop: cannot be suspend"),
    (
        f"{ENTRY}roles: [{{name: w, count: x}}]",
        "3:30: kind a.io/B: roles[0].count: is no path: x (a path starts with spec",
    ),
    (f"{ENTRY}roles: [{{name: w, count: {{most: [1]}}}}]", "roles[0].count: is no expression: most (known: least"),
    (f"{ENTRY}roles: [{{count: 1}}]", "3:13: kind a.io/B: roles[0]: has no name"),
    (f"{ENTRY}gang: pod\n    pods: {{index: [x]}}", "pods.index: is no word on a pod: x (write label KEY"),
    (f"{ENTRY}gang: pod\n    gang: pod", "4:5: kind a.io/B: key gang is there twice"),
]


@pytest.mark.parametrize(("text", "told"), MISTAKES)
def test_a_mistake_is_told_with_its_place_and_what_to_do_and_the_rest_is_used(text: str, told: str) -> None:
    kinds, errors = load_text(text)
    assert told in "\n".join(map(str, errors)), "\n".join(map(str, errors))
    assert kinds == shipped_kinds()


def test_several_mistakes_are_told_at_once_and_good_entries_are_taken() -> None:
    kinds, errors = load_text(f"{EXAMPLE}\n  - {{kind: a.io/B}}\n  - {{kind: batch/Job, class: x, stop: y}}")
    assert len(errors) == 3 and kinds.get("acme.io/Sweep") is not None


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    _, [error] = load_kinds(tmp_path / "none.yaml")
    assert "cannot be read" in str(error)
