"""The whole scenario from its spec, section by section.

Why: the order matters: quotas name pools, workloads name queues, events name everything.
Owns: that order, and what is there without being written (the default queue and pools).
Must not: check single records.
"""

from __future__ import annotations

from optimus.api.building.expecting import resolve_expectations
from optimus.api.building.report import Report
from optimus.api.building.running import Placed, place_all
from optimus.api.building.timeline import Timeline
from optimus.api.building.world import World
from optimus.api.marks import Loc, MarkedMap, look_up
from optimus.api.scenario import Scenario
from optimus.api.specs.scenarios import ScenarioSpec
from optimus.api.specs.workloads import DEFAULT_QUEUE
from optimus.model.observations import NodeSeen, Observation, PoolSeen, QueueSeen, WorkloadSeen
from optimus.model.queues import Queue


def build(spec: ScenarioSpec, report: Report) -> Scenario:
    """A scenario of all records; what is wrong with them is in the report."""
    world = World(report)
    start_ms = spec.start_ms()
    if start_ms < 0:
        report.add(("start",), "lies before 1970")
        start_ms = 0
    for i, group in enumerate(spec.cluster.nodes):
        world.add_group(group, ("cluster", "nodes", i))
    for i, pool in enumerate(spec.pools):
        world.add_pool(pool, ("pools", i), _raw(report, ("pools", i)))
    world.add_implied_pools()
    for i, queue in enumerate(spec.queues):
        world.add_queue(queue, ("queues", i), _raw(report, ("queues", i)), now_ms=start_ms)
    if not spec.queues and not look_up(report.root, ("queues",)):
        world.queues[DEFAULT_QUEUE] = Queue(name=DEFAULT_QUEUE)
    world.check_queue_tree()
    records: list[Placed] = []
    for i, workload in enumerate(spec.workloads):
        loc: Loc = ("workloads", i)
        records.append((workload, world.unfold(workload, loc, _raw(report, loc), start_ms), loc))
        if workload.submitted is not None and workload.submitted > 0:
            report.add((*loc, "submitted"), "lies in the future", "use cycles: [{advance: 5m, submit: [...]}]")
    opening: list[Observation] = [
        *map(PoolSeen, world.pools.values()),
        *map(NodeSeen, world.nodes.values()),
        *map(QueueSeen, world.queues.values()),
        *map(WorkloadSeen, world.workloads.values()),
        *place_all(world, report, records, start_ms),
    ]
    nodes, pools = tuple(world.nodes.values()), tuple(world.pools.values())
    queues, workloads = tuple(world.queues.values()), tuple(world.workloads.values())
    timeline = Timeline(world, report, start_ms, spec.between.advance)
    for i, cycle in enumerate(spec.cycles):
        timeline.tell(cycle, ("cycles", i))
    return Scenario(
        name=spec.name,
        description=spec.description,
        start_ms=start_ms,
        seed=spec.seed,
        policy=spec.policy,
        settings=spec.settings.to_settings(),
        budget=spec.budget.to_budget(),
        nodes=nodes,
        pools=pools,
        queues=queues,
        workloads=workloads,
        opening=tuple(opening),
        between=spec.between.to_between(),
        cycles=tuple(timeline.cycles),
        expect=resolve_expectations(world, report, spec.expect, ("expect",)),
    )


def _raw(report: Report, loc: Loc) -> MarkedMap:
    raw = look_up(report.root, loc)
    return raw if isinstance(raw, MarkedMap) else MarkedMap(report.mark(loc))
