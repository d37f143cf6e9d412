"""The jobs controller as a process of its own, without a scheduler beside it: what stories start and kill.

python -m tests.kube.jobs.alone KUBECONFIG NAMESPACE SCHEDULER
"""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import Any

from optimus.drivers.kube.jobs.controlling import Controlling
from optimus.drivers.kube.jobs.seeing import Sight
from optimus.drivers.kube.jobs.words import UNIFIED_JOBS
from optimus.drivers.kube.nodes import is_ready
from optimus.drivers.kube.objects import Anything, Node, Pod
from optimus.kube import Change, Client, Reflector, What, Writer
from optimus.kube.config import load
from optimus.kube.errors import NotFound
from optimus.kube.events import Recorder
from optimus.kube.resources import NODES, PODS

Nodes = dict[str, Node]


class Told:
    """What watches tell, as `Watching` does it in the whole controller."""

    def __init__(self) -> None:
        self.sight, self.nodes = Sight(), Nodes()

    def job(self, change: Change[Anything]) -> None:
        if change.what is What.DELETED:
            self.sight.job_gone(change.uid)
        elif change.object is not None:
            self.sight.job(change.object)

    def pod(self, change: Change[Pod]) -> None:
        if change.what is What.DELETED:
            self.sight.pod_gone(change.uid)
        elif change.object is not None:
            self.sight.pod(change.object)

    def node(self, change: Change[Node]) -> None:
        if change.what is What.DELETED:
            self.nodes.pop(change.key, None)
        elif change.object is not None:
            self.nodes[change.key] = change.object

    def answers(self, name: str) -> bool:
        return name in self.nodes and is_ready(self.nodes[name])


async def main(kubeconfig: str, namespace: str, scheduler: str) -> None:
    told = Told()
    async with Client(load(kubeconfig)) as client:

        async def fetch_job(where: str, name: str) -> Anything | None:
            try:
                return await client.get(UNIFIED_JOBS, name, Anything, namespace=where)
            except NotFound:
                return None

        async def fetch_pod(where: str, name: str) -> Pod | None:
            try:
                return await client.get(PODS, name, Pod, namespace=where)
            except NotFound:
                return None

        watches: list[Reflector[Any]] = [
            Reflector(client, UNIFIED_JOBS, Anything, told.job, namespace=namespace),
            Reflector(client, PODS, Pod, told.pod, namespace=namespace),
            Reflector(client, NODES, Node, told.node),
        ]
        writer = Writer(client)
        recorder = Recorder(writer, controller="optimus.dev/jobs", instance="story")
        jobs = Controlling(told.sight, writer, recorder, fetch_job, fetch_pod, told.answers, scheduler)
        async with asyncio.TaskGroup() as tasks:
            for one in watches:
                tasks.create_task(one.run())
            for one in watches:
                await one.synced.wait()
            tasks.create_task(recorder.run())
            tasks.create_task(jobs.run())


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    asyncio.run(main(*sys.argv[1:4]))
