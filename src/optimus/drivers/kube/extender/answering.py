"""The extender protocol of kube-scheduler: which nodes for this pod, which of them rather, bind it.

    filter      a pod of ours: the one node that is held for it, or none, with the reason that everybody else is told;
                any other pod: all nodes that were asked about
    prioritise  the held node, before all others
    bind        a pod of ours: what was held, at the server; any other: as kube-scheduler wants it

Why: clusters that keep the stock scheduler as the binder get the same decisions.
Owns: what the protocol looks like on the wire. Names in it are those of Go, with capitals.
Must not: be reachable from other machines: whoever reaches it can bind. It listens on the loopback address, beside
kube-scheduler in one pod.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Any

import msgspec
from aiohttp import web
from msgspec import Struct

from optimus.drivers.kube.extender.offers import Offers
from optimus.kube import Done, Outcome, Writer

MOST_BYTES = 64 << 20
"""Thousands of nodes with their labels, from a kube-scheduler that was not told `nodeCacheCapable`."""
BEST = 10
"""The protocol counts from 0 to 10."""


class _Meta(Struct, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""


class _Spec(Struct, frozen=True, rename="camel"):
    scheduler_name: str = ""


class _Pod(Struct, frozen=True):
    metadata: _Meta = _Meta()
    spec: _Spec = _Spec()


class _Node(Struct, frozen=True):
    metadata: _Meta = _Meta()


class _Nodes(Struct, frozen=True):
    items: list[_Node] | None = None


class _Args(Struct, frozen=True, rename="pascal"):
    pod: _Pod
    nodes: _Nodes | None = None
    node_names: list[str] | None = None

    def names(self) -> list[str]:
        if self.node_names is not None:
            return self.node_names
        return [node.metadata.name for node in (self.nodes.items if self.nodes else None) or []]


class _Binding(Struct, frozen=True):
    PodName: str
    PodNamespace: str
    PodUID: str
    Node: str


class Answering:
    def __init__(self, offers: Offers, is_ours: Callable[[str], bool], why: Callable[[str], str]) -> None:
        """`is_ours`: by the scheduler that a pod names. `why`: by uid, why it has no place."""
        self.binder: Writer | None = None
        """Who binds pods of others; nobody, while another one leads."""
        self._offers, self._is_ours, self._why = offers, is_ours, why

    def application(self) -> web.Application:
        made = web.Application(client_max_size=MOST_BYTES)
        made.add_routes(
            [
                web.post("/filter", self.filter),
                web.post("/prioritize", self.prioritize),
                web.post("/bind", self.bind),
                web.get("/healthz", self.healthz),
            ]
        )
        return made

    async def filter(self, request: web.Request) -> web.Response:
        asked, wrong = await _read(request, _Args)
        if asked is None:
            return _answer({"Error": wrong}, 400)
        names, uid = asked.names(), asked.pod.metadata.uid
        if not self._is_ours(asked.pod.spec.scheduler_name):
            return _answer(
                {"NodeNames": names} if asked.node_names is not None else {"Nodes": {"items": _items(asked)}}
            )
        held = self._offers.node_for(uid)
        if held and held not in names:
            self._offers.refuse(uid, f"kube-scheduler does not want {held} for it: a filter of its own says no")
            held = ""
        why = f"held for it is {held}" if held else self._why(uid)
        result: dict[str, Any] = {"FailedNodes": {name: why for name in names if name != held}}
        if asked.node_names is not None:
            result["NodeNames"] = [held] if held else []
        else:
            result["Nodes"] = {"items": [node for node in _items(asked) if node["metadata"]["name"] == held]}
        return _answer(result)

    async def prioritize(self, request: web.Request) -> web.Response:
        asked, wrong = await _read(request, _Args)
        if asked is None:
            return _answer({"Error": wrong}, 400)
        held = self._offers.node_for(asked.pod.metadata.uid)
        return _answer([{"Host": name, "Score": BEST if name == held else 0} for name in asked.names()])

    async def bind(self, request: web.Request) -> web.Response:
        asked, wrong = await _read(request, _Binding)
        if asked is None:
            return _answer({"Error": wrong}, 400)
        outcome = await self._offers.take(asked.PodUID, asked.Node)
        if outcome is None and self.binder is not None and not self._why(asked.PodUID):
            outcome = await self.binder.bind(asked.PodName, asked.Node, namespace=asked.PodNamespace, uid=asked.PodUID)
        return _answer({"Error": _words(outcome, asked)})

    async def healthz(self, _: web.Request) -> web.Response:
        return web.Response(text="ok")


def loopback(address: str) -> tuple[str, int]:
    """`127.0.0.1:8888`, or only a port. Raises ValueError, in words."""
    host, _, port = address.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    try:
        local = host == "localhost" or ipaddress.ip_address(host).is_loopback
        number = int(port)
    except ValueError:
        raise ValueError(f"{address} is no address: write 127.0.0.1:8888") from None
    if not local:
        raise ValueError(f"{host} can be reached by others, who could then bind pods: use 127.0.0.1")
    if not 0 <= number <= 65535:
        raise ValueError(f"{port} is no port")
    return host, number


async def _read(request: web.Request, kind: type[Any]) -> tuple[Any, str]:
    try:
        return msgspec.json.decode(await request.read(), type=kind), ""
    except msgspec.DecodeError as error:
        return None, f"this is not what kube-scheduler sends to an extender: {error}"


def _items(asked: _Args) -> list[dict[str, Any]]:
    return [{"metadata": {"name": name}} for name in asked.names()]


def _words(outcome: Outcome | None, asked: _Binding) -> str:
    if outcome is None:
        return f"{asked.Node} is not held for {asked.PodNamespace}/{asked.PodName} any more: it is thought over"
    return "" if isinstance(outcome, Done) else f"{type(outcome).__name__}: {outcome.message}"


def _answer(body: Any, status: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(body), content_type="application/json", status=status)
