"""The rig: a real server, fake nodes that say so, users whose rights are real, faults that can be injected."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from urllib.error import HTTPError

import pytest

from hack.controlplane import ControlPlane
from hack.controlplane.processes import free_ports, started_at

PATIENCE_S = 60.0
NODE = """
apiVersion: v1
kind: Node
metadata: {{name: {name}, annotations: {{kwok.x-k8s.io/node: fake}}}}
status: {{allocatable: {{cpu: "32", memory: 128Gi, pods: "110", nvidia.com/gpu: "8"}}}}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: default, annotations: {annotations}}}
spec: {{nodeName: {node}, containers: [{{name: main, image: none}}]}}
"""


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def apply(plane: ControlPlane, text: str) -> None:
    subprocess.run(plane.kubectl("apply", "-f", "-"), input=text, text=True, check=True, capture_output=True)


def phase(plane: ControlPlane, pod: str) -> str:
    try:
        return str(json.loads(plane.get(f"/api/v1/namespaces/default/pods/{pod}"))["status"]["phase"])
    except HTTPError as error:
        return "gone" if error.code == 404 else "?"


def test_the_server_says_its_version(plane: ControlPlane) -> None:
    assert json.loads(plane.get("/version"))["gitVersion"] == "v1.36.3"


def test_rights_are_real(plane: ControlPlane) -> None:
    with pytest.raises(HTTPError, match="403"):
        plane.get("/api/v1/nodes", user="alice")


def test_pods_of_fake_nodes_run_end_fail_and_take_their_time_to_leave(plane: ControlPlane) -> None:
    apply(plane, NODE.format(name="rig-node"))
    for name, notes in {
        "rig-runs": '{optimus.dev/stop-seconds: "1"}',
        "rig-ends": '{optimus.dev/seconds: "1"}',
        "rig-fails": '{optimus.dev/seconds: "1", optimus.dev/exit-code: "3"}',
    }.items():
        apply(plane, POD.format(name=name, annotations=notes, node="rig-node"))
    until(lambda: phase(plane, "rig-runs") == "Running")
    until(lambda: phase(plane, "rig-ends") == "Succeeded")
    until(lambda: phase(plane, "rig-fails") == "Failed")
    subprocess.run(plane.kubectl("delete", "pod", "rig-runs", "--wait=false"), check=True, capture_output=True)
    assert phase(plane, "rig-runs") == "Running", "it takes a second to leave"
    until(lambda: phase(plane, "rig-runs") == "gone")
    gone = plane.kubectl("delete", "node/rig-node", "pod/rig-ends", "pod/rig-fails", "--wait=false")
    subprocess.run(gone, check=True, capture_output=True)  # other stories count what there is


def test_what_was_written_outlives_the_server_and_a_stopped_plane_leaves_nothing(tmp_path: Path) -> None:
    with ControlPlane(tmp_path) as plane:
        apply(plane, NODE.format(name="kept"))
        plane.api_server.kill()
        plane.start_again(plane.api_server)
        assert json.loads(plane.get("/api/v1/nodes/kept"))["metadata"]["name"] == "kept"
        pids = [plane.etcd.pid, plane.api_server.pid]
    assert [started_at(pid) for pid in pids] == [0, 0]


def test_free_ports_are_different() -> None:
    assert len(set(free_ports(20))) == 20
