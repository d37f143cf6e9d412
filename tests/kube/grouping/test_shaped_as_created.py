"""Kinds whose operators cannot be had here: objects shaped as those create them (`shaped/README.md`), in any order."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from optimus.drivers.kube.grouping import Group, Groups, shipped_kinds
from optimus.drivers.kube.objects import Anything, Pod

FILES = sorted((Path(__file__).parent / "shaped").glob("*.yaml"))


def told(groups: Groups, pods: list[Pod]) -> dict[str, Any]:
    found = {}
    for one in sorted(groups.ids()):
        group = groups.group(one)
        assert group is not None
        slots = {
            pod.metadata.name: f"{slot.role}-{slot.ordinal}"
            for pod in pods
            if groups.group_of(pod.metadata.uid) == one and (slot := groups.slot_of(pod.metadata.uid))
        }
        found[one] = as_expected(group, slots)
    return found


def as_expected(group: Group, slots: dict[str, str]) -> dict[str, Any]:
    return {
        "kind": group.kind,
        "class": str(group.workload_class),
        "roles": {role.name: [role.min, role.count, role.max] for role in group.roles},
        "slots": slots,
        "stop": str(group.stop.how),
        "queue": group.queue,
        "incomplete": group.incomplete,
    }


DEFAULTS = {"class": "unattended", "queue": "", "incomplete": ""}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_objects_become_the_gangs_that_they_are(file: Path) -> None:
    first, *objects = yaml.safe_load_all(file.read_text())
    expected = {one: {**DEFAULTS, **said} for one, said in first["expect"].items()}
    pods = [msgspec.convert(one, Pod) for one in objects if one["kind"] == "Pod"]
    things = [msgspec.convert(one, Anything) for one in objects if one["kind"] != "Pod"]
    for pods_first, backwards in itertools.product((False, True), repeat=2):
        groups = Groups(shipped_kinds())
        steps: list[Pod | Anything] = [*pods, *things] if pods_first else [*things, *pods]
        for step in steps[::-1] if backwards else steps:
            groups.pod(step) if isinstance(step, Pod) else groups.owner(step)
        assert not groups.missing()
        seen = told(groups, pods)
        if backwards:  # pods without an index are counted as they come
            seen = {one: {**said, "slots": sorted(said["slots"])} for one, said in seen.items()}
            assert seen == {one: {**said, "slots": sorted(said["slots"])} for one, said in expected.items()}
        else:
            assert seen == expected


def test_every_kind_of_the_table_is_proven() -> None:
    """By a shaped file, or by a real controller; UnifiedJobs have stories of their own."""
    here = Path(__file__).parent
    ours = (here.parent / "jobs").glob("test_*.py")
    texts = "".join(file.read_text() for file in [*FILES, *here.glob("test_*.py"), *ours])
    links = {"apps/ReplicaSet", "apps/DaemonSet", "ReplicationController", "Pod"}
    for kind in shipped_kinds():
        bare = kind.name.rpartition("/")[2]
        assert kind.name in links or f"kind: {bare}\n" in texts or f'"{bare}"' in texts, kind.name
