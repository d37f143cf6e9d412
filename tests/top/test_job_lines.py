"""Jobs as lines: in a sensible order, found by words, and never wider than the terminal."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from optimus.cli.top.job_rows import ORDERS, chosen, columns_for, drawn, header, how_it_goes, in_full
from optimus.cli.top.pieces import plain
from tests.top.pictures import NOW_MS, View, job, replica, reports


def names(*views: View, order: str = "line", words: str = "", queues: set[str] | None = None) -> list[str]:
    jobs = {f"default/{view['name']}": view for view in views}
    found = chosen(jobs, order=order, words=words, queues=queues, now_ms=NOW_MS)
    return [name.removeprefix("default/") for name in found]


def goes(view: View, width: int = 100) -> str:
    return plain(how_it_goes(view, NOW_MS, width))


def test_what_runs_then_the_line_then_what_ended_the_last_first() -> None:
    shown = names(
        job("ended-early", phase="Succeeded", endedMs=NOW_MS - 90_000),
        job("low", phase="Pending", priority=50, submittedMs=NOW_MS - 99_000),
        job("later", phase="Pending", submittedMs=NOW_MS - 1000),
        job("sooner", phase="Preempted", submittedMs=NOW_MS - 2000),
        job("asleep", phase="Suspended"),
        job("high", phase="Admitted", priority=200),
        job("ended-now", phase="Failed", endedMs=NOW_MS),
        job("runs"),
    )
    assert shown == ["runs", "high", "sooner", "later", "low", "asleep", "ended-now", "ended-early"]


def test_by_end_those_that_say_none_are_last() -> None:
    soon, later = job("soon", progress=reports(90, 100)), job("later", progress=reports(1, 100))
    assert names(job("silent"), later, soon, order="end") == ["soon", "later", "silent"]


@pytest.mark.parametrize("order", ORDERS)
def test_every_order_takes_every_job(order: str) -> None:
    views = [job(f"j{at}", phase=phase) for at, phase in enumerate(("Running", "Pending", "Failed", "Suspended"))]
    assert sorted(names(*views, order=order)) == ["j0", "j1", "j2", "j3"]


def test_each_word_must_be_somewhere() -> None:
    views = job("train-a"), job("train-b", "speech"), job("eval", "speech", "Pending")
    assert names(*views, words="train") == ["train-a", "train-b"]
    assert names(*views, words="TRAIN speech") == ["train-b"]
    assert names(*views, words="pending") == ["eval"]
    assert names(*views, words="[x") == []
    assert names(*views, queues={"vision"}) == ["train-a"]


def test_a_job_that_reports_has_a_bar_and_an_end() -> None:
    said = goes(job("train", progress=reports(50, 100)))
    assert "50%" in said and "in 25s" in said and "50 of 100" in said
    assert said.count("█") == 12


def test_one_that_waits_says_why_and_no_end() -> None:
    waits = job("train", phase="Pending", reason={"code": "NoRoom", "text": "no room"}, progress=reports(50, 100))
    assert goes(waits) == "50% done, no room"


def test_one_that_says_nothing_shows_for_how_long_it_runs() -> None:
    assert goes(job("shell")) == "for 30s"


def test_one_that_ended_says_when_and_why() -> None:
    assert goes(job("done", phase="Succeeded")) == "10s ago"
    assert goes(job("bad", phase="Failed", reason={"code": "Failed", "text": "exit 3"})) == "10s ago  exit 3"


def test_an_array_shows_its_parts() -> None:
    array = job("sweep", counts={"Succeeded": 3, "Running": 1})
    line = plain(drawn(array, columns_for(100), NOW_MS, "", is_chosen=False))
    assert "3/4" in line and "75%" in line


STRANGE = ["x" * 253, "日本語のとても長い名前" * 5, "e\u0301" * 60, "a\x1b[31mred\nline", "🦀" * 30]


@pytest.mark.parametrize("width", [60, 80, 109, 110, 200])
@pytest.mark.parametrize("name", STRANGE, ids=["long", "wide", "combining", "orders", "emoji"])
def test_no_name_and_no_reason_breaks_a_line(name: str, width: int) -> None:
    columns = columns_for(width)
    for view in (job(name, name, "Pending", reason={"code": "X", "text": name}), job(name, progress=reports(1, 3))):
        line = plain(drawn(view, columns, NOW_MS, "", is_chosen=True))
        assert cell_len(line) <= width
        assert line.isprintable()


@pytest.mark.parametrize("width", [80, 110, 200])
def test_the_columns_stand_below_their_titles(width: int) -> None:
    columns = columns_for(width)
    head, line = plain(header(columns)), plain(drawn(job("train"), columns, NOW_MS, "", is_chosen=False))
    assert head.index("job") == line.index("train")
    assert head.index("queue") == line.index("vision")
    assert head.index("phase") == line.index("Running")
    assert head.index("done") == line.index("for 30s")


def test_in_full_the_reason_or_the_place() -> None:
    assert in_full(job("a", phase="Pending", reason={"code": "NoRoom", "text": "no room"})) == "a: no room"
    here = job("a", replicas=[replica("n1", 1), replica("n1", 0), replica("n0", 3)])
    assert in_full(here) == "a: on n0 [3], n1 [0,1]  python train.py"
