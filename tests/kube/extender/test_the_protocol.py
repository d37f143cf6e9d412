"""What kube-scheduler asks and is told, word for word; the other side of the offers is a plan."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from optimus.drivers.kube.extender.answering import Answering, loopback
from optimus.drivers.kube.extender.offers import FILTERED, Offers
from optimus.kube import Conflict, Done, Refused

OURS = {"metadata": {"name": "a", "namespace": "team", "uid": "u1"}, "spec": {"schedulerName": "optimus"}}
OTHER = {"metadata": {"name": "b", "namespace": "team", "uid": "u2"}, "spec": {"schedulerName": "default-scheduler"}}


@asynccontextmanager
async def asked(offers: Offers) -> AsyncIterator[Any]:
    why = {"u1": "NoRoom: no room for it"}
    answering = Answering(offers, lambda name: name == "optimus", lambda uid: why.get(uid, ""))

    async with TestClient(TestServer(answering.application())) as client:

        async def ask(verb: str, body: Any) -> Any:
            answer = await client.post(f"/{verb}", json=body)
            return await answer.json(content_type=None)

        yield ask


async def test_a_pod_with_a_held_node_gets_that_one_alone() -> None:
    offers = Offers()
    offers.make("u1", "n2")
    async with asked(offers) as ask:
        told = await ask("filter", {"Pod": OURS, "NodeNames": ["n1", "n2", "n3"]})
        assert told["NodeNames"] == ["n2"]
        assert told["FailedNodes"] == {"n1": "held for it is n2", "n3": "held for it is n2"}
        scores = await ask("prioritize", {"Pod": OURS, "NodeNames": ["n1", "n2"]})
        assert scores == [{"Host": "n1", "Score": 0}, {"Host": "n2", "Score": 10}]


async def test_a_pod_without_one_gets_none_and_the_reason_that_everybody_sees() -> None:
    async with asked(Offers()) as ask:
        told = await ask("filter", {"Pod": OURS, "NodeNames": ["n1"]})
        assert told == {"NodeNames": [], "FailedNodes": {"n1": "NoRoom: no room for it"}}


async def test_a_kube_scheduler_that_sends_whole_nodes_gets_whole_nodes() -> None:
    offers = Offers()
    offers.make("u1", "n2")
    nodes = {"items": [{"metadata": {"name": name}} for name in ("n1", "n2")]}
    async with asked(offers) as ask:
        told = await ask("filter", {"Pod": OURS, "Nodes": nodes})
        assert [node["metadata"]["name"] for node in told["Nodes"]["items"]] == ["n2"]


async def test_pods_of_others_may_go_anywhere() -> None:
    async with asked(Offers()) as ask:
        assert await ask("filter", {"Pod": OTHER, "NodeNames": ["n1", "n2"]}) == {"NodeNames": ["n1", "n2"]}


async def test_a_node_that_kube_scheduler_has_sorted_out_itself_is_given_back() -> None:
    offers = Offers()
    offer = offers.make("u1", "n2")
    async with asked(offers) as ask:
        told = await ask("filter", {"Pod": OURS, "NodeNames": ["n1", "n3"]})
        assert told["NodeNames"] == []
        refused = await offer.taken
        assert refused is not None
        assert refused.reason == FILTERED


async def test_who_does_not_lead_any_more_takes_all_offers_back() -> None:
    offers = Offers()
    made = [offers.make(uid, "n1") for uid in ("u1", "u2")]
    offers.withdraw()
    assert [isinstance(await offer.taken, Refused) for offer in made] == [True, True]


@pytest.mark.parametrize(
    ("outcome", "error"),
    [(Done(), ""), (Conflict("bound already"), "Conflict: bound already"), (Refused("X", "no"), "Refused: no")],
)
async def test_a_bind_waits_for_the_server_and_both_sides_are_told_the_same(outcome: Any, error: str) -> None:
    offers = Offers()
    offer = offers.make("u1", "n2")

    async def plan() -> None:
        assert await offer.taken is None
        offers.close("u1", offer, outcome)

    binding = {"PodName": "a", "PodNamespace": "team", "PodUID": "u1", "Node": "n2"}
    async with asked(offers) as ask:
        _, told = await asyncio.gather(plan(), ask("bind", binding))
        assert told == {"Error": error}


async def test_a_bind_to_what_is_not_held_any_more_is_refused() -> None:
    binding = {"PodName": "a", "PodNamespace": "team", "PodUID": "u1", "Node": "n9"}
    async with asked(Offers()) as ask:
        assert "not held" in (await ask("bind", binding))["Error"]


async def test_nonsense_is_answered_with_what_was_expected() -> None:
    async with asked(Offers()) as ask:
        nonsense: list[Any] = [[], {"Pod": 3}, "x"]
        for body in nonsense:
            assert "not what kube-scheduler sends" in (await ask("filter", body))["Error"]


@pytest.mark.parametrize("address", ["0.0.0.0:80", "10.0.0.1:80", "[::]:1", "host", "127.0.0.1:99999", "127.0.0.1:x"])
def test_only_this_machine_may_ask(address: str) -> None:
    with pytest.raises(ValueError, match=r"127\.0\.0\.1|no port"):
        loopback(address)


@pytest.mark.parametrize("address", ["127.0.0.1:8888", "8888", "localhost:1", "[::1]:80"])
def test_addresses_of_this_machine(address: str) -> None:
    assert loopback(address)[1] > 0
