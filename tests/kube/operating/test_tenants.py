"""Tenants with the roles that are shipped: their own work in their own queues, and nothing of others."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.kube.body.clusters import until
from tests.kube.operating.installed import Installed, ask

APPLIED = "application/merge-patch+json"


def work(name: str, queue: str, scheduler: str, **notes: str) -> dict[str, Any]:
    container = {"name": "main", "image": "none", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    spec = {"schedulerName": scheduler, "restartPolicy": "Never", "containers": [container]}
    meta = {
        "name": name,
        "labels": {"optimus.dev/queue": queue},
        "annotations": {f"optimus.dev/{k}": v for k, v in notes.items()},
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": {"template": {"spec": spec}}}


class Team:
    def __init__(self, stand: Installed, user: str, name: str) -> None:
        self.stand, self.user, self.name = stand, user, name
        self.namespace = f"{stand.namespace}-{name}"
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "team", "namespace": self.namespace},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "optimus-tenant"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
        }
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        stand.apply(yaml.safe_dump_all([space, binding]))
        self.queue = stand.queue(name, gpu={"guarantee": 2}, namespaces=[self.namespace], maxPriority=50)

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, str]:
        form = APPLIED if method == "PATCH" else "application/json"
        return ask(self.stand.plane, self.stand.plane.token(self.user), method, path, body, form)

    def jobs(self) -> str:
        return f"/apis/batch/v1/namespaces/{self.namespace}/jobs"


@pytest.fixture
def teams(stand: Installed) -> Iterator[tuple[Team, Team]]:
    vision, speech = Team(stand, "alice", "vision"), Team(stand, "bob", "speech")
    probe = work("probe", speech.queue, stand.scheduler)
    # a policy takes a moment until the server keeps it
    until(lambda: vision.ask("POST", f"{vision.jobs()}?dryRun=All", probe)[0] == 403, "the policy holds")
    yield vision, speech
    for team in (vision, speech):
        words = stand.plane.kubectl("delete", "namespace", team.namespace, "--wait=false")
        subprocess.run(words, check=False, capture_output=True)
        subprocess.run(stand.plane.kubectl("delete", "queue", team.queue), check=False, capture_output=True)


def test_its_own_queue_and_no_other(teams: tuple[Team, Team]) -> None:
    vision, speech = teams
    scheduler = vision.stand.scheduler
    code, text = vision.ask("POST", vision.jobs(), work("mine", vision.queue, scheduler))
    assert code == 201, text
    code, text = vision.ask("POST", vision.jobs(), work("theirs", speech.queue, scheduler))
    assert code == 403 and f"namespace {vision.namespace} may not use queue {speech.queue}" in text
    pod = {
        "metadata": {"name": "p", "annotations": {"optimus.dev/queue": speech.queue}},
        "spec": work("x", "", "")["spec"]["template"]["spec"],
    }
    code, text = vision.ask("POST", f"/api/v1/namespaces/{vision.namespace}/pods", pod)
    assert code == 403 and "may not use queue" in text, "an annotation counts before a label, on pods, too"
    moved = {"metadata": {"labels": {"optimus.dev/queue": speech.queue}}}
    code, text = vision.ask("PATCH", f"{vision.jobs()}/mine", moved)
    assert code == 403 and "may not use queue" in text, "nor can work be moved there later"


def test_no_priority_above_what_the_queue_allows(teams: tuple[Team, Team]) -> None:
    vision, _ = teams
    scheduler = vision.stand.scheduler
    assert vision.ask("POST", vision.jobs(), work("fair", vision.queue, scheduler, priority="50"))[0] == 201
    code, text = vision.ask("POST", vision.jobs(), work("high", vision.queue, scheduler, priority="51"))
    assert code == 403 and "allows a priority of 50 at most; optimus.dev/priority is 51" in text
    for wild in ("9999999999999999999", "-2147483648", "high", "1e3", "9" * 5_000):
        code, text = vision.ask("POST", vision.jobs(), work("wild", vision.queue, scheduler, priority=wild))
        assert code == 422 and f"must be a whole number between -2147483647 and 2147483647, not {wild[:40]}" in text
    raised = {"metadata": {"annotations": {"optimus.dev/priority": "1000000"}}}
    assert vision.ask("PATCH", f"{vision.jobs()}/fair", raised)[0] == 403
    assert vision.ask("PATCH", f"{vision.jobs()}/fair", {"metadata": {"labels": {"a": "b"}}})[0] == 200


def test_nothing_of_others_is_seen_or_touched(teams: tuple[Team, Team]) -> None:
    vision, speech = teams
    assert speech.ask("POST", speech.jobs(), work("theirs", speech.queue, vision.stand.scheduler))[0] == 201
    assert speech.ask("GET", f"{speech.jobs()}/theirs")[0] == 200
    refused = (
        ("GET", speech.jobs()),
        ("GET", f"{speech.jobs()}/theirs"),
        ("DELETE", f"{speech.jobs()}/theirs"),
        ("POST", speech.jobs(), work("x", vision.queue, "s")),
        ("GET", "/apis/batch/v1/jobs"),
        ("GET", f"/api/v1/namespaces/{speech.namespace}/pods"),
        ("PATCH", f"/apis/optimus.dev/v1alpha1/queues/{vision.queue}", {"spec": {"maxPriority": 1000}}),
        ("PATCH", f"/apis/optimus.dev/v1alpha1/queues/{vision.queue}/status", {"status": {"gpus": "99"}}),
        ("PATCH", f"/api/v1/namespaces/{vision.namespace}", {"metadata": {"labels": {"optimus.dev/queue": "x"}}}),
        ("POST", f"/api/v1/namespaces/{vision.namespace}/pods/x/binding", {"target": {"name": "n"}}),
        ("POST", f"/api/v1/namespaces/{vision.namespace}/pods/x/eviction", {"metadata": {"name": "x"}}),
        ("GET", f"/api/v1/namespaces/{vision.namespace}/secrets"),
    )
    answers = [(method, path, vision.ask(method, path, *body)[0]) for method, path, *body in refused]
    assert [one for one in answers if one[2] != 403] == []


def test_a_tenant_may_do_what_the_command_line_does(teams: tuple[Team, Team]) -> None:
    """Its own namespace is read for the queue that it names, and what has a size is scaled by its own field."""
    vision, _ = teams
    deployments = f"/apis/apps/v1/namespaces/{vision.namespace}/deployments"
    one = {"name": "main", "image": "none"}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [one]}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    asked = (
        ("GET", f"/api/v1/namespaces/{vision.namespace}"),
        ("POST", deployments, web),
        ("GET", f"{deployments}/web/scale"),
        ("PATCH", f"{deployments}/web/scale", {"spec": {"replicas": 1}}),
        ("GET", f"/apis/events.k8s.io/v1/namespaces/{vision.namespace}/events"),
        ("DELETE", f"{deployments}/web"),
    )
    answers = [(method, path, vision.ask(method, path, *body)[0]) for method, path, *body in asked]
    assert [one for one in answers if one[2] not in (200, 201)] == []


def test_labels_of_a_namespace_choose_its_queues(stand: Installed, teams: tuple[Team, Team]) -> None:
    """By the server for whoever writes, and by the brain for what waits already; with names, either is enough."""
    vision, speech = teams
    stand.nodes(1, gpus=1)
    rules = [
        {"key": "unit", "operator": "In", "values": ["research", "labs"]},
        {"key": "left", "operator": "DoesNotExist"},
    ]
    chosen = {"matchLabels": {"tier": "gpu"}, "matchExpressions": rules}
    queue = stand.queue(
        "units", gpu={"guarantee": 1, "limit": 1}, namespaces=[speech.namespace], namespaceSelector=chosen
    )

    def label(team: Team, **labels: str | None) -> None:
        path = f"/api/v1/namespaces/{team.namespace}"
        code, text = ask(stand.plane, stand.plane.token(), "PATCH", path, {"metadata": {"labels": labels}}, APPLIED)
        assert code == 200, text

    def may(team: Team) -> bool:
        probe = work("probe", queue, stand.scheduler)
        code, text = team.ask("POST", f"{team.jobs()}?dryRun=All", probe)
        assert code == 201 or f"namespace {team.namespace} may not use queue {queue}" in text, text
        return code == 201

    until(lambda: not may(vision), "it has no such labels")
    assert may(speech), "it is listed, whatever its labels"
    label(vision, unit="labs", tier="gpu")
    until(lambda: may(vision), "now it has")
    for other in ({"tier": "cpu"}, {"unit": "guests"}, {"left": "yes"}):
        label(vision, **other)
        until(lambda: not may(vision), f"not with {other}")
        label(vision, unit="labs", tier="gpu", left=None)
        until(lambda: may(vision), "and back")

    stand.start("--lease-seconds=6")
    for name in ("first", "second"):
        assert vision.ask("POST", vision.jobs(), work(name, queue, stand.scheduler))[0] == 201
    until(lambda: len(_running(vision)) == 1, "one runs, one waits")
    [waits] = {"first", "second"} - _running(vision)
    label(vision, unit=None)
    until(
        lambda: _why(vision, waits).startswith("NamespaceNotAllowed"), "what waits is told, in the words of the server"
    )
    assert len(_running(vision)) == 1, "what runs goes on"
    label(vision, unit="research")
    until(lambda: not _why(vision, waits).startswith("NamespaceNotAllowed"), "and waits for room again")


def test_where_the_policy_cannot_look_the_brain_does(stand: Installed, teams: tuple[Team, Team]) -> None:
    """The queue of a namespace is a label on it; a priority class is no annotation: neither gets anybody further."""
    vision, speech = teams
    stand.nodes(1, gpus=1)
    label = {"metadata": {"labels": {"optimus.dev/queue": speech.queue}}}
    code, _ = ask(stand.plane, stand.plane.token(), "PATCH", f"/api/v1/namespaces/{vision.namespace}", label, APPLIED)
    assert code == 200
    top = f"{stand.namespace}-top"
    high = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": top},
        "value": 1_000_000,
    }
    stand.apply(yaml.safe_dump(high))
    stand.start("--lease-seconds=6")
    unnamed = work("unnamed", "", stand.scheduler)
    unnamed["metadata"]["labels"] = {}
    assert vision.ask("POST", vision.jobs(), unnamed)[0] == 201
    assert speech.ask("POST", speech.jobs(), work("honest", speech.queue, stand.scheduler, priority="50"))[0] == 201
    until(lambda: _running(speech) == {"honest"}, "who asks for what is allowed runs")
    greedy = work("greedy", speech.queue, stand.scheduler)
    greedy["spec"]["template"]["spec"]["priorityClassName"] = top
    assert speech.ask("POST", speech.jobs(), greedy)[0] == 201
    until(lambda: _why(vision, "unnamed").startswith("NamespaceNotAllowed"), "the brain says no in the same words")
    until(lambda: _why(speech, "greedy") != "", "a class of a million waits behind fifty")
    assert _running(speech) == {"honest"} and _running(vision) == set()
    subprocess.run(
        stand.plane.kubectl("delete", "priorityclass", f"{stand.namespace}-top"), check=True, capture_output=True
    )


def _pods(team: Team) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(team.ask("GET", f"/api/v1/namespaces/{team.namespace}/pods")[1])["items"]
    return found


def _running(team: Team) -> set[str]:
    return {pod["metadata"]["labels"]["job-name"] for pod in _pods(team) if pod["spec"].get("nodeName")}


def _why(team: Team, job: str) -> str:
    for pod in _pods(team):
        if pod["metadata"]["labels"]["job-name"] == job:
            told = [one for one in pod["status"].get("conditions", ()) if one["type"] == "PodScheduled"]
            return str(told[0].get("message", "")) if told else ""
    return ""
