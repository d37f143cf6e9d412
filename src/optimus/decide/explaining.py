"""Why a workload that was tried found no room: facts from the same rows that refused it."""

from __future__ import annotations

import numpy as np

from optimus.decide.asks import Ask
from optimus.decide.placement.rooms import Room
from optimus.decide.placement.shapes import NO_SHARE, Shape
from optimus.decide.world import World
from optimus.model.gangs import Part
from optimus.model.pools import HOST_LEVEL, NVLINK_LEVEL
from optimus.model.reasons import Code, Reason, counted, reason
from optimus.model.units import format_gpu, format_resource


def why_never(world: World, ask: Ask, pool: int) -> Reason:
    """The minimum does not fit even into the empty pool: what is missing."""
    name = world.boards[pool].view.pool.name
    level = _unknown_level(world, ask.minimum, pool)
    if level:
        return reason(Code.NO_SUCH_LEVEL, pool=name, level=level)
    room = world.boards[pool].empty()
    for role in ask.signature.minimum:
        shape = ask.shape(pool, role)
        if not shape.matching.any():
            if shape.request.gpu_count and not shape.whole and not world.boards[pool].view.assignable.any():
                return reason(Code.NO_SUCH_DEVICE, pool=name, asked="devices that can be shared")
            return reason(Code.NO_MATCHING_NODE, pool=name)
        if not shape.allowed.any():
            return reason(Code.NO_MATCHING_NODE, pool=name)
        if shape.gpu_count and not (shape.share[shape.allowed] < NO_SHARE).any():
            models = ", ".join(m.model for m in shape.request.models)
            asked = f"a GPU of model {models}" if models else _described(world, shape)
            return reason(Code.NO_SUCH_DEVICE, pool=name, asked=asked)
        if not room.fits(shape).any():
            return reason(Code.NO_SUCH_DEVICE, pool=name, asked=f"{_described(world, shape)} on one node")
    largest = max(ask.signature.minimum, key=lambda r: len(ask.signature.minimum[r]))
    possible = int(room.fits(ask.shape(pool, largest)).sum())
    needed = len(ask.signature.minimum[largest])
    where = _tightest_rule(ask.minimum)
    asked = f"{counted(needed, 'replica')} with {_described(world, ask.shape(pool, largest))}"
    if where:
        return reason(Code.NEVER_FITS, asked=f"{asked} in one {where}", pool=name, possible=f"{possible} in all")
    return reason(Code.NEVER_FITS, asked=asked, pool=name, possible=possible)


def why_no_room(world: World, ask: Ask, pool: int, room: Room) -> Reason:
    """It would fit the empty pool but not the room there is."""
    name = world.boards[pool].view.pool.name
    needed = ask.signature.minimum
    for role in sorted(needed, key=lambda r: -ask.shape(pool, r).gpu_count):
        shape = ask.shape(pool, role)
        fits = room.fits(shape)
        if not fits.any():
            return _no_node(world, shape, room, name)
        if int(fits.sum()) < len(needed[role]):
            free = _free(world, shape, room)
            return reason(
                Code.NO_ROOM_FOR_ALL, pool=name, possible=int(fits.sum()), needed=len(needed[role]), free=free
            )
    rule = _rule(ask.minimum)
    if rule is not None:
        level, part = rule
        return _domain_too_full(ask, pool, room, level, part)
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
    asked = _described(world, shape)
    if not shape.gpu_count:
        column, _ = max(shape.needs, key=lambda need: need[1], default=(0, 0))
        resource = world.snapshot.resources.names[column + 1]
        best = int(np.where(shape.allowed, room.scalars[:, column], 0).max(initial=0))
        return reason(
            Code.NO_ROOM, pool=pool, asked=asked, best=f"{format_resource(resource, max(best, 0))} {resource}"
        )
    usable = (shape.share < NO_SHARE) & shape.allowed[:, None]
    free = np.where(usable, np.maximum(room.gpus, 0), 0)
    if shape.whole:
        whole = (np.where(usable, room.gpus, 0) >= 1000).sum(axis=1)
        best, total = int(whole.max(initial=0)), int(whole.sum())
        if best >= shape.gpu_count:  # devices are there, CPU or memory is not
            return reason(Code.NO_ROOM, pool=pool, asked=asked, best=f"{counted(best, 'free GPU')} but not the rest")
        if total >= shape.gpu_count and shape.gpu_count > 1:
            return reason(Code.FRAGMENTED, free=counted(total, "GPU"), pool=pool, asked=shape.gpu_count, best=best)
        return reason(Code.NO_ROOM, pool=pool, asked=asked, best=counted(best, "GPU"))
    return reason(Code.NO_ROOM, pool=pool, asked=asked, best=f"{format_gpu(int(free.max(initial=0)))} of a GPU")


def _domain_too_full(ask: Ask, pool: int, room: Room, level: str, part: Part) -> Reason:
    view = room.view
    needed: dict[int, int] = {}
    for cell in part.all_cells():
        needed[cell.role_index] = needed.get(cell.role_index, 0) + len(cell.ordinals)
    role = max(needed, key=lambda r: needed[r])
    fits = room.fits(ask.shape(pool, role))
    where = HOST_LEVEL if level == NVLINK_LEVEL else level
    domains = view.levels[where]
    inside = domains >= 0
    if not inside.any():
        return reason(Code.DOMAIN_TOO_FULL, asked=counted(needed[role], "replica"), level=level, domain="none", best=0)
    sums = np.bincount(domains[inside], weights=fits[inside]).astype(np.int64)
    best = int(sums.argmax())
    room_for = min(int(sums[best]), needed[role] - 1) if level == NVLINK_LEVEL else int(sums[best])
    names = view.domain_names[where]
    return reason(
        Code.DOMAIN_TOO_FULL, asked=counted(needed[role], "replica"), level=level, domain=names[best], best=room_for
    )


def _described(world: World, shape: Shape) -> str:
    """One replica's request in words."""
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
        parts.append(f"{format_resource(resource, amount)} {resource}")
    return ", ".join(parts) or "nothing"


def _free(world: World, shape: Shape, room: Room) -> str:
    if shape.gpu_count:
        usable = (shape.share < NO_SHARE) & shape.allowed[:, None]
        return counted(format_gpu(int(np.where(usable, np.maximum(room.gpus, 0), 0).sum())), "GPU")
    column = shape.needs[0][0] if shape.needs else 0
    resource = world.snapshot.resources.names[column + 1]
    total = int(np.where(shape.allowed, np.maximum(room.scalars[:, column], 0), 0).sum())
    return f"{format_resource(resource, total)} {resource}"


def _rule(part: Part) -> tuple[str, Part] | None:
    """The first required level, outermost first, and the part it binds."""
    if part.topology.required:
        return part.topology.required, part
    return next((found for inner in part.parts if (found := _rule(inner)) is not None), None)


def _tightest_rule(part: Part) -> str:
    rule = _rule(part)
    return rule[0] if rule else ""


def _unknown_level(world: World, part: Part, pool: int) -> str:
    known = {*world.boards[pool].view.levels, NVLINK_LEVEL}
    if part.topology.required and part.topology.required not in known:
        return part.topology.required
    return next((level for inner in part.parts if (level := _unknown_level(world, inner, pool))), "")
