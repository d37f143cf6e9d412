"""A live copy at a real server: through cuts, kills and forgotten history, nothing is lost and nothing told twice."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hack.controlplane import ControlPlane, missing_toolchain
from optimus.kube import Client, Done, Reflector, Writer, load
from optimus.kube.backing_off import Backoff
from optimus.kube.resources import CONFIG_MAPS, Resource
from tests.kube.client.test_config import real
from tests.kube.client.world import (
    ConfigMap,
    Copy,
    cluster_of,
    make_config_maps,
    make_namespace,
    until,
)
from tests.kube.cutting_proxy import CuttingProxy

LONG = 900_000


@pytest.fixture(scope="module")
def fragile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A server that may be killed: others use the shared one."""
    if why := missing_toolchain():
        pytest.skip(why)
    with ControlPlane(tmp_path_factory.mktemp("fragile")) as started:
        yield started


@asynccontextmanager
async def reflecting(
    client: Client, namespace: str, copy: Copy, resource: Resource = CONFIG_MAPS, **options: Any
) -> AsyncIterator[Reflector[ConfigMap]]:
    usual = {"fields": MINE, "backoff": Backoff(first_s=0.05, most_s=0.5)}
    reflector = Reflector(client, resource, ConfigMap, copy.hear, namespace=namespace, **{**usual, **options})
    running = asyncio.create_task(reflector.run())
    try:
        yield reflector
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        if not running.cancelled() and running.exception():
            raise running.exception()  # type: ignore[misc]


MINE = "metadata.name!=kube-root-ca.crt"
"""The controllers of Kubernetes put one map into every namespace."""


async def change(client: Client, namespace: str, name: str, **data: str) -> None:
    done = await Writer(client).patch(CONFIG_MAPS, name, {"data": data}, namespace=namespace)
    assert isinstance(done, Done), done


async def remove(client: Client, namespace: str, name: str) -> None:
    assert isinstance(await Writer(client).delete(CONFIG_MAPS, name, namespace=namespace), Done)


@pytest.mark.parametrize("watch_list", [True, False], ids=["streamed", "paged"])
async def test_what_is_there_is_told_first_and_then_everything_that_happens(
    plane: ControlPlane, namespace_name: str, watch_list: bool
) -> None:
    copy = Copy()
    async with Client(cluster_of(plane)) as client:
        namespace = await make_namespace(client, namespace_name)
        await make_config_maps(client, namespace, [f"c{number}" for number in range(600)])
        async with reflecting(client, namespace, copy, watch_list=watch_list) as reflector:
            await asyncio.wait_for(reflector.synced.wait(), 30)
            assert len(copy.now) == 600, "all of it is told before it is said to be"
            await change(client, namespace, "c1", a="new")
            await remove(client, namespace, "c2")
            await make_config_maps(client, namespace, ["later"])
            await until(lambda: len(copy.told) == 603)
            assert copy.whats()[600:] == ["changed", "deleted", "added"]
            assert copy.now[f"{namespace}/c1"].data == {"a": "new"}
            assert copy.told[601].object is not None, "a deletion that was seen comes with the last of it"
            assert client.counters.requests["list", "200"] == (0 if watch_list else 2)


async def test_only_what_the_selectors_choose_is_told(plane: ControlPlane, namespace_name: str) -> None:
    copy = Copy()
    async with Client(cluster_of(plane)) as client:
        namespace = await make_namespace(client, namespace_name)
        await make_config_maps(client, namespace, ["a", "b"])
        async with reflecting(client, namespace, copy, fields="metadata.name=a") as reflector:
            await reflector.synced.wait()
            await change(client, namespace, "b", x="1")
            await change(client, namespace, "a", x="1")
            await until(lambda: len(copy.told) == 2)
            assert copy.whats(f"{namespace}/a") == ["added", "changed"]


