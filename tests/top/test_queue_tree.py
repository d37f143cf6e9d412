"""Queues as a tree: what each has, is due, borrows and lends."""

from __future__ import annotations

import pytest

from optimus.cli.top.gpu_grid import marks
from optimus.cli.top.pieces import plain
from optimus.cli.top.queue_rows import QueueRow, columns_for, descendants, drawn, header, natural_width, queue_rows
from tests.top.pictures import View, node, queue, share

TREE = [
    queue("research", "", share(0, 9000)),
    queue("vision", "research", share(4000, 6000, limit=8000), running=2, waiting=1),
    queue("speech", "research", share(2000, 3000), running=1),
    queue("prod", "", share(6000, 1000), running=1),
]
FULL = [node("a", [1000] * 10)]


def rows(queues: list[View], nodes: list[View]) -> dict[str, QueueRow]:
    return {row.name: row for row in queue_rows(queues, nodes, [])}


def test_children_stand_below_their_parents() -> None:
    assert [(row.name, row.depth) for row in queue_rows(TREE, FULL, [])] == [
        ("prod", 0), ("research", 0), ("speech", 1), ("vision", 1),
    ]  # fmt: skip


def test_a_parent_has_the_jobs_and_guarantees_of_its_children() -> None:
    research = rows(TREE, FULL)["research"]
    assert (research.running, research.waiting, research.guarantee) == (3, 1, 6000)


def test_borrowed_is_what_is_above_the_guarantee() -> None:
    assert {name: row.borrowed for name, row in rows(TREE, FULL).items()} == {
        "prod": 0, "research": 3000, "speech": 1000, "vision": 2000,
    }  # fmt: skip


def test_lent_is_what_others_have_of_a_guarantee_and_not_what_is_idle() -> None:
    assert rows(TREE, FULL)["prod"].lent == 5000  # all ten are in use: five of its six are elsewhere
    assert rows(TREE, [node("a", [1000] * 10 + [0] * 3)])["prod"].lent == 2000  # three are idle: it could have them
    assert rows(TREE, [node("a", [1000] * 10 + [0] * 9)])["prod"].lent == 0


def test_nodes_that_are_not_ready_are_nothing_to_have() -> None:
    away = node("b", [0] * 9, ready=False)
    assert rows(TREE, [*FULL, away])["prod"].lent == 5000


def test_with_several_pools_each_has_a_row() -> None:
    both = [queue("vision", "", share(1000, 0), share(2000, 500, pool="h100"), running=3)]
    first, second = queue_rows(both, [], [])
    assert (first.name, first.pool, first.running) == ("vision", "default", 3)
    assert (second.name, second.pool, second.running) == ("", "h100", 0)
    assert "h100" in plain(drawn(second, columns_for([first, second], 100), {}))


def test_a_queue_without_quotas_and_one_whose_parent_is_unknown_are_there() -> None:
    found = queue_rows([queue("free"), queue("lost", "nobody", share(1000, 0))], [], [])
    assert [(row.name, row.depth) for row in found] == [("free", 0), ("lost", 0)]


def test_jobs_of_a_queue_are_those_below_it_too() -> None:
    assert descendants(TREE, "research") == {"research", "vision", "speech"}
    assert descendants(TREE, "vision") == {"vision"}
    assert descendants(TREE, "nobody") == set()


@pytest.mark.parametrize("width", [60, 70, 80, 116, 200])
def test_every_line_fits_and_says_everything(width: int) -> None:
    found = queue_rows(TREE, FULL, [])
    columns = columns_for(found, width)
    for row in found:
        line = plain(drawn(row, columns, marks(TREE)))
        assert len(line) <= width
        assert row.name in line
    assert plain(header(columns)).split()[0] == "queue"


def test_its_natural_width_is_enough() -> None:
    found = queue_rows(TREE, FULL, [])
    width = natural_width(found)
    assert len(plain(drawn(found[0], columns_for(found, width), {}))) == width
    assert columns_for(found, width + 50) == columns_for(found, width)


def test_the_bar_tells_own_from_borrowed_from_unused() -> None:
    found = rows(TREE, FULL)
    columns = columns_for(list(found.values()), 120)
    bars = {name: plain(drawn(row, columns, {})) for name, row in found.items()}
    assert "▓" in bars["vision"] and "█" in bars["vision"] and "░" not in bars["vision"]
    assert "░" in bars["prod"] and "▓" not in bars["prod"]
