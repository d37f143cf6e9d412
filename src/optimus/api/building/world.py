"""The world of a story: nodes, pools, queues and workloads by name, as they are now.

Why: events change records, and later events and expectations mean the changed ones.
Owns: adding records with every check that compares them with others.
Must not: keep time; `timeline` does.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from msgspec import Struct, structs

from optimus.api.building.report import Report
from optimus.api.locating import locate_node, locate_pool, locate_queue, locate_workload
from optimus.api.marks import Loc, MarkedMap
from optimus.api.specs.clusters import LEVELS, POOL_LABEL, NodeGroupSpec, PoolSpec
from optimus.api.specs.fields import nearest
from optimus.api.specs.queues import QueueSpec
from optimus.api.specs.workloads import ScenarioWorkloadSpec
from optimus.model import validation
from optimus.model.nodes import Node, accelerator_counts
from optimus.model.pools import DEFAULT_POOL, NodePool
from optimus.model.queues import CORE_RESOURCES, Queue
from optimus.model.workloads import Workload

MOST_NODES = 200_000
MOST_WORKLOADS = 500_000


class Written(Struct):
    """A record as it stands, and the mapping it was written as."""

    loc: Loc
    raw: MarkedMap


class World:
    def __init__(self, report: Report) -> None:
        self.report = report
        self.nodes: dict[str, Node] = {}
        self.accelerators: set[str] = set()
        """Named accelerators that some node has or had."""
        self.pools: dict[str, NodePool] = {}
        self.queues: dict[str, Queue] = {}
        self.workloads: dict[str, Workload] = {}
        self.written: dict[tuple[str, str], Written] = {}
        """(`pool`, `queue` or `workload`, name or id) -> where it comes from."""

    # -- adding -----------------------------------------------------------------------------------------------

    def add_group(self, spec: NodeGroupSpec, loc: Loc) -> list[Node]:
        if len(self.nodes) + (spec.count or 1) > MOST_NODES:
            self.report.add((*loc, "count"), f"more than {MOST_NODES:,} nodes in all")
            return []
        nodes = spec.to_nodes()
        if nodes and self.report.problems(loc, validation.node_problems(nodes[0]), locate_node):
            return []
        taken = [node.name for node in nodes if node.name in self.nodes]
        if taken:
            self.report.add((*loc, "name"), f"node {taken[0]} is there twice", "every node needs a name of its own")
            return []
        self.nodes.update((node.name, node) for node in nodes)
        self.accelerators.update(name for node in nodes[:1] for name in accelerator_counts(node))
        return nodes

    def add_pool(self, spec: PoolSpec, loc: Loc, raw: MarkedMap, *, changed: bool = False) -> NodePool | None:
        pool = spec.to_pool(self.levels())
        if pool.name in self.pools and not changed:
            self.report.add((*loc, "name"), f"pool {pool.name} is there twice")
            return None
        if self.report.problems(loc, validation.pool_problems(pool), locate_pool):
            return None
        self.pools[pool.name] = pool
        self.written["pool", pool.name] = Written(loc, raw)
        return pool

    def add_implied_pools(self) -> None:
        """Pools that only node groups name, and the default pool for the nodes that no other pool takes."""
        for name in dict.fromkeys(node.labels.get(POOL_LABEL, "") for node in self.nodes.values()):
            if name and name not in self.pools:
                self.pools[name] = NodePool(name=name, selector={POOL_LABEL: name}, levels=self.levels())
        if DEFAULT_POOL not in self.pools and any(self.pool_of(node) == DEFAULT_POOL for node in self.nodes.values()):
            self.pools[DEFAULT_POOL] = NodePool(name=DEFAULT_POOL, levels=self.levels())

    def add_queue(
        self, spec: QueueSpec, loc: Loc, raw: MarkedMap, *, now_ms: int, created_ms: int = 0, changed: bool = False
    ) -> Queue | None:
        queue = spec.to_queue(now_ms=now_ms, created_ms=created_ms)
        if queue.name in self.queues and not changed:
            self.report.add((*loc, "name"), f"queue {queue.name} is there twice")
            return None
        if self.report.problems(loc, validation.queue_problems(queue), lambda path: locate_queue(spec, path)):
            return None
        self._check_quotas(spec, queue, loc)
        self.queues[queue.name] = queue
        self.written["queue", queue.name] = Written(loc, raw)
        return queue

    def put_workload(self, workload: Workload, loc: Loc, raw: MarkedMap) -> None:
        self.workloads[workload.id] = workload
        self.written["workload", workload.id] = Written(loc, raw)

    def unfold(self, spec: ScenarioWorkloadSpec, loc: Loc, raw: MarkedMap, now_ms: int) -> list[Workload]:
        """The workloads that one record stands for, added and checked; none if it is wrong."""
        submitted_ms = now_ms + min(0, spec.submitted_offset_ms())
        first, *others = spec.names() or [""]
        if not first:
            return []
        workload = spec.to_workload(submitted_ms=submitted_ms, name=first)
        if not self.check_workload(spec, workload, loc):
            return []
        copies = [workload, *(structs.replace(workload, id=f"{spec.namespace}/{name}") for name in others)]
        if len(self.workloads) + len(copies) > MOST_WORKLOADS:
            self.report.add((*loc, "count"), f"more than {MOST_WORKLOADS:,} workloads in all")
            return []
        taken = next((copy.id for copy in copies if copy.id in self.workloads), None)
        if taken is not None:
            self.report.add((*loc, "name"), f"workload {taken} is there twice")
            return []
        for copy in copies:
            self.put_workload(copy, loc, raw)
        self.check_references(spec, workload, loc)
        return copies

    # -- checks that need the others ---------------------------------------------------------------------------

    def check_workload(self, spec: ScenarioWorkloadSpec, workload: Workload, loc: Loc) -> bool:
        """The description by itself; references are looked at when everything is there."""
        return not self.report.problems(
            loc, validation.workload_problems(workload), lambda path: locate_workload(spec, path)
        )

    def check_references(self, spec: ScenarioWorkloadSpec, workload: Workload, loc: Loc) -> None:
        """Dead ends stay in the world: the scheduler answers them with a reason."""
        for problem in validation.reference_problems(workload, self.queues, self.pools):
            place = (*loc, *locate_workload(spec, problem.path))
            if problem.path == "queue":
                self.report.unknown(place, "queue", workload.queue, self.queues, keep=True)
            elif problem.path.startswith("pools."):
                name = workload.pools[int(problem.path.partition(".")[2])]
                self.report.unknown(place, "pool", name, [*self.pools, DEFAULT_POOL], keep=True)
            else:
                self.report.add(place, problem.message, keep=True)
        children = sorted(queue.name for queue in self.queues.values() if queue.parent == workload.queue)
        if children and workload.queue in self.queues:
            message = f"queue {workload.queue} has queues below it and takes no work"
            self.report.add((*loc, "queue"), message, f"submit to {', '.join(children[:5])}", keep=True)

    def check_queue_tree(self) -> None:
        for problem in validation.queue_tree_problems(self.queues.values()):
            name = problem.subject.removeprefix("queue ")
            loc = self.written["queue", name].loc if ("queue", name) in self.written else ("queues",)
            parent = self.queues[name].parent
            if parent not in self.queues:
                self.report.unknown((*loc, "parent"), "queue", parent, self.queues, keep=True)
            else:
                self.report.add((*loc, problem.path), problem.message, keep=True)

    def _check_quotas(self, spec: QueueSpec, queue: Queue, loc: Loc) -> None:
        known = self.accelerators
        for i, quota in enumerate(queue.quotas):
            place = (*loc, "pools", i) if i < len(spec.pools) else loc
            if quota.pool not in self.pools and (quota.pool != DEFAULT_POOL or self.nodes):
                if quota.pool == DEFAULT_POOL:
                    hint = f"name the pool under pools: {', '.join(sorted(self.pools))}"
                    self.report.add(place, "quota in the pool default, which has no nodes", hint, keep=True)
                else:
                    self.report.unknown((*place, "name"), "pool", quota.pool, [*self.pools, DEFAULT_POOL], keep=True)
            for resource in quota.resources:
                if self.nodes and resource not in known and resource not in CORE_RESOURCES:
                    message, hint = f"no node has the accelerator {resource}", nearest(resource, sorted(known))
                    self.report.add((*place, "accelerators", resource), message, hint, keep=True)

    # -- looking up -------------------------------------------------------------------------------------------

    def levels(self) -> tuple[str, ...]:
        return tuple(level for level in LEVELS if any(level in node.labels for node in self.nodes.values()))

    def pool_of(self, node: Node) -> str:
        for name in sorted(self.pools):
            selector = self.pools[name].selector
            if selector and selector.items() <= node.labels.items():
                return name
        return DEFAULT_POOL

    def find_workloads(self, name: str, loc: Loc) -> tuple[str, ...]:
        """Ids for a name, an id, or a pattern."""
        if "*" in name:
            pattern = name if "/" in name else f"*/{name}"
            found = tuple(full for full in self.workloads if fnmatchcase(full, pattern))
        else:
            found = tuple(full for full in ([name] if "/" in name else self._of_name(name)) if full in self.workloads)
            if len(found) > 1:
                self.report.add(
                    loc, f"{name} is the name of several workloads: {', '.join(found)}", "write namespace/name"
                )
                return ()
        if not found and not self.report.set_aside.has("workload", name.removesuffix("-*")):
            self.report.unknown(loc, "workload", name, [full.partition("/")[2] for full in self.workloads])
        return found

    def _of_name(self, name: str) -> list[str]:
        usual = f"default/{name}"
        others = [full for full in self.workloads if full.partition("/")[2] == name and full != usual]
        return [usual, *others]

    def find_nodes(self, name: str, loc: Loc) -> tuple[str, ...]:
        found = tuple(node for node in self.nodes if node == name or ("*" in name and fnmatchcase(node, name)))
        if not found:
            self.report.unknown(loc, "node", name, self.nodes)
        return found
