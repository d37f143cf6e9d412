"""Names of jobs on a cluster: what people type, and which gang or object that is.

    train                      the only job of this name in the namespace, whatever its kind
    pytorchjob/train           of this kind
    team-a/train               in this namespace
    team-a/pytorchjob/train    all of it: as jobs are shown, and as events and reasons call them

Why: a Job and a PyTorchJob may have the same name, and namespaces are everywhere; most of the time one word is enough.
Owns: the rule. A first of two words that is the word of a kind (docs/reference/grouping.md) is a kind, not a namespace;
`job` is a Job of this name, else any job of it.
Must not: guess: a name that two jobs have is refused, with both.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from msgspec import Struct

from optimus.client.connection import JobError
from optimus.drivers.kube.desk.refusing import conflict, missing
from optimus.drivers.kube.desk.sight import Sight
from optimus.drivers.kube.grouping import Group, Kinds, ObjectRef, load_kinds, shipped_kinds
from optimus.drivers.kube.grouping.kinds import short_names
from optimus.drivers.kube.grouping.podgroups import APIS

ANY = "job"
"""The word of a Job, and what all of it is called."""


def known_kinds() -> Kinds:
    """As the controller knows them: with those of OPTIMUS_CONTROLLER_KINDS, where it is told of more."""
    path = os.environ.get("OPTIMUS_CONTROLLER_KINDS")
    if not path:
        return shipped_kinds()
    kinds, errors = load_kinds(path)
    if errors:
        raise JobError("OPTIMUS_CONTROLLER_KINDS: " + "; ".join(map(str, errors)))
    return kinds


class Name(Struct, frozen=True):
    namespace: str
    kind: str
    """The word of a kind; empty: any."""
    rest: str

    def __str__(self) -> str:
        return "/".join(filter(None, (self.namespace, self.kind, self.rest)))


class Meant(Struct, frozen=True):
    """What a name stands for: gangs, and the object that is changed; None for pods that nobody owns."""

    name: str
    gangs: tuple[Group, ...]
    object: ObjectRef | None
    whole: bool
    """All of the object, and not one of several gangs that it is."""


def words_of_kinds(kinds: Kinds) -> dict[str, str]:
    """`pytorchjob` -> `kubeflow.org/PyTorchJob`."""
    short = short_names((*(kind.name for kind in kinds), *(api.kind for api in APIS)))
    return {word: kind for kind, word in short.items()}


def read_name(typed: str, namespace: str, kinds: Kinds) -> Name:
    """`namespace`: where the name has none."""
    words = words_of_kinds(kinds)
    parts = typed.split("/")
    if len(parts) > 1 and (parts[0] not in words or (len(parts) > 2 and parts[1] in words)):
        space, parts = parts[0], parts[1:]
    else:
        space = namespace
    kind = parts[0] if len(parts) > 1 else ""
    rest = "/".join(parts[1:] if kind else parts)
    if not all((space, *rest.split("/"))) or rest.count("/") > 1 or (kind and kind not in words):
        told = f"; {kind} is no kind of work" if kind and kind not in words else ""
        raise JobError(f"{typed} is no name of a job{told}: write NAME, KIND/NAME or NAMESPACE/KIND/NAME")
    return Name(space, kind, rest)


def gang_of(sight: Sight, name: Name, shown: Mapping[str, object]) -> str:
    """The one job of this name among those that are shown."""
    found = [gang for gang in shown if matches(gang, name)]
    if not found and name.kind == ANY:
        found = [gang for gang in shown if matches(gang, Name(name.namespace, "", name.rest))]
    if len(found) == 1:
        return found[0]
    if found:
        raise conflict(f"{name} may be {' or '.join(found)}: write one of them")
    above = [gang for gang in shown if _is_owner(sight.mirror.groups.group(gang), name, sight.mirror.kinds)]
    if above:
        raise conflict(f"{name} is {len(above)} jobs, each of its pods is one: name one of {', '.join(above[:5])}")
    there = [gang for gang in shown if gang.startswith(f"{name.namespace}/")]
    known = f"; there are {', '.join(there[:5])}{' …' if len(there) > 5 else ''}" if there else ""
    raise missing(f"there is no job {name} for the scheduler {sight.mirror.scheduler_name}{known}")


def meant_by(sight: Sight, name: Name, shown: Mapping[str, object]) -> Meant:
    """For verbs that change something: also an owner whose pods are jobs by themselves (`deployment/web`)."""
    groups = sight.mirror.groups
    above = [
        group
        for gang in shown
        if (group := groups.group(gang)) is not None and _is_owner(group, name, sight.mirror.kinds)
    ]
    if above and not any(matches(gang, name) for gang in shown):
        return Meant(str(name), tuple(above), above[0].object, whole=True)
    gang = gang_of(sight, name, shown)
    group = groups.group(gang)
    assert group is not None, "it is shown"
    _, kind, *rest = gang.split("/")
    return Meant(gang, (group,), group.object, whole=len(rest) == 1 and (kind != "pod" or group.object is None))


def matches(gang: str, name: Name) -> bool:
    space, _, rest = gang.partition("/")
    kind, _, tail = rest.partition("/")
    return space == name.namespace and tail == name.rest and name.kind in ("", kind)


def _is_owner(group: Group | None, name: Name, kinds: Kinds) -> bool:
    if group is None or group.object is None:
        return False
    thing = group.object
    wanted = words_of_kinds(kinds).get(name.kind, "") if name.kind else thing.kind
    return (thing.namespace, thing.name, thing.kind) == (name.namespace, name.rest, wanted)
