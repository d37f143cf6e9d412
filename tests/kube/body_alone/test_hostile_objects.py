"""Whatever one tenant writes, the others are scheduled, and no room is given twice."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec import structs

from optimus.drivers.kube.aside import Thing, put_aside
from optimus.drivers.kube.brain import Brain, Broken
from optimus.drivers.kube.grouping import Groups
from optimus.drivers.kube.objects import Anything, Pod
from optimus.model.observations import Observation
from optimus.model.problems import Problem
from optimus.model.reasons import Code
from optimus.state import State
from tests.kube.body_alone import hostile
from tests.kube.body_alone.cluster import Alone, node, pod


@settings(max_examples=200, deadline=None, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))
@given(st.lists(hostile.pods, max_size=3), st.none() | hostile.jobs)
def test_nobody_is_kept_from_work_by_what_others_write(pods: list[dict[str, Any]], job: dict[str, Any] | None) -> None:
    asyncio.run(_told(pods, job))


async def _told(pods: list[dict[str, Any]], job: dict[str, Any] | None) -> None:
    alone = Alone(nodes=2)
    owner = hostile.told_job(job) if job else None
    if owner is not None:
        alone.mirror.owner(owner)
    for number, wish in enumerate(pods):
        if (made := hostile.told_pod(number, wish)) is not None:
            alone.mirror.pod(made)
    await alone.turn()
    alone.mirror.pod(pod("honest"))
    await alone.turn()
    assert "honest" in [name for name, _ in alone.writer.binds]
    assert not alone.mirror.aside, "each of them was thought of"
    assert {"n0", "n1"} <= alone.engine.state.nodes.row_of.keys(), "no node is lost by what is said of it"
    for uid in list(alone.mirror.pods):
        alone.mirror.pod_gone(uid)
    await alone.turn()


@pytest.mark.parametrize(
    "notes",
    [
        {"priority": "9999999999999999999"},
        {"priority": "-" + "9" * 5_000},
        {"slot": "pod-" + "9" * 5_000},
        {"slot": "pod-99999999999999999999"},
        {"term": "9" * 5_000},
        {"min-members": "999999999999"},
        {"expected-duration": "0"},
    ],
    ids=lambda notes: f"{next(iter(notes.items()))}"[:40],
)
@pytest.mark.parametrize("on", ["", "n0"], ids=["waits", "runs"])
async def test_a_number_that_nobody_can_count_with(notes: dict[str, str], on: str) -> None:
    alone = Alone()
    alone.mirror.pod(_noted(pod("wild", on=on), notes))
    alone.mirror.pod(pod("honest"))
    await alone.turn()
    assert ("honest", "n0") in alone.writer.binds


async def test_more_than_can_be_counted_is_said_to_whoever_asked_for_it() -> None:
    alone = Alone()
    alone.mirror.pod(_asking(pod("greedy"), cpu="9e12"))
    alone.mirror.pod(pod("honest"))
    plan = await alone.turn()
    (wait,) = plan.waiting
    assert (wait.workload, wait.reason.code) == ("team/pod/greedy", Code.MALFORMED)
    assert "cpu_milli is too large" in wait.reason.text()


# -- the net: readers that fail all the same --------------------------------------------------------------------------


async def test_a_pod_that_breaks_a_reader_keeps_its_room_and_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = Alone()
    works = Groups.pod

    def breaks(groups: Groups, one: Pod) -> None:
        works(groups, one)
        if (one.metadata.annotations or {}).get("odd"):
            raise RuntimeError("nobody thought of this")

    monkeypatch.setattr(Groups, "pod", breaks)
    for number in range(4):
        alone.mirror.pod(_noted(pod(f"odd-{number}", on="n0" if number < 3 else ""), {}, odd="yes"))
    for number in range(6):
        alone.mirror.pod(pod(f"honest-{number}"))
    plan = await alone.turn()
    assert alone.mirror.aside.counts() == {Thing.POD: 4}
    assert len(alone.writer.binds) == 5, "three of eight GPUs are taken"
    told = {wait.workload: wait.reason for wait in plan.waiting}
    assert told["team/pod/odd-3"].code is Code.PUT_ASIDE
    assert "nobody thought of this" in told["team/pod/odd-3"].text()
    alone.mirror.pod(pod("odd-3"))
    alone.mirror.pod_gone("uid-odd-0")
    await alone.turn()
    assert alone.mirror.aside.counts() == {Thing.POD: 2}, "written otherwise, or gone, it is as any other"


async def test_an_owner_that_breaks_a_reader_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = Alone()
    monkeypatch.setattr(Groups, "owner", _raise)
    job = hostile.told_job({"annotations": {}, "spec": {"parallelism": 1}, "status": {}})
    assert isinstance(job, Anything)
    wish = {"annotations": {}, "labels": {}, "spec": {}, "containers": [{}], "ours": True, "bound": False}
    member = hostile.told_pod(0, {**wish, "owned": True})
    assert member is not None
    alone.mirror.pod(member)
    alone.mirror.owner(job)
    (missed,) = alone.mirror.groups.missing()
    alone.mirror.owner_absent(missed)
    alone.mirror.pod(pod("honest"))
    plan = await alone.turn()
    assert [name for name, _ in alone.writer.binds] == ["honest"]
    assert {wait.reason.code for wait in plan.waiting} == {Code.PUT_ASIDE}


async def test_a_fact_that_breaks_the_brain_is_left_out_of_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = Alone()
    works = State.apply

    def breaks(state: State, fact: Observation, now_ms: int) -> list[Problem]:
        found = works(state, fact, now_ms)
        if "odd" in repr(fact):
            raise OverflowError("nobody thought of this")
        return found

    monkeypatch.setattr(State, "apply", breaks)
    alone.engine = Brain()
    alone.mirror.pod(pod("odd", on="n0"))
    for number in range(8):
        alone.mirror.pod(pod(f"honest-{number}"))
    alone.mirror.node(node("odd-node"))
    with pytest.raises(Broken) as broken:
        await alone.turn()
    for fact, error in broken.value.facts:
        put_aside(alone.mirror, fact, error)
    monkeypatch.undo()
    alone.engine = Brain()
    alone.engine.observe(alone.mirror.everything(), 0)
    plan = await alone.turn()
    assert alone.mirror.aside.counts() == {Thing.GANG: 1, Thing.NODE: 1}
    assert len(alone.writer.binds) == 7, "its GPU is taken, by somebody the brain does not know"
    assert Code.PUT_ASIDE in {wait.reason.code for wait in plan.waiting}
    alone.mirror.pod(_noted(pod("odd", on="n0"), {"priority": "7"}))
    await alone.turn()
    assert alone.mirror.aside.counts() == {Thing.NODE: 1}, "changed, it is tried again"


def _raise(*_: object) -> None:
    raise RuntimeError("nobody thought of this")


def _noted(one: Pod, words: dict[str, str], **more: str) -> Pod:
    notes = {**{f"optimus.dev/{word}": text for word, text in words.items()}, **more}
    return _changed(one, "metadata", annotations=notes)


def _asking(one: Pod, **amounts: str) -> Pod:
    container = one.spec.containers[0]
    return _changed(one, "spec", containers=[_changed(container, "resources", requests=amounts)])


def _changed(one: Any, part: str, **fields: Any) -> Any:
    return structs.replace(one, **{part: structs.replace(getattr(one, part), **fields)})
