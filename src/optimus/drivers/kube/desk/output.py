"""What the containers of a job have written, pod by pod, as the kubelets tell it.

Why: one command for all replicas, with their names, on a cluster as on one machine.
Owns: asking again while it goes on, and where each pod was.
Must not: lose or repeat a line: lines carry the time at which they were written, and the same time is counted.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Protocol

from msgspec import Struct

from optimus.drivers.kube.desk.refusing import missing
from optimus.drivers.kube.objects import Pod
from optimus.kube import Client
from optimus.kube.errors import ApiError, Forbidden, NotFound, Unauthorized
from optimus.kube.resources import PODS

POLL_S = 1.0
AT_ONCE = 20
"""Pods that are asked in a second: a kubelet and the server have other things to do."""
View = dict[str, Any]


class Wanted(Struct, frozen=True, kw_only=True):
    follow: bool
    tail: int | None
    replica: str
    attempt: int | None


class Asking(Protocol):
    def job(self, job: str) -> View: ...
    def pods_of(self, view: View) -> list[Any]: ...
    def slot_of(self, pod: Any) -> str: ...


class _Read:
    """How far one pod has been read."""

    def __init__(self) -> None:
        self.last = ""
        """Time of the last line."""
        self.same = 0
        """Lines with that time."""
        self.number = 0

    def new(self, text: str) -> Iterator[str]:
        """Lines that have not been told yet."""
        met = 0
        for line in text.split("\n")[:-1] if text.endswith("\n") else text.split("\n"):
            at, _, words = line.partition(" ")
            if at < self.last or not at:
                continue
            if at == self.last:
                met += 1
                if met <= self.same:
                    continue
                self.same += 1
            else:
                self.last, self.same, met = at, 1, 1
            self.number += 1
            yield words


def lines(
    target: Asking, do: Callable[[Callable[[Client], Awaitable[Any]]], Any], view: View, wanted: Wanted
) -> Iterator[View]:
    job = f"{view['namespace']}/{view['name']}"
    previous = _is_previous(view, wanted, job)
    read: dict[str, _Read] = {}
    while True:
        pods = _chosen(target, target.pods_of(view), wanted, job)
        names = {pod.metadata.uid: target.slot_of(pod) for pod in pods}
        started = [pod for pod in pods if pod.spec.node_name]

        async def ask(client: Client, started: list[Pod] = started) -> list[tuple[Pod, str]]:
            room = asyncio.Semaphore(AT_ONCE)
            tails = [None if pod.metadata.uid in read else wanted.tail for pod in started]
            work = [
                _log(client, room, pod, tail, previous, patient=wanted.follow)
                for pod, tail in zip(started, tails, strict=True)
            ]
            return list(zip(started, await asyncio.gather(*work), strict=True))

        for pod, text in do(ask):
            so_far = read.setdefault(pod.metadata.uid, _Read())
            for words in so_far.new(text):
                uid = pod.metadata.uid
                yield {"replica": names[uid], "start": uid, "number": so_far.number, "text": words}
        if not wanted.follow or previous or view["final"]:
            return
        time.sleep(max(POLL_S, len(pods) / AT_ONCE))
        view = target.job(job)  # what was written until its end is read once more


def _is_previous(view: View, wanted: Wanted, job: str) -> bool:
    """Kubernetes keeps what a container wrote before its last restart, and nothing older."""
    now = int(view["attempt"])
    if wanted.attempt is None or wanted.attempt == now:
        return False
    if wanted.attempt == now - 1:
        return True
    raise missing(f"{job} has no output of attempt {wanted.attempt}: a cluster keeps that of the last two ({now})")


def _chosen(target: Asking, pods: list[Any], wanted: Wanted, job: str) -> list[Pod]:
    if not wanted.replica:
        return pods
    found = [pod for pod in pods if wanted.replica in (target.slot_of(pod), pod.metadata.name)]
    if not found and not wanted.follow:
        known = ", ".join(target.slot_of(pod) for pod in pods[:10]) or "none"
        raise missing(f"{job} has no replica {wanted.replica}; known are {known}")
    return found


async def _log(
    client: Client, room: asyncio.Semaphore, pod: Pod, tail: int | None, previous: bool, *, patient: bool
) -> str:
    """`patient`: a container that has not started yet has written nothing, and will be asked again."""
    query = {"timestamps": "true"}
    if tail is not None:
        query["tailLines"] = str(tail)
    if previous:
        query["previous"] = "true"
    if len(pod.spec.containers) > 1:
        query["container"] = pod.spec.containers[0].name
    path = PODS.path(pod.metadata.namespace, pod.metadata.name, "log")
    try:
        async with room:
            return (await client.request("GET", path, query=query, verb="get")).decode(errors="replace")
    except (Forbidden, Unauthorized):
        raise
    except NotFound:  # it went meanwhile
        return ""
    except ApiError as error:
        if patient and error.status == 400:
            return ""
        where = f"{pod.metadata.name} on node {pod.spec.node_name}"
        raise type(error)(error.status, error.reason, f"{where} does not tell its output: {error.message}") from error
