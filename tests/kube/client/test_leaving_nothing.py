"""A client that is closed leaves no connection behind, whatever the server was doing: the loop may end right after."""

from __future__ import annotations

import asyncio
import gc
import os
import warnings
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from hack.controlplane import ControlPlane
from optimus.kube import Client, KubeError, Reflector
from optimus.kube.resources import CONFIG_MAPS
from tests.kube.client.world import ConfigMap, cluster_of

Story = Callable[[Client, ControlPlane], Awaitable[None]]


async def _given_up_by_its_time(client: Client, plane: ControlPlane) -> None:
    await client.listing(CONFIG_MAPS, ConfigMap)
    plane.api_server.pause()
    with suppress(KubeError):
        await client.request("GET", "/api", timeout_s=0.2)


async def _cancelled(client: Client, plane: ControlPlane) -> None:
    await client.listing(CONFIG_MAPS, ConfigMap)
    plane.api_server.pause()
    await _begun_and_cancelled(client)


async def _cancelled_in_the_handshake(client: Client, plane: ControlPlane) -> None:
    plane.api_server.pause()
    await _begun_and_cancelled(client)


async def _cancelled_at_any_moment(client: Client, plane: ControlPlane) -> None:
    for milliseconds in range(10):
        await _begun_and_cancelled(client, milliseconds / 1000, "/openapi/v2", count=4)
    plane.api_server.pause()


async def _a_watch_that_is_left(client: Client, plane: ControlPlane) -> None:
    reflector = Reflector(client, CONFIG_MAPS, ConfigMap, lambda _: None)
    watching = asyncio.create_task(reflector.run())
    await reflector.synced.wait()
    plane.api_server.pause()
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)


async def _begun_and_cancelled(client: Client, after_s: float = 0.1, path: str = "/api", count: int = 1) -> None:
    asking = [asyncio.create_task(client.request("GET", path)) for _ in range(count)]
    await asyncio.sleep(after_s)
    for one in asking:
        one.cancel()
    await asyncio.gather(*asking, return_exceptions=True)


@pytest.mark.parametrize(
    "story",
    [
        _given_up_by_its_time,
        _cancelled,
        _cancelled_in_the_handshake,
        _cancelled_at_any_moment,
        _a_watch_that_is_left,
    ],
)
def test_a_server_that_says_no_more_keeps_no_socket_open(plane: ControlPlane, story: Story) -> None:
    async def play() -> None:
        async with Client(cluster_of(plane)) as client:
            await story(client, plane)

    gc.collect()
    before = _sockets()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            asyncio.run(play())
        finally:
            plane.api_server.go_on()
        left = _sockets() - before
        gc.collect()
    assert not left
    assert [str(one.message) for one in told if one.category is ResourceWarning] == []


def _sockets() -> set[str]:
    found = set()
    for one in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # the listing itself is one, and is gone
            found.add(os.readlink(one))
    return {name for name in found if name.startswith("socket:")}
