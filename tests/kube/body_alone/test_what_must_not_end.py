"""A part that has died is noticed, and one kind that cannot be read keeps nobody else waiting."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from aiohttp import web

from optimus.drivers.kube import controller as body
from optimus.drivers.kube import watching as module
from optimus.drivers.kube.controller import Controller, Settings
from optimus.drivers.kube.grouping import shipped_kinds
from optimus.drivers.kube.mirror import Mirror
from optimus.drivers.kube.objects import Anything
from optimus.drivers.kube.queues import watch_queues
from optimus.drivers.kube.reporting import Reporting
from optimus.drivers.kube.watching import Died, Watching
from optimus.kube import Client, Cluster
from optimus.kube.credentials import Fixed, Identity
from optimus.model.observations import WorkloadSeen
from tests.kube.rude_server import event, json_line

POD = {
    "metadata": {
        "name": "p",
        "namespace": "team",
        "uid": "uid-p",
        "resourceVersion": "1",
        "ownerReferences": [
            {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "r", "uid": "uid-r", "controller": True}
        ],
    },
    "spec": {"schedulerName": "optimus", "containers": [{"name": "main"}]},
    "status": {"phase": "Pending"},
}
RAY = {"resources": [{"name": "rayclusters", "kind": "RayCluster", "namespaced": True}]}
RAY_KIND = "ray.io/RayCluster"
END = {"metadata": {"resourceVersion": "1", "annotations": {"k8s.io/initial-events-end": "true"}}}


QUEUES = {"resources": [{"name": "queues", "kind": "Queue", "namespaced": False}]}
OWNER = {"metadata": {"name": "r", "namespace": "team", "uid": "uid-r", "resourceVersion": "1"}, "spec": {}}
VISION = {"metadata": {"name": "vision", "uid": "uid-vision", "resourceVersion": "1"}, "spec": {}}
HIGH = {"metadata": {"name": "high", "uid": "uid-high", "resourceVersion": "1"}, "value": 1000}


class Server:
    """Serves what there is, and RayClusters only while it can."""

    def __init__(self) -> None:
        self.broken = True
        self.ray_version = "v1"
        """Empty: they are not served."""
        self.queues = self.has_owner = False
        self.streams: list[web.StreamResponse] = []
        self.owners: list[web.StreamResponse] = []
        self.asked: list[str] = []
        self.forbidden = ""
        """The end of a path that nobody may read."""

    def lists(self) -> dict[str, Any]:
        versions = [{"version": self.ray_version}]
        ray = [{"name": "ray.io", "versions": versions, "preferredVersion": versions[0]}] if self.ray_version else []
        return {"groups": ray}

    async def answer(self, request: web.Request) -> web.StreamResponse:
        path = request.path
        if path in ("/apis", f"/apis/ray.io/{self.ray_version}"):
            return web.json_response(self.lists() if path == "/apis" else RAY)
        if path == "/apis/optimus.dev/v1alpha1" and self.queues:
            return web.json_response(QUEUES)
        if path.startswith("/apis/ray.io/") and not path.startswith(f"/apis/ray.io/{self.ray_version}/"):
            return web.json_response({"kind": "Status", "code": 404, "message": "not here"}, status=404)
        if path.startswith("/apis/ray.io") and self.broken:
            return web.json_response(
                {"kind": "Status", "code": 500, "message": "conversion webhook failed"}, status=500
            )
        if self.forbidden and path.endswith(self.forbidden):
            return web.json_response({"kind": "Status", "code": 403, "message": "no right to this"}, status=403)
        if "watch" not in request.query:
            return web.json_response({"kind": "Status", "code": 404, "message": "not here"}, status=404)
        response = web.StreamResponse()
        await response.prepare(request)
        if path == "/api/v1/pods":
            await response.write(event("ADDED", POD))
            self.streams.append(response)
        if path.startswith("/apis/ray.io"):
            self.asked.append(path)
            if self.has_owner:
                await response.write(event("ADDED", OWNER))
            self.owners.append(response)
        if path.endswith("/queues"):
            await response.write(event("ADDED", VISION))
        if path.endswith("/priorityclasses"):
            await response.write(event("ADDED", HIGH))
        await response.write(json_line({"type": "BOOKMARK", "object": END}))
        await asyncio.sleep(3600)
        return response


@asynccontextmanager
async def served() -> AsyncIterator[tuple[Server, Cluster]]:
    server, app = Server(), web.Application()
    app.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield (
            server,
            Cluster(
                server=f"http://127.0.0.1:{runner.addresses[0][1]}", credentials=Fixed(Identity()), namespace="here"
            ),
        )
    finally:
        await runner.cleanup()


async def until(true: Any) -> None:
    async with asyncio.timeout(30):
        while not true():
            await asyncio.sleep(0.02)


async def test_one_kind_that_cannot_be_read_keeps_only_its_own_work_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "OPTIONAL_S", 0.2)
    monkeypatch.setattr(module, "PATIENCE_S", 0.05)
    async with served() as (server, cluster), Client(cluster) as client:
        mirror = Mirror(shipped_kinds())
        watching = Watching(client, mirror, shipped_kinds(), lambda: None)
        try:
            await asyncio.wait_for(watching.start(), 20)
            (unread,) = watching.unsynced()
            assert unread.startswith("ray.io/RayCluster (") and "conversion webhook failed" in unread
            watching.read_owners()
            await until(lambda: mirror.groups.group_of("uid-p"))
            (told,) = [fact.workload for fact in mirror.everything() if isinstance(fact, WorkloadSeen)]
            assert told.obstacle is not None and told.obstacle.code == "NotReady"
            assert "ray.io/RayCluster cannot be read" in told.obstacle.text()
            server.broken = False
            await until(lambda: not watching.unsynced() and not mirror.aside.unread)
            again = [fact.workload for fact in mirror.news() if isinstance(fact, WorkloadSeen)]
            assert not again or "cannot be read" not in str(again[0].obstacle and again[0].obstacle.text())
        finally:
            await watching.close()


async def test_who_may_not_read_priority_classes_goes_on_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user of the command line, or a controller whose role is older than it."""
    monkeypatch.setattr(module, "PATIENCE_S", 0.05)
    async with served() as (server, cluster), Client(cluster) as client:
        server.broken, server.forbidden = False, "/priorityclasses"
        mirror = Mirror(shipped_kinds())
        job: dict[str, Any] = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "team"}}
        job["metadata"] |= {"uid": "uid-j", "labels": {"optimus.dev/queue": "default"}}
        named = {"schedulerName": "optimus", "containers": [{"name": "m"}], "priorityClassName": "high"}
        mirror.owner(msgspec.convert({**job, "spec": {"suspend": True, "template": {"spec": named}}}, Anything))
        watching = Watching(client, mirror, shipped_kinds(), lambda: None)
        try:
            await asyncio.wait_for(watching.start(), 5)
            (unread,) = watching.unsynced()
            assert unread.startswith("priority classes (") and "no right to this" in unread
            mirror.everything()
            assert mirror.workloads["team/job/j"].priority is None and not mirror.workloads["team/job/j"].obstacle
            server.forbidden = ""
            await until(lambda: not watching.unsynced())
            mirror.news()
            assert mirror.workloads["team/job/j"].priority == 1000, "the right came later"
        finally:
            await watching.close()


