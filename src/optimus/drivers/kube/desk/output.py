"""What the containers of a job have written, pod by pod, as the kubelets tell it.

Why: one command for all replicas, with their names, on a cluster as on one machine.
Owns: which pods are asked: those there are now, and while it is followed those that come.
Must not: know how a container is read while it writes (`tailing`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from typing import Any, Protocol

from msgspec import Struct

from optimus.drivers.kube.desk.refusing import missing
from optimus.drivers.kube.desk.tailing import Read, Tails, query_of, silent
from optimus.drivers.kube.objects import Pod
from optimus.kube import Client
from optimus.kube.errors import ApiError, Forbidden, NotFound, Unauthorized
from optimus.kube.resources import PODS

LOOK_S = 1.0
"""While it is followed: how often somebody looks for new pods and for the end."""
AT_ONCE = 20
"""Pods that are asked at the same time: a kubelet and the server have other things to do."""
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


def lines(
    target: Asking,
    do: Callable[[Callable[[Client], Awaitable[Any]]], Any],
    tails: Callable[[], Tails],
    view: View,
    wanted: Wanted,
) -> Iterator[View]:
    job = f"{view['namespace']}/{view['name']}"
    previous = _is_previous(view, wanted, job)
    if wanted.follow and not previous and not view["final"]:
        with closing(tails()) as opened:
            yield from _followed(target, opened, view, wanted, job)
        return
    pods = [pod for pod in _chosen(target, target.pods_of(view), wanted, job) if pod.spec.node_name]

    async def ask(client: Client) -> list[str]:
        room = asyncio.Semaphore(AT_ONCE)
        return list(await asyncio.gather(*(_log(client, room, pod, wanted.tail, previous) for pod in pods)))

    for pod, text in zip(pods, do(ask), strict=True):
        read = Read()
        for line in text.removesuffix("\n").split("\n"):
            if (words := read.new(line)) is not None:
                yield _told(target.slot_of(pod), pod.metadata.uid, read.number, words)


def _followed(target: Asking, tails: Tails, view: View, wanted: Wanted, job: str) -> Iterator[View]:
    """Until the job is over and all that was written has been told."""
    names: dict[str, str] = {}
    while True:
        over = view["final"]  # and only then its pods: whoever is not among them comes no more
        for pod in _chosen(target, target.pods_of(view), wanted, job):
            if pod.spec.node_name:
                names[pod.metadata.uid] = target.slot_of(pod)
                tails.follow(pod, wanted.tail)
        looked = time.monotonic()
        while (left := looked + LOOK_S - time.monotonic()) > 0 or (over and tails.goes_on()):
            for one in tails.take(max(left, 0.05)):
                yield _told(names[one.uid], one.uid, one.number, one.text)
            if over and not tails.goes_on():
                return
        view = target.job(job)


def _told(replica: str, start: str, number: int, text: str) -> View:
    return {"replica": replica, "start": start, "number": number, "text": text}


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


async def _log(client: Client, room: asyncio.Semaphore, pod: Pod, tail: int | None, previous: bool) -> str:
    query = {**query_of(pod, tail), **({"previous": "true"} if previous else {})}
    path = PODS.path(pod.metadata.namespace, pod.metadata.name, "log")
    try:
        async with room:
            return (await client.request("GET", path, query=query, verb="get")).decode(errors="replace")
    except (Forbidden, Unauthorized):
        raise
    except NotFound:  # it went meanwhile
        return ""
    except ApiError as error:
        raise silent(pod, error) from error
