"""`optimus bench kube` on a real server: it measures, leaves nothing behind, and refuses where it could hurt."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.controlplane import ControlPlane, missing_toolchain
from tests.kube.body.clusters import until

SMALL = ("--context", "rig", "--nodes", "5", "--pods", "37", "--yes")
REAL = '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "real"}}'
READY = '{"status": {"conditions": [{"type": "Ready", "status": "True"}]}}'


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A server of its own, without a node and without Optimus."""
    if why := missing_toolchain():
        pytest.skip(why)
    with ControlPlane(tmp_path_factory.mktemp("bench"), controllers=True) as plane:
        yield plane


def started(plane: ControlPlane, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "optimus", "bench", "kube", *words],
        env={**os.environ, "KUBECONFIG": str(plane.kubeconfig())},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def left(plane: ControlPlane) -> str:
    words = plane.kubectl("get", "nodes,namespaces,pods", "-A", "-o", "name")
    told = subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()
    return " ".join(one for one in told if "bench" in one)


def kubectl(plane: ControlPlane, *words: str, stdin: str = "") -> None:
    subprocess.run(plane.kubectl(*words), input=stdin, text=True, check=True, capture_output=True)


def test_both_rates_and_their_ratio_are_told_and_nothing_is_left(bare: ControlPlane) -> None:
    ran = started(bare, *SMALL, "-o", "json")
    out, err = ran.communicate(timeout=300)
    assert ran.returncode == 0, err
    told = json.loads(out)
    assert (told["nodes"], told["pods"], told["bare"]["bound"], told["optimus"]["bound"]) == (5, 37, 37, 37)
    assert told["ratio"] == round(told["optimus"]["podsPerSecond"] / told["bare"]["podsPerSecond"], 2)
    assert told["optimus"]["firstAfterSeconds"] > 0 and told["machine"]["python"]
    until(lambda: not left(bare), "namespace and nodes are gone")


def test_after_ctrl_c_nothing_is_left(bare: ControlPlane) -> None:
    ran = started(bare, *SMALL)
    assert ran.stderr is not None
    for line in ran.stderr:
        if "binds them" in line:
            break
    ran.send_signal(signal.SIGINT)
    _, err = ran.communicate(timeout=120)
    assert ran.returncode == 130 and "Traceback" not in err, err
    until(lambda: not left(bare), "namespace and nodes are gone")


def test_nodes_of_another_measurement_are_nobodys_to_remove(bare: ControlPlane) -> None:
    kubectl(bare, "apply", "-f", "-", stdin=REAL.replace('"real"', '"theirs", "labels": {"optimus.dev/bench": "x"}'))
    ran = started(bare, *SMALL)
    _, err = ran.communicate(timeout=60)
    kubectl(bare, "delete", "node", "theirs")
    assert ran.returncode == 1 and "1 nodes of another measurement are there" in " ".join(err.split()), err


def test_a_cluster_with_real_nodes_is_refused_before_anything_is_made(bare: ControlPlane) -> None:
    kubectl(bare, "apply", "-f", "-", stdin=REAL)
    kubectl(bare, "patch", "node", "real", "--subresource=status", "-p", READY)
    ran = started(bare, *SMALL)
    _, err = ran.communicate(timeout=60)
    kubectl(bare, "delete", "node", "real")
    assert ran.returncode == 1 and "the cluster has real nodes (real)" in " ".join(err.split()), err
    assert not left(bare)


def test_rights_that_are_missing_are_said(bare: ControlPlane, tmp_path: Path) -> None:
    nobody = tmp_path / "config"
    config = json.loads(Path(bare.kubeconfig()).read_text())
    config["users"][0]["user"] = {"token": "wrong"}
    nobody.write_text(json.dumps(config))
    ran = started(bare, *SMALL, "--kubeconfig", str(nobody))
    _, err = ran.communicate(timeout=60)
    assert ran.returncode == 1 and "Error:" in err and "Traceback" not in err, err
