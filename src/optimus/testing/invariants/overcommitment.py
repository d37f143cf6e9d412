"""1. No plan creates or worsens an over-commitment of a device, a node or a limit.

Everything that was decided counts, confirmed or not. Against *now* counts whatever has not left yet; against what is
*coming* count promises and whoever was not told to leave. Too much that was there before (a device died, a limit was
lowered) is no fault of the plan, as long as the plan adds nothing to it.
"""

from __future__ import annotations

from optimus.model.nodes import WHOLE_DEVICE_MILLI
from optimus.model.queues import GPU
from optimus.testing.body import Cycle
from optimus.testing.ledger import COMING, NOW, Ledger
from optimus.testing.queue_paths import Tree
from optimus.testing.rights import limits_broken, queue_use
from optimus.testing.spaces import capacity, device_capacity

Excess = dict[tuple[str, ...], int]


def no_overcommitment(cycle: Cycle) -> list[str]:
    found = []
    tree = Tree(cycle.before.queues)
    for view in (NOW, COMING):
        before = excess(cycle.before, tree, view)
        for place, number in excess(cycle.after, tree, view).items():
            if number > before.get(place, 0):
                was = before.get(place, 0)
                found.append(f"{view}: {' '.join(place)} is {number} above what there is (before the plan: {was})")
    return found


def excess(ledger: Ledger, tree: Tree, view: str) -> Excess:
    """By how much too much is taken, wherever it is."""
    found: Excess = {}
    by_node: dict[str, list[str]] = {}
    for name, record in ledger.records.items():
        for replica in record.replicas(view):
            by_node.setdefault(replica.node, []).append(name)
    for node in sorted(by_node):
        found.update(_on_node(ledger, node, view))
    for place, number in limits_broken(queue_use(ledger, tree, view), tree).items():
        found[("limit", *place)] = number
    return found


def _on_node(ledger: Ledger, name: str, view: str) -> Excess:
    found: Excess = {}
    replicas = [replica for _, replica in ledger.on_node(name, view)]
    if name not in ledger.nodes:
        return {("missing node", name): len(replicas)}
    node = ledger.nodes[name]
    free = capacity(node)
    gpus = device_capacity(node)
    for replica in replicas:
        for resource, number in replica.amount.items():
            if resource != GPU:
                free[resource] = free.get(resource, 0) - number
    if node.assignable:
        for replica in replicas:
            for device in replica.devices:
                gpus[device] = gpus.get(device, 0) - replica.gpu_milli
        found.update({("device", name, str(d)): -milli for d, milli in gpus.items() if milli < 0})
    else:
        well = {device for device, milli in gpus.items() if milli >= WHOLE_DEVICE_MILLI}
        known = [d for replica in replicas if replica.certain for d in replica.devices]
        unknown = sum(len(replica.devices) for replica in replicas if not replica.certain)
        left = len(well - set(known)) - unknown
        if left < 0:
            found["counted devices", name] = -left
        for device in set(known):
            if known.count(device) > 1:
                found["device", name, str(device)] = (known.count(device) - 1) * WHOLE_DEVICE_MILLI
    found.update({("node", name, resource): -number for resource, number in free.items() if number < 0})
    return found
