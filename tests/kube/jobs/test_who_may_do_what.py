"""Roles that are shipped, each with a token of its own, and what the server keeps of UnifiedJobs whoever asks: queues,
priorities, the number of replicas, and what runs. Nobody gets more than pods of his own would give him."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from hack.controlplane import ControlPlane
from tests.kube.body.clusters import until
from tests.kube.jobs.wrong_jobs import job, pods
from tests.kube.operating.installed import Installed, ask, install

MERGED = "application/merge-patch+json"
APPLIED = "application/apply-patch+yaml"
Answer = tuple[int, str]


class Person:
    """Somebody with a token."""

    def __init__(self, plane: ControlPlane, token: str, namespace: str) -> None:
        self.plane, self.token = plane, token
        self.jobs = f"/apis/optimus.dev/v1alpha1/namespaces/{namespace}/unifiedjobs"

    def ask(self, method: str, path: str, body: Any = None, form: str = MERGED) -> Answer:
        return ask(self.plane, self.token, method, path, body, form if method == "PATCH" else "application/json")

    def create(self, document: dict[str, Any], query: str = "") -> Answer:
        return self.ask("POST", self.jobs + query, document)

    def change(self, name: str, **spec: Any) -> Answer:
        return self.ask("PATCH", f"{self.jobs}/{name}", {"spec": spec})

    def apply(self, document: dict[str, Any]) -> Answer:
        """As `kubectl apply --server-side` does."""
        path = f"{self.jobs}/{document['metadata']['name']}?fieldManager=me"
        return self.ask("PATCH", path, document, APPLIED)


class Lab:
    """A namespace with two queues, one of which is its own, and somebody for each role."""

    def __init__(self, stand: Installed) -> None:
        self.stand, self.namespace = stand, stand.namespace
        self.queue = stand.queue("own", namespaces=[stand.namespace], maxPriority=50, allowedClasses=["unattended"])
        self.foreign = stand.queue("foreign", namespaces=["elsewhere"])
        self.researcher = self._person("researcher")
        self.owner = self._person("queue-owner")
        self.admin = self._person("admin", everywhere=True)
        self.tenant = self._person("tenant")
        self.controller = Person(stand.plane, stand.token, stand.namespace)

    def _person(self, role: str, *, everywhere: bool = False) -> Person:
        kind = "ClusterRoleBinding" if everywhere else "RoleBinding"
        place = {} if everywhere else {"namespace": self.namespace}
        account = {"kind": "ServiceAccount", "name": role, "namespace": self.namespace}
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": f"{self.namespace}-{role}", **place},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": f"optimus-{role}"},
            "subjects": [account],
        }
        meta = {"name": role, "namespace": self.namespace}
        self.stand.apply(
            yaml.safe_dump_all([{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}, binding])
        )
        words = self.stand.plane.kubectl("create", "token", role, "-n", self.namespace)
        token = subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
        return Person(self.stand.plane, token, self.namespace)

    def close(self) -> None:
        for kind, name in (
            ("clusterrolebinding", f"{self.namespace}-admin"),
            ("queue", self.queue),
            ("queue", self.foreign),
            ("namespace", self.namespace),
        ):
            words = self.stand.plane.kubectl("delete", kind, name, "--wait=false")
            subprocess.run(words, check=False, capture_output=True)


@pytest.fixture(scope="module")
def installed(plane: ControlPlane) -> Installed:
    return install(plane)


@pytest.fixture
def lab(installed: Installed, namespace_name: str) -> Iterator[Lab]:
    made = Lab(Installed(installed.plane, namespace_name[:40].strip("-"), installed.token))
    probes = (job("probe", queue=made.foreign), job("probe", replicaSpec={"targetReplicas": 1}))
    # policies take a moment until the server keeps them
    until(lambda: {made.tenant.create(probe, "?dryRun=All")[0] for probe in probes} == {403}, "the policies hold")
    yield made
    made.close()


def test_only_queues_of_the_namespace(lab: Lab) -> None:
    for person in (lab.researcher, lab.tenant):
        code, text = person.create(job("theirs", queue=lab.foreign))
        assert code == 403 and f"namespace {lab.namespace} may not use queue {lab.foreign}" in text
    assert lab.researcher.create(job("mine", queue=lab.queue))[0] == 201
    code, text = lab.researcher.change("mine", queue=lab.foreign)
    assert code == 403 and "may not use queue" in text, "nor can it be moved there later"
    code, text = lab.admin.change("mine", queue=lab.foreign)
    assert code == 403, "whoever asks: it is about the namespace"


def test_no_priority_and_no_class_beyond_what_the_queue_allows(lab: Lab) -> None:
    code, text = lab.researcher.create(job("high", queue=lab.queue, priority=51))
    assert code == 403 and f"queue {lab.queue} allows a priority of 50 at most; spec.priority is 51" in text
    assert lab.researcher.create(job("fair", queue=lab.queue, priority=50))[0] == 201
    assert lab.researcher.change("fair", priority=51)[0] == 403
    assert lab.researcher.change("fair", priority=-1)[0] == 200
    for wanted in ({"jobType": "Interactive"}, {"jobType": "Service"}, {"class": "inference"}):
        code, text = lab.researcher.create(job("session", queue=lab.queue, **wanted))
        word = "interactive" if wanted.get("jobType") == "Interactive" else "inference"
        assert code == 403 and f"queue {lab.queue} does not take {word} work, only unattended" in text


def test_the_number_of_replicas_is_the_schedulers_alone(lab: Lab) -> None:
    numbers = {"minReplicas": 1, "maxReplicas": 4}
    says = "targetReplicas is written by the scheduler alone: leave it as it is, and write desiredReplicas"
    for person in (lab.researcher, lab.tenant):
        code, text = person.create(job("train", queue=lab.queue, replicaSpec={**numbers, "targetReplicas": 4}))
        assert code == 403 and says in text
    document = job("train", queue=lab.queue, replicaSpec=numbers)
    assert lab.researcher.apply(document)[0] == 201
    for person in (lab.researcher, lab.owner, lab.tenant, lab.admin):
        code, text = person.change("train", replicaSpec={"targetReplicas": 4})
        assert code == 403 and says in text
    cluster_admin = Person(lab.stand.plane, lab.stand.plane.token(), lab.namespace)
    assert cluster_admin.change("train", replicaSpec={"targetReplicas": 4})[0] == 403, "whoever it is"

    assert lab.controller.change("train", replicaSpec={"targetReplicas": 2})[0] == 200
    assert lab.researcher.change("train", replicaSpec={"targetReplicas": None})[0] == 403, "nor taken away"
    code, text = lab.researcher.apply(document)
    assert code == 200, text
    kept = json.loads(text)["spec"]["replicaSpec"]
    assert kept["targetReplicas"] == 2, "whoever applies his file again leaves the number alone"
    assert lab.researcher.change("train", suspend=True, replicaSpec={"desiredReplicas": 3})[0] == 200
    assert lab.researcher.ask("PATCH", f"{lab.researcher.jobs}/train/scale", {"spec": {"replicas": 2}})[0] == 200
    assert lab.controller.change("train", replicaSpec={"targetReplicas": None})[0] == 200


def test_kubectl_apply_of_the_same_file_after_the_scheduler_wrote(lab: Lab) -> None:
    document = job("again", queue=lab.queue, replicaSpec={"maxReplicas": 4})
    words = lab.stand.plane.kubectl("apply", "-n", lab.namespace, "-f", "-")

    def apply(given: dict[str, Any]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(words, input=json.dumps(given), text=True, check=False, capture_output=True)

    assert apply(document).returncode == 0
    assert lab.controller.change("again", replicaSpec={"targetReplicas": 4})[0] == 200
    assert apply(document).stdout.strip().endswith("unchanged")
    document["spec"]["replicaSpec"]["desiredReplicas"] = 2
    assert apply(document).stdout.strip().endswith("configured")
    kept = json.loads(lab.researcher.ask("GET", f"{lab.researcher.jobs}/again")[1])["spec"]["replicaSpec"]
    assert kept == {"maxReplicas": 4, "desiredReplicas": 2, "targetReplicas": 4}


def test_pods_stay_with_a_scheduler_of_ours(lab: Lab) -> None:
    code, text = lab.researcher.create(job("other", template=pods(schedulerName="default-scheduler")))
    assert code == 422 and "schedulerName default-scheduler would leave its pods to another scheduler" in text
    assert "leave it out, or write optimus" in text
    for name in ("optimus", "optimus-staging"):
        assert lab.researcher.create(job(name, template=pods(schedulerName=name)))[0] == 201
    # one of another installation has a policy of its own
    assert lab.researcher.change("optimus-staging", replicaSpec={"targetReplicas": 1})[0] == 200
    code, text = lab.researcher.change("optimus-staging", template={"spec": {"schedulerName": None}})
    assert code == 422 and "a job stays with its scheduler" in text, "and cannot bring its number here"


def test_a_researcher_has_jobs_and_no_pods(lab: Lab) -> None:
    me, jobs = lab.researcher, lab.researcher.jobs
    core, queues = f"/api/v1/namespaces/{lab.namespace}", "/apis/optimus.dev/v1alpha1/queues"
    pod = {"metadata": {"name": "p"}, **pods()}
    allowed = (
        ("POST", jobs, job("mine", queue=lab.queue)),
        ("GET", jobs),
        ("GET", f"{jobs}/mine"),
        ("PATCH", f"{jobs}/mine", {"spec": {"suspend": True}}),
        ("PATCH", f"{jobs}/mine", {"spec": {"template": pods(hostNetwork=True)}}),
        ("PATCH", f"{jobs}/mine/scale", {"spec": {"replicas": 1}}),
        ("GET", f"{core}/pods"),
        ("GET", f"/apis/events.k8s.io/v1/namespaces/{lab.namespace}/events"),
        ("GET", core),
        ("DELETE", f"{jobs}/mine"),
    )
    refused = (
        ("POST", f"{core}/pods", pod),
        ("PATCH", f"{jobs}/mine/status", {"status": {"phase": "Succeeded"}}),
        ("GET", "/apis/optimus.dev/v1alpha1/unifiedjobs"),
        ("GET", "/apis/optimus.dev/v1alpha1/namespaces/default/unifiedjobs"),
        ("POST", queues, {"metadata": {"name": "x"}}),
        ("PATCH", f"{queues}/{lab.queue}", {"spec": {"maxPriority": 1000}}),
        ("GET", f"{core}/secrets"),
        ("POST", f"{core}/pods/p/binding", {"target": {"name": "n"}}),
        ("POST", f"{core}/pods/p/exec?command=sh&stdout=true"),
        ("PATCH", core, {"metadata": {"labels": {"optimus.dev/queue": "x"}}}),
    )
    _tried(me, allowed, (200, 201))
    _tried(me, refused, (403,))
    assert me.ask("GET", f"{core}/pods/p/log")[0] == 404, "logs of pods that are there"


def test_a_queue_owner_steers_what_is_there_and_runs_nothing(lab: Lab) -> None:
    assert lab.researcher.create(job("theirs", queue=lab.queue, checkpoint={"signal": "SIGUSR1"}))[0] == 201
    me, jobs = lab.owner, lab.owner.jobs
    core = f"/api/v1/namespaces/{lab.namespace}"
    _tried(me, _steering(jobs), (200,))
    refused = (
        ("POST", jobs, job("mine", queue=lab.queue)),
        ("POST", f"{core}/pods", {"metadata": {"name": "p"}, **pods()}),
        ("GET", f"{core}/pods/p/log"),
        ("GET", f"{core}/secrets"),
        ("PATCH", f"{jobs}/theirs/status", {"status": {"phase": "Succeeded"}}),
        ("PATCH", f"/apis/optimus.dev/v1alpha1/queues/{lab.queue}", {"spec": {"maxPriority": 1000}}),
        ("GET", "/apis/optimus.dev/v1alpha1/unifiedjobs"),
    )
    _tried(me, refused, (403,))
    _cannot_change_what_runs(me)
    assert me.ask("DELETE", f"{jobs}/theirs")[0] == 200


def test_an_admin_has_queues_pools_and_all_jobs_but_runs_nothing(lab: Lab) -> None:
    assert lab.researcher.create(job("theirs", queue=lab.queue, checkpoint={"signal": "SIGUSR1"}))[0] == 201
    me, jobs = lab.admin, lab.admin.jobs
    ours = "/apis/optimus.dev/v1alpha1"
    name = f"{lab.namespace}-made"
    made = {"apiVersion": "optimus.dev/v1alpha1", "metadata": {"name": name}, "spec": {}}
    allowed = (
        ("POST", f"{ours}/queues", {**made, "kind": "Queue"}),
        ("PATCH", f"{ours}/queues/{lab.queue}", {"spec": {"maxPriority": 60}}),
        ("DELETE", f"{ours}/queues/{name}"),
        ("POST", f"{ours}/nodepools", {**made, "kind": "NodePool"}),
        ("DELETE", f"{ours}/nodepools/{name}"),
        ("GET", f"{ours}/unifiedjobs"),
        *_steering(jobs),
    )
    _tried(me, allowed, (200, 201))
    refused = (
        ("POST", jobs, job("mine", queue=lab.queue)),
        ("POST", f"{ours}/namespaces/kube-system/unifiedjobs", job("mine")),
        ("POST", f"/api/v1/namespaces/{lab.namespace}/pods", {"metadata": {"name": "p"}, **pods()}),
        ("PATCH", f"{jobs}/theirs/status", {"status": {"phase": "Succeeded"}}),
        ("PATCH", f"{ours}/queues/{lab.queue}/status", {"status": {"gpus": "99"}}),
        ("GET", "/api/v1/secrets"),
    )
    _tried(me, refused, (403,))
    _cannot_change_what_runs(me)
    assert me.ask("DELETE", f"{jobs}/theirs")[0] == 200


def _steering(jobs: str) -> tuple[tuple[Any, ...], ...]:
    return (
        ("GET", jobs),
        ("PATCH", f"{jobs}/theirs", {"spec": {"suspend": True}}),
        ("PATCH", f"{jobs}/theirs", {"spec": {"priority": 10}}),
        ("PATCH", f"{jobs}/theirs/scale", {"spec": {"replicas": 1}}),
    )


def _cannot_change_what_runs(me: Person) -> None:
    says = "whoever may not create UnifiedJobs here may stop, order and resize them, but not change what they run"
    changes: tuple[dict[str, Any], ...] = (
        {"template": {"spec": {"serviceAccountName": "powerful"}}},
        {"template": {"spec": {"containers": [{"name": "main", "image": "mine"}]}}},
        {"checkpoint": {"signal": None, "command": ["sh", "-c", "steal"]}},
        {"checkpoint": None},
    )
    for change in changes:
        code, text = me.change("theirs", **change)
        assert code == 403 and says in text, (change, text)


def _tried(me: Person, asked: tuple[tuple[Any, ...], ...], wanted: tuple[int, ...]) -> None:
    answers = [(method, path, *me.ask(method, path, *body)) for method, path, *body in asked]
    assert [one for one in answers if one[2] not in wanted] == []


def test_pods_of_the_controller_are_judged_like_those_of_anybody(lab: Lab) -> None:
    """Quotas and Pod Security are of the namespace: who makes the pod does not matter."""
    stand, core = lab.stand, f"/api/v1/namespaces/{lab.namespace}"
    meta = {"name": "none", "namespace": lab.namespace}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": {"pods": "0"}}}
    stand.apply(yaml.safe_dump(quota))
    pod = {"metadata": {"name": "p"}, **pods()}
    until(lambda: "exceeded quota" in lab.controller.ask("POST", f"{core}/pods?dryRun=All", pod)[1], "the quota holds")
    level = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    assert ask(stand.plane, stand.plane.token(), "PATCH", core, level, MERGED)[0] == 200
    root = {"name": "main", "image": "x", "securityContext": {"runAsUser": 0}}
    for extra in ({"hostNetwork": True}, {"hostPID": True}, {"containers": [root]}):
        code, text = lab.controller.ask("POST", f"{core}/pods", {"metadata": {"name": "p"}, **pods(**extra)})
        assert code == 403 and "violates PodSecurity" in text
