"""Where a kind lives stays known while it is asked for again: a Job can be suspended at any moment."""

from __future__ import annotations

import json
from typing import Any, cast

from optimus.drivers.kube.discovering import Discovery
from optimus.kube import Client
from optimus.kube.errors import NotFound

JOB = "batch/Job"
SERVED = {
    "/apis": {"groups": [{"name": "batch", "preferredVersion": {"version": "v1"}}]},
    "/apis/batch/v1": {"resources": [{"name": "jobs", "kind": "Job", "namespaced": True}]},
}


class Server:
    def __init__(self) -> None:
        self.serves: dict[str, Any] = dict(SERVED)

    async def request(self, _method: str, path: str, **_: Any) -> bytes:
        if path not in self.serves:
            raise NotFound(404, "NotFound", path)
        return json.dumps(self.serves[path]).encode()


async def test_what_was_found_once_is_known_through_every_refresh() -> None:
    discovery = Discovery(cast("Client", Server()))
    await discovery.refresh()
    assert discovery.known(JOB) is None, "nobody has asked"
    found = await discovery.resource(JOB)
    assert found is not None and found.plural == "jobs"
    for _ in range(2):
        await discovery.refresh()
        assert discovery.known(JOB, "batch/v1") == discovery.known(JOB) == found


async def test_what_is_no_longer_served_is_told_to_who_asks() -> None:
    server = Server()
    discovery = Discovery(cast("Client", server))
    await discovery.refresh()
    assert await discovery.resource(JOB) is not None
    server.serves = {"/apis": {"groups": []}}
    await discovery.refresh()
    assert await discovery.resource(JOB) is None
