"""What the controller may do in a cluster, and why: the one list that roles are made from.

    RIGHTS ──► ClusterRole, Role (`optimus install`, the chart) ──► docs/reference/security.md

Why: least privilege is only kept if it is written where the calls are. A test runs a real controller with exactly these
rights and finds no refusal, and tries what is not here and finds nothing else.
Owns: the list for the controller, and the roles for people.
Must not: be wider than a call that can be pointed at.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from optimus.api.crds import GROUP
from optimus.drivers.kube.grouping import Kinds, shipped_kinds
from optimus.drivers.kube.grouping.podgroups import APIS, NATIVE

LEASE = "optimus-scheduler"
"""Whoever holds it leads."""
WATCHED = ("list", "watch")
ALL = ("get", "list", "watch", "create", "update", "patch", "delete")
SEEN = ("get", "list", "watch")
Rule = dict[str, Any]


class Right(Struct, frozen=True, kw_only=True):
    group: str
    resource: str
    verbs: tuple[str, ...]
    why: str
    name: str = ""
    """Only the object of this name."""
    at_home: bool = False
    """Only in the controller's own namespace."""


def controller_rights(kinds: Kinds | None = None) -> list[Right]:
    return [*_FIXED, *_owners(kinds or shipped_kinds())]


_FIXED = (
    Right(group="", resource="nodes", verbs=WATCHED, why="what there is, and whether it takes work"),
    Right(
        group="", resource="namespaces", verbs=WATCHED, why="their default queue, and labels that pod affinity names"
    ),
    Right(group="", resource="persistentvolumeclaims", verbs=WATCHED, why="volumes pin pods to nodes"),
    Right(group="", resource="persistentvolumes", verbs=WATCHED, why="volumes pin pods to nodes"),
    Right(
        group="",
        resource="persistentvolumeclaims",
        verbs=("patch",),
        why="to say for which node a volume is to be made",
    ),
    Right(group="", resource="persistentvolumes", verbs=("patch",), why="to give a claim the volume of its pod's node"),
    Right(
        group="storage.k8s.io", resource="storageclasses", verbs=WATCHED, why="claims that wait for a first consumer"
    ),
    Right(group="storage.k8s.io", resource="csinodes", verbs=WATCHED, why="how many volumes a node takes"),
    Right(group="resource.k8s.io", resource="resourceclaims", verbs=WATCHED, why="claimed devices pin pods to nodes"),
    Right(group="", resource="pods", verbs=SEEN, why="what waits and what runs; a bind nobody heard of is looked up"),
    Right(group="", resource="pods", verbs=("delete",), why="to take room back where a disruption budget says no"),
    Right(group="", resource="pods/binding", verbs=("create",), why="to place a pod"),
    Right(group="", resource="pods/eviction", verbs=("create",), why="to take room back"),
    Right(group="", resource="pods/status", verbs=("patch",), why="the condition that says why a pod waits"),
    Right(
        group="events.k8s.io", resource="events", verbs=("create", "patch"), why="what happened to whose work, and why"
    ),
    Right(group=GROUP, resource="queues", verbs=WATCHED, why="who is due what"),
    Right(group=GROUP, resource="nodepools", verbs=WATCHED, why="which nodes are interchangeable"),
    Right(group=GROUP, resource="queues/status", verbs=("patch",), why="what `kubectl get queues` shows"),
    Right(group=GROUP, resource="nodepools/status", verbs=("patch",), why="what `kubectl get nodepools` shows"),
    Right(group="coordination.k8s.io", resource="leases", verbs=("create",), why="one of several leads", at_home=True),
    Right(
        group="coordination.k8s.io",
        resource="leases",
        verbs=("get", "patch"),
        name=LEASE,
        why="one of several leads",
        at_home=True,
    ),
)


def _owners(kinds: Kinds) -> list[Right]:
    """Of the table of kinds: objects that pods belong to, and those that are started and stopped by their own field."""
    found = []
    for kind in kinds:
        group, _, name = kind.name.rpartition("/")
        if name == "Pod":
            continue
        resource = plural(name)
        found.append(Right(group=group, resource=resource, verbs=SEEN, why="which pods are one gang"))
        if kind.suspend is not None:
            why = "to start it when there is room, and to suspend it when it has to leave"
            found.append(Right(group=group, resource=resource, verbs=("patch",), why=why))
    for api in APIS:
        group, _, name = api.kind.rpartition("/")
        found.append(Right(group=group, resource=plural(name), verbs=SEEN, why="which pods are one gang"))
        if api.kind == NATIVE:
            why = "the condition that says whether it is scheduled, and why not"
            found.append(Right(group=group, resource=f"{plural(name)}/status", verbs=("patch",), why=why))
    return found


def plural(kind: str) -> str:
    """As the kinds of the table are called in paths."""
    return f"{kind.lower()}s"


def rules_of(rights: Iterable[Right]) -> list[Rule]:
    """One for each set of verbs of a group."""
    verbs: dict[tuple[str, str, str], list[str]] = {}
    for right in rights:
        verbs.setdefault((right.group, right.resource, right.name), []).extend(right.verbs)
    together: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for (group, resource, name), found in verbs.items():
        together.setdefault((group, name, tuple(dict.fromkeys(found))), []).append(resource)
    return [
        {
            "apiGroups": [group],
            "resources": resources,
            **({"resourceNames": [name]} if name else {}),
            "verbs": list(found),
        }
        for (group, name, found), resources in together.items()
    ]


def tenant_rules(kinds: Kinds | None = None) -> list[Rule]:
    """To be bound in a namespace: work of one's own, and what is said about it. Neither binding nor status of pods."""
    work: dict[str, list[str]] = {}
    for kind in kinds or shipped_kinds():
        group, _, name = kind.name.rpartition("/")
        work.setdefault(group, []).append(plural(name))
    return [
        *({"apiGroups": [group], "resources": found, "verbs": list(ALL)} for group, found in work.items()),
        {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
        {"apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": list(SEEN)},
    ]


_SET_UP = ["queues", "nodepools"]
VIEWER_RULES: list[Rule] = [{"apiGroups": [GROUP], "resources": _SET_UP, "verbs": list(SEEN)}]
ADMIN_RULES: list[Rule] = [{"apiGroups": [GROUP], "resources": _SET_UP, "verbs": list(ALL)}]


def as_markdown(rights: Iterable[Right]) -> str:
    """One row for each resource and reason, those with the same words together."""
    rows: dict[tuple[str, tuple[str, ...], str, str], list[str]] = {}
    for right in rights:
        where = "its own namespace" if right.at_home else "everywhere"
        named = f"{right.resource} {right.name}" if right.name else right.resource
        rows.setdefault((right.group, right.verbs, where, right.why), []).append(named)
    lines = ["| group | resources | verbs | where | why |", "| --- | --- | --- | --- | --- |"]
    for (group, verbs, where, why), resources in rows.items():
        told = ", ".join(f"`{name}`" for name in resources)
        lines.append(f"| {group or 'core'} | {told} | {', '.join(verbs)} | {where} | {why} |")
    return "\n".join(lines) + "\n"
