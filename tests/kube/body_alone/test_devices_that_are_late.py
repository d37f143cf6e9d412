"""Pods that have a place and wait for devices: lost answers, others at the same moment, drafts that nobody needs."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest
from msgspec import structs

from optimus.api.specs.queues import ClusterQueueSpec
from optimus.drivers.kube.allocating import CONFIRM_S, DRAFT_S, FINALIZER
from optimus.drivers.kube.device_objects import ResourceClaim
from optimus.drivers.kube.objects import Pod, PodClaim, Resources
from optimus.kube import Conflict, Done, Outcome, Refused, Unknown
from optimus.model.reasons import Code, reason
from tests.kube.body_alone.cluster import Alone, node, pod
from tests.pods.claiming import GPUS, asking, claim, device, device_class, given, gpu, slices

DRIVER = "nic.example.com"


class Server:
    """Claims as a server keeps them; `show` is the watch."""

    def __init__(self, alone: Alone, *names: str, ports: int = 2) -> None:
        self.alone, self.patches = alone, list[tuple[str, str]]()
        self.answers: list[Outcome | None] = []
        """The next ones; None: it is done, and nobody is told."""
        one = [claim(name, asking("nics")) for name in names]
        self.claims: dict[str, dict[str, Any]] = {x.metadata.name: msgspec.to_builtins(x) for x in one}
        alone.writer.patch = self._patch  # type: ignore[method-assign, assignment]
        catalog = alone.mirror.around.devices.catalog
        catalog.classes["nics"] = device_class("nics", f'device.driver == "{DRIVER}"')
        catalog.slices["s"] = slices("n0", [device(f"port-{i}") for i in range(ports)], DRIVER)
        self.show()

    async def _patch(self, _: object, name: str, changes: Any, subresource: str = "", **more: Any) -> Outcome:
        self.patches.append((name, subresource))
        answer = self.answers.pop(0) if self.answers else Done()
        if answer is not None and not isinstance(answer, Done):
            return answer
        known = self.claims[name]
        assert more["resource_version"] == known["metadata"]["resourceVersion"]
        known["metadata"] |= {key: value for key, value in changes["metadata"].items() if key == "finalizers"}
        status = {**known.get("status", {}), **changes.get("status", {})}
        known["status"] = {key: value for key, value in status.items() if value is not None}
        known["metadata"]["resourceVersion"] += "1"
        return Unknown("no answer") if answer is None else Done(json.dumps(known).encode())

    def give(self, name: str, one: str) -> None:
        """As another scheduler does it."""
        made = claim(name, asking("nics"), allocation=given(f"{DRIVER}/n0/{one}", node="n0"))
        self.claims[name] = msgspec.to_builtins(made)

    def has(self, name: str) -> list[str]:
        return [one.device for one in msgspec.convert(self.claims[name], ResourceClaim).given]

    def show(self) -> None:
        known = self.alone.mirror.around
        known.devices.claims.clear()
        known.devices.claims.update({f"team/{k}": msgspec.convert(v, ResourceClaim) for k, v in self.claims.items()})
        self.alone.mirror.surroundings(known)


def using(one: Pod, name: str) -> Pod:
    wanted = msgspec.convert({"name": "c", "resourceClaimName": name}, PodClaim)
    return structs.replace(one, spec=structs.replace(one.spec, resource_claims=[wanted]))


async def turns(alone: Alone, count: int = 3) -> None:
    for _ in range(count):
        await alone.turn()


def test_nothing_is_bound_before_the_watch_shows_its_devices() -> None:
    async def story() -> None:
        alone = Alone()
        server = Server(alone, "mine")
        alone.mirror.pod(using(pod("a"), "mine"))
        await turns(alone)
        assert server.patches == [("mine", ""), ("mine", "status")], "the finalizer, and then all the rest at once"
        assert server.has("mine") == ["port-0"] and alone.writer.binds == []
        assert server.claims["mine"]["metadata"]["finalizers"] == [FINALIZER]
        assert "devices for resource claim mine on n0" in alone.acting.preparing.reasons["team/pod/a"].text()  # type: ignore[union-attr]
        server.show()
        await turns(alone)
        assert alone.writer.binds == [("a", "n0")] and len(server.patches) == 2

    asyncio.run(story())


def test_a_gang_is_bound_when_all_have_their_devices() -> None:
    async def story() -> None:
        alone = Alone()
        server = Server(alone, "one", "two")
        server.answers = [Done(), Done(), Conflict("another version")]
        for name in ("one", "two"):
            alone.mirror.pod(using(pod(name, gang="g", size=2), name))
        await alone.turn()
        await alone.turn()
        server.show()
        await turns(alone)
        server.show()
        assert [server.has("one"), server.has("two")] == [["port-0"], ["port-1"]]
        await turns(alone)
        assert sorted(alone.writer.binds) == [("one", "n0"), ("two", "n0")]

    asyncio.run(story())


def test_a_write_of_which_nothing_was_heard_is_seen_or_written_again() -> None:
    async def story() -> None:
        alone = Alone()
        server = Server(alone, "mine")
        server.answers = [Done(), Unknown("no answer")]
        alone.mirror.pod(using(pod("a"), "mine"))
        await turns(alone)
        server.show()
        await turns(alone)
        assert server.has("mine") == [] and len(server.patches) == 2, "it may still come"
        alone.now += CONFIRM_S + 1
        server.answers = [None]
        await turns(alone)
        assert server.has("mine") == ["port-0"] and alone.writer.binds == []
        server.show()
        await turns(alone)
        assert alone.writer.binds == [("a", "n0")]

    asyncio.run(story())


def test_a_refusal_gives_the_place_back() -> None:
    async def story() -> None:
        alone = Alone()
        server = Server(alone, "mine")
        server.answers = [Refused("Forbidden", "you may not")]
        alone.mirror.pod(using(pod("a"), "mine"))
        await turns(alone)
        plan = await alone.turn()
        assert [str(one.reason.code) for one in plan.waiting] == ["BackingOff"]
        assert "resource claim mine: Forbidden: you may not" in plan.waiting[0].reason.text()
        assert alone.writer.binds == []

    asyncio.run(story())


def test_a_device_that_another_scheduler_gave_at_the_same_moment_is_left_to_it() -> None:
    async def story() -> None:
        alone = Alone()
        server = Server(alone, "mine", "theirs")
        alone.mirror.pod(using(pod("a"), "mine"))
        await turns(alone)
        assert server.has("mine") == ["port-0"]
        server.give("theirs", "port-0")
        server.show()
        await turns(alone)
        assert alone.writer.binds == [] and server.has("mine") == [], "ours is taken back"
        server.show()
        alone.now += 5
        await turns(alone, 4)
        assert server.has("mine") == ["port-1"], "and gets another one"
        server.show()
        await turns(alone)
        assert alone.writer.binds == [("a", "n0")]

    asyncio.run(story())


def test_a_draft_of_work_that_has_to_leave_is_taken_back() -> None:
    async def story() -> None:
        alone = Alone()
        server = Server(alone, "mine")
        alone.mirror.pod(using(pod("a"), "mine"))
        await turns(alone, 2)
        server.show()
        alone.acting.stop("team/pod/a", reason(Code.SUSPENDED))
        alone.mirror.pod(_gated(using(pod("a"), "mine")))
        await turns(alone)
        assert server.has("mine") == ["port-0"], "a bind of somebody else may still be on its way"
        alone.now += DRAFT_S + 1
        await turns(alone)
        assert server.has("mine") == [] and alone.writer.binds == []

    asyncio.run(story())


def _gated(one: Pod) -> Pod:
    spec = msgspec.convert({**msgspec.to_builtins(one.spec), "schedulingGates": [{"name": "x"}]}, type(one.spec))
    return structs.replace(one, spec=spec)


def test_a_draft_of_a_former_leader_is_kept_where_it_fits_and_moved_where_it_does_not() -> None:
    async def story() -> None:
        alone = Alone(nodes=2)
        server = Server(alone, "fits", "moves")
        consumers = {name: [{"resource": "pods", "name": name, "uid": f"uid-{name}"}] for name in ("fits", "moves")}
        here, there = given(f"{DRIVER}/n0/port-1", node="n0"), given(f"{DRIVER}/n1/port-0", node="n1")
        for name, allocation in (("fits", here), ("moves", there)):
            made = claim(name, asking("nics"), allocation=allocation, reservedFor=consumers[name])
            server.claims[name] = msgspec.to_builtins(made)
        server.show()
        for name in ("fits", "moves"):
            alone.mirror.pod(using(pod(name, gang="g", size=2), name))
        await turns(alone)
        assert server.patches == [], "nothing is written while a bind of his may be on its way"
        alone.now += DRAFT_S + 1
        await turns(alone)
        assert [server.has("fits"), server.has("moves")] == [["port-1"], []]
        server.show()
        await turns(alone)
        assert [server.has("fits"), server.has("moves")] == [["port-1"], ["port-0"]]
        server.show()
        await turns(alone)
        assert sorted(alone.writer.binds) == [("fits", "n0"), ("moves", "n0")]

    asyncio.run(story())


def test_devices_of_a_pod_that_was_deleted_meanwhile_are_given_to_the_next() -> None:
    """Its claim is never seen by anybody who looks for it, and soon it is gone."""

    async def story() -> None:
        alone = Alone()
        server = Server(alone, "mine", ports=1)
        alone.mirror.pod(using(pod("a"), "mine"))
        await turns(alone)
        assert server.has("mine") == ["port-0"] and alone.writer.binds == []
        alone.mirror.pod_gone("uid-a")
        await turns(alone)
        del server.claims["mine"]
        await served_next(alone, server, "other")

    asyncio.run(story())


def test_the_same_where_the_write_was_lost_and_the_claim_is_still_there() -> None:
    async def story() -> None:
        alone = Alone()
        server = Server(alone, "mine", ports=1)
        server.answers = [Done(), Unknown("no answer")]
        alone.mirror.pod(using(pod("a"), "mine"))
        await turns(alone)
        server.show()
        alone.mirror.pod_gone("uid-a")
        await turns(alone)
        assert server.has("mine") == []
        alone.now += CONFIRM_S + 1
        await served_next(alone, server, "other")

    asyncio.run(story())


def test_a_new_claim_with_an_old_name_is_another_one() -> None:
    async def story() -> None:
        alone = Alone()
        server = Server(alone, "mine", ports=1)
        server.answers = [Done(), Unknown("no answer")]
        alone.mirror.pod(using(pod("a"), "mine"))
        await turns(alone)
        alone.mirror.pod_gone("uid-a")
        server.claims["mine"]["metadata"]["uid"] = "another"
        await served_next(alone, server, "mine")

    asyncio.run(story())


def test_devices_are_kept_as_long_as_a_slow_server_has_not_answered() -> None:
    async def story() -> None:
        alone = Alone()
        server = Server(alone, "mine", "other", ports=1)
        written, now = server._patch, asyncio.Event()

        async def slowly(*some: Any, **more: Any) -> Outcome:
            await now.wait()
            return await written(*some, **more)

        alone.writer.patch = slowly  # type: ignore[method-assign]
        alone.mirror.pod(using(pod("a"), "mine"))
        await turns(alone)
        alone.now += 2 * CONFIRM_S
        alone.mirror.pod_gone("uid-a")  # and its write is still on its way
        alone.mirror.pod(using(pod("b"), "other"))
        await turns(alone)
        now.set()
        await turns(alone)
        assert (server.has("mine"), server.has("other")) == (["port-0"], [])

    asyncio.run(story())


async def served_next(alone: Alone, server: Server, name: str) -> None:
    """The next pod, which uses the claim with this name."""
    server.claims.setdefault(name, msgspec.to_builtins(claim(name, asking("nics"))))
    server.show()
    alone.mirror.pod(using(pod("b"), name))
    for _ in range(3):
        await turns(alone, 2)
        server.show()
    assert server.has(name) == ["port-0"] and alone.writer.binds == [("b", "n0")]


def test_devices_of_a_pod_that_is_gone_are_waited_for() -> None:
    """Its claim has them until Kubernetes takes them back; a place that was freed is not given up for that."""

    async def story() -> None:
        alone = Alone()
        server = Server(alone, "old", "mine", ports=1)
        server.give("old", "port-0")
        server.claims["old"]["status"]["reservedFor"] = [{"resource": "pods", "name": "gone", "uid": "uid-gone"}]
        server.show()
        alone.mirror.pod(using(pod("a"), "mine"))
        await turns(alone, 5)
        assert alone.writer.binds == [] and alone.acting.failed_binds == 0
        server.claims["old"]["status"] = {}
        server.show()
        await turns(alone)
        server.show()
        await turns(alone)
        assert server.has("mine") == ["port-0"] and alone.writer.binds == [("a", "n0")]

    asyncio.run(story())


@pytest.mark.parametrize(
    "steps", [("p0", "p1", "c0", "c1"), ("p0", "c0", "p1", "c1"), ("p0 p1", "c0 c1"), ("c1", "p1", "p0", "c0")]
)
def test_lent_gpus_come_back_one_by_one(steps: tuple[str, ...]) -> None:
    """First a pod goes, then its claim, which has its GPU until then; the owner starts when all are there."""

    async def story() -> None:
        alone = Alone(nodes=0)
        alone.mirror.node(node("n0", gpus=0))
        for name, quota in (("owner", {"guarantee": 2}), ("borrower", {"guarantee": 0})):
            made = ClusterQueueSpec.model_validate({"name": name, "gpu": quota})
            alone.mirror.tenants.queue(made.to_queue(now_ms=0, created_ms=0))
        server = Server(alone, "c0", "c1", "mine")
        catalog = alone.mirror.around.devices.catalog
        catalog.classes["nics"] = GPUS
        catalog.slices["s"] = slices("n0", [gpu("port-0"), gpu("port-1")])
        catalog.changed()
        server.claims["mine"] = msgspec.to_builtins(claim("mine", asking("nics", 2)))
        server.show()
        lent = [in_queue(using(pod(f"p{number}"), f"c{number}"), "borrower") for number in range(2)]
        for one in lent:
            alone.mirror.pod(one)
        for _ in range(4):
            await alone.turn()
            server.show()
        assert len(alone.writer.binds) == 2, "idle GPUs are lent"
        lent = [structs.replace(one, spec=structs.replace(one.spec, node_name="n0")) for one in lent]
        for one in lent:
            alone.mirror.pod(one)
        alone.mirror.pod(in_queue(using(pod("mine"), "mine"), "owner"))
        await turns(alone)
        assert sorted(alone.writer.evicted) == ["p0", "p1"]
        for one in lent:
            leaving = structs.replace(one.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
            alone.mirror.pod(structs.replace(one, metadata=leaving))
        for step in steps:
            assert len(alone.writer.binds) == 2
            for name in step.split():
                if name in server.claims:
                    del server.claims[name]
                    server.show()
                else:
                    alone.mirror.pod_gone(f"uid-{name}")
            await alone.turn()
        await turns(alone)
        server.show()
        await turns(alone)
        assert alone.writer.binds[2:] == [("mine", "n0")]

    asyncio.run(story())


def in_queue(one: Pod, queue: str) -> Pod:
    """Its GPUs come by claims alone."""
    labels = {**(one.metadata.labels or {}), "optimus.dev/queue": queue}
    bare = [structs.replace(container, resources=Resources()) for container in one.spec.containers]
    spec = structs.replace(one.spec, containers=bare)
    return structs.replace(one, metadata=structs.replace(one.metadata, labels=labels), spec=spec)
