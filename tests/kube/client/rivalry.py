"""Rivals as real processes, and the audit of their writes: the server's order says who led when."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from hack.controlplane import ControlPlane
from hack.controlplane.processes import Process
from optimus.kube import Change, Client, Reflector
from optimus.kube.backing_off import Backoff
from optimus.kube.resources import CONFIG_MAPS
from tests.kube.client.rival import SHARED
from tests.kube.client.world import ConfigMap, cluster_of, make_config_maps, make_namespace, until


class Audit:
    """Every write of a rival that the server has taken, in the server's order."""

    def __init__(self) -> None:
        self.writes: list[tuple[str, int, int, float]] = []
        self.shared: list[tuple[str, int]] = []

    def hear(self, change: Change[ConfigMap]) -> None:
        if change.object is None or not change.object.data:
            return
        name, data = change.object.metadata.name, change.object.data
        if name == SHARED:
            self.shared.append((data["by"], int(data["term"])))
        elif "count" in data:
            self.writes.append((name, int(data["count"]), int(data["term"]), time.monotonic()))

    def by(self, who: str) -> int:
        return sum(1 for name, *_ in self.writes if name == who)

    def last_of(self, who: str) -> tuple[str, int, int, float]:
        return next(one for one in reversed(self.writes) if one[0] == who)

    def leaders(self) -> list[tuple[str, int]]:
        """(who, term) in the order in which they began; each once unless somebody wrote out of turn."""
        order: list[tuple[str, int]] = []
        for name, _, term, _ in self.writes:
            if not order or order[-1] != (name, term):
                order.append((name, term))
        return order


class Stage:
    def __init__(self, plane: ControlPlane, client: Client, namespace: str, folder: Path) -> None:
        self.client, self.namespace, self.audit = client, namespace, Audit()
        self._plane, self._folder = plane, folder
        self.rivals: dict[str, Process] = {}

    def enter(self, name: str, *options: str) -> Process:
        words = [sys.executable, "-m", "tests.kube.client.rival", str(self._plane.kubeconfig()), self.namespace, name]
        self.rivals[name] = started = Process(name, [*words, *options], self._folder)
        started.start()
        return started

    async def leads(self, name: str) -> None:
        """Until it has written more than now."""
        before = self.audit.by(name)
        try:
            await until(lambda: self.audit.by(name) > before + 2)
        except AssertionError:
            raise AssertionError(f"{name} does not lead: {self.audit.leaders()}\n{self.rivals[name].tail()}") from None


@asynccontextmanager
async def stage(plane: ControlPlane, namespace: str, folder: Path) -> AsyncIterator[Stage]:
    async with Client(cluster_of(plane)) as client:
        await make_namespace(client, namespace)
        await make_config_maps(client, namespace, [SHARED], by="nobody", term="-1")
        played = Stage(plane, client, namespace, folder)
        quick = Backoff(first_s=0.05, most_s=0.2)
        reflector = Reflector(client, CONFIG_MAPS, ConfigMap, played.audit.hear, namespace=namespace, backoff=quick)
        watching = asyncio.create_task(reflector.run())
        await reflector.synced.wait()
        try:
            yield played
        finally:
            for one in played.rivals.values():
                one.kill()
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
