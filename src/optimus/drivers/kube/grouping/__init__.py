"""Which pods are one gang, and what kind of work it is: told from what controllers write anyway.

    kinds.yaml ─► table ─► kinds            what is known about each kind of owner; files of users merge over it
    pods, owners ─► groups ─► Group, Slot   fed change by change; says which owners to read next
                     ├ podgroups            gangs that are named by a PodGroup: native, Volcano, scheduler-plugins
                     ├ declared             what an owner's spec says: roles, how many, templates
                     ├ overrides            what people say with labels and annotations
                     ├ words                what a pod says: its role, its index
                     └ seats                which pod is which replica
    Group ─► patches                        suspend and un-suspend, as data

Why: nobody rewrites manifests for a scheduler.
Owns: the table, the gangs and the slots of pods.
Must not: talk to a server, read a clock, or know requests and nodes.
"""

from optimus.drivers.kube.grouping.groups import Groups
from optimus.drivers.kube.grouping.kinds import Kind, Kinds
from optimus.drivers.kube.grouping.patches import Patch, hold_patch, start_patch, stop_patch, target_patch
from optimus.drivers.kube.grouping.records import Group, ObjectRef, RoleInGroup, Slot, Stop
from optimus.drivers.kube.grouping.table import load_kinds, shipped_kinds

__all__ = [
    "Group",
    "Groups",
    "Kind",
    "Kinds",
    "ObjectRef",
    "Patch",
    "RoleInGroup",
    "Slot",
    "Stop",
    "hold_patch",
    "load_kinds",
    "shipped_kinds",
    "start_patch",
    "stop_patch",
    "target_patch",
]
