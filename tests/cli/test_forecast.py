"""`optimus forecast` says when waiting work starts, why it waits and behind whom; bad input is refused in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.terminal import assert_refused, optimus

STORY = """
name: one GPU
cluster: [{name: n, gpus: 1}]
workloads:
  - {name: runs, gpu: 1, submitted: -1h, expectedDuration: 2h}
  - {name: waits, gpu: 1, submitted: -10m, expectedDuration: 30m}
  - {name: huge, gpu: 4}
"""


@pytest.fixture
def story(tmp_path: Path) -> Path:
    (tmp_path / "story.yaml").write_text(STORY + "policy: fifo\n", encoding="utf-8")
    return tmp_path / "story.yaml"


@pytest.fixture
def journal(story: Path) -> Path:
    story.write_text(story.read_text() + "cycles: 8\nbetween: {advance: 30m, endsOnTime: true}\n", encoding="utf-8")
    ran = optimus("scenario", "run", story, "--journal", story.parent / "journal")
    assert ran.code == 0, ran.out + ran.err
    return story.parent / "journal"


def test_a_scenario_is_forecast_as_it_opens(story: Path) -> None:
    ran = optimus("forecast", story, "--samples", "4")
    assert ran.code == 0, ran.err
    assert "4 futures of 7d, nobody else comes" in ran.out
    lines = {line.split()[0]: line for line in ran.out.splitlines() if line}
    assert "starts with the next decision" in lines["runs"]
    assert " in " in lines["waits"] and " runs " in lines["waits"]
    assert "never" in lines["huge"] and "as it is" in lines["huge"]


def test_programs_get_every_number(story: Path) -> None:
    told = optimus("forecast", story, "--samples", "3", "-o", "json").json()
    rows = {row["name"]: row for row in told["workloads"]}
    assert (told["samples"], told["policy"], told["horizonMs"]) == (3, "fifo", 7 * 86_400_000)
    assert [row["state"] for row in rows.values()] == ["now", "forecast", "never"]
    waits = rows["default/waits"]
    assert waits["p50"]["inMs"] <= waits["p90"]["inMs"] and waits["p50"]["time"].endswith("Z")
    assert waits["behind"] == ["default/runs"] and waits["runTimeFrom"] == "declared"
    assert rows["default/huge"]["reason"]["code"] == "NoSuchDevice"


def test_a_journal_is_forecast_from_any_moment(journal: Path) -> None:
    first = optimus("forecast", journal, "--at", "1", "--samples", "2", "-o", "json").json()
    assert [row["name"] for row in first["workloads"]] == ["default/waits", "default/huge"]
    last = optimus("forecast", journal, "--samples", "2", "-o", "json").json()
    assert [row["name"] for row in last["workloads"]] == ["default/huge"]


def test_a_check_counts_how_earlier_forecasts_were_kept(journal: Path) -> None:
    ran = optimus("forecast", journal, "--samples", "2", "--check", "2", "--horizon", "12h")
    assert ran.code == 0, ran.err
    assert "Checked at" in ran.out and "claims" in ran.out and "Too few outcomes" in ran.out


def test_newcomers_come_as_often_as_before(story: Path) -> None:
    come = "cycles: [{}, {advance: 1h, submit: [{name: more, gpu: 1, expectedDuration: 10m}]}]"
    story.write_text(STORY + come + "\n", encoding="utf-8")
    optimus("scenario", "run", story, "--journal", story.parent / "journal")
    told = optimus(
        "forecast", story.parent / "journal", "--samples", "1", "--arrivals", "--horizon", "6h", "-o", "json"
    )
    assert told.code == 0, told.err
    assert told.json()["arrivalsPerHour"] == 1.0


def test_a_journal_of_a_day_has_newcomers_and_a_young_one_says_that_nobody_comes(story: Path) -> None:
    come = "cycles: [{{}}, {{advance: {}, submit: [{{name: more, gpu: 1, expectedDuration: 10m}}]}}]\n"
    for advance, rate in (("10h", 0.1), ("1h", 0.0)):
        story.write_text(STORY + come.format(advance), encoding="utf-8")
        folder = story.parent / f"journal-{advance}"
        optimus("scenario", "run", story, "--journal", folder)
        told = optimus("forecast", folder, "--samples", "1", "--horizon", "6h", "-o", "json")
        assert told.code == 0, told.err
        assert told.json()["arrivalsPerHour"] == rate
        assert any("nobody else comes" in note for note in told.json()["notes"]) == (not rate)
    told = optimus("forecast", story.parent / "journal-10h", "--samples", "1", "--no-arrivals", "-o", "json")
    assert told.json()["arrivalsPerHour"] == 0.0


def test_where_nothing_waits_it_says_so(tmp_path: Path) -> None:
    (tmp_path / "idle.yaml").write_text("cluster: [{name: n, gpus: 1}]\n", encoding="utf-8")
    ran = optimus("forecast", tmp_path / "idle.yaml")
    assert ran.code == 0 and "Nothing waits" in ran.out


def test_bad_input_is_refused_with_what_to_do(story: Path, tmp_path: Path) -> None:
    assert_refused(optimus("forecast", tmp_path / "no.yaml"), 2, "there is no such file or folder")
    assert_refused(optimus("forecast", tmp_path), 2, "holds no journal; `optimus scenario run FILE --journal DIR`")
    assert_refused(optimus("forecast", story, "--at", "14:20"), 2, "--at is for journals")
    assert_refused(optimus("forecast", story, "--check", "3"), 2, "a scenario has no past; name a journal")
    assert_refused(optimus("forecast", story, "--policy", "sjf"), 2, "sjf is shortest-first here")
    assert_refused(optimus("forecast", story, "--horizon", "soon"), 2, "--horizon")
    story.write_text("cluster: [{name: n, gpus: -1}]\n", encoding="utf-8")
    assert_refused(optimus("forecast", story), 1, "story.yaml:1:", "gpus")
