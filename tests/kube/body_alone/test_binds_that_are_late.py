"""A bind was sent; the watch says nothing. When the server is asked, and what its answer means."""

from __future__ import annotations

import pytest

from optimus.drivers.kube.acting import BUSY_TIMES, CONFIRM_S, LOOKS
from optimus.drivers.kube.objects import Pod
from optimus.kube import Done, Gone, Refused, Unknown
from optimus.kube.writing import BUSY
from optimus.model.observations import SlotFailed
from optimus.model.plans import Start
from tests.kube.body_alone.cluster import Alone, pod, settle


async def test_a_bind_that_has_no_answer_yet_is_not_asked_about() -> None:
    """A slow server has enough to do."""
    alone = Alone()
    alone.writer.silent.clear()
    alone.mirror.pod(pod("a"))
    await alone.turn()
    assert alone.writer.binds == [("a", "n0")]
    alone.now += 10 * CONFIRM_S
    await alone.turn()
    assert alone.looked_at == []
    alone.writer.silent.set()
    await settle()
    alone.now += CONFIRM_S / 2
    await alone.turn()
    assert alone.looked_at == []  # time counts from the answer


async def test_after_the_answer_a_watch_that_stays_silent_is_made_up_for_by_a_look() -> None:
    alone = Alone()
    alone.mirror.pod(pod("a"))
    await alone.turn()
    alone.on_server = lambda _: pod("a", on="n0")
    alone.now += CONFIRM_S + 1
    await alone.turn()
    assert alone.looked_at == ["a"]
    await alone.turn()
    assert alone.acting.unsettled == 0
    assert alone.mirror.pods["uid-a"].spec.node_name == "n0"


async def test_only_a_few_looks_are_under_way_at_a_time() -> None:
    alone = Alone(nodes=4)
    names = [f"p{number:02d}" for number in range(3 * LOOKS)]
    for name in names:
        alone.mirror.pod(pod(name))
    alone.writer.answer = Unknown("no answer")
    await alone.turn()
    assert len(alone.writer.binds) == 3 * LOOKS
    alone.now += CONFIRM_S + 1
    alone.acting.facts()
    await settle()
    assert len(alone.looked_at) == LOOKS


async def test_what_the_watch_confirms_is_not_looked_at() -> None:
    alone = Alone()
    alone.mirror.pod(pod("a"))
    await alone.turn()
    alone.mirror.pod(pod("a", on="n0"))
    await alone.turn()
    alone.now += 2 * CONFIRM_S
    await alone.turn()
    assert alone.looked_at == []
    assert alone.acting.unsettled == 0


async def test_a_place_whose_pod_was_deleted_meanwhile_is_given_back() -> None:
    alone = Alone()
    alone.mirror.pod(pod("a"))
    await alone.turn()
    alone.mirror.pod_gone("uid-a")
    failed = [fact for fact in alone.acting.facts() if isinstance(fact, SlotFailed)]
    assert [(fact.retry_after_ms, "deleted" in fact.failure) for fact in failed] == [(0, True)]


async def test_refused_binds_of_a_workload_pause_twice_as_long_each_time() -> None:
    alone = Alone()
    alone.writer.answer = Refused("Forbidden", "not here")
    alone.mirror.pod(pod("a"))
    pauses = []
    await alone.turn()
    for _ in range(4):
        facts = alone.acting.facts()
        pauses += [fact.retry_after_ms for fact in facts if isinstance(fact, SlotFailed)]
        alone.now += 400.0
        alone.acting.act(alone.engine.step([*alone.mirror.news(), *facts], int(alone.now * 1000)))
        await settle()
        alone.acting.act(alone.engine.step([], int((alone.now + 400.0) * 1000)))
        alone.now += 400.0
        await settle()
    assert pauses[:3] == [1000, 2000, 4000]


async def test_a_pod_that_is_gone_costs_no_pause() -> None:
    alone = Alone()
    alone.writer.answer = Gone("no such pod")
    alone.mirror.pod(pod("a"))
    await alone.turn()
    assert [fact.retry_after_ms for fact in alone.acting.facts() if isinstance(fact, SlotFailed)] == [0]


async def test_who_leads_again_knows_queues_nodes_and_what_runs() -> None:
    """A new engine is told everything, also what was told to the one before and has not changed since."""
    alone = Alone()
    alone.mirror.pod(pod("old", on="n0"))
    await alone.turn()
    again = Alone(nodes=0)
    again.mirror = alone.mirror
    facts = alone.mirror.everything()
    alone.mirror.pod(pod("new"))
    plan = again.engine.step([*facts, *alone.mirror.news()], 0)
    placed = [one.node for action in plan.actions if isinstance(action, Start) for one in action.placements]
    assert placed == ["n0"]


@pytest.mark.parametrize("newer", [None, "n1"], ids=["deleted", "bound elsewhere"])
async def test_an_answer_from_before_the_watch_told_more_is_not_believed(newer: str | None) -> None:
    """A pod that was deleted while it was looked at would keep its GPU for ever."""
    alone = Alone(nodes=2)
    alone.mirror.pod(pod("a"))
    await alone.turn()
    alone.now = CONFIRM_S + 1

    def meanwhile(_: Pod) -> Pod:
        if newer is None:
            alone.mirror.pod_gone("uid-a")
        else:
            alone.mirror.pod(pod("a", on=newer))
        return pod("a", on="n0")

    alone.on_server = meanwhile
    await alone.turn()
    assert alone.looked_at == ["a"]
    await alone.turn()
    there = alone.mirror.pods.get("uid-a")
    assert (there.spec.node_name if there is not None else None) == newer
    free = alone.engine.state.snapshot(int(alone.now * 1000)).now_gpus
    assert int((free == 0).sum()) == (0 if newer is None else 1)


async def test_a_server_that_has_no_time_is_asked_again_when_it_says() -> None:
    """The gang keeps its places: there is nothing wrong with them."""
    alone = Alone()
    for name in ("a", "b"):
        alone.mirror.pod(pod(name, gang="g", size=2))
    alone.writer.answers["b"] = Refused(BUSY, "later", retry_after_s=3.0)
    await alone.turn()
    assert alone.writer.binds == [("a", "n0"), ("b", "n0")]
    alone.now += 2.0
    await alone.turn()
    assert len(alone.writer.binds) == 2, "not before"
    alone.writer.answers["b"] = Done()
    alone.now += 1.5
    await alone.turn()
    assert alone.writer.binds[2:] == [("b", "n0")]
    alone.now += 5.0
    await alone.turn()
    assert len(alone.writer.binds) == 3 and alone.acting.failed_binds == 0


async def test_a_server_that_never_has_time_gets_the_place_back() -> None:
    alone = Alone()
    alone.mirror.pod(pod("a"))
    alone.writer.answer = Refused(BUSY, "later", retry_after_s=1.0)
    for _ in range(BUSY_TIMES + 1):
        await alone.turn()
        alone.now += 1.5
    facts = alone.acting.facts()
    assert len(alone.writer.binds) == BUSY_TIMES + 1
    assert [type(fact) for fact in facts] == [SlotFailed]


async def test_a_pod_that_is_deleted_meanwhile_is_not_sent_again() -> None:
    alone = Alone()
    alone.mirror.pod(pod("a"))
    alone.writer.answer = Refused(BUSY, "later", retry_after_s=1.0)
    await alone.turn()
    alone.mirror.pod_gone("uid-a")
    alone.now += 5.0
    await alone.turn()
    assert len(alone.writer.binds) == 1
    assert alone.acting.unsettled == 0
