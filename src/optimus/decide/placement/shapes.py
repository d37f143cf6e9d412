"""A shape is one replica's request as arrays over the nodes of one pool.

Workloads with the same request and the same rules about nodes share a shape, and with it one row of "how many fit" and
one row of scores.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from optimus.decide.placement.neighbours import Reach, Rule, compiled
from optimus.model.nodes import WHOLE_DEVICE_MILLI, Taint
from optimus.model.pools import Strategy
from optimus.model.rules import NEAR, Where
from optimus.model.workloads import Request, Role, Workload
from optimus.state.arrays import Bools, Ints
from optimus.state.snapshot import PoolView, Snapshot

NO_SHARE = 1 << 40
"""The share of a device that cannot be used at all."""
PLENTY = 1 << 30
"""How many replicas fit where nothing is asked for."""
CORDONED = Taint("node.kubernetes.io/unschedulable")
"""What a replica must tolerate by its own rules to be on a cordoned node."""


@dataclass(slots=True, eq=False)
class Shape:
    request: Request
    needs: list[tuple[int, int]]
    """(scalar column, amount) for what is asked of CPU, memory and named accelerators."""
    scalars: Ints
    allowed: Bools
    """Nodes that match selector, affinity and tolerations and may take new work."""
    matching: Bools
    """The same without readiness: nodes that could take it when they are well."""
    gpu_count: int
    whole: bool
    share: Ints
    """[node, device] thousandths one replica takes there; NO_SHARE where the model or the memory is wrong."""
    speed_percent: Ints
    """[node] speed of the best allowed device model there."""
    model_ok: Bools
    """[model id] allowed models."""
    activity_milli: int
    interference_limit_milli: int
    strategy: Strategy
    rules: list[Rule] = field(default_factory=list)
    """About neighbours. With any, replicas are placed one by one."""
    key: int = 0
    columns: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    amounts: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


def shape_key(workload: Workload, role: Role, strategy: Strategy) -> tuple[object, ...]:
    return (role.request, role.where, workload.node_selector, workload.tolerations, strategy)


def build_shape(workload: Workload, role: Role, view: PoolView, snapshot: Snapshot) -> Shape:
    request, where, resources = role.request, role.where, snapshot.resources
    scalars = resources.scalars(request)
    matching = _by_labels(workload, where, view) & _by_taints(workload, where, view)
    usable = view.usable
    if where.tolerations and any(toleration.accepts(CORDONED) for toleration in where.tolerations):
        usable = np.array([node.ready for node in view.nodes], dtype=np.bool_)
    whole = request.gpu_count > 0 and not request.gpu_memory_mib and request.gpu_milli >= WHOLE_DEVICE_MILLI
    if request.gpu_count and not whole:
        matching &= view.assignable  # nobody hands out parts of a device that is only counted
    model_ok = np.ones(len(resources.models) + 1, dtype=np.bool_)
    model_ok[-1] = False  # absent devices carry model -1
    speeds = np.full(len(resources.models) + 1, 100, dtype=np.int64)
    speeds[-1] = 0
    if request.models:
        by_name = {m.model: m.speed_percent for m in request.models}
        for name, number in resources.model_ids.items():
            model_ok[number] = name in by_name
            speeds[number] = by_name.get(name, 0)
    if request.gpu_count:
        share = np.full(view.gpu_model.shape, request.gpu_milli, dtype=np.int64)
        if request.gpu_memory_mib:
            memory = np.maximum(view.gpu_memory, 1)
            share = -(-request.gpu_memory_mib * WHOLE_DEVICE_MILLI // memory)
        share = np.where(model_ok[view.gpu_model] & (share <= WHOLE_DEVICE_MILLI), share, NO_SHARE)
        if request.gpu_memory_mib and request.gpu_count > 1:  # one replica takes the same share of all its devices
            largest = np.where(share < NO_SHARE, share, 0).max(axis=1, keepdims=True, initial=0)
            share = np.where(share < NO_SHARE, largest, NO_SHARE)
        fastest = np.where(share < NO_SHARE, speeds[view.gpu_model], 0).max(axis=1, initial=0)
    else:
        share = np.zeros(view.gpu_model.shape, dtype=np.int64)
        fastest = np.full(view.size, 100, dtype=np.int64)
    columns = np.array(
        [c for c in np.flatnonzero(scalars) if not resources.names[c + 1].startswith(NEAR)], dtype=np.int64
    )
    return Shape(
        request=request,
        needs=[(int(c), int(scalars[c])) for c in columns],
        scalars=scalars,
        allowed=matching & usable,
        matching=matching,
        gpu_count=request.gpu_count,
        whole=whole,
        share=share,
        speed_percent=fastest,
        model_ok=model_ok,
        activity_milli=request.activity_milli,
        interference_limit_milli=view.pool.interference_limit_milli if not whole else 0,
        strategy=view.pool.strategy_for(workload.workload_class),
        rules=_rules(workload, where, scalars, snapshot),
        columns=columns,
        amounts=scalars[columns],
    )


def _by_labels(workload: Workload, where: Where, view: PoolView) -> Bools:
    """[node] whether selector and affinity let it be there."""
    if not workload.node_selector and not where.about_nodes:
        return np.ones(view.size, dtype=np.bool_)
    selector = workload.node_selector
    return np.array(
        [all(n.labels.get(key) == value for key, value in selector) and where.accepts(n) for n in view.nodes],
        dtype=np.bool_,
    )


def _by_taints(workload: Workload, where: Where, view: PoolView) -> Bools:
    """[node] whether its taints let it be there."""
    found = np.ones(view.size, dtype=np.bool_)
    for i in view.tainted:
        found[i] = where.tolerates(view.nodes[i], workload.tolerations)
    return found


def _rules(workload: Workload, where: Where, scalars: Ints, snapshot: Snapshot) -> list[Rule]:
    if not where.neighbours:
        return []
    affinity = Where(any_of=where.any_of)  # a bound volume says where it can be, not what it spreads over
    reach = Reach(
        [_by_labels(workload, affinity, view) for view in snapshot.pools],
        [_by_taints(workload, where, view) for view in snapshot.pools],
    )
    return compiled(where, snapshot.resources.columns, scalars, snapshot, reach)


def count_fits(shape: Shape, scalars: Ints, gpus: Ints, activity: Ints, at: Ints | slice) -> Ints:
    """How many replicas each node can take, by count; `at` selects the nodes in the shape's own arrays."""
    if len(shape.columns) == 1:
        fits = scalars[:, shape.columns[0]] // shape.amounts[0]
    elif len(shape.columns):
        fits = (scalars[:, shape.columns] // shape.amounts).min(axis=1)
    else:
        fits = np.full(len(scalars), PLENTY, dtype=np.int64)
    if shape.gpu_count:
        fits = np.minimum(fits, _count_gpu_fits(shape, gpus, activity, at))
    return np.where(shape.allowed[at], np.maximum(fits, 0), 0)


def count_fits_on(shape: Shape, node: int, scalars: Ints, gpus: Ints, activity: Ints) -> int:
    """The same for one node, whose own rows are given; without the overhead of tiny arrays."""
    if shape.gpu_count > 1 and not shape.whole:  # rare, and a search of its own
        at = np.array([node])
        return int(count_fits(shape, scalars[None], gpus[None], activity[None], at)[0])
    if not shape.allowed[node]:
        return 0
    free = scalars.tolist()
    fits = min([free[column] // amount for column, amount in shape.needs], default=PLENTY)
    if shape.gpu_count:
        devices = zip(gpus.tolist(), shape.share[node].tolist(), strict=True)
        if shape.whole:
            pieces = sum([milli >= share for milli, share in devices]) // shape.gpu_count
        elif shape.interference_limit_milli and shape.activity_milli:
            limit, each = shape.interference_limit_milli, shape.activity_milli
            quiet = [max(limit - active, 0) // each for active in activity.tolist()]
            pieces = sum([min(max(milli, 0) // share, q) for (milli, share), q in zip(devices, quiet, strict=True)])
        else:
            pieces = sum([max(milli, 0) // share for milli, share in devices])
        fits = min(fits, pieces)
    return max(fits, 0)


def _count_gpu_fits(shape: Shape, gpus: Ints, activity: Ints, at: Ints | slice) -> Ints:
    share = shape.share[at]
    if shape.whole:
        free: Ints = (gpus >= share).sum(axis=1)
        return free if shape.gpu_count == 1 else free // shape.gpu_count
    pieces = np.maximum(gpus, 0) // share
    if shape.interference_limit_milli and shape.activity_milli:
        quiet = np.maximum(shape.interference_limit_milli - activity, 0) // shape.activity_milli
        pieces = np.minimum(pieces, quiet)
    if shape.gpu_count == 1:
        total: Ints = pieces.sum(axis=1)
        return total
    # a replica needs several different devices: k replicas fit if sum_d min(k, pieces_d) >= k * gpu_count
    fits = np.zeros(len(gpus), dtype=np.int64)
    for k in range(1, int(pieces.max(initial=0)) * gpus.shape[1] // shape.gpu_count + 1):
        enough = np.minimum(pieces, k).sum(axis=1) >= k * shape.gpu_count
        if not enough.any():
            break
        fits[enough] = k
    return fits
