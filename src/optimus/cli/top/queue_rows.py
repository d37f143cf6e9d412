"""Queues as a tree, with what each has, is due, has borrowed and has lent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from optimus.cli.job_tables import devices, gpus
from optimus.cli.top.gpu_grid import Mark, pool_of
from optimus.cli.top.pieces import NOTHING, Line, Piece, fit, fit_right

View = Mapping[str, Any]
NUMBERS = ("in use", "guar.", "share", "limit", "borrowed", "lent", "run", "wait")
NARROW = ("use", "guar", "shar", "lim", "borr", "lent", "run", "wait")
OPEN = "open"
LONGEST_NAME = 24
LEAST_NAME = 8
LONGEST_BAR = 24
LEAST_BAR = 4


class QueueRow(NamedTuple):
    name: str
    depth: int
    pool: str
    """Empty where there is only one."""
    use: int
    guarantee: int
    share: int
    limit: int | None
    borrowed: int
    lent: int
    running: int
    waiting: int
    state: str

    def numbers(self) -> tuple[str, ...]:
        limit = NOTHING if self.limit is None else gpus(self.limit)
        owed = [gpus(one) if one else NOTHING for one in (self.borrowed, self.lent)]
        jobs = [str(one) if one else NOTHING for one in (self.running, self.waiting)]
        return (gpus(self.use), gpus(self.guarantee), gpus(self.share), limit, *owed, *jobs)


def queue_rows(queues: Sequence[View], nodes: Sequence[View], pools: Sequence[View]) -> list[QueueRow]:
    """Parents before their children, with the jobs of all of them."""
    free, guaranteed = free_by_pool(queues, nodes, pools), guarantees(queues)
    several = len({share["pool"] for queue in queues for share in queue["gpu"]}) > 1
    found = []
    for depth, queue, below in _tree(queues):
        running, waiting = (sum(one[key] for one in below) for key in ("running", "waiting"))
        for number, share in enumerate(queue["gpu"] or [NO_SHARE]):
            there = [s["running"] for one in below for s in one["gpu"] if s["pool"] == share["pool"] and "running" in s]
            use, guarantee = share["allocatedMilli"], guaranteed.get((queue["name"], share["pool"]), 0)
            found.append(
                QueueRow(
                    name=queue["name"] if not number else "",
                    depth=depth,
                    pool=share["pool"] if several else "",
                    use=use,
                    guarantee=guarantee,
                    share=share["shareMilli"],
                    limit=share["limitMilli"],
                    borrowed=max(use - guarantee, 0),
                    lent=max(guarantee - use - free.get(share["pool"], 0), 0),
                    running=sum(there) if there else running if not number else 0,
                    waiting=waiting if not number else 0,
                    state=queue["state"],
                )
            )
    return found


NO_SHARE = {"pool": "", "guaranteeMilli": 0, "limitMilli": None, "shareMilli": 0, "allocatedMilli": 0}


def guarantees(queues: Sequence[View]) -> dict[tuple[str, str], int]:
    """By queue and pool; a parent has at least what its children have together."""
    found: dict[tuple[str, str], int] = {}
    for _, queue, (_, *below) in reversed(list(_tree(queues))):
        own = {share["pool"]: max(share["guaranteeMilli"], 0) for share in queue["gpu"]}
        children = [one["name"] for one in below if one["parent"] == queue["name"]]
        for pool, guarantee in own.items():
            found[queue["name"], pool] = max(guarantee, sum(found.get((child, pool), 0) for child in children))
    return found


def free_by_pool(queues: Sequence[View], nodes: Sequence[View], pools: Sequence[View]) -> dict[str, int]:
    """Thousandths that no queue has. What is being left counts as free, as it does in what the queues have."""
    free: Counter[str] = Counter()
    for node in nodes:
        if node["ready"]:
            free[pool_of(node, pools)] += 1000 * devices(node)
    parents = {queue["parent"] for queue in queues}
    for queue in queues:
        for share in queue["gpu"] if queue["name"] not in parents else ():
            free[share["pool"]] -= share["allocatedMilli"]
    return {pool: max(left, 0) for pool, left in free.items()}


def descendants(queues: Sequence[View], name: str) -> set[str]:
    """It, and all queues below it."""
    return {one["name"] for _, queue, below in _tree(queues) if queue["name"] == name for one in below}


class Columns(NamedTuple):
    names: int
    pools: int
    bar: int
    numbers: tuple[int, ...]
    titles: tuple[str, ...]
    scale: Mapping[str, int]
    """By pool: what the longest bar stands for."""


def columns_for(rows: Sequence[QueueRow], width: int) -> Columns:
    pools = max((len(row.pool) for row in rows), default=0)
    longest = max((len(row.name) + 2 * row.depth for row in rows), default=0) + 2
    scale: dict[str, int] = {}
    for row in rows:
        scale[row.pool] = max(scale.get(row.pool, 1), row.use, row.guarantee)
    for titles in (NUMBERS, NARROW):
        cells = [titles, *(row.numbers() for row in rows)]
        numbers = tuple(max(map(len, column)) + 1 for column in zip(*cells, strict=True))
        left = width - sum(numbers) - (pools + 1 if pools else 0)
        names = max(min(longest, LONGEST_NAME, left), LEAST_NAME)
        room = left - names - 1
        if room >= 2 * LEAST_BAR or titles is NARROW:
            return Columns(names, pools, min(room, LONGEST_BAR) if room >= LEAST_BAR else 0, numbers, titles, scale)
    raise AssertionError("the narrow titles are the last ones")


def natural_width(rows: Sequence[QueueRow]) -> int:
    """With everything that can be shown, and no more."""
    columns = columns_for(rows, 1000)
    return columns.names + columns.bar + 1 + sum(columns.numbers) + (columns.pools + 1 if columns.pools else 0)


def header(columns: Columns) -> Line:
    start = fit("  queue", columns.names) + (" " + fit("pool", columns.pools) if columns.pools else "")
    numbers = "".join(fit_right(title, width) for title, width in zip(columns.titles, columns.numbers, strict=True))
    return (Piece(start + (" " * (columns.bar + 1) if columns.bar else "") + numbers, "dim"),)


def drawn(row: QueueRow, columns: Columns, marks: Mapping[str, Mark]) -> Line:
    mark = marks.get(row.name)
    indent = "  " * row.depth
    pieces = [
        Piece(indent),
        Piece(mark.letter if mark else " ", f"{mark.colour} reverse" if mark else ""),
        Piece(fit(f" {row.name}", columns.names - len(indent) - 1), "" if row.state == OPEN else "dim"),
    ]
    if columns.pools:
        pieces.append(Piece(" " + fit(row.pool, columns.pools), "dim"))
    if columns.bar:
        pieces += [Piece(" "), *_bar(row, columns.scale[row.pool], columns.bar, mark.colour if mark else "")]
    for title, text, width in zip(NUMBERS, row.numbers(), columns.numbers, strict=True):
        styles = {"borrowed": "yellow", "lent": "cyan", "wait": "yellow", "in use": "bold"}
        pieces.append(Piece(fit_right(text, width), "dim" if text == NOTHING else styles.get(title, "")))
    return tuple(pieces)


def _bar(row: QueueRow, scale: int, width: int, colour: str) -> list[Piece]:
    """Full: its own. Dense: borrowed. Light: guaranteed and not used."""
    own, all_of_it, due = (
        round(width * amount / scale) for amount in (min(row.use, row.guarantee), row.use, max(row.use, row.guarantee))
    )
    return [
        Piece("█" * own + "▓" * (all_of_it - own), colour),
        Piece("░" * (due - all_of_it) + " " * (width - due), "dim"),
    ]


def _tree(queues: Sequence[View]) -> Iterator[tuple[int, View, list[View]]]:
    """(depth, queue, it and all below). One whose parent is not known stands at the top."""
    known = {queue["name"]: queue for queue in queues}
    children: dict[str, list[View]] = {}
    for queue in sorted(queues, key=lambda one: str(one["name"])):
        parent = queue["parent"] if queue["parent"] in known else ""
        children.setdefault(parent, []).append(queue)

    def below(queue: View) -> list[View]:
        return [queue, *(one for child in children.get(queue["name"], ()) for one in below(child))]

    def walk(parent: str, depth: int) -> Iterator[tuple[int, View, list[View]]]:
        for queue in children.get(parent, ()):
            yield depth, queue, below(queue)
            yield from walk(queue["name"], depth + 1)

    return walk("", 0)
