"""Suspended Jobs whose templates name classes of a real server: no pod of theirs has a number yet."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

import pytest

from hack.controlplane import ControlPlane
from tests.kube.body.clusters import Stand, until
from tests.kube.body.test_two_teams import suspended

JOB = """
apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
  namespace: {namespace}
  labels: {{optimus.dev/queue: {queue}}}
  annotations: {{optimus.dev/min-members: "2"}}
spec:
  parallelism: 2
  completions: 2
  suspend: true
  template:
    metadata: {{annotations: {notes}}}
    spec:
      schedulerName: {scheduler}
      priorityClassName: {named}
      restartPolicy: Never
      containers: [{{name: main, image: none, resources: {{limits: {{nvidia.com/gpu: "1"}}}}}}]
"""
CLASS = """
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {{name: {name}}}
value: {value}
"""


class Ranked(Stand):
    """With a queue and classes of its own, and a node that one Job fills."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        super().__init__(plane, namespace)
        self.queue = f"{namespace}-queue"
        self.serve_queues()
        spec = {"gpu": {"limit": "unlimited"}, "namespaces": [namespace]}
        until(lambda: self.make_queue(self.queue, spec), "its queue is there")
        self.nodes(1, gpus=2)

    def rank(self, name: str, value: int) -> None:
        self.apply(CLASS.format(name=f"{self.namespace}-{name}", value=value))

    def job(self, name: str, named: str, notes: str = "{}") -> None:
        words = {"name": name, "namespace": self.namespace, "queue": self.queue, "scheduler": self.scheduler}
        self.apply(JOB.format(**words, named=f"{self.namespace}-{named}", notes=notes))

    def runs(self, name: str) -> bool:
        return len(self.bound(name)) == 2

    def clear(self) -> None:
        self.stop()
        found = json.loads(self.plane.get("/apis/scheduling.k8s.io/v1/priorityclasses"))["items"]
        mine = [one["metadata"]["name"] for one in found if one["metadata"]["name"].startswith(self.namespace)]
        for kind, names in (("priorityclass", mine), ("queue", [self.queue])):
            subprocess.run(self.plane.kubectl("delete", kind, *names), check=False, capture_output=True)


@pytest.fixture
def ranked(plane: ControlPlane, namespace_name: str) -> Iterator[Ranked]:
    made = Ranked(plane, namespace_name[:40].strip("-"))
    yield made
    made.clear()


def test_in_the_order_of_their_classes_and_again_after_a_preemption(ranked: Ranked) -> None:
    for name, value in (("low", 10), ("middle", 500), ("high", 1000)):
        ranked.rank(name, value)
    ranked.job("first", "low", '{optimus.dev/seconds: "1"}')
    ranked.job("second", "middle")
    ranked.start()
    until(lambda: ranked.runs("second"), "the younger one is more important")
    assert suspended(ranked, "first")
    ranked.job("third", "high", '{optimus.dev/seconds: "2"}')
    until(lambda: ranked.runs("third"), "and gives way to one that is more important still")
    assert suspended(ranked, "second") and suspended(ranked, "first")
    until(lambda: ranked.runs("second"), "it is before the oldest again, as it was")
    assert suspended(ranked, "first")
    told = [note for name, reason, note in ranked.events() if name == "second" and reason == "Preempted"]
    assert told and "of higher priority 1000 in the same queue" in told[0]


def test_a_class_that_is_not_there_is_waited_for(ranked: Ranked) -> None:
    ranked.start()
    ranked.job("early", "late")
    missing = f"there is no PriorityClass {ranked.namespace}-late, so the server refuses its pods"
    until(lambda: any(name == "early" and missing in note for name, _, note in ranked.events()), "it is told why")
    assert suspended(ranked, "early")
    ranked.rank("late", 10)
    until(lambda: ranked.runs("early"), "the class is there")
