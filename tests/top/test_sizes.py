"""Terminals of any size, and text that fits them."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from optimus.cli.top.pieces import bar, cut, cut_before, fit, fit_right
from optimus.cli.top.reports import lines_of
from optimus.cli.top.rooms import rooms_for

TEXTS = ["", "a", "train", "日本語", "ab\x1b[2J", "x\ty", "🦀🦀🦀", "é" * 9]


@pytest.mark.parametrize("text", TEXTS)
def test_fitted_text_is_exactly_as_wide_as_asked(text: str) -> None:
    for width in range(12):
        assert cell_len(fit(text, width)) == cell_len(fit_right(text, width)) == width
        assert max(cell_len(cut(text, width)), cell_len(cut_before(text, width))) <= width
        assert fit(text, width).isprintable()


def test_what_is_cut_says_so() -> None:
    assert cut("train-resnet", 6) == "train…"
    assert cut_before("node-17", 4) == "…-17"


@pytest.mark.parametrize("fraction", [-1.0, 0.0, 0.01, 0.5, 0.999, 1.0, 7.0])
def test_a_bar_is_as_long_as_its_room_and_full_only_at_the_end(fraction: float) -> None:
    drawn = bar(fraction, 10)
    assert len(drawn) == 10
    assert (drawn == "█" * 10) == (fraction >= 1)


def test_colours_of_a_command_are_kept_and_its_orders_are_not() -> None:
    (line,) = lines_of("\x1b[31mred\x1b[0m plain\x07\x1b[2J\x1b]0;title\x07")
    assert line[0] == ("red", "color(1)")
    assert all(piece.text.isprintable() for piece in line)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60), (60, 12), (300, 20)])
@pytest.mark.parametrize("grid", [0, 4, 500])
@pytest.mark.parametrize("queues", [1, 5, 300])
def test_jobs_always_have_room(size: tuple[int, int], grid: int, queues: int) -> None:
    width, height = size
    rooms = rooms_for(width, height, grid, queues)
    above = max(rooms.gpus, rooms.queues) if rooms.beside else rooms.gpus + rooms.queues
    assert min(rooms.gpus, rooms.queues) >= 2
    assert height - 3 - above >= (5 if height >= 20 else 2)


def test_what_needs_little_takes_little() -> None:
    assert rooms_for(80, 24, 4, 4).gpus == 6
    assert rooms_for(80, 24, 4, 4).queues == 5
