"""The grid: every GPU as one character, by pool, rack and node.

A letter is a queue: a capital has all of a GPU, a small one a part of it. Nothing is said by colour alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from optimus.cli.job_tables import HELD, devices, gone, gpus, held_devices
from optimus.cli.top.pieces import Line, Piece, cut_before, fit
from optimus.model.pools import DEFAULT_POOL

FREE, SHARED, LEAVING, NOT_READY = "·", "+", "!", "×"
CHOSEN, CHOSEN_PART = "◆", "◇"
LEGENDS = (
    "A all  a part  + shared  ! leaving  ○ held  · free  × not ready  ◆ chosen",
    "A all  a part  ! leaving  ○ held  · free  ◆ chosen",
    "A all  a part  ○ held  · free",
    "A all  a part  · free",
)
"""The first that fits."""
TOGETHER = 4
"""So many GPUs stand together."""
LONGEST_NAME = 20
GAP = 3
COLOURS = ("blue", "green", "magenta", "cyan", "yellow", "red")
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
LEAVES, LEAVES_IN_PART = ("Checkpointing", "Stopping"), "Rescaling"
View = Mapping[str, Any]


class Mark(NamedTuple):
    """How a queue is drawn."""

    letter: str
    colour: str


class Group(NamedTuple):
    """Nodes of one pool and one place."""

    name: str
    nodes: tuple[View, ...]


class Row(NamedTuple):
    """A line of the grid: the head of a group, or GPUs of nodes beside each other."""

    group: Group
    nodes: tuple[View, ...] = ()
    first: int = 0
    """The first device that is drawn: nodes with many take several lines."""


class Grid(NamedTuple):
    rows: tuple[Row, ...]
    name_width: int
    cells: int
    """Of a node in one line."""


def legend(width: int) -> str:
    return next((one for one in LEGENDS if len(one) <= width), "")


def marks(queues: Sequence[View]) -> dict[str, Mark]:
    """A letter of its own for each queue that can have jobs, from its name if possible."""
    parents = {queue["parent"] for queue in queues}
    free, found = list(LETTERS), {}
    for number, name in enumerate(sorted(queue["name"] for queue in queues if queue["name"] not in parents)):
        wanted = [one for one in name.upper() if one in free] or free[:1] or ["#"]
        if wanted[0] in free:
            free.remove(wanted[0])
        found[name] = Mark(wanted[0], COLOURS[number % len(COLOURS)])
    return found


def pool_of(node: View, pools: Sequence[View]) -> str:
    """As the scheduler does: the first one by name whose selector it has."""
    for pool in sorted(pools, key=lambda one: str(one["name"])):
        if pool["selector"] and pool["selector"].items() <= node["labels"].items():
            return str(pool["name"])
    return DEFAULT_POOL


def grouped(nodes: Sequence[View], pools: Sequence[View]) -> list[Group]:
    levels = {pool["name"]: pool["levels"] for pool in pools}
    found: dict[tuple[str, ...], list[View]] = {}
    for node in nodes:
        pool = pool_of(node, pools)
        place = [node["labels"].get(level, "") for level in levels.get(pool) or ("rack",)]
        found.setdefault((pool, *filter(None, place)), []).append(node)
    return [Group(" / ".join(place), tuple(found[place])) for place in sorted(found)]


def laid_out(groups: Sequence[Group], width: int) -> Grid:
    """As many nodes beside each other as there is room for."""
    nodes = [node for group in groups for node in group.nodes]
    longest = max((len(node["name"]) for node in nodes), default=0)
    name_width = min(longest, LONGEST_NAME, max(width // 3, 6))
    most = max((len(node["usedMilli"]) for node in nodes), default=0)
    cells = max(min(most, _cells_in(width - name_width - 2)), 1)
    beside = max((width + GAP) // (name_width + 1 + _width(cells) + GAP), 1)
    rows: list[Row] = []
    for group in groups:
        rows.append(Row(group))
        for at in range(0, len(group.nodes), beside):
            together = group.nodes[at : at + beside]
            deepest = max(len(node["usedMilli"]) for node in together)
            rows += [Row(group, together, first) for first in range(0, max(deepest, 1), cells)]
    return Grid(tuple(rows), name_width, cells)


def drawn(grid: Grid, row: Row, jobs: Mapping[str, View], queues: Mapping[str, Mark], chosen: str) -> Line:
    if not row.nodes:
        return _head(row.group)
    pieces: list[Piece] = []
    for node in row.nodes:
        name = cut_before(node["name"], grid.name_width) if not row.first else ""
        style = "" if node["ready"] else "red"
        pieces.append(Piece(fit(name, grid.name_width) + " ", style))
        last = row.first + grid.cells
        for device in range(row.first, last):
            if device > row.first and device % TOGETHER == 0:
                pieces.append(Piece(" "))
            known = device < len(node["usedMilli"])
            pieces.append(cell(node, device, jobs, queues, chosen) if known else Piece(" "))
        pieces.append(Piece(" " * GAP))
    return tuple(pieces)


def cell(node: View, device: int, jobs: Mapping[str, View], queues: Mapping[str, Mark], chosen: str) -> Piece:
    used, workloads = node["usedMilli"][device], node["jobs"][device]
    if not used:
        if not node["ready"] or device in gone(node):
            return Piece(NOT_READY, "red")
        kept = held_devices(node).get(device)
        return Piece(FREE, "dim") if kept is None else Piece(HELD, _colour_of(kept, jobs, queues))
    names = {job_of(one, jobs) for one in workloads}
    here = [view for name in names if (view := jobs.get(name)) is not None]
    whole = used >= 1000
    owners = {view["queue"] for view in here}
    mark = queues.get(next(iter(owners))) if len(owners) == 1 else None
    letter, colour = (mark.letter if whole else mark.letter.lower(), mark.colour) if mark else (SHARED, "")
    style = f"{colour} reverse".strip() if whole else f"{colour} bold".strip()
    if chosen in names:
        return Piece(CHOSEN if whole else CHOSEN_PART, style)
    if any(_leaves(view, node["name"], device) for view in here):
        return Piece(LEAVING, style)
    return Piece(NOT_READY, style) if not node["ready"] else Piece(letter, style)


def job_of(workload: str, jobs: Mapping[str, View]) -> str:
    """A part of an array is of its job; on a cluster, names of jobs have three words themselves."""
    return workload if workload in jobs else "/".join(workload.split("/")[:2])


def device_at(grid: Grid, row: Row, x: int) -> tuple[View, int] | None:
    """The node and the device that is drawn there."""
    number, inside = divmod(x, grid.name_width + 1 + _width(grid.cells) + GAP)
    inside -= grid.name_width + 1
    if number >= len(row.nodes) or inside < 0 or inside % (TOGETHER + 1) == TOGETHER:
        return None
    node, at = row.nodes[number], inside - inside // (TOGETHER + 1)
    device = row.first + at
    return (node, device) if at < grid.cells and device < len(node["usedMilli"]) else None


def held_idle(nodes: Sequence[View]) -> int:
    """GPUs that nobody uses because they are held for somebody."""
    return sum(not node["usedMilli"][device] for node in nodes for device in held_devices(node))


def in_use(nodes: Sequence[View]) -> tuple[int, int]:
    """Thousandths that are given, and GPUs that there are."""
    return sum(sum(node["usedMilli"]) for node in nodes), sum(map(devices, nodes))


def _head(group: Group) -> Line:
    used, there = in_use(group.nodes)
    models = ", ".join(sorted({model for node in group.nodes for model in node["models"] if model}))
    away = sum(not node["ready"] for node in group.nodes)
    head = [Piece(group.name, "bold"), Piece(f"  {gpus(used)} of {there}", ""), Piece(f"  {models}", "dim")]
    if kept := held_idle(group.nodes):
        head.append(Piece(f"  {kept} held", ""))
    return (*head, Piece(f"  {away} not ready", "red")) if away else tuple(head)


def _colour_of(workload: str, jobs: Mapping[str, View], queues: Mapping[str, Mark]) -> str:
    view = jobs.get(job_of(workload, jobs))
    mark = queues.get(view["queue"]) if view else None
    return mark.colour if mark else ""


def _leaves(view: View, node: str, device: int) -> bool:
    if view["phase"] in LEAVES:
        return True
    return view["phase"] == LEAVES_IN_PART and any(
        one["state"] == "leaving" and one["node"] == node and device in one["devices"] for one in view["replicas"]
    )


def _width(cells: int) -> int:
    return cells + (cells - 1) // TOGETHER


def _cells_in(width: int) -> int:
    """Whole groups of four, if one fits."""
    return max(width + 1, 0) // (TOGETHER + 1) * TOGETHER or max(width, 1)
