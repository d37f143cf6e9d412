"""What a pod says about itself: its role, its index, and whose it is, by labels, annotations and its name.

Why: every operator writes these words, each in its own way; the table says where.
Owns: reading them.
Must not: know any kind.
"""

from __future__ import annotations

from optimus.drivers.kube.grouping.declared import DeclaredRole
from optimus.drivers.kube.grouping.kinds import FromPod, Kind, RoleWhen
from optimus.drivers.kube.grouping.records import ALONE
from optimus.drivers.kube.objects import Pod


def role_and_index(pod: Pod, kind: Kind, declared: tuple[DeclaredRole, ...]) -> tuple[str, int | None]:
    """Its role, and its ordinal by its index; None where it has none."""
    rules = kind.pods
    only = declared[0].name if len(declared) == 1 else kind.roles[0].name if len(kind.roles) == 1 else ""
    name = _role(pod, rules.role) or only or ALONE
    role = next((one for one in declared if one.name == name), None)
    index = _first_number(pod, rules.index)
    if rules.copy and role is not None and role.per_copy:
        copy = _first_number(pod, rules.copy)
        index = 0 if index is None and role.per_copy == 1 else index
        return name, None if copy is None or index is None else copy * role.per_copy + index
    if index is None and role is not None and role.count == role.max == 1:
        return name, 0  # the only one: the next waits until it is gone
    first = dict(rules.first).get(name, 0)
    return name, None if index is None or index < first else index - first


def word_of(pod: Pod, word: FromPod) -> str | None:
    if word.where == "label":
        return (pod.metadata.labels or {}).get(word.key)
    if word.where == "annotation":
        return (pod.metadata.annotations or {}).get(word.key)
    return pod.metadata.name.rpartition("-")[2] if word.where == "name" else word.key


def _first_number(pod: Pod, words: tuple[FromPod, ...]) -> int | None:
    for word in words:
        text = word_of(pod, word)
        if text is not None and text.isdecimal() and len(text) < _LONGEST_INDEX:
            return int(text)
    return None


_LONGEST_INDEX = 10
"""Digits; a longer one is no index."""


def _role(pod: Pod, rule: tuple[FromPod, ...] | RoleWhen) -> str:
    if isinstance(rule, RoleWhen):
        return rule.then if word_of(pod, rule.asks) == rule.value else rule.otherwise
    return next((word for one in rule if (word := word_of(pod, one))), "")
