"""A node is deleted while binds to it are on their way: its gang goes on elsewhere, and nothing is bound twice."""

from __future__ import annotations

import pytest

from optimus.kube import Conflict, Done, Refused
from optimus.kube.writing import BUSY
from optimus.model.settings import Settings
from tests.kube.body_alone.cluster import Alone, node, pod, settle

SOON_S = 3
assert Settings().hold_ms / 10 > SOON_S * 1000


async def a_gang_on_its_way(answer: Refused | None = None) -> tuple[Alone, str, str]:
    """Where it goes, and the node that is left."""
    alone = Alone(nodes=2)
    if answer is None:
        alone.writer.silent.clear()
    else:
        alone.writer.answer = answer
    for name in ("a", "c"):
        alone.mirror.pod(pod(name, gang="g", size=2))
    await alone.turn()
    (where,) = {there for _, there in alone.writer.binds}
    assert [name for name, _ in alone.writer.binds] == ["a", "c"]
    return alone, where, {"n0": "n1", "n1": "n0"}[where]


async def turns(alone: Alone, seconds: int) -> None:
    for _ in range(seconds):
        await alone.turn()
        alone.now += 1


def free_gpus(alone: Alone) -> int:
    return int(alone.engine.state.snapshot(int(alone.now * 1000)).now_gpus.sum()) // 1000


async def test_who_comes_instead_of_those_that_landed_there_is_bound_at_once() -> None:
    """Nobody but the collector of Kubernetes takes away what landed on a node that is gone."""
    alone, where, other = await a_gang_on_its_way()
    alone.mirror.node_gone(where)
    await turns(alone, SOON_S)
    assert len(alone.writer.binds) == 2, "what was sent may still land: nothing is sent beside it"
    alone.writer.silent.set()
    await settle()
    for name in ("a", "c"):
        alone.mirror.pod(pod(name, gang="g", size=2, on=where))
    await turns(alone, SOON_S)
    for name in ("a", "c"):
        alone.mirror.pod_gone(f"uid-{name}")
        alone.mirror.pod(pod(f"{name}2", gang="g", size=2))
    await turns(alone, SOON_S)
    assert sorted(alone.writer.binds[2:]) == [("a2", other), ("c2", other)]
    for name in ("a2", "c2"):
        alone.mirror.pod(pod(name, gang="g", size=2, on=other))
    await turns(alone, SOON_S)
    assert alone.acting.unsettled == 0 and alone.engine.problems == []
    assert free_gpus(alone) == 6


async def test_the_same_where_the_watch_told_of_the_bind_first() -> None:
    alone, where, other = await a_gang_on_its_way()
    alone.writer.silent.set()
    await settle()
    for name in ("a", "c"):
        alone.mirror.pod(pod(name, gang="g", size=2, on=where))
    alone.mirror.node_gone(where)  # before the next turn
    await turns(alone, SOON_S)
    for name in ("a", "c"):
        alone.mirror.pod_gone(f"uid-{name}")
        alone.mirror.pod(pod(f"{name}2", gang="g", size=2))
    await turns(alone, SOON_S)
    assert sorted(alone.writer.binds[2:]) == [("a2", other), ("c2", other)]


async def test_binds_that_the_server_refuses_then_go_where_the_gang_has_its_new_places() -> None:
    alone, where, other = await a_gang_on_its_way()
    alone.mirror.node_gone(where)
    await turns(alone, SOON_S)
    alone.writer.answer = Refused("NotFound", "no such node")
    alone.writer.silent.set()
    await settle()
    alone.writer.answer = Done()
    await turns(alone, SOON_S)
    assert sorted(alone.writer.binds[2:]) == [("a", other), ("c", other)]
    assert alone.acting._failures == {}, "nothing is wrong with these"


async def test_binds_that_a_busy_server_did_not_take_are_not_sent_to_it_again() -> None:
    alone, where, other = await a_gang_on_its_way(Refused(BUSY, "later", retry_after_s=2.0))
    alone.mirror.node_gone(where)
    alone.writer.answer = Done()
    await turns(alone, 2 * SOON_S)
    assert sorted(alone.writer.binds[2:]) == [("a", other), ("c", other)]


async def test_a_place_that_waits_for_its_pod_goes_with_its_node() -> None:
    alone, where, other = await a_gang_on_its_way()
    alone.writer.silent.set()
    await settle()
    for name in ("a", "c"):
        alone.mirror.pod(pod(name, gang="g", size=2, on=where))
    await turns(alone, 1)
    alone.mirror.node_gone(other)
    alone.mirror.pod_gone("uid-a")
    await turns(alone, 1)
    alone.mirror.node_gone(where)
    alone.mirror.pod(pod("a2", gang="g", size=2))
    await turns(alone, SOON_S)
    assert len(alone.writer.binds) == 2, "there is no node at all"


async def test_a_plan_from_before_is_not_carried_out_on_a_node_that_is_gone_by_now() -> None:
    alone = Alone(nodes=2)
    alone.mirror.pod(pod("a"))
    plan = alone.engine.step(alone.mirror.news(), 0)
    alone.mirror.node_gone("n0")  # while it was decided
    alone.acting.act(plan)
    await settle()
    await turns(alone, SOON_S)
    assert alone.writer.binds == [("a", "n1")]


@pytest.mark.parametrize("lands", ["n0", "n1"])
async def test_a_node_that_comes_back_at_once_has_whoever_landed_there(lands: str) -> None:
    """A machine that registers anew: the brain has lost its replicas, and the binds are still on their way."""
    alone, where, _ = await a_gang_on_its_way()
    alone.mirror.node_gone(where)
    alone.mirror.node(node(where))
    await turns(alone, SOON_S)
    alone.writer.answer = Conflict("bound by somebody") if lands != where else Done()
    alone.writer.silent.set()
    await settle()
    for name in ("a", "c"):
        alone.mirror.pod(pod(name, gang="g", size=2, on=lands))
    await turns(alone, SOON_S)
    assert len(alone.writer.binds) == 2 and alone.writer.evicted == []
    assert alone.acting.unsettled == 0 and alone.acting._places == {} and alone.engine.problems == []
    assert free_gpus(alone) == 14