async def test_an_object_much_longer_than_any_buffer_arrives(plane: ControlPlane, namespace_name: str) -> None:
    copy = Copy()
    async with Client(cluster_of(plane)) as client:
        namespace = await make_namespace(client, namespace_name)
        async with reflecting(client, namespace, copy) as reflector:
            await reflector.synced.wait()
            await make_config_maps(client, namespace, ["long"], text="x" * LONG)
            await until(lambda: f"{namespace}/long" in copy.now)
            assert len(copy.now[f"{namespace}/long"].data["text"]) == LONG


async def test_a_watch_that_is_cut_goes_on_where_it_was(plane: ControlPlane, namespace_name: str) -> None:
    copy = Copy()
    async with (
        Client(cluster_of(plane)) as client,
        CuttingProxy(cluster_of(plane)) as proxy,
        Client(proxy.cluster) as cut_client,
    ):
        namespace = await make_namespace(client, namespace_name)
        await make_config_maps(client, namespace, ["a", "b"])
        async with reflecting(cut_client, namespace, copy) as reflector:
            await reflector.synced.wait()
            for number in range(10):
                proxy.refuses = True
                proxy.cut()
                await change(client, namespace, "a", n=str(number))
                await until(lambda: bool(reflector.reflection.trouble))
                proxy.refuses = False
                await until(lambda: copy.told[-1].object and copy.told[-1].object.data == {"n": str(number)})  # noqa: B023
                assert reflector.reflection.trouble == ""
            assert reflector.reflection.fillings == 1, "history was enough: nothing was listed again"
            assert copy.whats() == ["added"] * 2 + ["changed"] * 10


async def test_cuts_at_any_moment_lose_nothing(plane: ControlPlane, namespace_name: str) -> None:
    """Many changes while connections are cut every few milliseconds; in the end the copy is what is there."""
    copy = Copy()
    async with (
        Client(cluster_of(plane)) as client,
        CuttingProxy(cluster_of(plane)) as proxy,
        Client(proxy.cluster) as cut_client,
    ):
        namespace = await make_namespace(client, namespace_name)

        async def cut_now_and_then() -> None:
            for number in itertools.count():
                await asyncio.sleep(0.02 + 0.01 * (number % 7))
                proxy.cut()

        impatient = Backoff(first_s=0.001, most_s=0.01)
        async with reflecting(cut_client, namespace, copy, backoff=impatient) as reflector:
            cutting = asyncio.create_task(cut_now_and_then())
            for turn in range(4):
                names = [f"t{turn}-{number}" for number in range(40)]
                await make_config_maps(client, namespace, names, text="x" * 20_000)
                for name in names[::2]:
                    await remove(client, namespace, name)
            await until(lambda: reflector.reflection.failures > 5)
            cutting.cancel()
            there = await client.listing(CONFIG_MAPS, ConfigMap, namespace=namespace, fields=MINE)
            wanted = {f"{namespace}/{one.metadata.name}": one.metadata.resource_version for one in there.items}
            await until(lambda: {key: one.metadata.resource_version for key, one in copy.now.items()} == wanted)
            assert len(wanted) == 80


async def test_a_connection_that_says_nothing_any_more_is_given_up(plane: ControlPlane, namespace_name: str) -> None:
    copy = Copy()
    async with (
        Client(cluster_of(plane)) as client,
        CuttingProxy(cluster_of(plane)) as proxy,
        Client(proxy.cluster) as far,
    ):
        namespace = await make_namespace(client, namespace_name)
        async with reflecting(far, namespace, copy, quiet_s=0.5) as reflector:
            await reflector.synced.wait()
            proxy.freeze()
            await make_config_maps(client, namespace, ["meanwhile"])
            await until(lambda: "watch broke off" in reflector.reflection.trouble)
            assert not copy.now
            proxy.cut()
            proxy.go_on()
            await until(lambda: f"{namespace}/meanwhile" in copy.now)


