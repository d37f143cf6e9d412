"""Starts that fail on a node: who is to blame, for how long, and for whom."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from msgspec import structs

from optimus.drivers.kube.avoiding import AVOID_S, MOST_NODES, Avoiding, was_refused
from optimus.drivers.kube.binding_volumes import BindingVolumes
from optimus.drivers.kube.first_consumers import SELECTED_NODE
from optimus.drivers.kube.objects import Anything, Pod, PodStatus
from optimus.kube import Refused
from tests.kube.body_alone.cluster import Alone, pod, settle
from tests.kube.body_alone.test_nodes_that_lose_power import worker
from tests.kube.body_alone.test_volumes_that_are_late import Storage, turns, using

FORBIDDEN = Refused("Forbidden", "an admission policy says no")


async def after(alone: Alone, seconds: float) -> None:
    alone.now += seconds
    await turns(alone)


def test_a_refused_bind_is_sent_to_another_node_and_the_first_is_as_good_as_any_later() -> None:
    async def story() -> None:
        alone = Alone(nodes=2)
        alone.writer.answer = FORBIDDEN
        alone.mirror.pod(pod("a"))
        await turns(alone)
        assert alone.writer.binds == [("a", "n0")]
        await after(alone, 1.5)
        assert alone.writer.binds == [("a", "n0"), ("a", "n1")]
        await after(alone, 3.0)
        assert [node for _, node in alone.writer.binds] == ["n0", "n1", "n0"], "where both fail, the pauses are all"
        alone.now += AVOID_S + 1
        await turns(alone)
        assert alone.mirror.workloads["team/pod/a"].avoids == ("n0",), "where it was tried again just now"
        alone.mirror.pod_gone("uid-a")
        await turns(alone)
        assert alone.mirror.avoided == {}, "nothing is kept of work that is over"

    asyncio.run(story())


def test_what_fails_for_one_says_nothing_of_others() -> None:
    async def story() -> None:
        alone = Alone(nodes=2)
        alone.writer.answers["a"] = FORBIDDEN
        alone.mirror.pod(pod("a"))
        await turns(alone)
        alone.mirror.pod(pod("b"))
        await after(alone, 1.5)
        assert sorted(alone.writer.binds)[:2] == [("a", "n0"), ("a", "n1")]
        avoids = {name: one.avoids for name, one in alone.mirror.workloads.items()}
        assert avoids["team/pod/b"] == () != avoids["team/pod/a"]

    asyncio.run(story())


def test_a_server_without_time_is_nobodys_fault() -> None:
    async def story() -> None:
        alone = Alone(nodes=2)
        alone.writer.answer = Refused("NotSent", "another leads")
        alone.mirror.pod(pod("a"))
        await turns(alone)
        await after(alone, 1.5)
        assert {node for _, node in alone.writer.binds} == {"n0"} and alone.mirror.avoided == {}

    asyncio.run(story())


def test_of_a_gang_only_the_node_is_to_blame_on_which_a_volume_cannot_be_made() -> None:
    async def story() -> None:
        alone = Alone(nodes=3)
        storage = Storage(alone, "one", "two")
        for name in ("one", "two"):
            big = using(pod(name, gang="g", size=2), name)
            room = {"requests": {"nvidia.com/gpu": "8"}}
            spec = msgspec.to_builtins(big.spec) | {"containers": [{"name": "main", "resources": room}]}
            alone.mirror.pod(structs.replace(big, spec=msgspec.convert(spec, type(big.spec))))
        await turns(alone)
        places = {name: notes[SELECTED_NODE] for name, notes in storage.notes.items()}
        assert sorted(places.values()) == ["n0", "n1"]
        storage.show()
        await turns(alone)
        bad = places["two"]
        storage.notes = {"one": {}, "two": {}}
        storage.volumes["one"] = ""  # reached from everywhere
        storage.show()
        await turns(alone)
        [(workload, avoided)] = alone.mirror.avoided.items()
        assert avoided == (bad,), workload
        await after(alone, 1.5)
        assert storage.notes["two"][SELECTED_NODE] != bad
        assert isinstance(alone.acting.preparing._steps[0], BindingVolumes)  # type: ignore[union-attr]

    asyncio.run(story())


def refused(name: str, on: str, reason: str = "OutOfcpu") -> Pod:
    status = msgspec.convert({"phase": "Failed", "reason": reason, "message": "Pod was rejected"}, PodStatus)
    return structs.replace(pod(name, on=on), status=status)


@pytest.mark.parametrize("seen_before", [True, False])
def test_a_kubelet_that_refuses_is_not_asked_again(*, seen_before: bool) -> None:
    """By a pod that was seen on the node before, or was refused before anybody heard of its bind."""

    async def story() -> None:
        alone = Alone(nodes=2)
        spec = {"parallelism": 1, "completions": 1, "completionMode": "Indexed", "template": {"spec": {}}}
        meta = {"name": "j", "namespace": "team", "uid": "uid-j"}
        made = {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}
        alone.mirror.owner(msgspec.convert(made, Anything))
        alone.mirror.pod(worker("j-0", 0))
        await turns(alone)
        assert alone.writer.binds == [("j-0", "n0")]
        if seen_before:
            alone.mirror.pod(worker("j-0", 0, on="n0"))
            await turns(alone)
        alone.mirror.pod(structs.replace(worker("j-0", 0, on="n0"), status=refused("j-0", "n0").status))
        await turns(alone)
        alone.mirror.pod(worker("j-1", 0))  # as the controller of Jobs makes it
        await after(alone, 1.5)
        assert alone.writer.binds == [("j-0", "n0"), ("j-1", "n1")]
        assert alone.mirror.refusing == []

    asyncio.run(story())


@pytest.mark.parametrize(
    "statuses",
    [
        {"containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": 1}}}]},
        {"containerStatuses": [{"name": "main", "state": {"running": {}}}]},
        {"initContainerStatuses": [{"name": "first", "restartCount": 2, "state": {"waiting": {}}}]},
    ],
)
def test_what_ran_has_not_been_refused(statuses: object) -> None:
    ended = msgspec.convert({"phase": "Failed", "reason": "Evicted", **statuses}, PodStatus)  # type: ignore[dict-item]
    assert not was_refused(structs.replace(pod("a", on="n0"), status=ended))
    assert was_refused(refused("a", "n0")) and not was_refused(refused("a", "n0", reason=""))


def test_pods_that_do_not_begin_to_run_blame_their_node() -> None:
    async def story() -> None:
        alone = Alone(nodes=2)
        alone.mirror.pod(pod("a"))
        await turns(alone)
        alone.mirror.pod(structs.replace(pod("a", on="n0"), status=PodStatus(phase="Pending")))
        await turns(alone)
        alone.acting._give_up("team/pod/a", "its pods do not begin to run")
        await settle()
        assert alone.mirror.avoided == {"team/pod/a": ("n0",)}

    asyncio.run(story())


def test_what_is_remembered_is_bounded_and_ends() -> None:
    told: dict[str, tuple[str, ...]] = {}
    now = [0.0]
    avoiding = Avoiding(told.__setitem__, lambda: now[0])
    for number in range(MOST_NODES + 1):
        avoiding.failed("w", f"n{number:03}")
    assert len(told["w"]) == MOST_NODES and "n000" not in told["w"]
    now[0] = AVOID_S - 1
    avoiding.failed("w", "n001")
    avoiding.look(lambda _: True)
    assert len(told["w"]) == MOST_NODES
    now[0] = AVOID_S + 1
    avoiding.look(lambda _: True)
    assert told["w"] == ("n001",)
    avoiding.look(lambda _: False)
    assert not told["w"]
