"""UnifiedJobs by the command line, on a real cluster: the same words as on one machine."""

from __future__ import annotations

import json

from tests.kube.body.clusters import until
from tests.kube.cli.conftest import Town

SHORT = """
kind: UnifiedJob
metadata: {{name: short}}
spec:
  queue: {queue}
  image: python:3.12
  command: python train.py --lr 0.1
  env: {{DATA: /data}}
  gpu: {{count: 1, models: [A100, {{H100: 1.5x}}]}}
  replicas: {{min: 1, max: 4, sizes: powersOfTwo}}
  checkpoint: {{grace: 30s}}
  suspend: true
"""


def test_the_life_of_a_job(town: Town) -> None:
    said = town.cli(
        "run",
        "-d",
        "--name",
        "train",
        "--image",
        "none",
        "--queue",
        town.queue,
        "--replicas",
        "2",
        "--",
        "python",
        "x.py",
    )
    assert said.code == 0, said.err
    assert said.out.startswith(f"job {town.namespace}/unifiedjob/train submitted")
    view = town.reaches("train", "Running")
    assert view["jobType"] == "Job" and view["command"] == ["python", "x.py"]
    assert (view["attempt"], view["failures"], view["preemptions"]) == (1, 0, 0)
    assert [one["role"] for one in view["replicas"]] == ["worker", "worker"]
    assert "suspended (Running before)" in town.cli("suspend", "train").out
    assert town.reaches("train", "Suspended")["suspended"]
    assert "suspended already" in town.cli("suspend", "train").out
    assert "resumed" in town.cli("resume", "train").out
    view = town.reaches("train", "Running")
    assert (view["attempt"], view["preemptions"]) == (2, 0)
    described = town.cli("describe", "train").out
    assert "Running" in described and "attempt" in described
    assert "cancelled" in town.cli("cancel", "train").out
    until(lambda: "train" not in town.cli("get", "jobs").out, "it is gone")
    until(lambda: not town.pods(), "and nothing of it is left")


def test_an_elastic_one_is_scaled_by_its_owner(town: Town) -> None:
    words = ("--image", "none", "--queue", town.queue, "--replicas", "1-4", "--", "sleep", "60")
    assert town.cli("run", "-d", "--name", "elastic", *words).code == 0
    until(lambda: town.view("elastic")["runningReplicas"] == 4, "it takes what is free")
    assert "2 replicas from now on" in town.cli("scale", "elastic", "--replicas", "2").out
    until(lambda: town.view("elastic")["runningReplicas"] == 2, "it is smaller")
    assert town.view("elastic")["attempt"] == 1
    town.cli("cancel", "elastic")
    until(lambda: not town.pods(), "nothing of it is left")


def test_the_short_words_of_one_machine_are_kept_as_the_cluster_has_them(town: Town) -> None:
    said = town.cli("submit", "-", stdin=SHORT.format(queue=town.queue))
    assert said.code == 0, said.err
    path = f"/apis/optimus.dev/v1alpha1/namespaces/{town.namespace}/unifiedjobs/short"
    spec = json.loads(town.plane.get(path))["spec"]
    assert spec["replicaSpec"] == {
        "minReplicas": 1,
        "maxReplicas": 4,
        "sizes": [1, 2, 4],
        "gpu": {"count": 1, "models": ["A100", "H100"], "speeds": {"H100": 1.5}},
    }
    (main,) = spec["template"]["spec"]["containers"]
    assert main["command"] == ["python", "train.py", "--lr", "0.1"] and main["image"] == "python:3.12"
    assert main["env"] == [{"name": "DATA", "value": "/data"}]
    assert spec["checkpoint"] == {"signal": "SIGTERM", "graceSeconds": 30}
    town.reaches("short", "Suspended")
    town.cli("cancel", "short")


def test_what_is_wrong_is_said_before_anything_is_done(town: Town) -> None:
    no_image = SHORT.format(queue=town.queue).replace("  image: python:3.12\n", "")
    said = town.cli("submit", "-", stdin=no_image)
    assert said.code == 1 and "write image: python:3.12 beside command" in said.err
    said = town.cli("submit", "-", stdin=SHORT.format(queue=town.queue).replace("min: 1", "min: 3"))
    assert said.code == 1 and "power of two" in said.err
    said = town.cli("run", "--queue", town.queue, "--", "true")
    assert said.code != 0 and "--image" in said.err


def test_explain_and_the_status_tell_the_same(town: Town) -> None:
    words = ("--image", "none", "--queue", town.queue, "--replicas", "7", "--", "true")
    assert town.cli("run", "-d", "--name", "wide", *words).code == 0
    path = f"/apis/optimus.dev/v1alpha1/namespaces/{town.namespace}/unifiedjobs/wide"
    until(
        lambda: json.loads(town.plane.get(path)).get("status", {}).get("reason") == "AboveLimit", "its status says why"
    )
    status = json.loads(town.plane.get(path))["status"]
    assert status["phase"] == "Pending"
    view = town.view("wide")
    assert view["reason"] == {"code": status["reason"], "text": status["message"]}
    assert status["message"] in town.cli("explain", "wide").out.replace("\n", " ")
    until(lambda: any(one[:2] == ("wide", "AboveLimit") for one in town.events()), "and an event")
    town.cli("cancel", "wide")
