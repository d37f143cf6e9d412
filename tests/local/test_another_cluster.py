"""The same store with another cluster: what runs goes on where it is, nobody else is put there, and it is said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import msgpack, structs

from optimus.drivers.local.clusters import (
    Known,
    again,
    differences,
    looked_at,
    remembered,
    virtual,
    with_old_numbers,
    with_what_is_left,
)
from optimus.drivers.local.machine import virtual_nodes
from optimus.drivers.local.views import job_view, node_views
from optimus.lives import JobPhase
from optimus.model.nodes import Device, Node
from tests.local.machines import Up, until
from tests.local.test_a_turn_of_the_body import Machine, job


def test_work_on_a_node_that_is_gone_runs_on_and_nobody_else_is_put_there(tmp_path: Path) -> None:
    machine = Machine(tmp_path, nodes=2, gpus=2)
    machine.submit(job("a", gpus=2), job("b", gpus=2))
    machine.runs()
    (gone,) = [one for one in ("a", "b") if machine.body.lives[f"default/{one}"].places[0].node == "node-1"]
    _comes_again_with(machine, virtual_nodes(1, 2))
    machine.submit(job("c", gpus=2))
    assert machine.phase(gone) is JobPhase.RUNNING and machine.phase("c") is JobPhase.PENDING
    why = job_view(machine.body, f"default/{gone}").reason
    assert why is not None and why.code == "LeftBehind"
    assert why.text == "runs on node-1, no longer part of the cluster: it may end there, and nothing new is put there"
    assert [(node.name, node.ready, node.gone) for node in node_views(machine.body)] == [
        ("node-0", True, ()),
        ("node-1", False, (0, 1)),
    ]
    machine.ends(gone)
    assert machine.phase(gone) is JobPhase.SUCCEEDED and machine.phase("c") is JobPhase.PENDING
    assert list(machine.body.nodes) == ["node-0"] and not machine.body.gone, "it goes when it is empty"
    machine.ends("b" if gone == "a" else "a")
    assert machine.phase("c") is JobPhase.STARTING


def test_work_on_gpus_that_are_gone_runs_on_and_they_are_not_given_again(tmp_path: Path) -> None:
    machine = Machine(tmp_path, nodes=1, gpus=4)
    machine.submit(job("a"), job("b"), job("c"), job("d"))
    machine.runs()
    _comes_again_with(machine, virtual_nodes(1, 2))
    on = {name: machine.body.lives[f"default/{name}"].places[0].devices[0] for name in "abcd"}
    late = [name for name in "abcd" if on[name] >= 2]
    (node,) = node_views(machine.body)
    assert node.gone == (2, 3) and node.used_milli == (1000,) * 4
    machine.submit(job("e"), job("f"))
    machine.ends(late[0])
    assert machine.phase("e") is machine.phase("f") is JobPhase.PENDING, "what was freed is gone"
    machine.ends(late[1])
    assert [len(node.devices) for node in machine.body.nodes.values()] == [2]
    machine.ends(next(name for name in "abcd" if on[name] == 0))
    spawned = machine.hands.spawned[-1]
    assert (spawned.command[1], spawned.environment["CUDA_VISIBLE_DEVICES"]) == ("e", "0")


def test_with_the_cluster_as_it_was_everything_is_as_it_was(tmp_path: Path) -> None:
    machine = Machine(tmp_path, nodes=2, gpus=2)
    machine.submit(job("a", gpus=2), job("b", gpus=2))
    machine.runs()
    _comes_again_with(machine, virtual_nodes(1, 2))
    _comes_again_with(machine, virtual_nodes(2, 2))
    assert not machine.body.gone and job_view(machine.body, "default/b").reason is None
    machine.ends("a")
    machine.ends("b")
    machine.submit(job("c", gpus=2), job("d", gpus=2))
    assert machine.phase("c") is machine.phase("d") is JobPhase.STARTING


def _comes_again_with(machine: Machine, nodes: tuple[Node, ...]) -> None:
    known = Known(nodes=machine.body.cluster, left=tuple(machine.body.nodes[name] for name in machine.body.gone))
    with machine.body.store.turn():
        machine.body.store.put_cluster(known)
    machine.nodes = nodes
    machine.dies()
    machine.body.stand_again()
    machine.turn()


def test_a_gpu_keeps_its_number_when_the_one_before_it_falls_out() -> None:
    def node(*uuids: str) -> Node:
        return Node(name="n", devices=tuple(Device(index=i, model="m", uuid=u) for i, u in enumerate(uuids)))

    before = {"n": node("a", "b", "c")}
    (now,) = with_old_numbers([node("a", "c")], before)
    assert [(device.index, device.uuid) for device in now.devices] == [(0, "a"), (2, "c")]
    (now,) = with_old_numbers([node("new", "c", "a")], before)
    assert [(device.index, device.uuid) for device in now.devices] == [(0, "a"), (2, "c"), (3, "new")]
    found, gone = with_what_is_left([now], before, ())
    assert [device.uuid for device in found["n"].devices] == ["a", "b", "c", "new"] and gone == {"n": {1}}
    assert found["n"].foreign.gpu_milli == {1: 1000}, "which nobody gets"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda nodes: nodes, []),
        (lambda nodes: nodes[:2], ["node-2, node-3 are gone"]),
        (lambda nodes: nodes[1:], ["node-0 is gone"]),
        (lambda nodes: (*nodes, structs.replace(nodes[0], name="new")), ["new is new"]),
        (
            lambda nodes: (structs.replace(nodes[0], devices=nodes[0].devices[:1]), *nodes[1:]),
            ["node-0 has 1 GPU instead of 2"],
        ),
        (
            lambda nodes: tuple(structs.replace(node, cpu_milli=1000, labels={}) for node in nodes),
            [
                "node-0, node-1, node-2 and 1 more have 1 core instead of 64",
                "node-0, node-1, node-2 and 1 more have other labels",
            ],
        ),
    ],
)
def test_what_is_another_cluster_is_said_in_words(
    change: Callable[[tuple[Node, ...]], tuple[Node, ...]], told: list[str]
) -> None:
    nodes = virtual_nodes(4, 2)
    assert differences(nodes, change(nodes)) == told


def test_where_nothing_is_named_it_is_the_one_that_the_store_remembers() -> None:
    named = virtual(1, 3)
    assert named.told == "1 virtual node with 3 GPUs"
    known = Known(nodes=named.nodes, told=named.told)
    assert again(known).nodes == named.nodes and again(known).told == "1 virtual node with 3 GPUs, as before"
    assert again(structs.replace(known, looked=True)) == again(None) == looked_at(), "a machine is looked at again"


def test_a_machine_that_comes_up_smaller_says_what_runs_on_what_is_gone(tmp_path: Path) -> None:
    up = Up(tmp_path / "store", "--nodes", "2", "--gpus", "2")
    try:
        for name in ("a", "b"):
            assert up.cli("run", "-d", "--name", name, "--gpus", "2", "--", "sleep", "600").returncode == 0
            up.reaches(name, "Running")
        told = up.stop()
        assert "2 virtual nodes with 2 GPUs each" in told and "2 replicas go on running" in told
        up.options = ("--nodes", "1", "--gpus", "2")
        up.start()
        (gone,) = [name for name in ("a", "b") if up.job(name)["replicas"][0]["node"] == "node-1"]
        assert up.phase("a") == up.phase("b") == "Running"
        assert "LeftBehind: runs on node-1, no longer part of the cluster" in up.cli("describe", gone).stdout
        assert "gone, not empty" in up.cli("get", "nodes").stdout
        told = up.stop()
        assert "the cluster has changed: node-1 is gone" in told
        assert f"{gone} runs on node-1, no longer part of the cluster" in told
        up.options = ("--journal", "64Mi")
        up.start()
        up.cli("cancel", gone)
        until(lambda: [node["name"] for node in up.api.get("/v1/nodes")] == ["node-0"], "node-1 is gone for good")
        told = up.stop()
        assert "1 virtual node with 2 GPUs, as before" in told and "has changed" not in told
    finally:
        up.end()


WITHOUT_A_WORD = ("--keep-jobs", "100")
"""About the cluster."""


def _comes_up_again(up: Up, *options: str) -> str:
    """And is stopped: what it says."""
    told = up.stop()
    up.options = options
    up.start()
    return told


def test_this_machine_as_it_is_comes_back_as_it_is(tmp_path: Path) -> None:
    up = Up(tmp_path / "store", "--real")
    try:
        up.cli("run", "-d", "--name", "a", "--gpus", "0", "--", "sleep", "600")
        up.reaches("a", "Running")
        before = [node["name"] for node in up.api.get("/v1/nodes")]
        _comes_up_again(up, *WITHOUT_A_WORD)
        assert [node["name"] for node in up.api.get("/v1/nodes")] == before
        up.reaches("a", "Running")
        assert up.job("a")["reason"] is None, "it is not left behind"
        told = _comes_up_again(up, *WITHOUT_A_WORD)
        assert "the cluster has changed" not in told and "LeftBehind" not in told
    finally:
        up.end()


def test_the_demo_is_a_visit(tmp_path: Path) -> None:
    up = Up(tmp_path / "store", "--demo")
    try:
        _comes_up_again(up, *WITHOUT_A_WORD)
        found = looked_at()
        assert {node.name for node in found.nodes} <= {node["name"] for node in up.api.get("/v1/nodes")}
        told = up.stop()
        assert found.told.partition(":")[0] in " ".join(told.split()), told
        assert "teams vision and speech" not in told
    finally:
        up.end()


def test_after_a_visit_it_is_what_was_before() -> None:
    mine, demo = virtual(1, 3), structs.replace(virtual(4, 4), told="a demo", passing=True)
    known = remembered(mine, None, ())
    visited = remembered(demo, known, ())
    assert visited.nodes == demo.nodes, "work may still run there"
    twice = remembered(demo, visited, ())
    for one in (visited, twice):
        assert again(one).nodes == mine.nodes and again(one).told == "1 virtual node with 3 GPUs, as before"
        assert remembered(again(one), one, ()).told == "1 virtual node with 3 GPUs"
    assert again(remembered(demo, None, ())) == looked_at()
    assert msgpack.decode(msgpack.encode(twice), type=Known) == twice
