"""A node without any kubelet, on a real server with the real Job controller: whatever is deleted there stays.

That the node is silent, and that its pods are to go, is said by hand, as the controllers for nodes would say it after
minutes.
"""

from __future__ import annotations

import json
import subprocess
from typing import Any

import yaml

from tests.kube.body.clusters import Stand, until


def node(stand: Stand, name: str, *, kubelet: bool = True) -> None:
    meta: dict[str, Any] = {"name": name, "labels": {"stand": stand.namespace, "kubernetes.io/hostname": name}}
    meta["annotations"] = {"kwok.x-k8s.io/node": "fake"} if kubelet else {}
    status = {"allocatable": {"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "2"}}
    stand.apply(yaml.safe_dump({"apiVersion": "v1", "kind": "Node", "metadata": meta}))
    patch = stand.plane.kubectl("patch", "node", name, "--subresource=status", "--type=merge")
    subprocess.run([*patch, f"-p={json.dumps({'status': status})}"], check=True, capture_output=True)


def say(stand: Stand, name: str, ready: str) -> None:
    said = [{"type": "Ready", "status": ready, "reason": "Story", "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    patch = stand.plane.kubectl("patch", "node", name, "--subresource=status", "--type=merge")
    subprocess.run([*patch, f"-p={json.dumps({'status': {'conditions': said}})}"], check=True, capture_output=True)


def alive(stand: Stand) -> dict[str, str]:
    """By index: the node of the pod that is there and has not been told to leave."""
    key = "batch.kubernetes.io/job-completion-index"
    pods = [one for one in stand.bound() if not one["metadata"].get("deletionTimestamp")]
    return {one["metadata"]["annotations"][key]: one["spec"]["nodeName"] for one in pods}


def test_a_gang_on_two_nodes_goes_on_when_one_has_lost_its_power(stand: Stand) -> None:
    lives, dies, spare = (f"{stand.namespace}-{word}" for word in ("lives", "dies", "spare"))
    node(stand, lives)
    node(stand, dies, kubelet=False)
    say(stand, dies, "True")
    stand.start()
    stand.apply(
        f"""
apiVersion: batch/v1
kind: Job
metadata: {{name: train, namespace: {stand.namespace}, annotations: {{optimus.dev/min-members: "4"}}}}
spec:
  parallelism: 4
  completions: 4
  completionMode: Indexed
  template:
    spec:
      schedulerName: {stand.scheduler}
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      nodeSelector: {{stand: {stand.namespace}}}
      containers: [{{name: main, image: none, resources: {{limits: {{nvidia.com/gpu: "1"}}}}}}]
"""
    )
    until(lambda: len(alive(stand)) == 4, "it runs on both nodes")
    lost = {index for index, where in alive(stand).items() if where == dies}
    assert len(lost) == 2
    node(stand, spare)
    say(stand, dies, "Unknown")
    on_it = stand.plane.kubectl("delete", "pod", "-n", stand.namespace, f"--field-selector=spec.nodeName={dies}")
    subprocess.run([*on_it, "--wait=false"], check=True, capture_output=True)
    until(lambda: {alive(stand).get(index) for index in lost} == {spare}, "their places are taken on another node")
    assert set(alive(stand).values()) == {lives, spare} and len(alive(stand)) == 4
    there = [one for one in stand.bound() if one["spec"]["nodeName"] == dies]
    assert len(there) == 2, "nobody has deleted them by force"
