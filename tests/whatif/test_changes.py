"""Changes in words become a changed world; what is wrong is told all at once, with what there is instead."""

from __future__ import annotations

import pytest

from optimus.api.loading import load_text
from optimus.drivers.sim.present import Present, of_scenario
from optimus.drivers.sim.setup import Setup
from optimus.drivers.sim.standing import read_state, standings
from optimus.drivers.sim.whatif import ChangeError, changed_present, changed_setup, read_changes
from optimus.drivers.sim.whatif.changes import setup_now
from optimus.model.queues import GPU, Queue, Quota

WORLD = """
cluster:
  - {name: gpu, count: 2, gpus: {count: 8, model: a100}, labels: {rack: r1}}
  - {name: old, gpus: {count: 4, model: t4}}
queues:
  - {name: vision, gpu: {guarantee: 8, limit: 16}}
  - {name: speech}
workloads:
  - {name: spread, queue: speech, replicas: 2, gpu: 8, running: {on: "gpu-*", since: -1h}}
  - {name: small, queue: vision, gpu: 1, running: {on: old, since: -1h}}
"""


def world(text: str = WORLD) -> Present:
    return of_scenario(load_text(text).or_raise())


def setup(text: str = WORLD) -> Setup:
    return setup_now(world(text))


def quota_of(queues: tuple[Queue, ...], name: str) -> Quota:
    (queue,) = (queue for queue in queues if queue.name == name)
    return queue.quotas[0].resources[GPU]


def complaints(text: str = WORLD, **words: list[str]) -> str:
    with pytest.raises(ChangeError) as caught:
        read_changes(setup(text), **words)  # type: ignore[arg-type]
    return str(caught.value)


def test_new_nodes_are_like_the_usual_one() -> None:
    changes = read_changes(setup(), add=["2x8"])
    assert [node.name for node in changes.added] == ["added-0", "added-1"]
    assert {(len(node.devices), node.devices[0].model, node.labels["rack"]) for node in changes.added} == {
        (8, "a100", "r1")
    }
    assert "2 more nodes with 8 a100 each, like gpu-0" in changes.words


def test_new_nodes_of_a_model_are_like_those_of_the_model() -> None:
    (node,) = read_changes(setup(), add=["1x8:t4"]).added
    assert (len(node.devices), node.devices[7].model, node.devices[7].index) == (8, "t4", 7)
    assert "rack" not in node.labels


def test_nodes_are_removed_by_name_or_pattern() -> None:
    assert read_changes(setup(), remove=["gpu-1"]).removed == ("gpu-1",)
    assert read_changes(setup(), remove=["gpu-*"]).removed == ("gpu-0", "gpu-1")
    changed = changed_setup(setup(), read_changes(setup(), remove=["gpu-*"], add=["1x8"]))
    assert [node.name for node in changed.nodes] == ["old", "added-0"]


def test_quotas_change_one_field_and_leave_the_rest() -> None:
    changes = read_changes(setup(), quotas=["vision.guarantee=16", "speech.weight=3"])
    assert quota_of(changes.queues, "vision") == Quota(guarantee=16_000, limit=16_000)
    assert quota_of(changes.queues, "speech").weight == 3
    assert "guarantee of queue vision: 16 GPUs instead of 8 GPUs" in changes.words
    assert quota_of(read_changes(setup(), quotas=["vision.limit=none"]).queues, "vision").limit is None


def test_everything_wrong_is_told_at_once_with_what_there_is() -> None:
    told = complaints(add=["four"], remove=["gpu-7"], quotas=["visoin.limit=3", "vision.guarante=3", "vision", "a.b=c"])
    assert "four: write how many, or nodes x GPUs: 2, 4x8" in told
    assert "there is no node gpu-7; did you mean gpu-" in told
    assert "there is no queue visoin; did you mean vision?" in told
    assert "a quota has no guarante; did you mean guarantee?" in told
    assert "write QUEUE.guarantee=16" in told


def test_of_many_queues_ten_are_named() -> None:
    names = ", ".join(f"{{name: team-{number:03}}}" for number in range(301))
    told = complaints(f"cluster: [{{name: gpu, gpus: 8}}]\nqueues: [{names}]\n", quotas=["nope.guarantee=3"])
    assert told.count("team-") <= 10 and told.endswith(" more")


def test_an_amount_that_is_none_is_refused() -> None:
    told = complaints(quotas=["vision.limit=-4", "vision.weight=much"])
    assert "vision.limit=-4: " in told and "vision.weight=much: " in told


def test_a_cluster_without_nodes_is_no_world() -> None:
    assert "no node would be left" in complaints(remove=["*"])


def test_new_nodes_need_one_to_be_like() -> None:
    assert "no node that new ones could be like" in complaints("workloads: [{name: a, gpu: 1}]\n", add=["1x8"])


def test_with_several_pools_the_pool_must_be_named() -> None:
    pools = "pools: [{name: fast, selector: {rack: r1}}, {name: slow}]\n"
    text = WORLD.replace("{name: vision, gpu: {guarantee: 8, limit: 16}}", "{name: vision}") + pools
    assert "say which: vision.limit@" in complaints(text, quotas=["vision.limit=3"])
    assert read_changes(setup(text), quotas=["vision.limit@fast=3"]).queues[0].quotas[-1].pool == "fast"
    assert "there is no pool quick" in complaints(text, quotas=["vision.limit@quick=3"])


def test_what_ran_on_a_node_that_is_gone_waits_again_as_a_whole() -> None:
    before = world()
    after = changed_present(before, read_changes(setup_now(before), remove=["gpu-1"]))
    runs = {one.workload.id: one.runs for one in standings(read_state(after.state))}
    assert runs == {"default/spread": False, "default/small": True}
    assert [node.name for node, _ in read_state(after.state).nodes] == ["gpu-0", "old"]
    assert before == world(), "the present itself is left as it was"
