"""Changes to a real cluster: every answer is an outcome, also when there is none."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from hack.controlplane import ControlPlane
from hack.controlplane.processes import free_ports
from optimus.kube import Client, Cluster, Conflict, Done, Gone, Reflector, Refused, Resource, Unknown, Writer
from optimus.kube.credentials import Fixed, Identity
from optimus.kube.resources import NODES, PODS
from tests.kube.client.rival import TERM
from tests.kube.client.rivalry import stage
from tests.kube.client.world import Copy, Pod, cluster_of, document, make_namespace, make_node, make_pods, until
from tests.kube.cutting_proxy import CuttingProxy
from tests.kube.rude_server import Answer, RudeServer, json_line, status

BUDGETS = Resource("policy", "v1", "poddisruptionbudgets")


# -- bind ----------------------------------------------------------------------------------------------------------


async def test_a_pod_is_bound_once_and_carries_who_bound_it(plane: ControlPlane, namespace_name: str) -> None:
    async with Client(cluster_of(plane)) as client:
        namespace = await make_namespace(client, namespace_name)
        await make_pods(client, namespace, ["a"])
        writer = Writer(client)
        bound = await writer.bind("a", "node-1", namespace=namespace, annotations={"example.com/term": "7"})
        assert isinstance(bound, Done)
        again = await writer.bind("a", "node-2", namespace=namespace)
        assert isinstance(again, Conflict)
        assert 'already assigned to node "node-1"' in again.message
        found = await client.get(PODS, "a", Pod, namespace=namespace)
        assert found.spec.node_name == "node-1"
        assert (found.metadata.annotations or {})["example.com/term"] == "7"
        assert isinstance(await writer.bind("nobody", "node-1", namespace=namespace), Gone)


async def test_a_fenced_bind_does_not_hit_another_pod_of_that_name_or_a_newer_version(
    plane: ControlPlane, namespace_name: str
) -> None:
    async with Client(cluster_of(plane)) as client:
        namespace = await make_namespace(client, namespace_name)
        await make_pods(client, namespace, ["a"])
        old = await client.get(PODS, "a", Pod, namespace=namespace)
        writer = Writer(client)
        await writer.delete(PODS, "a", namespace=namespace, grace_s=0)
        await make_pods(client, namespace, ["a"])
        late = await writer.bind("a", "node-1", namespace=namespace, uid=old.metadata.uid)
        assert isinstance(late, Conflict)
        new = await client.get(PODS, "a", Pod, namespace=namespace)
        await writer.patch(PODS, "a", {"metadata": {"labels": {"x": "y"}}}, namespace=namespace)
        version = new.metadata.resource_version
        assert isinstance(await writer.bind("a", "node-1", namespace=namespace, resource_version=version), Conflict)
        assert isinstance(await writer.bind("a", "node-1", namespace=namespace, uid=new.metadata.uid), Done)


async def test_a_bind_whose_answer_is_lost_is_unknown_and_the_watch_decides(
    plane: ControlPlane, namespace_name: str
) -> None:
    copy = Copy()
    async with (
        Client(cluster_of(plane)) as client,
        CuttingProxy(cluster_of(plane)) as proxy,
        Client(proxy.cluster) as cut_client,
    ):
        namespace = await make_namespace(client, namespace_name)
        await make_pods(client, namespace, ["a"])
        watching = asyncio.create_task(Reflector(client, PODS, Pod, copy.hear, namespace=namespace).run())
        await cut_client.get(PODS, "a", Pod, namespace=namespace)  # the connection stands
        proxy.freeze_answers()
        outcome = await Writer(cut_client, timeout_s=1.0).bind("a", "node-1", namespace=namespace)
        assert isinstance(outcome, Unknown)
        await until(lambda: copy.now[f"{namespace}/a"].spec.node_name == "node-1")
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def test_what_never_left_is_refused_not_unknown(plane: ControlPlane, tmp_path: Path) -> None:
    nobody = Cluster(server=f"http://127.0.0.1:{free_ports(1)[0]}", credentials=Fixed(Identity()))
    async with Client(nobody) as client:
        outcome = await Writer(client).bind("a", "n", namespace="x")
    assert isinstance(outcome, Refused)
    assert outcome.reason == "NotSent"
    async with Client(cluster_of(plane)) as client:
        outcome = await Writer(client, guard=lambda: False).bind("a", "n", namespace="default")
    assert outcome == Refused("NotSent", "the guard said no")


async def test_each_answer_of_a_server_has_its_outcome() -> None:
    expected: list[tuple[int, str, dict[str, str], type[Any]]] = [
        (500, "InternalError", {}, Unknown),
        (504, "Timeout", {}, Unknown),
        (403, "Forbidden", {}, Refused),
        (422, "Invalid", {}, Refused),
        (429, "TooManyRequests", {"Retry-After": "3"}, Refused),
        (404, "NotFound", {}, Gone),
        (409, "Conflict", {}, Conflict),
    ]
    script = [Answer(code, (json_line(status(code, reason)),), headers) for code, reason, headers, _ in expected]
    async with RudeServer(script) as server, Client(server.cluster) as client:
        writer = Writer(client)
        for code, reason, headers, kind in expected:
            outcome = await writer.bind("a", "n", namespace="x")
            assert isinstance(outcome, kind), (code, outcome)
            if isinstance(outcome, Refused):
                assert outcome.reason == reason
                assert outcome.retry_after_s == (3.0 if headers else None)


async def test_a_late_bind_is_seen_in_the_watch_by_its_term_and_undone_by_the_successor(
    plane: ControlPlane, namespace_name: str, tmp_path: Path
) -> None:
    """The one bind of a former leader that lands after its time. How long it stays is the latency of a watch."""
    async with stage(plane, namespace_name, tmp_path) as played:
        names = [f"{who}-{number}" for who in ("first", "second") for number in range(1, 6)]
        await make_pods(played.client, namespace_name, names)
        first = played.enter("first", "--binds", "--freeze-at", "5", "--timeout", "600")
        await until(lambda: played.audit.by("first") == 4)
        played.enter("second", "--binds")
        await played.leads("second")
        copy = Copy()
        pods = Reflector(played.client, PODS, Pod, copy.hear, namespace=namespace_name)
        watching = asyncio.create_task(pods.run())
        await pods.synced.wait()
        late = f"{namespace_name}/first-5"
        assert copy.now[late].spec.node_name == ""
        first.go_on()
        await until(lambda: late not in copy.now)
        last = next(one.object for one in reversed(copy.told) if one.key == late and one.what == "changed")
        assert last is not None
        assert last.spec.node_name == "node-first", "it did land"
        assert (last.metadata.annotations or {})[TERM] == "0"
        kept = sorted(name.removeprefix(f"{namespace_name}/") for name in copy.now)
        assert kept == [name for name in names if name != "first-5"], "what was bound in time is left alone"
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


# -- evict ---------------------------------------------------------------------------------------------------------


async def test_an_eviction_keeps_to_the_budget_and_says_so(plane: ControlPlane, namespace_name: str) -> None:
    async with Client(cluster_of(plane)) as client:
        namespace = await make_namespace(client, namespace_name)
        await make_node(client, namespace_name)
        await make_pods(client, namespace, ["kept", "free"], app="a")
        budget = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "all"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}},
        }
        await client.create(BUDGETS, document(budget), namespace=namespace)
        writer = Writer(client)
        copy = Copy()
        watching = asyncio.create_task(Reflector(client, PODS, Pod, copy.hear, namespace=namespace).run())
        for name in ("kept", "free"):
            assert isinstance(await writer.bind(name, namespace_name, namespace=namespace), Done)
        await until(lambda: [one.status.phase for one in copy.now.values()] == ["Running"] * 2)

        async def leaves() -> bool:
            return isinstance(await writer.evict("free", namespace=namespace, grace_s=1), Done)

        while not await leaves():  # the budget is counted by a controller
            await asyncio.sleep(0.1)
        await until(lambda: f"{namespace}/free" not in copy.now)
        refused = await writer.evict("kept", namespace=namespace, grace_s=1)
        assert isinstance(refused, Refused)
        assert refused.reason == "DisruptionBudget"
        wrong = await writer.evict("kept", namespace=namespace, uid="another")
        assert isinstance(wrong, Conflict | Refused)
        assert isinstance(await writer.evict("free", namespace=namespace), Gone)
        assert f"{namespace}/kept" in copy.now
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


# -- patch ---------------------------------------------------------------------------------------------------------


async def test_a_status_is_patched_and_a_fenced_patch_does_not_hit_a_newer_version(
    plane: ControlPlane, namespace_name: str
) -> None:
    async with Client(cluster_of(plane)) as client:
        await make_node(client, namespace_name)
        writer = Writer(client)
        found = await client.get(NODES, namespace_name, Pod)
        devices = {"status": {"capacity": {"example.com/device": "8"}}}
        assert isinstance(await writer.patch(NODES, namespace_name, devices, subresource="status"), Done)
        labels = {"metadata": {"labels": {"a": "b"}}}
        late = await writer.patch(NODES, namespace_name, labels, resource_version=found.metadata.resource_version)
        assert isinstance(late, Conflict)
        found = await client.get(NODES, namespace_name, Pod)
        now = await writer.patch(NODES, namespace_name, labels, resource_version=found.metadata.resource_version)
        assert isinstance(now, Done)
