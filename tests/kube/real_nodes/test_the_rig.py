"""Real nodes leave nothing behind, whoever is killed; where there can be none, it is said why."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hack.controlplane.processes import die_with_parent, started_at
from hack.controlplane.real_nodes import RealNodes, machine, packages
from hack.controlplane.real_nodes.node import SOCKET
from tests.kube.body.clusters import until

STARTER = """
import sys, time
from pathlib import Path
from hack.controlplane import ControlPlane
from hack.controlplane.real_nodes import RealNodes

with ControlPlane(Path(sys.argv[1]), real_nodes=True) as plane, RealNodes(plane, count=1) as nodes:
    here = [nodes[0].pid, nodes[0].containerd.pid, nodes[0].kubelet.pid, plane.api_server.pid]
    print(nodes.place.number, *here, flush=True)
    time.sleep(1000)
"""


def test_a_starter_that_is_killed_takes_its_nodes_with_it(containers: None, tmp_path: Path) -> None:
    words = [sys.executable, "-c", STARTER, str(tmp_path)]
    dies = die_with_parent
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, preexec_fn=dies) as starter:  # noqa: PLW1509
        assert starter.stdout is not None
        number, *pids = map(int, starter.stdout.readline().split())
        assert all(started_at(pid) for pid in pids)
        starter.kill()
    until(lambda: not any(started_at(pid) for pid in pids), "the kernel ends what was in the node")
    machine.clear_after(number)
    assert left_of(number) == []


def test_numbers_are_given_once_and_given_back() -> None:
    if os.geteuid() != 0:
        pytest.skip("bridges and cgroups are made by root")
    first, second = machine.take(), machine.take()
    try:
        assert first.number != second.number
        first.make_bridge(2)
        first.make_cgroup("node-0")
        assert left_of(first.number) != []
    finally:
        first.clear()
        first.leave()
        second.leave()
    assert left_of(first.number) == []


def left_of(number: int) -> list[Path]:
    name = f"optimus-rig-{number}"
    places = (Path("/sys/class/net"), Path("/sys/fs/cgroup"), *Path("/sys/fs/cgroup").glob("*"))
    return [place / name for place in places if (place / name).exists()]


def test_two_nodes_have_what_they_need_for_themselves(real_nodes: RealNodes) -> None:
    """Sockets at places that are compiled in, and none of them on the machine."""
    for place in ("/var/lib/kubelet/device-plugins/kubelet.sock", SOCKET):
        found = [node.run("stat", "--format=%d:%i", place).stdout for node in real_nodes]
        assert all(found) and len(set(found)) == 2, f"{place}: {found}"
        assert (
            subprocess.run(["stat", "--format=%d:%i", place], capture_output=True, text=True, check=False).stdout
            not in found
        )


# -- where there can be none ------------------------------------------------------------------------------------------


@pytest.fixture
def asked_again(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Of the answer that this process has kept nothing is used."""
    monkeypatch.setattr(packages, "why_not", packages.why_not.__wrapped__)
    return monkeypatch


def test_without_root_it_says_so(asked_again: pytest.MonkeyPatch) -> None:
    asked_again.setattr(os, "geteuid", lambda: 1000)
    assert packages.why_not().startswith("real nodes need root")


def test_without_packages_it_says_what_to_install(asked_again: pytest.MonkeyPatch) -> None:
    asked_again.setattr(os, "geteuid", lambda: 0)
    asked_again.setattr(packages, "missing", lambda: ["containerd", "runc"])
    assert packages.why_not(install=False) == "real nodes need packages: apt-get install containerd runc"
    asked_again.setattr(shutil, "which", lambda *_, **__: None)
    assert packages.why_not().endswith("install by hand what real nodes need: containerd runc")


def test_where_a_container_does_not_run_its_last_words_are_the_reason(
    asked_again: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    refusing = tmp_path / "program"
    refusing.write_text("#!/bin/sh\necho 'not on my watch' >&2\nexit 1\n")
    refusing.chmod(0o755)
    asked_again.setattr(os, "geteuid", lambda: 0)
    asked_again.setattr(packages, "missing", list)
    asked_again.setattr(packages, "where", lambda _name: str(refusing))
    assert packages.why_not() == "containers do not run here: not on my watch"
