"""Tables at the end of a story: every workload, every queue."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from optimus.cli.showing import Printer
from optimus.drivers.sim.outcome import Outcome, QueueTold, ReplicaTold, WorkloadTold
from optimus.drivers.sim.wording import count, fold, fold_counted, list_devices, natural, short, shorten
from optimus.model.units import format_resource

STYLES = {
    "running": "green",
    "held": "cyan",
    "pending": "yellow",
    "stopping": "magenta",
    "stopped": "red",
    "finished": "dim",
}
GPU = "gpu"


def print_workloads(printer: Printer, outcome: Outcome, *, wide: bool) -> None:
    if not outcome.workloads:
        return
    header = ["workload", "queue", "state", "replicas", "where or why"]
    if wide:
        header[2:2] = ["class", "priority"]
    rows = []
    for group in _alike(outcome.workloads, wide=wide):
        first = group[0]
        name = fold_counted([short(workload.name) for workload in group])
        row: list[Text | str] = [Text(name, style="bold"), first.queue]
        if wide:
            row += [first.workload_class, str(first.priority)]
        each = " each" if len(group) > 1 and first.replicas else ""
        row.append(Text(first.state, style=STYLES.get(first.state, "")))
        row.append(f"{len(first.replicas)}{each}" if first.replicas else "")
        row.append(_where_or_why(group, wide=wide))
        rows.append(row)
    printer.line()
    printer.columns(rows, header=header)


def _alike(workloads: Sequence[WorkloadTold], *, wide: bool) -> list[list[WorkloadTold]]:
    """Numbered workloads in the same state for the same reason share a line."""
    groups: dict[tuple[object, ...], list[WorkloadTold]] = {}
    for workload in workloads:
        family = natural(workload.name)
        alone = wide or family[1] < 0
        reason = workload.reason.text if workload.reason else ""
        facts = (family[0], workload.queue, workload.state, len(workload.replicas), reason)
        groups.setdefault((workload.name,) if alone else facts, []).append(workload)
    return list(groups.values())


def _where_or_why(group: Sequence[WorkloadTold], *, wide: bool) -> Text:
    first = group[0]
    replicas = [replica for workload in group for replica in workload.replicas]
    where = _places(replicas) if len(group) == 1 else fold(sorted({r.node for r in replicas}, key=natural))
    pieces = [where] if where else []
    if first.reason is not None:
        pieces.append(f"{first.reason.code}: {shorten(first.reason.text)}")
    if first.reservation is not None and (first.reason is None or first.reason.code != "Reserved"):
        pieces.append(f"reserved for about {first.reservation.clock} on {fold(first.reservation.nodes)}")
    if wide:
        pieces += [
            f"{kind} in cycle {', '.join(map(str, cycles))}"
            for kind in ("started", "grown", "shrunk", "moved", "evicted")
            if (cycles := getattr(first, kind))
        ]
    return Text("; ".join(pieces))


def _places(replicas: Sequence[ReplicaTold]) -> str:
    """`a-0 [0-3], a-1 [0-3]`; without GPUs only the nodes, with many nodes only their names."""
    by_node: dict[str, set[int]] = {}
    for replica in replicas:
        by_node.setdefault(replica.node, set()).update(replica.devices if replica.devices_known else ())
    nodes = sorted(by_node, key=natural)
    if len(nodes) > 4:
        return f"{fold(nodes)} ({count(len(nodes), 'node')})"
    return ", ".join(f"{node} [{list_devices(sorted(by_node[node]))}]" if by_node[node] else node for node in nodes)


def print_queues(printer: Printer, outcome: Outcome, *, wide: bool) -> None:
    """In the usual table only GPUs of queues that have or want something."""
    shown = [q for q in outcome.queues if wide or (q.resource == GPU and (q.allocated or q.demand or q.guarantee))]
    if not shown or (len({queue.queue for queue in shown}) < 2 and not wide):
        return
    pools = len({queue.pool for queue in shown}) > 1 or wide
    header = ["queue", *(["pool"] if pools else []), *(["resource"] if wide else [])]
    header += ["has" if wide else "GPUs", "share", "guarantee", "limit", "wants"]
    rows = []
    for queue in _tree_order(shown, outcome.queues):
        depth = _depth(queue, outcome.queues)
        row = ["  " * depth + queue.queue, *([queue.pool] if pools else []), *([queue.resource] if wide else [])]
        amounts = (queue.allocated, queue.share, queue.guarantee, queue.limit, queue.demand)
        row += [format_resource(queue.resource, amount) if amount is not None else "–" for amount in amounts]
        rows.append(row)
    printer.line()
    numbers = [i for i, name in enumerate(header) if name not in ("queue", "pool", "resource")]
    printer.columns(rows, header=header, right=numbers)


def _tree_order(shown: Sequence[QueueTold], known: Sequence[QueueTold]) -> list[QueueTold]:
    def path(queue: QueueTold) -> tuple[str, ...]:
        parents = {q.queue: q.parent for q in known}
        found = [queue.queue]
        while (parent := parents.get(found[-1], queue.parent if len(found) == 1 else "")) and parent not in found:
            found.append(parent)
        return tuple(reversed(found))

    return sorted(shown, key=path)


def _depth(queue: QueueTold, known: Sequence[QueueTold]) -> int:
    parents = {q.queue: q.parent for q in known}
    depth, at = 0, queue.queue
    while (at := parents.get(at, "")) in parents and depth < len(parents):
        depth += 1
    return depth
