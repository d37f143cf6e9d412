"""Why a workload that was tried found no room: facts from the same rows that refused it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from optimus.decide.asks import Ask
from optimus.decide.placement.rooms import Room
from optimus.decide.placement.shapes import NO_SHARE, Shape
from optimus.decide.world import World
from optimus.model.gangs import Part
from optimus.model.pools import HOST_LEVEL, NVLINK_LEVEL
from optimus.model.reasons import Code, Reason, counted, named, reason
from optimus.model.rules import (
    ATTACH,
    COUNTER,
    DEVICE,
    EVERYWHERE,
    IN_BYTES,
    NEAR,
    PODS,
    PORT,
    TOGETHER,
    Bond,
    NeighbourRule,
    is_counter,
)
from optimus.model.units import MIB, format_gpu, format_memory, format_moment_ms, format_resource
from optimus.state.arrays import Ints


def why_never(world: World, ask: Ask, pool: int) -> Reason:
    """The minimum does not fit even into the empty pool: what is missing."""
    view = world.boards[pool].view
    name = view.pool.name
    if not view.usable.any():
        return reason(Code.NO_USABLE_NODE, pool=name)
    level = _unknown_level(world, ask.minimum, pool)
    if level:
        return reason(Code.NO_SUCH_LEVEL, pool=name, level=level)
    room = world.boards[pool].empty()
    for role in ask.signature.minimum:
        shape = ask.shape(pool, role)
        if not shape.matching.any():
            if shape.request.gpu_count and not shape.whole and not view.assignable.any():
                return reason(Code.NO_SUCH_DEVICE, pool=name, asked="devices that can be shared")
            return reason(Code.NO_MATCHING_NODE, pool=name)
        if not shape.allowed.any():
            return reason(Code.NO_MATCHING_NODE, pool=name)
        if shape.gpu_count and not (shape.share[shape.allowed] < NO_SHARE).any():
            return reason(Code.NO_SUCH_DEVICE, pool=name, asked=_no_device(world, shape, room))
        if not room.fits(shape).any():
            asked = f"{_described(world, shape, room)} on one node{_most_on_a_node(world, shape, room)}"
            return reason(Code.NO_SUCH_DEVICE, pool=name, asked=asked)
        if int(room.fits(shape).sum()) < len(ask.signature.minimum[role]):
            asked = _replicas(world, shape, len(ask.signature.minimum[role]))
            return reason(Code.NEVER_FITS, asked=asked, pool=name, possible=int(room.fits(shape).sum()))
    crowd = _tightest(ask, pool, room)
    if crowd is None:
        largest = max(ask.signature.minimum, key=lambda r: len(ask.signature.minimum[r]))
        asked = _replicas(world, ask.shape(pool, largest), len(ask.signature.minimum[largest]))
        return reason(Code.NEVER_FITS, asked=f"{asked} beside its other roles", pool=name, possible="fewer")
    shape = ask.shape(pool, crowd.role)
    if crowd.level == NVLINK_LEVEL and not (view.assignable & shape.allowed).any():
        return reason(Code.NO_SUCH_DEVICE, pool=name, asked="assignable devices, which a rule for nvlink needs")
    asked = f"{_replicas(world, shape, crowd.needed)} in one {crowd.level}"
    return reason(Code.NEVER_FITS, asked=asked, pool=name, possible=f"{crowd.best} there")


def _no_device(world: World, shape: Shape, room: Room) -> str:
    """What is asked of a device that none has, and what comes closest: `a GPU of model H100: there are A100, T4`."""
    request, view, known = shape.request, room.view, world.snapshot.resources.models
    there = shape.allowed[:, None] & (view.gpu_model >= 0)
    models = [model.model for model in request.models]
    found = sorted({known[model] for model in np.unique(view.gpu_model[there]).tolist()})
    alike = there & np.isin(view.gpu_model, [known.index(model) for model in models if model in known])
    of = f"a GPU of model {', '.join(models)}" if models else ""
    if models and not alike.any():
        return f"{of}: {f'there are {named(found, most=6)}' if found else 'there is no GPU'}"
    if not request.gpu_memory_mib:
        return of or f"{_described(world, shape)}: there is {'no such GPU' if found else 'no GPU'}"
    largest = int(view.gpu_memory[alike if models else there].max(initial=0))
    best = f"the largest has {format_memory(largest)}" if largest else "none says how much it has"
    return f"{_described(world, shape)}{' and model ' + ', '.join(models) if models else ''}: {best}"


def _most_on_a_node(world: World, shape: Shape, room: Room) -> str:
    """Of everything asked for that no node has so much of: the most there is; nothing where there is none at all."""
    lacking = []
    nowhere = False
    if shape.gpu_count:
        usable = shape.allowed[:, None] & (shape.share < NO_SHARE) & (room.gpus >= shape.share)
        most = int(usable.sum(axis=1).max(initial=0))
        nowhere = not most
        if 0 < most < shape.gpu_count:
            lacking.append(counted(most, "GPU") if shape.whole else f"parts of {counted(most, 'GPU')}")
    for need in shape.needs:
        if not _somewhere(shape, room, need):
            left = int(np.where(shape.allowed, np.maximum(room.scalars[:, need[0]], 0), 0).max(initial=0))
            nowhere |= not left
            lacking += [_amount(world.snapshot.resources.names[need[0] + 1], left)] if left else []
    if lacking:
        return f": the most is {', '.join(lacking)}"
    return "" if nowhere else ": each is there, but not together"


def why_no_room(world: World, ask: Ask, pool: int, room: Room) -> Reason:
    """It would fit the empty pool but not the room there is."""
    name = world.boards[pool].view.pool.name
    needed = ask.signature.minimum
    for role in sorted(needed, key=lambda r: -ask.shape(pool, r).gpu_count):
        shape = ask.shape(pool, role)
        fits = room.fits(shape)
        if shape.rules and int(room.fits_anybody(shape).sum()) >= len(needed[role]):
            return reason(Code.NEIGHBOURS, pool=name, rule="; ".join(_told(rule.rule) for rule in shape.rules))
        if not fits.any():
            return _no_node(world, shape, room, name)
        if int(fits.sum()) < len(needed[role]):
            free = _free(world, shape, room)
            return reason(
                Code.NO_ROOM_FOR_ALL, pool=name, possible=int(fits.sum()), needed=len(needed[role]), free=free
            )
    crowd = _tightest(ask, pool, room)
    if crowd is not None:
        asked = counted(crowd.needed, "replica")
        return reason(
            Code.DOMAIN_TOO_FULL, asked=asked, level=crowd.level, domain=crowd.domain or "none", best=crowd.best
        )
    role = max(needed, key=lambda r: len(needed[r]))
    shape = ask.shape(pool, role)
    total = sum(len(o) for o in needed.values())
    possible = min(int(room.fits(shape).sum()), total - 1)
    return reason(Code.NO_ROOM_FOR_ALL, pool=name, possible=possible, needed=total, free=_free(world, shape, room))


def _no_node(world: World, shape: Shape, room: Room, pool: str) -> Reason:
    if shape.interference_limit_milli and shape.activity_milli:
        fits_otherwise = (np.maximum(room.gpus, 0) >= shape.share) & shape.allowed[:, None]
        if fits_otherwise.any():
            return reason(Code.INTERFERENCE, pool=pool, bound=format_gpu(shape.interference_limit_milli))
    asked = _described(world, shape, room)
    if not shape.gpu_count:
        lacking = [need for need in shape.needs if not _somewhere(shape, room, need)]
        column, _ = max(lacking or shape.needs, key=lambda need: need[1], default=(0, 0))
        resource = world.snapshot.resources.names[column + 1]
        left = np.where(shape.allowed, np.maximum(room.scalars[:, column], 0), 0)
        best = f"{_amount(resource, int(left.max(initial=0)))}{_on(left)}"
        return reason(Code.NO_ROOM, pool=pool, asked=asked, best=best)
    usable = (shape.share < NO_SHARE) & shape.allowed[:, None]
    free = np.where(usable, np.maximum(room.gpus, 0), 0)
    if shape.whole:
        whole = (np.where(usable, room.gpus, 0) >= 1000).sum(axis=1)
        most, total = int(whole.max(initial=0)), int(whole.sum())
        if most >= shape.gpu_count:  # devices are there, CPU or memory is not
            best = f"{counted(most, 'free GPU')}{_on(whole)} but not the rest"
            return reason(Code.NO_ROOM, pool=pool, asked=asked, best=best)
        if total >= shape.gpu_count and shape.gpu_count > 1:
            best, together = f"{most}{_on(whole)}", shape.gpu_count
            return reason(Code.FRAGMENTED, free=counted(total, "GPU"), pool=pool, asked=together, best=best)
        return reason(Code.NO_ROOM, pool=pool, asked=asked, best=f"{counted(most, 'GPU')}{_on(whole)}")
    parts = free.max(axis=1, initial=0)
    best = f"{format_gpu(int(parts.max(initial=0)))} of a GPU{_on(parts)}"
    return reason(Code.NO_ROOM, pool=pool, asked=asked, best=best)


def _told(rule: NeighbourRule) -> str:
    """`apart from app=web in each zone`."""
    whom = rule.told or rule.counter.removeprefix(NEAR)
    match rule.bond:
        case Bond.NEAR:
            return f"near {whom} in one {rule.level}"
        case Bond.APART:
            return f"apart from {whom}" + (f" in each {rule.level}" if rule.level != EVERYWHERE else "")
    return f"at most {rule.max_skew} more of {whom} in one {rule.level} than in another"


def _on(left: Ints) -> str:
    """On how many nodes the most is left: ` (3 nodes)`."""
    most = int(left.max(initial=0))
    return f" ({counted(int((left == most).sum()), 'node')})" if most else ""


def why_held(world: World, pool: int, nodes: set[int]) -> Reason:
    """Room on these nodes is promised to it: who is leaving, until when, and whether to write a checkpoint."""
    leaving = world.leaving_from(pool, nodes)
    until = max(leaving.values(), default=world.now_ms)
    writing = any(world.spec(world.table.row_of[name]).checkpoint is not None for name in leaving)
    return reason(
        Code.WAITING_FOR_ROOM,
        workloads=named(list(leaving)),
        at=format_moment_ms(until, world.now_ms),
        doing="checkpointing" if writing else "stopping",
    )


class _Crowd(NamedTuple):
    """A part of a gang that must stay inside one domain, and the domain with the most room for it."""

    level: str
    role: int
    needed: int
    domain: str
    best: int


def _tightest(ask: Ask, pool: int, room: Room) -> _Crowd | None:
    """The outermost required level that leaves too little room; if each by itself would do, the innermost."""
    crowd, known = None, set[str]()
    for level, part in _rules(ask.minimum):
        if level in known:  # copies ask for the same
            continue
        known.add(level)
        crowd = _crowd(ask, pool, room, level, part)
        if crowd.best < crowd.needed:
            return crowd
    return None if crowd is None else crowd._replace(best=crowd.needed - 1)


def _crowd(ask: Ask, pool: int, room: Room, level: str, part: Part) -> _Crowd:
    needed: dict[int, int] = {}
    for cell in part.all_cells():
        needed[cell.role_index] = needed.get(cell.role_index, 0) + len(cell.ordinals)
    role = max(needed, key=lambda r: needed[r])
    fits = room.fits(ask.shape(pool, role))
    where = HOST_LEVEL if level == NVLINK_LEVEL else level
    domains = room.view.levels[where]
    inside = domains >= 0
    if not inside.any():
        return _Crowd(level, role, needed[role], "", 0)
    sums = np.bincount(domains[inside], weights=fits[inside]).astype(np.int64)
    best = int(sums.argmax())
    return _Crowd(level, role, needed[role], room.view.domain_names[where][best], int(sums[best]))


def _replicas(world: World, shape: Shape, number: int) -> str:
    return f"{counted(number, 'replica')} with {_described(world, shape)}"


def _described(world: World, shape: Shape, room: Room | None = None) -> str:
    """One replica's request in words. `room`: where it does not fit."""
    request = shape.request
    parts = []
    if request.gpu_count:
        if request.gpu_memory_mib:
            parts.append(
                f"{request.gpu_count} GPU with {format_resource('memory', request.gpu_memory_mib)} of its memory"
            )
        elif request.gpu_milli < 1000:
            each = f"{format_gpu(request.gpu_milli)} GPU"
            parts.append(each if request.gpu_count == 1 else f"{request.gpu_count} x {each}")
        else:
            parts.append(counted(request.gpu_count, "GPU"))
    for column, amount in shape.needs:
        resource = world.snapshot.resources.names[column + 1]
        told_already = request.gpu_count and resource.endswith("/gpu")
        taken_for_granted = resource == PODS and (room is None or _somewhere(shape, room, (column, amount)))
        if not told_already and not taken_for_granted:
            parts.append(_amount(resource, amount))
    return ", ".join(parts) or "nothing"


