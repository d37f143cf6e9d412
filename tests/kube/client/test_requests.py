"""Requests at a real server: what comes back, and which error it is."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from hack.controlplane import ControlPlane
from hack.controlplane.processes import free_ports
from optimus.kube import Client, Cluster, Meta
from optimus.kube.client import APPLY, JSON_PATCH, STRATEGIC
from optimus.kube.errors import Conflict, Forbidden, Invalid, NotFound, NotSent
from optimus.kube.resources import CONFIG_MAPS, NODES, PODS, Resource
from tests.kube.client.world import (
    ConfigMap,
    Pod,
    cluster_of,
    config_map,
    document,
    make_config_maps,
    make_namespace,
    pod,
)


class Data(msgspec.Struct):
    only: int = 0


class Strict(msgspec.Struct):
    metadata: Meta
    data: Data


async def test_made_read_changed_in_four_ways_and_deleted(plane: ControlPlane, namespace_name: str) -> None:
    async with Client(cluster_of(plane)) as client:
        at: dict[str, Any] = {"namespace": await make_namespace(client, namespace_name)}
        await client.create(CONFIG_MAPS, document(config_map("one", a="1")), **at)
        await client.patch(CONFIG_MAPS, "one", b'{"data":{"b":"2"}}', **at)
        await client.patch(CONFIG_MAPS, "one", b'{"data":{"c":"3"}}', form=STRATEGIC, **at)
        await client.patch(CONFIG_MAPS, "one", b'[{"op":"remove","path":"/data/a"}]', form=JSON_PATCH, **at)
        applied = config_map("one", d="4")
        await client.patch(CONFIG_MAPS, "one", document(applied), form=APPLY, manager="tests", force=True, **at)
        found = await client.get(CONFIG_MAPS, "one", ConfigMap, **at)
        assert found.data == {"b": "2", "c": "3", "d": "4"}
        with pytest.raises(Conflict):
            await client.delete(CONFIG_MAPS, "one", uid="another", **at)
        await client.delete(CONFIG_MAPS, "one", uid=found.metadata.uid, **at)
        with pytest.raises(NotFound, match='configmaps "one" not found'):
            await client.get(CONFIG_MAPS, "one", ConfigMap, **at)


async def test_a_long_list_comes_in_pages_and_is_whole(plane: ControlPlane, namespace_name: str) -> None:
    names = [f"c{number:04}" for number in range(1_100)]
    async with Client(cluster_of(plane)) as client:
        namespace = await make_namespace(client, namespace_name)
        await make_config_maps(client, namespace, names)
        before = client.counters.requests["list", "200"]
        found = await client.listing(CONFIG_MAPS, ConfigMap, namespace=namespace)
        assert sorted(one.metadata.name for one in found.items) == names
        assert client.counters.requests["list", "200"] == before + 3, "pages of 500"
        some = await client.listing(CONFIG_MAPS, ConfigMap, namespace=namespace, fields="metadata.name=c0007")
        assert [one.metadata.name for one in some.items] == ["c0007"]
        none = await client.listing(CONFIG_MAPS, ConfigMap, namespace=namespace, labels="no in (such, label),!x")
        assert none.items == []


async def test_errors_have_names_and_say_what_the_server_said(plane: ControlPlane, namespace_name: str) -> None:
    async with Client(cluster_of(plane)) as client:
        at: dict[str, Any] = {"namespace": await make_namespace(client, namespace_name)}
        with pytest.raises(NotFound) as nowhere:
            await client.listing(Resource("no.such", "v1", "things"), Pod)
        assert nowhere.value.status == 404
        with pytest.raises(Invalid, match="Invalid value"):
            await client.create(PODS, document(pod("UPPER")), **at)
        await client.create(PODS, document(pod("one")), **at)
        with pytest.raises(Conflict, match="already exists"):
            await client.create(PODS, document(pod("one")), **at)
    async with Client(cluster_of(plane, "alice")) as client:
        with pytest.raises(Forbidden, match='User "alice" cannot list resource "nodes"'):
            await client.listing(NODES, Pod)


async def test_a_guard_that_says_no_stops_the_request_after_the_connection_stands(
    plane: ControlPlane, namespace_name: str
) -> None:
    async with Client(cluster_of(plane)) as client:
        at: dict[str, Any] = {"namespace": await make_namespace(client, namespace_name)}
        asked: list[str] = []

        def guard() -> bool:
            asked.append("?")
            return len(asked) > 1

        with pytest.raises(NotSent, match="guard"):
            await client.create(CONFIG_MAPS, document(config_map("no")), guard=guard, **at)
        await client.create(CONFIG_MAPS, document(config_map("yes")), guard=guard, **at)
        assert len(asked) == 2
        found = await client.listing(CONFIG_MAPS, ConfigMap, **at)
        assert [one.metadata.name for one in found.items if one.metadata.name in ("no", "yes")] == ["yes"]
        assert client.counters.requests["create", "guard"] == 1


async def test_no_more_are_in_flight_than_allowed(plane: ControlPlane, namespace_name: str) -> None:
    async with Client(cluster_of(plane), in_flight=4) as client:
        namespace = await make_namespace(client, namespace_name)
        most = 0

        async def look() -> None:
            nonlocal most
            while True:
                most = max(most, client.counters.in_flight)
                await asyncio.sleep(0)

        looking = asyncio.create_task(look())
        await make_config_maps(client, namespace, [f"c{number}" for number in range(60)])
        looking.cancel()
        assert most == 4
        assert client.counters.in_flight == 0
        assert client.counters.requests["create", "201"] == 61
        assert client.counters.seconds["create"] > 0


async def test_an_object_that_does_not_fit_its_struct_does_not_spoil_the_list(
    plane: ControlPlane, namespace_name: str
) -> None:
    async with Client(cluster_of(plane)) as client:
        namespace = await make_namespace(client, namespace_name)
        body = config_map("bad")
        body["data"] = {"only": "text"}
        await client.create(CONFIG_MAPS, document(body), namespace=namespace)
        await make_config_maps(client, namespace, ["good"], other="x")
        found = await client.listing(CONFIG_MAPS, Strict, namespace=namespace)
        assert [one.metadata.name for one in found.items if one.metadata.name == "good"] == ["good"]
        bad = [one for one in found.unreadable if one.meta.name == "bad"]
        assert [("$.data.only" in one.why, one.meta.namespace) for one in bad] == [(True, namespace)]


async def test_nobody_at_the_address_is_told_as_not_sent(plane: ControlPlane) -> None:
    nobody = Cluster(server=f"http://127.0.0.1:{free_ports(1)[0]}", credentials=cluster_of(plane).credentials)
    async with Client(nobody) as client:
        with pytest.raises(NotSent, match="nobody answers at"):
            await client.listing(NODES, Pod)
    assert client.counters.requests["list", "unreachable"] == 1
