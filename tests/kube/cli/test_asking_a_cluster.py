"""Asking a cluster: what is shown is what the controller decided, computed by whoever asks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec

from optimus.drivers.local.views import JobView, NodeView, PoolView, QueueView
from tests.kube.body.clusters import until
from tests.kube.cli.conftest import Town


def test_reasons_are_those_that_the_controller_wrote(town: Town) -> None:
    town.job("first", 4)
    town.reaches("first", "Running")
    town.job("over-limit", 4)
    town.job("too-large", 1, gpus=16, queue=town.other)
    town.job("nowhere", 1, queue="nowhere")
    town.job("no-room", 6, queue=town.other)
    town.job("no-pods", 4, suspend=True)  # it waits in the queue without pods: only events tell of it
    names = ("over-limit", "too-large", "nowhere", "no-room", "no-pods")
    for name in names:
        until(lambda name=name: town.told(name), f"the controller says why {name} waits")  # type: ignore[misc]
    shown = {row["name"]: row["reason"] for row in town.cli("get", "jobs", "-o", "json").rows()}
    assert {name: shown[f"job/{name}"] for name in names} == {name: town.told(name) for name in names}
    assert shown["job/over-limit"]["code"] == "OverLimit"
    assert len({reason["code"] for name, reason in shown.items() if reason}) > 2, "several causes are compared"
    assert town.cli("get", "jobs").out.splitlines()[1].split()[:3] == [
        f"{town.namespace}/job/first",
        town.queue,
        "Running",
    ]


def test_explained_by_the_brain_on_a_copy(town: Town) -> None:
    town.job("first", 4)
    town.reaches("first", "Running")
    town.job("second", 4)
    until(lambda: town.told("second"), "the controller says why it waits")
    told = json.loads(town.cli("explain", "second", "--samples", "2", "-o", "json").out)
    assert told["job"] == f"{town.namespace}/job/second" and told["state"] == "waiting"
    assert {"code": told["why"]["code"], "text": told["why"]["text"]} == town.told("second")
    assert told["ahead"] == []
    assert told["start"]["samples"] == 2, "it was played into the future"
    assert any("limit of 8" in one["words"] for one in told["suggestions"]), told["suggestions"]
    words = ("what-if", "--queue", f"{town.queue}.limit=8", "--samples", "2", "--horizon", "12h", "-o", "json")
    effect = json.loads(town.cli(*words).out)["effect"]
    assert [one["workload"] for one in effect["moved"]] == [f"{town.namespace}/job/second"]
    assert (effect["gain"], effect["pay"]) == (1, 0), "it would start at once, and nobody pays for it"
    assert town.view("second")["phase"] == "Pending", "nothing was done, only tried"


def test_records_have_the_form_that_all_tables_read(town: Town) -> None:
    town.job("first", 2)
    town.reaches("first", "Running")
    for kind, record in (("jobs", JobView), ("queues", QueueView), ("nodes", NodeView), ("pools", PoolView)):
        for row in town.cli("get", kind, "-o", "json").rows():
            assert set(row) == {field.encode_name for field in msgspec.structs.fields(record)}, kind
            msgspec.convert(row, record)
    nodes = {row["name"]: row for row in town.cli("get", "nodes", "-o", "json").rows()}
    assert sum(nodes[f"{town.namespace}-0"]["usedMilli"]) == 2000
    queue = next(row for row in town.cli("get", "queues", "-o", "json").rows() if row["name"] == town.queue)
    assert (queue["running"], queue["waiting"]) == (1, 0)
    assert [share["allocatedMilli"] for share in queue["gpu"]] == [2000]
    described = town.cli("describe", "first").out
    assert "python train.py" in described and "Scheduled" in described, described


def test_one_name_two_kinds(town: Town) -> None:
    town.job("twin", 1)
    town.apply(
        f"apiVersion: v1\nkind: Pod\nmetadata:\n  name: twin\n  namespace: {town.namespace}\n"
        f"  labels: {{optimus.dev/queue: {town.queue}}}\n"
        f"spec: {{schedulerName: {town.scheduler}, containers: [{{name: main, image: none}}]}}\n"
    )
    town.reaches("job/twin", "Running")
    town.reaches("pod/twin", "Running")
    both = town.cli("explain", "twin")
    assert both.code == 1
    assert f"{town.namespace}/twin may be" in both.err and f"{town.namespace}/pod/twin" in both.err
    assert town.cli("explain", f"{town.namespace}/pod/twin").code == 0
    assert town.cli("cancel", "pod/twin").out == f"{town.namespace}/pod/twin: cancelled (Running before)\n"
    until(lambda: "pod/twin" not in town.cli("get", "jobs").out, "it is gone")
    assert town.cli("describe", "nothing").err.startswith(f"Error: there is no job {town.namespace}/nothing")


def test_kubectl_optimus(town: Town) -> None:
    town.job("first", 2)
    town.reaches("first", "Running")
    kubectl, _ = town.plane.kubectl()[:2]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [kubectl, "optimus", "-n", town.namespace, "get", "jobs", f"--kubeconfig={town.plane.kubeconfig()}"],
        env={**os.environ, "PATH": path, "OPTIMUS_CONTROLLER_SCHEDULER_NAME": town.scheduler},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1].split()[:3] == [f"{town.namespace}/job/first", town.queue, "Running"]


def test_who_may_nothing_is_told_what_is_missing(town: Town) -> None:
    said = town.cli("get", "nodes", user="nobody")
    assert said.code == 1 and said.out == ""
    assert "nodes cannot be shown: no right to list nodepools.optimus.dev, nodes, pods, queues.optimus.dev" in said.err