async def test_a_server_that_starts_anew_has_no_history_and_what_was_missed_is_told(
    fragile: ControlPlane, namespace_name: str
) -> None:
    """A real 410: while we are cut off, things happen and the server is killed; it cannot tell what happened before."""
    copy = Copy()
    async with (
        Client(cluster_of(fragile)) as client,
        CuttingProxy(cluster_of(fragile)) as proxy,
        Client(proxy.cluster) as cut_client,
    ):
        namespace = await make_namespace(client, namespace_name)
        await make_config_maps(client, namespace, ["stays", "changes", "goes", "returns"])
        async with reflecting(cut_client, namespace, copy) as reflector:
            await reflector.synced.wait()
            uid = copy.now[f"{namespace}/returns"].metadata.uid
            proxy.refuses = True
            proxy.cut()
            await change(client, namespace, "changes", a="1")
            await remove(client, namespace, "goes")
            await remove(client, namespace, "returns")
            await make_config_maps(client, namespace, ["returns", "new"])
            fragile.api_server.kill()
            fragile.start_again(fragile.api_server)  # here: it would die with the thread that starts it
            proxy.refuses = False
            await until(lambda: f"{namespace}/new" in copy.now and f"{namespace}/goes" not in copy.now)
            assert reflector.reflection.expired >= 1, "the server said 410"
            assert reflector.reflection.fillings == 2
            assert copy.whats(f"{namespace}/stays") == ["added"], "unchanged: not told again"
            assert copy.whats(f"{namespace}/changes") == ["added", "changed"]
            assert copy.whats(f"{namespace}/goes") == ["added", "deleted"]
            assert copy.whats(f"{namespace}/returns") == ["added", "deleted", "added"], "another object of that name"
            assert copy.now[f"{namespace}/returns"].metadata.uid != uid


async def test_a_server_that_is_killed_and_comes_back_is_followed_again(
    fragile: ControlPlane, namespace_name: str
) -> None:
    copy = Copy()
    async with Client(cluster_of(fragile)) as client:
        namespace = await make_namespace(client, namespace_name)
        async with reflecting(client, namespace, copy) as reflector:
            await reflector.synced.wait()
            fragile.api_server.kill()
            await until(lambda: "nobody answers" in reflector.reflection.trouble)
            fragile.start_again(fragile.api_server)  # here: it would die with the thread that starts it
            await make_config_maps(client, namespace, ["after"])
            await until(lambda: f"{namespace}/after" in copy.now)


async def test_a_token_that_ends_while_watching_is_renewed(
    plane: ControlPlane, namespace_name: str, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text(plane.token())
    copy = Copy()
    async with (
        Client(cluster_of(plane)) as client,
        CuttingProxy(load(real(plane, tmp_path, {"tokenFile": str(token)}))) as proxy,
        Client(proxy.cluster) as cut_client,
    ):
        namespace = await make_namespace(client, namespace_name)
        async with reflecting(cut_client, namespace, copy) as reflector:
            await reflector.synced.wait()
            # The one in memory is made a bad one, as if it had expired; the file has a good one.
            token.write_text("expired")
            cut_client.cluster.credentials.refused(cut_client.cluster.credentials.current())
            proxy.cut()
            await until(lambda: "401" in reflector.reflection.trouble)
            token.write_text(plane.token())
            await make_config_maps(client, namespace, ["after"])
            await until(lambda: f"{namespace}/after" in copy.now)
            assert cut_client.counters.renewed_credentials == 1


async def test_an_error_of_whoever_listens_is_not_swallowed(plane: ControlPlane, namespace_name: str) -> None:
    def broken(_: object) -> None:
        raise ZeroDivisionError

    async with Client(cluster_of(plane)) as client:
        namespace = await make_namespace(client, namespace_name)
        await make_config_maps(client, namespace, ["a"])
        with pytest.raises(ZeroDivisionError):
            await Reflector(client, CONFIG_MAPS, ConfigMap, broken, namespace=namespace).run()
