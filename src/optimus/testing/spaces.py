"""Free room on the nodes of one pool, and how many replicas of one kind it can take. Counted, not guessed.

On nodes whose devices are only counted, devices that somebody else has yet to pick are counted by number.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from optimus.model.nodes import WHOLE_DEVICE_MILLI, Node, accelerator_counts
from optimus.model.pools import HOST_LEVEL, NodePool
from optimus.model.queues import CPU, GPU, MEMORY
from optimus.model.workloads import Request, Workload
from optimus.testing.amounts import Amount, is_whole, scalars, shares_on
from optimus.testing.gang_rules import lines
from optimus.testing.ledger import COMING, NOW, Ledger, Replica

PLENTY = 1_000_000


@dataclass(slots=True)
class Space:
    """What is free on one node; numbers may be negative where too much is taken."""

    node: Node
    free: Amount
    gpus: dict[int, int]
    """Device index -> free thousandths, for devices that are well and not partitioned."""
    activity: dict[int, int] = field(default_factory=dict)
    activity_limit: int = 0
    countable: int | None = None
    """Free whole devices by number, on a node where somebody else picks them."""

    def copy(self) -> Space:
        return Space(
            self.node, dict(self.free), dict(self.gpus), dict(self.activity), self.activity_limit, self.countable
        )

    def take(
        self, amount: Amount, devices: Collection[int], gpu_milli: int, activity_milli: int, sign: int = 1
    ) -> None:
        for name, number in amount.items():
            if name != GPU:
                self.free[name] = self.free.get(name, 0) - sign * number
        for device in devices:
            if device in self.gpus:
                self.gpus[device] -= sign * gpu_milli
            if activity_milli:
                self.activity[device] = self.activity.get(device, 0) + sign * activity_milli
        if self.countable is not None:
            self.countable -= sign * len(devices)


Spaces = dict[str, Space]


def capacity(node: Node) -> Amount:
    """What of a node is ours to give, GPUs left out."""
    found = {CPU: node.cpu_milli - node.foreign.cpu_milli, MEMORY: node.memory_mib - node.foreign.memory_mib}
    for name, count in accelerator_counts(node).items():
        found[name] = count - node.foreign.accelerators.get(name, 0)
    return found


def device_capacity(node: Node) -> dict[int, int]:
    return {
        d.index: WHOLE_DEVICE_MILLI - node.foreign.gpu_milli.get(d.index, 0)
        for d in node.devices
        if d.healthy and not d.mig
    }


def empty_spaces(ledger: Ledger, pool: str) -> Spaces:
    """The pool without any work of ours."""
    limit = ledger.pools[pool].interference_limit_milli
    found: Spaces = {}
    for node in ledger.nodes_of(pool):
        gpus = device_capacity(node)
        countable = None if node.assignable else sum(milli >= WHOLE_DEVICE_MILLI for milli in gpus.values())
        found[node.name] = Space(node, capacity(node), gpus, {}, limit, countable)
    return found


def spaces(ledger: Ledger, pool: str, view: str) -> Spaces:
    found = empty_spaces(ledger, pool)
    for record in ledger.records.values():
        for replica in record.replicas(view):
            if replica.node in found:
                occupy(found[replica.node], record.spec, replica)
    return found


def starting_spaces(ledger: Ledger, pool: str) -> Spaces:
    """What is free now and will stay free: whoever starts must fit both."""
    now, coming = spaces(ledger, pool, NOW), spaces(ledger, pool, COMING)
    found: Spaces = {}
    for name, space in now.items():
        other = coming[name]
        lowest = {key: min(space.free[key], other.free[key]) for key in space.free.keys() & other.free.keys()}
        gpus = {d: min(space.gpus[d], other.gpus[d]) for d in space.gpus}
        activity = {d: max(space.activity.get(d, 0), other.activity.get(d, 0)) for d in space.gpus}
        both = [c for c in (space.countable, other.countable) if c is not None]
        countable = min(both) if both else None
        found[name] = Space(space.node, lowest, gpus, activity, space.activity_limit, countable)
    return found


def occupy(space: Space, workload: Workload, replica: Replica, sign: int = 1) -> None:
    """Take (or with -1 give back) one replica's room. A replica on a device that died frees nothing there."""
    request = request_of(workload, replica.role)
    space.take(replica.amount, replica.devices, replica.gpu_milli, request.activity_milli, sign)
    if space.countable is not None and replica.certain:
        usable = [d for d in replica.devices if space.gpus.get(d) is not None]
        space.countable += sign * (len(replica.devices) - len(usable))


def request_of(workload: Workload, role: str) -> Request:
    return lines(workload.gang)[role].role.request


def may_use(workload: Workload, request: Request, node: Node) -> bool:
    """Ready, not cordoned, selected, tolerated, and able to hand out what is asked for."""
    if not node.ready or node.cordoned:
        return False
    if any(node.labels.get(key) != value for key, value in workload.node_selector):
        return False
    if request.gpu_count and not is_whole(request) and not node.assignable:
        return False
    return all(
        taint.effect == "PreferNoSchedule" or any(t.accepts(taint) for t in workload.tolerations)
        for taint in node.taints
    )


def usable_devices(space: Space, request: Request) -> dict[int, int]:
    """Device -> share, for the devices that can take one more replica of this request."""
    found = {}
    for device, share in shares_on(request, space.node).items():
        busy = space.activity.get(device, 0) + request.activity_milli
        noisy = bool(space.activity_limit and request.activity_milli and not is_whole(request))
        if space.gpus.get(device, 0) >= share and not (noisy and busy > space.activity_limit):
            found[device] = share
    return found


def most_fitting(space: Space, workload: Workload, request: Request) -> int:
    """How many replicas of this request the node can take."""
    if not may_use(workload, request, space.node):
        return 0
    found = PLENTY
    for name, number in scalars(request).items():
        found = min(found, max(0, space.free.get(name, 0)) // number)
    if not request.gpu_count:
        return found
    pieces = []
    for device, share in usable_devices(space, request).items():
        fitting = space.gpus[device] // share
        if space.activity_limit and request.activity_milli and not is_whole(request):
            quiet = space.activity_limit - space.activity.get(device, 0)
            fitting = min(fitting, quiet // request.activity_milli)
        pieces.append(max(0, fitting))
    by_devices = 0
    # k replicas on different devices each: possible if and only if sum of min(k, pieces) >= k * devices of a replica
    while sum(min(by_devices + 1, p) for p in pieces) >= (by_devices + 1) * request.gpu_count:
        by_devices += 1
    if space.countable is not None:
        by_devices = min(by_devices, max(0, space.countable) // request.gpu_count)
    return min(found, by_devices)


def domain(node: Node, level: str, pool: NodePool) -> tuple[str, ...] | None:
    """Which domain of a level the node is in: all labels from the widest level down. None: in none."""
    if level == HOST_LEVEL:
        return (node.name,)
    if level not in pool.levels:
        return None
    keys = pool.levels[: pool.levels.index(level) + 1]
    return tuple(node.labels[key] for key in keys) if all(key in node.labels for key in keys) else None


def total_capacity(nodes: Mapping[str, Node]) -> Amount:
    """Of a set of nodes, never below nothing on any of them."""
    found: Amount = {}
    for node in nodes.values():
        for name, number in capacity(node).items():
            found[name] = found.get(name, 0) + max(0, number)
        found[GPU] = found.get(GPU, 0) + sum(max(0, milli) for milli in device_capacity(node).values())
    return found
