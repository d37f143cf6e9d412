"""A kind of work that nobody here has heard of: one file of YAML, and it is scheduled like any other.

An installation of its own, made from the file: its role, that of its tenants and its policy know the kind. The operator
of the kind is played by the story: it makes pods while a study is not paused, and takes them away while it is.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from optimus.drivers.kube.grouping import load_kinds
from optimus.drivers.kube.installing import Installation, objects
from tests.calling import called
from tests.kube.body.clusters import until
from tests.kube.body.test_two_teams import job
from tests.kube.operating.installed import QUIET, Installed, ask, audited

KINDS = """
kinds:
  - kind: acme.io/Study
    plural: studies
    about: trials that start together
    roles: [{name: trial, count: spec.trials, template: spec.template}]
    pods: {index: [label acme.io/trial]}
    suspend: spec.paused
    stop: suspend
    over: {path: status.phase, values: [Done]}
"""
CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: studies.acme.io}
spec:
  group: acme.io
  names: {kind: Study, plural: studies}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
NAME, HOME = "own-kinds", "own-kinds-system"
ACCOUNT = f"system:serviceaccount:{HOME}:{NAME}"
TRIALS = 4


class Lab:
    """Studies, and whoever makes their pods."""

    def __init__(self, stand: Installed, kinds: Path) -> None:
        self.stand, self.kinds = stand, kinds
        self.path = f"/apis/acme.io/v1/namespaces/{stand.namespace}/studies"

    def study(self, name: str, queue: str) -> dict[str, Any]:
        container = {"name": "main", "image": "none", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
        template = {"spec": {"schedulerName": self.stand.scheduler, "containers": [container]}}
        meta = {"name": name, "labels": {"optimus.dev/queue": queue}}
        spec = {"paused": True, "trials": TRIALS, "template": template}
        return {"apiVersion": "acme.io/v1", "kind": "Study", "metadata": meta, "spec": spec}

    def make(self, study: dict[str, Any]) -> tuple[int, str]:
        """As alice, who is a tenant."""
        return ask(self.stand.plane, self.stand.plane.token("alice"), "POST", self.path, study)

    def paused(self, name: str) -> bool:
        return bool(self.stand.thing(f"{self.path}/{name}")["spec"]["paused"])

    def play(self, name: str) -> None:
        """What its operator would do."""
        study = self.stand.thing(f"{self.path}/{name}")
        names = [f"{name}-{number}" for number in range(TRIALS)]
        there = {pod["metadata"]["name"] for pod in self.stand.pods()} & set(names)
        if study["spec"]["paused"]:
            gone = ("delete", "pod", "-n", self.stand.namespace, "--now", "--ignore-not-found", *there)
            if there:
                subprocess.run(self.stand.plane.kubectl(*gone), check=True, capture_output=True)
        elif not there:
            self.stand.apply(yaml.safe_dump_all([self._pod(study, number) for number in range(TRIALS)]))

    def _pod(self, study: dict[str, Any], number: int) -> dict[str, Any]:
        meta = study["metadata"]
        owner = {"apiVersion": "acme.io/v1", "kind": "Study", "name": meta["name"], "uid": meta["uid"]}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{meta['name']}-{number}",
                "namespace": meta["namespace"],
                "labels": {"acme.io/trial": str(number)},
                "ownerReferences": [{**owner, "controller": True}],
            },
            "spec": study["spec"]["template"]["spec"],
        }

    def optimus(self, *words: str) -> str:
        """The command line of somebody who has the file, too."""
        environment = {
            **os.environ,
            "OPTIMUS_TARGET": "kube:",
            "KUBECONFIG": str(self.stand.plane.kubeconfig()),
            "OPTIMUS_NAMESPACE": self.stand.namespace,
            "OPTIMUS_CONTROLLER_KINDS": str(self.kinds),
            "OPTIMUS_CONTROLLER_SCHEDULER_NAME": self.stand.scheduler,
        }
        done = called(words, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def lab(stand: Installed, tmp_path: Path) -> Iterator[Lab]:
    plane = stand.plane
    kinds = tmp_path / "kinds"
    kinds.mkdir()
    (kinds / "ours.yaml").write_text(KINDS)
    table, errors = load_kinds(kinds)
    assert not errors
    asked = Installation(name=NAME, namespace=HOME, crds=False, kinds=table, kinds_files={"ours.yaml": KINDS})
    made = yaml.safe_dump_all([one for one in objects(asked) if one["kind"] not in QUIET])
    stand.apply(CRD)
    stand.apply(made)
    words = plane.kubectl("wait", "--for=condition=Established", "crd/studies.acme.io", "--timeout=60s")
    subprocess.run(words, check=True, capture_output=True)
    words = plane.kubectl("create", "rolebinding", "team", "-n", stand.namespace)
    subprocess.run([*words, f"--clusterrole={NAME}-tenant", "--user=alice"], check=True, capture_output=True)
    words = plane.kubectl("create", "token", NAME, "-n", HOME, "--duration=1h")
    stand.token = subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
    yield Lab(stand, kinds)
    stand.stop()
    for text in (made, CRD):
        words = plane.kubectl("delete", "--wait=false", "--ignore-not-found", "-f", "-")
        subprocess.run(words, input=text, text=True, check=False, capture_output=True)


def test_it_is_queued_started_bound_stopped_and_started_again_as_its_entry_says(stand: Installed, lab: Lab) -> None:
    owner = stand.queue("own", gpu={"guarantee": TRIALS}, namespaces=[stand.namespace])
    borrower = stand.queue("lend", gpu={"guarantee": 0}, namespaces=[stand.namespace])
    others = stand.queue("others", namespaces=["somewhere-else"])
    stand.nodes(1, gpus=TRIALS)
    until(lambda: lab.make(lab.study("theirs", others))[0] == 403, "the policy knows the kind")
    code, text = lab.make(lab.study("search", borrower))
    assert code == 201, text

    stand.start(f"--kinds={lab.kinds}", f"--lease-namespace={HOME}", "--lease-seconds=6")
    until(lambda: not lab.paused("search"), "there is room: it is started by its own field")
    lab.play("search")
    until(lambda: len(stand.bound("search")) == TRIALS, "and all its trials are bound")
    assert "study/search" in lab.optimus("get", "jobs") and "Running" in lab.optimus("get", "jobs")

    job(stand, "mine", owner, TRIALS, '{optimus.dev/seconds: "3"}')
    until(lambda: lab.paused("search"), "what was lent is taken back, by the same field")
    lab.play("search")
    until(lambda: len(stand.bound("mine")) == TRIALS, "its owner has it")
    until(lambda: not lab.paused("search"), "and when that is over, it goes on")
    lab.play("search")
    until(lambda: len(stand.bound("search")) == TRIALS, "with all of it")

    lab.optimus("suspend", "study/search")
    assert lab.paused("search")
    lab.play("search")
    until(lambda: not stand.bound("search"), "whoever stops it by hand stops it")

    answered = [one for one in audited(stand.plane, ACCOUNT) if one["userAgent"].startswith("optimus")]
    refused = [(one["verb"], one["objectRef"]) for one in answered if one["responseStatus"]["code"] == 403]
    assert refused == [], "its role has what it needs"
    calls = {one["verb"] for one in answered if one.get("objectRef", {}).get("resource") == "studies"}
    assert {"watch", "patch"} <= calls
    told = subprocess.run(
        stand.plane.kubectl("auth", "can-i", "--list", f"--as={ACCOUNT}"), capture_output=True, text=True, check=True
    ).stdout
    [line] = [line for line in told.splitlines() if "studies.acme.io" in line]
    assert line.split("[")[-1] == "get list watch patch]", "and no more"


def test_a_file_that_cannot_be_used_ends_it_with_all_that_is_wrong(stand: Installed, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("kinds:\n- {kind: a.io/A, stop: kill}\n- {kind: a.io/B, gang: pod, plural: Pro be}\n")
    ended = stand.start(f"--kinds={wrong}")
    assert ended.wait(30) == 2
    assert f"{wrong}:2:" in stand.log() and f"{wrong}:3:" in stand.log() and "Traceback" not in stand.log()
