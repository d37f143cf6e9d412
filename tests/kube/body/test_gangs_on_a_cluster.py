"""Gangs on a real API server: together or not at all, with reasons, beside others, and through the death of ours."""

from __future__ import annotations

import json
import signal
import subprocess
import time

from tests.kube.body.clusters import Stand, until


def test_a_gang_starts_together(stand: Stand) -> None:
    stand.nodes(2, gpus=4)
    stand.start()
    stand.gang("train", 8)
    until(lambda: len(stand.bound("train")) == 8, "all eight are bound")
    assert stand.over_committed() == {}
    until(lambda: any(reason == "Scheduled" for _, reason, _ in stand.events()), "an event says so")


def test_not_at_all_and_it_says_why(stand: Stand) -> None:
    stand.nodes(1, gpus=4)
    stand.start()
    stand.gang("large", 6)
    stand.gang("small", 2)
    until(lambda: len(stand.bound("small")) == 2, "the small one is bound")
    until(lambda: "NeverFits" in stand.condition("large-0"), "the large one is told why")
    assert stand.bound("large") == []
    stand.nodes(1, gpus=4, first=1)
    # its pods name the nodes there were; another node for them is another set of pods
    stand.gang("larger", 6)
    until(lambda: len(stand.bound("larger")) == 6, "with another node there is room")
    assert stand.over_committed() == {}


def test_pods_of_others_count(stand: Stand) -> None:
    (node,) = stand.nodes(1, gpus=4)
    stand.gang("theirs", 3, more=f"nodeName: {node}")
    stand.start()
    stand.gang("ours", 2)
    until(lambda: stand.condition("ours-0") != "", "it waits, and is told why")
    assert stand.bound("ours") == []
    for number in range(3):
        subprocess.run(
            stand.plane.kubectl("delete", "pod", f"theirs-{number}", "-n", stand.namespace, "--wait=false"), check=True
        )
    until(lambda: len(stand.bound("ours")) == 2, "once the others have gone")


def test_a_killed_controller_leaves_nothing_half_done(stand: Stand) -> None:
    """Killed at some moment of binding, it is followed by another: the gang is whole, and nothing is given twice."""
    stand.nodes(4, gpus=8)
    for turn, delay_s in enumerate((0.3, 0.8, 1.3)):
        killed = stand.start("--lease-seconds=3")
        stand.gang(f"gang-{turn}", 8)
        time.sleep(delay_s)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        after = stand.start("--lease-seconds=3")
        until(lambda turn=turn: len(stand.bound(f"gang-{turn}")) == 8, f"gang {turn} is whole")  # type: ignore[misc]
        assert stand.over_committed() == {}
        after.terminate()
        after.wait()


def test_a_suspended_job_is_admitted_when_there_is_room(stand: Stand) -> None:
    (node,) = stand.nodes(1, gpus=4)
    stand.start()
    stand.gang("first", 4)
    until(lambda: len(stand.bound("first")) == 4, "the first one runs")
    stand.apply(
        f"""
apiVersion: batch/v1
kind: Job
metadata: {{name: later, namespace: {stand.namespace}, labels: {{optimus.dev/queue: default}}}}
spec:
  parallelism: 2
  completions: 2
  suspend: true
  template:
    spec:
      schedulerName: {stand.scheduler}
      restartPolicy: Never
      nodeSelector: {{kubernetes.io/hostname: {node}}}
      containers: [{{name: main, image: none, resources: {{limits: {{nvidia.com/gpu: "2"}}}}}}]
"""
    )
    job = f"/apis/batch/v1/namespaces/{stand.namespace}/jobs/later"
    time.sleep(2)
    assert json.loads(stand.plane.get(job))["spec"]["suspend"] is True
    for number in range(4):
        subprocess.run(
            stand.plane.kubectl("delete", "pod", f"first-{number}", "-n", stand.namespace, "--wait=false"), check=True
        )
    until(lambda: len(stand.bound("later")) == 2, "its pods are made and bound")
    assert json.loads(stand.plane.get(job))["spec"]["suspend"] is False
    assert stand.over_committed() == {}
