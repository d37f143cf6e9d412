"""Which kinds the server serves, and under which path: asked for when needed, and remembered."""

from __future__ import annotations

from msgspec import Struct

from optimus.kube import Client, Resource
from optimus.kube.decoding import decode
from optimus.kube.errors import NotFound


class _Served(Struct):
    name: str
    kind: str
    namespaced: bool


class _ServedList(Struct):
    resources: list[_Served] = []


class _Version(Struct):
    version: str


class _Group(Struct, rename="camel"):
    name: str
    preferred_version: _Version | None = None


class _GroupList(Struct):
    groups: list[_Group] = []


class Discovery:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._groups: dict[str, str] = {}
        """Group -> the version the server prefers."""
        self._kinds: dict[str, dict[str, Resource]] = {}
        """Group and version -> kind -> where it lives."""
        self._before: dict[str, dict[str, Resource]] = {}
        """The same, as it was when it was asked for last: whoever writes must not wait until it is asked for again."""

    async def refresh(self) -> None:
        """What is served now; CRDs come and go."""
        found = decode(await self._client.request("GET", "/apis", verb="get"), _GroupList)
        self._groups = {one.name: one.preferred_version.version for one in found.groups if one.preferred_version}
        self._before |= self._kinds
        self._kinds = {}

    async def resource(self, kind: str, api_version: str = "") -> Resource | None:
        """`kubeflow.org/PyTorchJob`, with the version of an object that names it. None if nobody serves it."""
        group, _, name = kind.rpartition("/")
        version = api_version.rpartition("/")[2] or (self._groups.get(group, "") if group else "v1")
        if not version:
            return None
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        if path not in self._kinds:
            try:
                served = decode(await self._client.request("GET", path, verb="get"), _ServedList)
            except NotFound:
                return None
            self._kinds[path] = {
                one.kind: Resource(group, version, one.name, one.namespaced)
                for one in served.resources
                if "/" not in one.name
            }
        return self._kinds[path].get(name)

    def known(self, kind: str, api_version: str = "") -> Resource | None:
        """Of what was asked for before."""
        group, _, name = kind.rpartition("/")
        version = api_version.rpartition("/")[2] or (self._groups.get(group, "") if group else "v1")
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        return (self._kinds.get(path) or self._before.get(path, {})).get(name)
