"""Random worlds: nodes, queues, running and waiting work, all from one number.

Why: the invariants hold in every world or they do not hold.
Owns: what a world is, and the mix of usual and odd things in it.
Must not: make anything that a user could not write. Every description is valid; running work is where it could be.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from optimus.model.nodes import Node
from optimus.model.observations import (
    NodeSeen,
    Observation,
    PoolSeen,
    QueueSeen,
    SlotRunning,
    WorkloadSeen,
)
from optimus.model.plans import Budget
from optimus.model.pools import DEFAULT_POOL, NodePool
from optimus.model.queues import Queue
from optimus.model.settings import Settings
from optimus.model.workloads import Preemptible, Workload
from optimus.testing.drawing import Draw
from optimus.testing.gang_rules import Seat, faults, lines, minimum_seats
from optimus.testing.ledger import COMING, Ledger
from optimus.testing.queue_paths import Tree
from optimus.testing.rights import fixed_faults, limit_faults
from optimus.testing.seats import OutOfBudget, Taken, find_seats
from optimus.testing.spaces import spaces, total_capacity
from optimus.testing.waiting import could_ever_run, listed_pools
from optimus.testing.world_nodes import alike, draw_nodes, draw_pools
from optimus.testing.world_queues import draw_queues, leaves
from optimus.testing.world_workloads import MINUTE_MS, WorkloadDice

START_MS = 100_000_000
HOUR_MS = 60 * MINUTE_MS
POLICIES = ("fifo", "shortest-first", "least-attained-service", "deadline", "finish-time-fairness", "fair-share-only")


@dataclass(frozen=True, slots=True)
class Size:
    nodes: tuple[int, int]
    most_devices: int
    queues: tuple[int, int]
    workloads: tuple[int, int]
    stretchy: bool = False
    """Equal nodes, and mostly elastic work that can be stopped and continued: sizes are chosen together."""


SIZES = {
    "small": Size(nodes=(1, 7), most_devices=4, queues=(1, 7), workloads=(2, 18)),
    "medium": Size(nodes=(4, 16), most_devices=8, queues=(3, 15), workloads=(12, 48)),
    "elastic": Size(nodes=(2, 6), most_devices=4, queues=(1, 3), workloads=(3, 16), stretchy=True),
}


@dataclass(frozen=True, slots=True)
class World:
    seed: int
    size: str
    pools: tuple[NodePool, ...]
    nodes: tuple[Node, ...]
    queues: tuple[Queue, ...]
    workloads: tuple[Workload, ...]
    running: dict[str, tuple[SlotRunning, ...]]
    """Workload -> its replicas; workloads that are not named here wait."""
    later: tuple[Workload, ...] = ()
    """Workloads that are submitted in the course of the story."""
    settings: Settings = field(default_factory=Settings)
    policy: str = "default"
    budget: Budget = field(default_factory=Budget)
    now_ms: int = START_MS

    def observations(self) -> list[Observation]:
        found: list[Observation] = [PoolSeen(pool) for pool in self.pools]
        found += [QueueSeen(queue) for queue in self.queues]
        found += [NodeSeen(node) for node in self.nodes]
        for workload in self.workloads:
            found.append(WorkloadSeen(workload))
            found += self.running.get(workload.id, ())
        return found

    @property
    def waiting(self) -> tuple[Workload, ...]:
        return tuple(w for w in self.workloads if w.id not in self.running)


def random_world(seed: int, size: str = "small") -> World:
    draw = Draw(seed, f"world/{size}")
    bounds = SIZES[size]
    pools = draw_pools(draw)
    nodes = draw_nodes(draw, pools, draw.between(*bounds.nodes), bounds.most_devices)
    if bounds.stretchy and draw.chance(70):
        nodes = alike(nodes)
    names = sorted({DEFAULT_POOL, *(pool.name for pool in pools)})
    ledger = Ledger(Settings())
    facts: list[Observation] = [*(PoolSeen(p) for p in pools), *(NodeSeen(n) for n in nodes)]
    for fact in facts:
        ledger.observe(fact, START_MS)
    totals = {name: total_capacity({n.name: n for n in ledger.nodes_of(name)}) for name in names}
    queues = draw_queues(draw, {name: t for name, t in totals.items() if t}, draw.between(*bounds.queues))
    for queue in queues:
        ledger.observe(QueueSeen(queue), START_MS)
    levels = sorted({level for pool in pools for level in pool.levels})
    dice = WorkloadDice(draw, leaves(queues), names, levels, bounds.most_devices, stretchy=bounds.stretchy)
    busy = draw.weighted(((1, 0), (2, 50), (3, 80), (4, 100)))
    workloads: list[Workload] = []
    running: dict[str, tuple[SlotRunning, ...]] = {}
    for _ in range(draw.between(*bounds.workloads)):
        workload = _sensible(draw, ledger, dice)
        workloads.append(workload)
        if draw.chance(busy):
            replicas = _run(draw, ledger, workload)
            if replicas:
                running[workload.id] = replicas
    later = tuple(_sensible(draw, ledger, dice) for _ in range(draw.between(0, 6)))
    settings = Settings(
        history_half_life_ms=draw.weighted(((8, 0), (2, HOUR_MS))),
        hold_ms=draw.pick((60_000, 120_000, 600_000)),
        consolidation=not draw.chance(20),
    )
    policy = draw.weighted(((7, "default"), *((1, name) for name in POLICIES)))
    budget = Budget() if draw.chance(93) else _tight(draw)
    return World(seed, size, pools, nodes, queues, tuple(workloads), running, later, settings, policy, budget)


def _tight(draw: Draw) -> Budget:
    """A budget that cuts plans short; 5 and 9 are claimed for complete plans only, the rest for all."""
    return Budget(
        passes=draw.between(1, 2),
        starts=draw.between(1, 3),
        victim_searches=draw.between(0, 2),
        trial_fits=draw.between(1, 20),
        growth_steps=draw.between(0, 3),
        reservations_per_pool=draw.between(0, 3),
    )


def _sensible(draw: Draw, ledger: Ledger, dice: WorkloadDice) -> Workload:
    """Mostly a workload that could run somewhere in this world; now and then one that asks for the impossible."""
    submitted = START_MS - draw.between(0, 40) * 30_000 if draw.chance(85) else START_MS - 3 * HOUR_MS
    workload = dice.workload(submitted)
    for _ in range(4):
        possible = [could_ever_run(ledger, workload, pool) for pool in listed_pools(ledger, workload)]
        if any(possible) or draw.chance(5):
            break
        workload = dice.workload(submitted)
    return workload


def _run(draw: Draw, ledger: Ledger, workload: Workload) -> tuple[SlotRunning, ...]:
    """Put the workload somewhere it could have started, at some size it may have; () if there is no such place."""
    tree = Tree(ledger.queues)
    if workload.suspended or not tree.path(workload.queue):
        return ()
    for pool in draw.shuffled(listed_pools(ledger, workload)):
        replicas = _run_in(draw, ledger, tree, workload, pool)
        if replicas:
            return replicas
    return ()


def _run_in(draw: Draw, ledger: Ledger, tree: Tree, workload: Workload, pool: str) -> tuple[SlotRunning, ...]:
    room = spaces(ledger, pool, COMING)
    taken: list[Taken] | None = None
    for seats in (_grown(draw, workload), minimum_seats(workload.gang)):
        try:
            taken = find_seats(workload, ledger.pools[pool], room, seats, budget=400)
        except OutOfBudget:
            taken = None
        if taken is not None:
            break
    if taken is None:
        return ()
    since = START_MS - draw.between(0, 300) * MINUTE_MS
    ledger.observe(WorkloadSeen(workload), START_MS)
    replicas = tuple(SlotRunning(workload.id, t.seat.role, t.seat.ordinal, t.node, t.devices, since) for t in taken)
    for replica in replicas:
        ledger.observe(replica, START_MS)
    # over the limit, or fixed work outside the guarantee, only where somebody has changed the queue since
    broken = limit_faults(ledger, tree, workload.queue) if not draw.chance(8) else []
    if workload.preemptible in (Preemptible.NO, Preemptible.SURPLUS) and not draw.chance(8):
        broken += fixed_faults(ledger, tree, workload)
    if broken:
        del ledger.records[workload.id]
        return ()
    return replicas


def _grown(draw: Draw, workload: Workload) -> list[Seat]:
    """The gang at a random allowed size."""
    seats = minimum_seats(workload.gang)
    present: dict[str, set[int]] = {}
    for seat in seats:
        present.setdefault(seat.role, set()).add(seat.ordinal)
    for name, line in lines(workload.gang).items():
        for _ in range(draw.between(0, 4)):
            have = present.setdefault(name, set())
            if len(have) >= line.capacity():
                break
            trial = {**present, name: have | set(range(min(len(have) + draw.between(1, 2), line.capacity())))}
            if not faults(workload.gang, trial):
                present = trial
    known = lines(workload.gang)
    return [Seat(name, o, known[name].role.request) for name in present for o in sorted(present[name])]
