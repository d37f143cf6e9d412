"""Events: what is said a thousand times is one event with a count, and nobody waits for any of it."""

from __future__ import annotations

import asyncio

import msgspec

from hack.controlplane import ControlPlane
from optimus.kube import Client, Meta, Writer
from optimus.kube import events as events_module
from optimus.kube.counting import TERMINATING
from optimus.kube.events import WARNING, Recorder, Regarding
from optimus.kube.resources import CONFIG_MAPS, EVENTS, NAMESPACES
from tests.kube.client.world import cluster_of, config_map, document, make_namespace
from tests.kube.rude_server import Answer, RudeServer


class Series(msgspec.Struct):
    count: int


class Event(msgspec.Struct):
    metadata: Meta
    reason: str
    note: str
    type: str
    series: Series | None = None


def about(namespace: str, name: str = "a") -> Regarding:
    return Regarding("v1", "Pod", name, namespace, f"uid-{name}")


async def written(client: Client, namespace: str) -> list[Event]:
    found = await client.listing(EVENTS, Event, namespace=namespace)
    return sorted(found.items, key=lambda one: one.metadata.name)


async def test_a_repeated_reason_is_one_event_with_a_count(plane: ControlPlane, namespace_name: str) -> None:
    async with Client(cluster_of(plane)) as client:
        namespace = await make_namespace(client, namespace_name)
        recorder = Recorder(Writer(client), controller="example.com/scheduler", instance="one")
        for number in range(1_000):
            recorder.say(about(namespace), "NoRoom", f"{number} GPUs are free", action="Scheduling", kind=WARNING)
        recorder.say(about(namespace), "Bound", "to node-1", action="Binding")
        recorder.say(about(namespace, "b"), "NoRoom", "x" * 5_000, action="Scheduling")
        await recorder.flush()
        first, second, third = await written(client, namespace)
        assert (first.reason, first.type, first.note) == ("NoRoom", "Warning", "0 GPUs are free")
        assert first.series is not None
        assert first.series.count == 1_000
        assert (second.reason, second.series) == ("Bound", None)
        assert len(third.note.encode()) <= 1024
        assert recorder.dropped == 0


async def test_other_words_are_a_new_event_after_a_while(plane: ControlPlane, namespace_name: str, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(events_module, "RENEW_S", 0.0)
    async with Client(cluster_of(plane)) as client:
        namespace = await make_namespace(client, namespace_name)
        recorder = Recorder(Writer(client), controller="example.com/scheduler", instance="one")
        for note in ("one", "one", "two", "two", "two"):
            recorder.say(about(namespace), "NoRoom", note, action="Scheduling")
        await recorder.flush()
        found = await written(client, namespace)
        assert [(one.note, one.series and one.series.count) for one in found] == [("one", 2), ("two", 3)]


async def test_one_that_ended_on_the_server_is_begun_anew(plane: ControlPlane, namespace_name: str) -> None:
    async with Client(cluster_of(plane)) as client:
        namespace = await make_namespace(client, namespace_name)
        recorder = Recorder(Writer(client), controller="example.com/scheduler", instance="one")
        recorder.say(about(namespace), "NoRoom", "full", action="Scheduling")
        await recorder.flush()
        (first,) = await written(client, namespace)
        await client.delete(EVENTS, first.metadata.name, namespace=namespace)
        for _ in range(2):  # the first is counted in vain
            recorder.say(about(namespace), "NoRoom", "full", action="Scheduling")
            await recorder.flush()
        (second,) = await written(client, namespace)
        assert second.metadata.name != first.metadata.name


async def test_a_server_in_trouble_costs_events_and_nothing_else() -> None:
    async with RudeServer([Answer(503)]) as server, Client(server.cluster) as client:
        recorder = Recorder(Writer(client), controller="example.com/scheduler", instance="one", waiting=10)
        running = asyncio.create_task(recorder.run())
        for number in range(50):
            recorder.say(about("n", f"p{number}"), "NoRoom", "full", action="Scheduling")
        assert recorder.dropped == 40, "the queue is bounded"
        while recorder.dropped < 50:
            await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_a_namespace_that_is_going_takes_no_event_and_that_is_no_missing_right(
    plane: ControlPlane, namespace_name: str
) -> None:
    async with Client(cluster_of(plane)) as client:
        namespace = await make_namespace(client, namespace_name)
        kept = config_map("keeps-it")
        kept["metadata"]["finalizers"] = ["example.com/keeps"]
        await client.create(CONFIG_MAPS, document(kept), namespace=namespace)
        await client.delete(NAMESPACES, namespace)
        recorder = Recorder(Writer(client), controller="example.com/scheduler", instance="one")
        recorder.say(about(namespace), "NoRoom", "x", action="Scheduling")
        await recorder.flush()
        assert recorder.dropped == 1
        assert (client.counters.requests["create", TERMINATING], client.counters.requests["create", "403"]) == (1, 0)
        await client.patch(CONFIG_MAPS, "keeps-it", document({"metadata": {"finalizers": None}}), namespace=namespace)
