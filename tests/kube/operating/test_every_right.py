"""The table of rights against a real server, with the token of the controller: each verb in it is allowed, and each
other verb of the same resources is refused.

Authorization answers before anybody looks whether there is such an object, or such a kind: no operator is needed.
Nothing is changed either: writes are dry runs, of what does not exist, and their bodies cannot be read, so that no
admission has a say. That the server has understood the requests as they are meant is read in its audit log.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from hack.controlplane import ControlPlane
from optimus.drivers.kube.installing import NAMESPACE
from optimus.drivers.kube.rights import LEASE, Right, controller_rights
from optimus.kube import Client, load
from optimus.kube.client import MERGE
from optimus.kube.errors import ApiError, Forbidden
from tests.kube.operating.installed import Installed, audited, kubeconfig

METHODS = {"get": "GET", "list": "GET", "watch": "GET", "create": "POST", "update": "PUT", "patch": "PATCH"}
METHODS |= {"delete": "DELETE", "deletecollection": "DELETE"}
OF_ALL = ("list", "watch", "create", "deletecollection")
"""Without a name."""
BELOW = ("get", "create", "update", "patch", "delete")
"""What can be said of a subresource."""
NOBODY = "nobody"
UNREADABLE = b"{"


class Attempt(NamedTuple):
    verb: str
    group: str
    resource: str
    """With its subresource, as in the table."""
    namespace: str
    name: str


class Served:
    """Where kinds live. Those that nobody serves get an address all the same."""

    def __init__(self, plane: ControlPlane) -> None:
        self._found: dict[tuple[str, str], tuple[str, bool]] = {}
        groups: list[dict[str, Any]] = json.loads(plane.get("/apis"))["groups"]
        paths = [("", "/api/v1")]
        paths += [(one["name"], f"/apis/{v['groupVersion']}") for one in groups for v in one["versions"]]
        for group, path in paths:
            for one in json.loads(plane.get(path))["resources"]:
                self._found.setdefault((group, one["name"]), (path, one["namespaced"]))

    def path(self, one: Attempt) -> str:
        resource, _, below = one.resource.partition("/")
        path, _ = self._found.get((one.group, resource), (f"/apis/{one.group}/v1", True))
        inside = f"/namespaces/{one.namespace}" if one.namespace else ""
        return "/".join(filter(None, (f"{path}{inside}/{resource}", one.name, below)))

    def spaces(self, right: Right, verb: str) -> list[str]:
        """Where it is tried; empty is the cluster."""
        _, namespaced = self._found.get((right.group, right.resource.partition("/")[0]), ("", True))
        if not namespaced:
            return [""]
        home, everywhere = [NAMESPACE] if right.at_home else [], [""] if verb in ("list", "watch") else []
        return ["default", *home, *everywhere]


def attempts(rights: Iterable[Right], served: Served) -> set[Attempt]:
    """Every verb of every resource of the table, whether it is there or not."""
    found = set()
    for right in rights:
        for verb in BELOW if "/" in right.resource else METHODS:
            spaces = served.spaces(right, verb)
            nameless = verb in OF_ALL and "/" not in right.resource
            for name in {""} if nameless else {NOBODY, right.name or NOBODY}:
                found |= {Attempt(verb, right.group, right.resource, space, name) for space in spaces}
    return found


def is_allowed(one: Attempt, rights: Iterable[Right]) -> bool:
    return any(
        (right.group, right.resource) == (one.group, one.resource)
        and one.verb in right.verbs
        and right.name in ("", one.name)
        and (not right.at_home or one.namespace == NAMESPACE)
        for right in rights
    )


async def answers(stand: Installed, served: Served, tried: Iterable[Attempt], agent: str) -> dict[Attempt, str]:
    """Why each was refused for want of a right; empty where it was not."""
    cluster = load(str(kubeconfig(stand.plane, agent, stand.token)))
    async with Client(cluster, user_agent=agent) as client:

        async def answer(one: Attempt) -> str:
            method = METHODS[one.verb]
            query = {"dryRun": "All"} if method != "GET" else {"limit": "1"} if one.verb == "list" else {}
            query |= {"watch": "true", "timeoutSeconds": "1"} if one.verb == "watch" else {}
            body = UNREADABLE if method in ("POST", "PUT", "PATCH") else None
            try:
                await client.request(
                    method, served.path(one), query=query, body=body, content_type=MERGE, verb=one.verb
                )
            except Forbidden as error:
                return error.message
            except ApiError:
                pass
            return ""

        found = list(tried)
        return dict(zip(found, await asyncio.gather(*map(answer, found)), strict=True))


def wrong(told: dict[Attempt, str], rights: list[Right]) -> dict[Attempt, str]:
    """What differs from the table."""
    found = {}
    for one, refusal in told.items():
        words = f'cannot {one.verb} resource "{one.resource}" in API group "{one.group}"'
        if is_allowed(one, rights) and refusal:
            found[one] = refusal
        elif not is_allowed(one, rights) and words not in refusal:
            found[one] = refusal or "allowed"
    return found


def understood(plane: ControlPlane, agent: str) -> set[Attempt]:
    found = set()
    for event in audited(plane):
        if event["userAgent"] == agent:
            ref = event["objectRef"]
            resource = "/".join(filter(None, (ref["resource"], ref.get("subresource", ""))))
            space = "" if resource == "namespaces" else ref.get("namespace", "")  # it counts as in itself
            found.add(Attempt(event["verb"], ref.get("apiGroup", ""), resource, space, ref.get("name", "")))
    return found


async def test_each_verb_of_the_table_is_allowed_and_no_other(
    installed: Installed, record_property: Callable[[str, object], None]
) -> None:
    rights, served = controller_rights(), Served(installed.plane)
    tried = attempts(rights, served)
    told = await answers(installed, served, tried, "every-right")
    assert wrong(told, rights) == {}
    assert understood(installed.plane, "every-right") == tried, "the server has understood them as they are meant"
    allowed = {one for one in tried if is_allowed(one, rights)}
    rows = {(right.group, right.resource, verb) for right in rights for verb in right.verbs}
    assert {(one.group, one.resource, one.verb) for one in allowed} == rows, "nothing of the table is left out"
    for name, count in (("rows", len(rows)), ("allowed", len(allowed)), ("refused", len(tried) - len(allowed))):
        record_property(name, count)
        print(f"{name}: {count}")
    assert Attempt("patch", "coordination.k8s.io", "leases", NAMESPACE, LEASE) in allowed
    assert Attempt("patch", "coordination.k8s.io", "leases", NAMESPACE, NOBODY) in tried - allowed
    assert Attempt("get", "ray.io", "rayclusters", "default", NOBODY) in allowed, "also what nobody serves here"


async def test_a_table_that_says_something_else_is_found_out(installed: Installed) -> None:
    """One verb too many, one too few, a wider place and a wider name."""
    served = Served(installed.plane)
    nodes = Right(group="", resource="nodes", verbs=("list", "watch", "patch"), why="")
    pods = Right(group="", resource="pods/eviction", verbs=(), why="")
    leases = Right(group="coordination.k8s.io", resource="leases", verbs=("create", "get"), why="")
    told = await answers(installed, served, attempts([nodes, pods, leases], served), "wrong-table")
    found = {(one.verb, one.resource, one.namespace) for one in wrong(told, [nodes, pods, leases])}
    assert found == {
        ("patch", "nodes", ""),
        ("create", "pods/eviction", "default"),
        ("create", "leases", "default"),
        ("get", "leases", "default"),
    }
