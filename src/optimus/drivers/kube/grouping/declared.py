"""What an owner says about its pods before there are any: roles, how many, templates; whether it is suspended or over.

Why: work that is suspended is queued by what its template asks for, and a gang knows its size before its pods come.
Owns: asking the table's questions to one object.
Must not: look at pods.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from optimus.drivers.kube.grouping.expressions import Expression, Place, holds, look, number, place_of
from optimus.drivers.kube.grouping.kinds import Kind, Over, RoleRule
from optimus.drivers.kube.objects import Anything, Meta, PodSpec


class Template(Struct, frozen=True, kw_only=True, gc=False):
    metadata: Meta = Meta()
    spec: PodSpec = PodSpec()


class DeclaredRole(Struct, frozen=True, kw_only=True):
    name: str
    min: int
    count: int
    max: int
    per_copy: int = 0
    sizes: tuple[int, ...] = ()
    total: int = 0
    template: Template | None = None


def declared_roles(kind: Kind, thing: Anything) -> tuple[DeclaredRole, ...]:
    """In the order of the table and of the object. A role that is named by itself wins over one found by `each`."""
    found: dict[str, DeclaredRole] = {}
    place = place_of(thing)
    named = {rule.name for rule in kind.roles if rule.name}
    for rule in kind.roles:
        for name, item in _items(rule, place):
            if name and (rule.name or name not in named):
                found.setdefault(name, _role(rule, name, Place(place.root, item)))
    return tuple(found.values())


def with_least_members(roles: tuple[DeclaredRole, ...], least: int) -> tuple[DeclaredRole, ...]:
    """The same with so many members in all: the last roles give up first, and nobody needs more than there are."""
    missing = least - sum(role.min for role in roles)
    changed = list(roles)
    order = range(len(changed) - 1, -1, -1) if missing < 0 else range(len(changed))
    for i in order:
        role = changed[i]
        least_here = min(max(role.min + missing, 0), max(role.count, role.min))
        missing -= least_here - role.min
        changed[i] = msgspec.structs.replace(role, min=least_here)
    return tuple(changed)


def is_suspended(kind: Kind, thing: Anything) -> bool:
    return kind.suspend is not None and look(kind.suspend, place_of(thing)) is True


def is_over(over: Over, thing: Anything) -> bool:
    place = place_of(thing)
    if over.path is not None and look(over.path, place) in over.values:
        return True
    conditions = place.root["status"].get("conditions") if over.conditions else None
    return any(
        isinstance(one, Mapping) and one.get("type") in over.conditions and one.get("status") == "True"
        for one in (conditions if isinstance(conditions, list) else ())
    )


def fragile_why(kind: Kind, thing: Anything) -> str:
    """Why losing one pod fails it; empty if it does not."""
    fragile = kind.fragile
    return fragile.why if fragile and holds(fragile.asks, fragile.value, place_of(thing)) else ""


def _items(rule: RoleRule, place: Place) -> Iterator[tuple[str, Any]]:
    if rule.each is None:
        item = look(rule.at, place) if rule.at else None
        if rule.at is None or item is not None:
            yield rule.name, item
        return
    several = look(rule.each, place)
    pairs = several.items() if isinstance(several, Mapping) else enumerate(several if isinstance(several, list) else ())
    for key, item in pairs:
        name = look(rule.name_at, Place(place.root, item)) if rule.name_at else str(key).lower()
        yield (rule.name or (name if isinstance(name, str) else "")), item


def _role(rule: RoleRule, name: str, place: Place) -> DeclaredRole:
    def asked(expression: Expression | None, otherwise: int) -> int:
        answer = None if expression is None else number(expression, place)
        return otherwise if answer is None else answer

    count = asked(rule.count, 1)
    least, most = min(asked(rule.min, count), count), max(asked(rule.max, count), count)
    if rule.copies is not None:
        copies = asked(rule.copies, 1)
        fewest, many = min(asked(rule.min_copies, copies), copies), max(asked(rule.max_copies, copies), copies)
    else:
        copies = fewest = many = 1
    return DeclaredRole(
        name=name,
        min=least * fewest,
        count=count * copies,
        max=most * many,
        per_copy=count if rule.copies is not None else 0,
        total=asked(rule.total, count * copies),
        template=_template(rule, place),
    )


def _template(rule: RoleRule, place: Place) -> Template | None:
    for path in rule.template:
        found = look(path, place)
        if isinstance(found, Mapping):
            try:
                return msgspec.convert(found, Template)
            except msgspec.ValidationError:
                return None
    return None