def _somewhere(shape: Shape, room: Room, need: tuple[int, int]) -> bool:
    """Whether any node that it may be on has this one thing."""
    return bool((shape.allowed & (room.scalars[:, need[0]] >= need[1])).any())


def _amount(resource: str, amount: int) -> str:
    """`4 cpu`, `port TCP/80`, `no place for a pod`."""
    if not is_counter(resource):
        return f"{format_resource(resource, amount)} {resource}"
    if resource == PODS or resource.startswith(PORT):
        whole = "place for a pod" if resource == PODS else f"port {resource.removeprefix(PORT)}"
        return f"no {whole}" if not amount else f"a {whole}" if resource == PODS else whole
    if resource.startswith(ATTACH):
        return f"{amount} more of the volumes of {resource.removeprefix(ATTACH)}"
    if resource.startswith(DEVICE):
        of_class = f"of class {resource.removeprefix(DEVICE).rpartition('/')[0]}"
        if resource.endswith(TOGETHER):
            return f"{counted(amount, 'set')} of devices {of_class} that go together"
        return f"{counted(amount, 'device')} {of_class}"
    told = format_memory(amount // MIB) if resource.startswith(IN_BYTES) else str(amount)
    return f"{told} {resource.removeprefix(COUNTER)}"


def _free(world: World, shape: Shape, room: Room) -> str:
    if shape.gpu_count:
        usable = (shape.share < NO_SHARE) & shape.allowed[:, None]
        return counted(format_gpu(int(np.where(usable, np.maximum(room.gpus, 0), 0).sum())), "GPU")
    column = shape.needs[0][0] if shape.needs else 0
    resource = world.snapshot.resources.names[column + 1]
    total = int(np.where(shape.allowed, np.maximum(room.scalars[:, column], 0), 0).sum())
    return _amount(resource, total)


def _rules(part: Part) -> Iterator[tuple[str, Part]]:
    """Every required level, outermost first, and the part it binds."""
    if part.topology.required:
        yield part.topology.required, part
    for inner in part.parts:
        yield from _rules(inner)


def _unknown_level(world: World, part: Part, pool: int) -> str:
    known = {*world.boards[pool].view.levels, NVLINK_LEVEL}
    if part.topology.required and part.topology.required not in known:
        return part.topology.required
    return next((level for inner in part.parts if (level := _unknown_level(world, inner, pool))), "")
