"""Smaller: fewer replicas, fewer copies of a group, fewer GPUs for each replica, less GPU memory, half a device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from msgspec import structs

from optimus.explaining.suggestion import Idea, Suggestion, first_that_works, tried
from optimus.explaining.trying import Change, Trials
from optimus.model.nodes import WHOLE_DEVICE_MILLI
from optimus.model.reasons import counted
from optimus.model.units import format_memory
from optimus.model.workloads import Group, Role, WorkloadClass

HALF = WHOLE_DEVICE_MILLI // 2
Resize = Callable[[Group, int], Group]


class Number(NamedTuple):
    """Something in a gang that can be lowered."""

    kind: str
    noun: str
    rest: str
    """Behind the number in words."""
    field: str
    now: int
    resize: Resize


def smaller(trials: Trials) -> list[Suggestion]:
    """For each number that can be lowered: the largest that works, and the largest that disturbs nobody."""
    gang = trials.workloads()[0].gang
    found: list[Suggestion] = []
    for number in (*_counts(gang), *_gpus(gang)):
        found += _largest(trials, number)
    return found + _less_memory(trials) + tried(trials, _half(trials))


def _largest(trials: Trials, number: Number) -> list[Suggestion]:
    def make(value: int) -> Idea:
        words = f"{counted(value, number.noun)}{number.rest} instead of {number.now}"
        return _idea(trials, number.kind, words, f"{number.field}: {value}", lambda g: number.resize(g, value))

    def below(most: int) -> Sequence[int]:
        return range(most - 1, 0, -1)

    found = first_that_works(trials, below(number.now), make)
    if found is None:
        return []
    value, suggestion = found
    gentler = first_that_works(trials, below(value), make, idle=True) if suggestion.outcome.held else None
    return [suggestion, *([gentler[1]] if gentler else [])]


def _idea(trials: Trials, kind: str, words: str, field: str, resize: Callable[[Group], Group]) -> Idea:
    changed = tuple(structs.replace(one, gang=resize(one.gang)) for one in trials.workloads())
    return Idea(kind, words, field, Change(workloads=changed, anew=True))


def _counts(gang: Group) -> Iterator[Number]:
    """Roles and groups right below the gang of which at least two must be there."""
    alone = len(gang.roles) == 1 and not gang.groups
    for role in gang.roles:
        if role.min > 1:
            whose = "" if alone else f" of role {role.name}"
            yield Number("replicas", "replica", whose, f"replicas{whose}", role.min, _fewer_replicas(role.name))
    for group in gang.groups:
        if group.min > 1:
            whose = f" of {group.name}"
            yield Number("replicas", "group", whose, f"groups{whose}", group.min, _fewer_groups(group.name))


def _gpus(gang: Group) -> Iterator[Number]:
    for role in gang.roles:
        if role.request.gpu_count > 1:
            whose = "" if len(gang.roles) == 1 else f" of role {role.name}"
            each = f" for each replica{whose}"
            yield Number("gpus", "GPU", each, f"gpu{whose}", role.request.gpu_count, _fewer_gpus(role.name))


def _less_memory(trials: Trials) -> list[Suggestion]:
    """Of each device: as much as those that there are have."""
    gang = trials.workloads()[0].gang
    there = np.unique(trials.engine.state.nodes.columns.view("gpu_memory")).tolist()
    found: list[Suggestion] = []
    for role in gang.roles:
        asked = role.request.gpu_memory_mib
        sizes = [size for size in reversed(there) if 0 < size < asked]
        whose = "" if len(gang.roles) == 1 else f" of role {role.name}"

        def make(size: int, role: Role = role, asked: int = asked, whose: str = whose) -> Idea:
            words = f"{format_memory(size)} of GPU memory{whose} instead of {format_memory(asked)}"
            field = f"gpu: {{memory: {format_memory(size)}}}{whose}"
            less = structs.replace(role, request=structs.replace(role.request, gpu_memory_mib=size))
            return _idea(trials, "gpuMemory", words, field, lambda g: _with_role(g, role.name, lambda _: less))

        works = first_that_works(trials, sizes, make)
        found += [works[1]] if works else []
    return found


def _half(trials: Trials) -> Idea | None:
    """Half a device is enough for many who sit in front of one."""
    first = trials.workloads()[0]
    roles = first.gang.roles
    if first.workload_class is not WorkloadClass.INTERACTIVE or len(roles) != 1 or first.gang.groups:
        return None
    request = roles[0].request
    if request.gpu_count != 1 or request.gpu_milli != WHOLE_DEVICE_MILLI or request.gpu_memory_mib:
        return None
    shared = structs.replace(request, gpu_milli=HALF)
    return _idea(
        trials,
        "share",
        "half a GPU instead of a whole one",
        "gpu: 0.5",
        lambda gang: _with_role(gang, roles[0].name, lambda role: structs.replace(role, request=shared)),
    )


def _fewer_replicas(name: str) -> Resize:
    return lambda gang, number: _with_role(gang, name, lambda role: _fewer(role, number))


def _fewer_groups(name: str) -> Resize:
    def resize(gang: Group, number: int) -> Group:
        return structs.replace(
            gang, groups=tuple(_fewer_copies(g, number) if g.name == name else g for g in gang.groups)
        )

    return resize


def _fewer_gpus(name: str) -> Resize:
    def change(role: Role, number: int) -> Role:
        return structs.replace(role, request=structs.replace(role.request, gpu_count=number))

    return lambda gang, number: _with_role(gang, name, lambda role: change(role, number))


def _with_role(gang: Group, name: str, change: Callable[[Role], Role]) -> Group:
    return structs.replace(gang, roles=tuple(change(role) if role.name == name else role for role in gang.roles))


def _fewer(role: Role, number: int) -> Role:
    least, most, sizes = _lowered(role.min, role.max, role.sizes, number)
    return structs.replace(role, min=least, max=most, sizes=sizes)


def _fewer_copies(group: Group, number: int) -> Group:
    least, most, sizes = _lowered(group.min, group.max, group.sizes, number)
    return structs.replace(group, min=least, max=most, sizes=sizes)


def _lowered(least: int, most: int, sizes: tuple[int, ...], number: int) -> tuple[int, int, tuple[int, ...]]:
    """A fixed number stays fixed; an elastic one begins lower and reaches as far as before."""
    return (number, number, ()) if least == most else (number, most, (number, *sizes) if sizes else ())