async def test_a_watch_that_ends_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bound on a frozen picture, pods go where there is no room any more."""
    monkeypatch.setattr(module, "OPTIONAL_S", 0.2)
    async with served() as (server, cluster):
        controller = Controller(cluster, Settings(elect=False))
        running = asyncio.create_task(controller.run(asyncio.Event()))
        await until(lambda: controller.leading is not None and controller.leading.turns)

        def breaks(_uid: str) -> None:
            raise RuntimeError("nobody thought of this")

        monkeypatch.setattr(controller.mirror, "pod_gone", breaks)
        await server.streams[-1].write(event("DELETED", POD))
        with pytest.raises(Died, match="the watch of pods has ended: RuntimeError"):
            await asyncio.wait_for(running, 20)


async def test_what_tells_people_begins_anew_and_decisions_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "OPTIONAL_S", 0.2)
    monkeypatch.setattr(body, "AGAIN_S", 0.01)

    async def breaks(_: Reporting) -> None:
        raise RuntimeError("nobody thought of this")

    monkeypatch.setattr(Reporting, "run", breaks)
    async with served() as (_, cluster):
        controller, stop = Controller(cluster, Settings(elect=False)), asyncio.Event()
        running = asyncio.create_task(controller.run(stop))
        await until(lambda: controller.metrics.begun_anew["conditions"] > 2)
        assert not running.done() and controller.leading is not None
        stop.set()
        await asyncio.wait_for(running, 20)


async def test_a_watch_of_which_nothing_is_heard_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "OPTIONAL_S", 0.2)
    async with served() as (_, cluster):
        controller, stop = Controller(cluster, Settings(elect=False)), asyncio.Event()
        running = asyncio.create_task(controller.run(stop))
        await until(controller.synced.is_set)
        assert not any(trouble for _, trouble in (*controller.alive_checks(), *controller.ready_checks()))
        nodes = controller.metrics.reflectors["nodes"].reflection
        nodes._heard -= module.SILENT_S + 1
        assert "nothing was heard of nodes for 40" in dict(controller.alive_checks())["watches"]
        nodes.trouble = "503: the server is not ready"
        assert dict(controller.alive_checks())["watches"] == "", "a restart would not help"
        assert "503: the server is not ready" in dict(controller.ready_checks())["watches"]
        stop.set()
        await asyncio.wait_for(running, 20)


async def test_an_owner_that_went_while_it_was_read_is_not_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 0.0)
    async with served() as (server, cluster), Client(cluster) as client:
        server.broken = False
        mirror = Mirror(shipped_kinds())
        watching = Watching(client, mirror, shipped_kinds(), lambda: None)
        meta = {"name": "r", "namespace": "team", "uid": "uid-r"}
        ray = msgspec.convert({"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": meta}, Anything)

        async def slow(*_: object, **__: object) -> Anything:
            mirror.owner(ray)
            mirror.owner_gone("uid-r")
            return ray

        try:
            await asyncio.wait_for(watching.start(), 20)
            monkeypatch.setattr(client, "get", slow)
            watching.read_owners()
            await until(lambda: mirror.groups.group_of("uid-p"))
            await asyncio.sleep(0.05)
            assert "uid-r" in mirror.groups.absent
        finally:
            await watching.close()


async def test_a_kind_that_is_not_served_any_more_is_watched_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does anything complain of it; and when it comes back, in another version, it is read from there."""
    monkeypatch.setattr(module, "DISCOVER_S", 0.05)
    async with served() as (server, cluster), Client(cluster) as client:
        server.broken, server.has_owner = False, True
        mirror = Mirror(shipped_kinds())
        owners: dict[str, str] = {}
        monkeypatch.setattr(mirror, "owner", lambda one: owners.update({one.metadata.uid: one.api_version}))
        monkeypatch.setattr(mirror, "owner_gone", owners.pop)
        watching = Watching(client, mirror, shipped_kinds(), lambda: None)
        try:
            await asyncio.wait_for(watching.start(), 20)
            assert owners == {"uid-r": "ray.io/v1"}
            server.ray_version = ""
            server.owners[-1].force_close()
            await server.owners[-1].write_eof()
            await until(lambda: RAY_KIND not in watching.reflectors)
            assert owners == {} and watching.unsynced() == [] and not watching.died.done()
            server.ray_version = "v2"
            await until(lambda: owners == {"uid-r": "ray.io/v2"})
            server.ray_version = "v3"
            server.owners[-1].force_close()
            await server.owners[-1].write_eof()
            await until(lambda: owners == {"uid-r": "ray.io/v3"})
        finally:
            await watching.close()


async def test_queues_that_come_after_the_controller_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DISCOVER_S", 0.05)
    async with served() as (server, cluster), Client(cluster) as client:
        server.broken = False
        mirror = Mirror(shipped_kinds())
        watching = Watching(client, mirror, shipped_kinds(), lambda: None)
        try:
            await asyncio.wait_for(watching.start(), 20)
            set_up = await watch_queues(watching, mirror)
            assert set(mirror.tenants.queues) == {"default"}, "the one that stands in"
            server.queues = True
            await until(lambda: set(mirror.tenants.queues) == {"vision"})
            assert set(set_up.queues) == {"vision"}
        finally:
            await watching.close()
