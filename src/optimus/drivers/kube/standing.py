"""How queues and pools stand after a turn: what each is due and has, who runs, who waits and why, what is free.

Why: metrics and the status of objects tell the same numbers, and neither may look into a state that is being changed:
the brain works in a thread of its own.
Owns: the records, and how they follow from the engine between two turns.
Must not: write, or keep anything of the state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from optimus.engine.engine import Engine
from optimus.model.nodes import WHOLE_DEVICE_MILLI
from optimus.model.plans import Condition, Plan, QueueShare
from optimus.model.queues import GPU
from optimus.model.workloads import Workload
from optimus.state.queue_tree import UNLIMITED
from optimus.state.snapshot import PoolView
from optimus.state.state import State

NO_QUEUE_LABEL = "(none)"
"""For work whose queue does not exist: names that anybody may invent must not become labels of a metric."""


class Share(Struct, frozen=True, kw_only=True):
    """Of one resource in one pool, in its unit (thousandths, MiB or pieces)."""

    pool: str
    resource: str
    guarantee: int
    limit: int | None
    share: int
    allocated: int
    demand: int

    @property
    def borrowed(self) -> int:
        return max(self.allocated - self.guarantee, 0)


class QueueStanding(Struct, frozen=True, kw_only=True):
    name: str
    shares: tuple[Share, ...] = ()
    running: int = 0
    waiting: Mapping[str, int] = {}
    """Reason code -> workloads."""
    conditions: tuple[Condition, ...] = ()

    def gpus(self) -> list[Share]:
        return [share for share in self.shares if share.resource == GPU]


class PoolStanding(Struct, frozen=True, kw_only=True):
    name: str
    nodes: int
    usable: int
    """Ready and not cordoned."""
    models: Mapping[str, int] = {}
    """GPUs by model, of all its nodes."""
    free: Mapping[str, int] = {}
    """Thousandths of GPUs by model that nobody has, on usable nodes."""
    fragmented: int = 0
    """Of these, those on nodes of which others are in use."""
    conditions: tuple[Condition, ...] = ()


class Standing(Struct, frozen=True):
    queues: tuple[QueueStanding, ...]
    pools: tuple[PoolStanding, ...]
    policies: tuple[Condition, ...] = ()
    """What is wrong with policies: they fall back to the default."""


def look(engine: Engine, plan: Plan, workloads: Mapping[str, Workload]) -> Standing:
    """Between two turns; `workloads`: as the brain knows them."""
    state = engine.state
    told: dict[str, list[Condition]] = {}
    for condition in plan.conditions:
        told.setdefault(condition.subject, []).append(condition)
    return Standing(
        _queues(state, plan, workloads, told),
        tuple(_pool(state, view, tuple(told.get(f"pool {view.pool.name}", ()))) for view in state.pool_views),
        tuple(one for one in plan.conditions if one.subject.startswith("policy ")),
    )


def _queues(
    state: State, plan: Plan, workloads: Mapping[str, Workload], told: Mapping[str, list[Condition]]
) -> tuple[QueueStanding, ...]:
    shares: dict[str, list[Share]] = {}
    for share in plan.shares:
        shares.setdefault(share.queue, []).append(_share(state, share))
    waiting: dict[str, Counter[str]] = {}
    for wait in plan.waiting:
        workload = workloads.get(wait.workload)
        queue = workload.queue if workload is not None and workload.queue in state.queues else NO_QUEUE_LABEL
        waiting.setdefault(queue, Counter())[str(wait.reason.code)] += 1
    running = _running(state)
    lost = [NO_QUEUE_LABEL] if NO_QUEUE_LABEL in waiting else []
    return tuple(
        QueueStanding(
            name=name,
            shares=tuple(shares.get(name, ())),
            running=running.get(name, 0),
            waiting=dict(waiting.get(name, {})),
            conditions=tuple(told.get(f"queue {name}", ())),
        )
        for name in [*sorted(state.queues), *lost]
    )


def _share(state: State, told: QueueShare) -> Share:
    tree = state.tree
    pool = next(view.index for view in state.pool_views if view.pool.name == told.pool)
    at = tree.index[told.queue], pool, state.resources.columns[told.resource]
    limit = int(tree.limit[at])
    return Share(
        pool=told.pool,
        resource=told.resource,
        guarantee=int(tree.guarantee[at]),
        limit=None if limit >= UNLIMITED else limit,
        share=told.share,
        allocated=told.allocated,
        demand=told.demand,
    )


def _running(state: State) -> dict[str, int]:
    """Workloads that have room, by queue."""
    columns = state.workloads.columns
    rows = (columns.view("alive") > 0) & (columns.view("held") > 0) & (columns.view("queue") >= 0)
    numbers, counts = np.unique(columns.view("queue")[rows], return_counts=True)
    return {state.tree.queues[q].name: int(n) for q, n in zip(numbers.tolist(), counts.tolist(), strict=True)}


def _pool(state: State, view: PoolView, conditions: tuple[Condition, ...]) -> PoolStanding:
    names = state.resources.models
    models: Counter[str] = Counter()
    for number, count in zip(*np.unique(view.gpu_model[view.gpu_model >= 0], return_counts=True), strict=True):
        models[names[int(number)]] += int(count)
    there = view.usable[:, None] & (view.gpu_model >= 0)
    free = state.nodes.columns.view("now_gpus")[view.rows][:, : view.gpu_model.shape[1]]
    free = np.where(there, np.maximum(free, 0), 0)
    whole = there.sum(axis=1) * WHOLE_DEVICE_MILLI
    by_node = free.sum(axis=1)
    by_model = {names[number]: int(free[view.gpu_model == number].sum()) for number in range(len(names))}
    return PoolStanding(
        name=view.pool.name,
        nodes=view.size,
        usable=int(view.usable.sum()),
        models=dict(sorted(models.items())),
        free={name: by_model[name] for name in sorted(models)},
        fragmented=int(by_node[by_node < whole].sum()),
        conditions=conditions,
    )
