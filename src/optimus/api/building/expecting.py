"""Whom and what an expectation means.

Why: the runner compares ids and integers; people write names, patterns and `80Gi`.
Owns: resolving names to ids, amounts to units, and the pool that goes without saying.
Must not: judge.
"""

from __future__ import annotations

from typing import Any

from optimus.api.building.report import Report
from optimus.api.building.world import World
from optimus.api.marks import Loc
from optimus.api.scenario import (
    Expectations,
    ExpectedState,
    NodeExpected,
    PlanExpected,
    QueueExpected,
    WorkloadExpected,
)
from optimus.api.specs.expectations import ACTIONS, ExpectSpec, PlanExpectSpec, QueueExpectSpec, WorkloadExpectSpec
from optimus.api.specs.fields import nearest
from optimus.model import units
from optimus.model.pools import DEFAULT_POOL
from optimus.model.queues import CPU, GPU, MEMORY


def resolve_expectations(world: World, report: Report, spec: ExpectSpec, loc: Loc) -> Expectations:
    return Expectations(
        workloads=tuple(
            _workload(world, report, name, wanted, (*loc, "workloads", name)) for name, wanted in spec.workloads.items()
        ),
        queues=tuple(
            expected
            for name, wanted in spec.queues.items()
            if (expected := _queue(world, report, name, wanted, (*loc, "queues", name)))
        ),
        nodes=tuple(
            NodeExpected(
                mark=report.mark((*loc, "nodes", name)),
                nodes=world.find_nodes(name, (*loc, "nodes", name)),
                workloads=_ids(world, wanted.workloads, (*loc, "nodes", name, "workloads")),
                free_gpu_milli=wanted.free_gpus,
            )
            for name, wanted in spec.nodes.items()
        ),
        plan=_plan(report, spec.plan, (*loc, "plan")),
    )


def _workload(world: World, report: Report, name: str, spec: WorkloadExpectSpec, loc: Loc) -> WorkloadExpected:
    pool = spec.pool
    if pool is not None and pool not in world.pools:
        report.unknown((*loc, "pool"), "pool", pool, world.pools)
    gone = spec.state == ExpectedState.INVALID and report.set_aside.has("workload", name)
    return WorkloadExpected(
        mark=report.mark(loc),
        written=name,
        workloads=() if gone else world.find_workloads(name, loc),
        count=spec.count,
        state=spec.state,
        replicas=spec.replicas.get(""),
        replicas_by_role={role: wanted for role, wanted in spec.replicas.items() if role},
        nodes=_node_names(world, spec.nodes, (*loc, "nodes")),
        within=_node_names(world, spec.within, (*loc, "within")),
        devices=_devices(world, spec.devices, (*loc, "devices")),
        pool=pool,
        domains=dict(spec.domains),
        reason=spec.reason,
        says=spec.says,
        cause=spec.cause,
        reserved=spec.reserved,
        started=spec.started,
        grown=spec.grown,
        shrunk=spec.shrunk,
        moved=spec.moved,
        evicted=spec.evicted,
    )


def _queue(world: World, report: Report, name: str, spec: QueueExpectSpec, loc: Loc) -> QueueExpected | None:
    if name not in world.queues:
        report.unknown(loc, "queue", name, world.queues)
        return None
    pools = sorted(world.pools) or [DEFAULT_POOL]
    if spec.pool is not None and spec.pool not in pools:
        report.unknown((*loc, "pool"), "pool", spec.pool, pools)
    elif spec.pool is None and len(pools) > 1 and (spec.share or spec.allocated or spec.demand):
        report.add(loc, "amounts are by pool, and there are several", f"say pool: one of {', '.join(pools)}")
    return QueueExpected(
        mark=report.mark(loc),
        queue=name,
        pool=spec.pool or pools[0],
        share=_amounts(report, spec.share, (*loc, "share")),
        allocated=_amounts(report, spec.allocated, (*loc, "allocated")),
        demand=_amounts(report, spec.demand, (*loc, "demand")),
        running=spec.running,
        pending=spec.pending,
    )


def _plan(report: Report, spec: PlanExpectSpec | None, loc: Loc) -> PlanExpected | None:
    if spec is None:
        return None
    for kind in spec.actions:
        if kind not in ACTIONS:
            report.add((*loc, "actions", kind), f"there is no action {kind}", nearest(kind, list(ACTIONS)))
    return PlanExpected(
        mark=report.mark(loc),
        empty=spec.empty,
        complete=spec.complete,
        actions=dict(spec.actions),
        conditions=spec.conditions,
    )


def _amounts(report: Report, written: dict[str, Any], loc: Loc) -> dict[str, int]:
    found: dict[str, int] = {}
    readers = {GPU: units.parse_gpu, CPU: units.parse_cpu, MEMORY: units.parse_memory}
    for resource, amount in written.items():
        try:
            found[resource] = readers.get(resource, units.parse_count)(amount)
        except units.UnitError as error:
            report.add((*loc, resource), error.message, error.hint)
    return found


def _node_names(world: World, names: tuple[str, ...] | None, loc: Loc) -> tuple[str, ...] | None:
    if names is None:
        return None
    return tuple(sorted({node for name in names for node in world.find_nodes(name, loc)}))


def _ids(world: World, names: tuple[str, ...] | None, loc: Loc) -> tuple[str, ...] | None:
    if names is None:
        return None
    return tuple(sorted({full for name in names for full in world.find_workloads(name, loc)}))


def _devices(world: World, written: dict[str, tuple[int, ...]] | None, loc: Loc) -> dict[str, tuple[int, ...]] | None:
    if written is None:
        return None
    return {
        node: tuple(sorted(set(indices)))
        for name, indices in written.items()
        for node in world.find_nodes(name, (*loc, name))
    }
