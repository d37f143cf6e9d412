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
    versions: list[_Version] = []
    preferred_version: _Version | None = None

    def in_order(self) -> list[str]:
        """The preferred one first, then as the server lists them: from the most settled to the newest alpha."""
        first = [self.preferred_version.version] if self.preferred_version else []
        return list(dict.fromkeys((*first, *(one.version for one in self.versions))))


class _GroupList(Struct):
    groups: list[_Group] = []


class Discovery:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._groups: dict[str, list[str]] = {}
        """Group -> its versions, the one that the server prefers first."""
        self._kinds: dict[str, dict[str, Resource]] = {}
        """Group and version -> kind -> where it lives."""
        self._before: dict[str, dict[str, Resource]] = {}
        """The same, as it was when it was asked for last: whoever writes must not wait until it is asked for again."""

    async def refresh(self) -> None:
        """What is served now; CRDs come and go."""
        found = decode(await self._client.request("GET", "/apis", verb="get"), _GroupList)
        self._groups = {one.name: one.in_order() for one in found.groups}
        self._before |= self._kinds
        self._kinds = {}

    async def resource(self, kind: str, api_version: str = "") -> Resource | None:
        """`kubeflow.org/PyTorchJob`, with the version of an object that names it; without, in the first version that
        has it: an alpha (the native PodGroup) is not where its group's settled kinds are. None if nobody serves it."""
        name = kind.rpartition("/")[2]
        for group, version, path in self._paths(kind, api_version):
            if path not in self._kinds:
                self._kinds[path] = await self._served(group, version, path)
            if (found := self._kinds[path].get(name)) is not None:
                return found
        return None

    def known(self, kind: str, api_version: str = "") -> Resource | None:
        """Of what was asked for before."""
        name = kind.rpartition("/")[2]
        paths = [path for _, _, path in self._paths(kind, api_version)]
        found = ((self._kinds.get(path) or self._before.get(path, {})).get(name) for path in paths)
        return next((one for one in found if one is not None), None)

    def _paths(self, kind: str, api_version: str) -> list[tuple[str, str, str]]:
        """Group, version and path of wherever it may be."""
        group = kind.rpartition("/")[0]
        said = api_version.rpartition("/")[2]
        versions = [said] if said else self._groups.get(group, []) if group else ["v1"]
        return [(group, one, f"/apis/{group}/{one}" if group else f"/api/{one}") for one in versions]

    async def _served(self, group: str, version: str, path: str) -> dict[str, Resource]:
        try:
            served = decode(await self._client.request("GET", path, verb="get"), _ServedList)
        except NotFound:
            return {}
        return {
            one.kind: Resource(group, version, one.name, one.namespaced)
            for one in served.resources
            if "/" not in one.name
        }
