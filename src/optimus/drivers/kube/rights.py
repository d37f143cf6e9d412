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
DEVICES = "resource.k8s.io"
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
    against_budgets: bool = False
    """Not needed where disruption budgets are respected."""


def controller_rights(kinds: Kinds | None = None, *, respect_budgets: bool = False) -> list[Right]:
    fixed = [right for right in _FIXED if not (respect_budgets and right.against_budgets)]
    return [*fixed, *_owners(kinds or shipped_kinds())]


_FIXED = (
    Right(group="", resource="nodes", verbs=WATCHED, why="what there is, and whether it takes work"),
    Right(
        group="",
        resource="namespaces",
        verbs=WATCHED,
        why="their default queue, and labels that queues and pods name",
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
    Right(
        group="scheduling.k8s.io",
        resource="priorityclasses",
        verbs=WATCHED,
        why="how important work is that has no pods yet: its template only names a class",
    ),
    Right(group="storage.k8s.io", resource="volumeattachments", verbs=WATCHED, why="how many of them are taken"),
    Right(group="storage.k8s.io", resource="csidrivers", verbs=WATCHED, why="which drivers say where they have room"),
    Right(
        group="storage.k8s.io", resource="csistoragecapacities", verbs=WATCHED, why="where a volume can still be made"
    ),
    Right(group=DEVICES, resource="resourceclaims", verbs=WATCHED, why="claimed devices pin pods to nodes"),
    Right(group=DEVICES, resource="resourceclaimtemplates", verbs=WATCHED, why="what work asks for before it has pods"),
    Right(group=DEVICES, resource="deviceclasses", verbs=WATCHED, why="which devices a claim means"),
    Right(group=DEVICES, resource="resourceslices", verbs=WATCHED, why="which devices there are, and where"),
    Right(group=DEVICES, resource="resourceclaims", verbs=("patch",), why="the finalizer of a claim that has devices"),
    Right(group=DEVICES, resource="resourceclaims/status", verbs=("patch",), why="to give a claim its devices"),
    Right(group=DEVICES, resource="resourceclaims/binding", verbs=("patch",), why="the same, as Kubernetes 1.36 asks"),
    Right(group="", resource="pods", verbs=SEEN, why="what waits and what runs; a bind nobody heard of is looked up"),
    Right(
        group="",
        resource="pods",
        verbs=("delete",),
        why="to take room back where a disruption budget says no; not with --respect-budgets",
        against_budgets=True,
    ),
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
    Right(group=GROUP, resource="unifiedjobs", verbs=SEEN, why="jobs, which wait before they have pods"),
    Right(
        group=GROUP,
        resource="unifiedjobs",
        verbs=("patch",),
        why="how many replicas there shall be, and the finalizer that lets their ends be read",
    ),
    Right(
        group=GROUP,
        resource="unifiedjobs",
        verbs=("delete",),
        why="to forget one that is over when its ttlSecondsAfterFinished has passed",
    ),
    Right(
        group=GROUP,
        resource="unifiedjobs/status",
        verbs=("patch",),
        why="what `kubectl get unifiedjobs` shows, and its life for the next leader",
    ),
    Right(
        group=GROUP,
        resource="unifiedjobs/finalizers",
        verbs=("update",),
        why="to make a job the owner of its pods, where a server asks for it",
    ),
    Right(group="", resource="pods", verbs=("create",), why="replicas of a UnifiedJob, from its template"),
    Right(
        group="",
        resource="pods",
        verbs=("patch",),
        why="to let a pod of a UnifiedJob go once its end is written down (a finalizer)",
    ),
    Right(
        group="",
        resource="services",
        verbs=("create",),
        why="the names by which replicas of a UnifiedJob find each other",
    ),
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
        if kind.name == "Pod" or kind.group == GROUP:  # said above, with what else they need
            continue
        found.append(Right(group=kind.group, resource=kind.resource, verbs=SEEN, why="which pods are one gang"))
        if kind.suspend is not None:
            why = "to start it when there is room, and to suspend it when it has to leave"
            found.append(Right(group=kind.group, resource=kind.resource, verbs=("patch",), why=why))
    for api in APIS:
        group = api.kind.rpartition("/")[0]
        found.append(Right(group=group, resource="podgroups", verbs=SEEN, why="which pods are one gang"))
        if api.kind == NATIVE:
            why = "the condition that says whether it is scheduled, and why not"
            found.append(Right(group=group, resource="podgroups/status", verbs=("patch",), why=why))
    return found


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
    """To be bound in a namespace: what the command line does with work of one's own, and what is said about it. Neither
    binding nor status of pods."""
    work: dict[str, list[str]] = {}
    for kind in kinds or shipped_kinds():
        work.setdefault(kind.group, []).append(kind.resource)
    for api in APIS:
        work.setdefault(api.kind.rpartition("/")[0], []).append("podgroups")
    ours = work.setdefault(GROUP, [])
    ours.extend([] if "unifiedjobs" in ours else ["unifiedjobs"])
    for group in filter(None, work):
        work[group].append("*/scale")
    return [
        *({"apiGroups": [group], "resources": found, "verbs": list(ALL)} for group, found in work.items()),
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
        {"apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": list(SEEN)},
    ]


def researcher_rules() -> list[Rule]:
    """To be bound in a namespace: UnifiedJobs, what they say, and the way into a session. No pods of one's own, so that
    everything that runs has asked a queue."""
    return [
        _work("unifiedjobs", ALL),
        _work("unifiedjobs/scale", _CHANGED),
        {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["pods/portforward"], "verbs": ["get", "create"]},
        *_SURROUNDINGS,
    ]


def queue_owner_rules() -> list[Rule]:
    """To be bound in each namespace of a queue: to stop, order and resize what is there. Whoever cannot create a job
    cannot change what it runs, either (`job_policies`)."""
    return [*_STEERED, *_SURROUNDINGS]


def _work(resource: str, verbs: Iterable[str]) -> Rule:
    return {"apiGroups": [GROUP], "resources": [resource], "verbs": list(verbs)}


_CHANGED = ("get", "update", "patch")
_STEERED = [_work("unifiedjobs", [verb for verb in ALL if verb != "create"]), _work("unifiedjobs/scale", _CHANGED)]
_SURROUNDINGS: list[Rule] = [
    {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": list(SEEN)},
    {"apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": list(SEEN)},
]
_SET_UP = ["queues", "nodepools"]
VIEWER_RULES: list[Rule] = [{"apiGroups": [GROUP], "resources": _SET_UP, "verbs": list(SEEN)}]
ADMIN_RULES: list[Rule] = [{"apiGroups": [GROUP], "resources": _SET_UP, "verbs": list(ALL)}, *_STEERED]
"""Everything of Optimus, everywhere; but no pods, not even by a job: that is for those who administer the cluster."""


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
