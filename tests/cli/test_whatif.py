"""`optimus what-if` shows today's world beside a changed one, for a scenario and for a journal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.terminal import assert_refused, optimus

STORY = """
name: two teams
cluster: [{name: gpu, count: 2, gpus: 4}]
queues: [{name: vision, gpu: {guarantee: 4}}, {name: speech, gpu: {guarantee: 4}}]
workloads:
  - {name: a, queue: speech, count: 3, gpu: 4, submitted: -1h, expectedDuration: 2h}
  - {name: b, queue: vision, gpu: 4, submitted: -10m, expectedDuration: 1h}
"""


@pytest.fixture
def story(tmp_path: Path) -> Path:
    (tmp_path / "story.yaml").write_text(STORY, encoding="utf-8")
    return tmp_path / "story.yaml"


@pytest.fixture
def journal(story: Path) -> Path:
    story.write_text(STORY + "cycles: 12\nbetween: {advance: 30m, endsOnTime: true}\n", encoding="utf-8")
    ran = optimus("scenario", "run", story, "--journal", story.parent / "journal")
    assert ran.code == 0, ran.out + ran.err
    return story.parent / "journal"


def test_a_scenario_is_played_ahead_side_by_side(story: Path) -> None:
    ran = optimus(
        "whatif", story, "--add-nodes", "2x4", "--quota", "vision.guarantee=8", "--price", "2", "--samples", "2"
    )
    assert ran.code == 0, ran.err
    for words in (
        "2 more nodes with 4 gpu each, like gpu-0",
        "guarantee of queue vision: 8 GPUs instead of 4 GPUs",
        "waiting, average",
        "waiting, P90",
        "waiting, longest",
        "GPUs in use",
        "cost of the cluster",
        "4 → 8",
        "start sooner",
    ):
        assert words in ran.out, ran.out


def test_programs_get_both_worlds(story: Path) -> None:
    told = optimus(
        "what-if", story, "--remove-node", "gpu-1", "--policy", "fifo", "--samples", "2", "-o", "json"
    ).json()
    effect = told["effect"]
    assert (effect["today"]["gpus"], effect["changed"]["gpus"], effect["samples"]) == (8, 4, 2)
    assert (effect["today"]["policy"], effect["changed"]["policy"]) == ("default", "fifo")
    assert effect["changed"]["waitMs"]["average"] > effect["today"]["waitMs"]["average"]
    assert effect["later"] > 0 and effect["starts"][0]["differenceMs"] > 0


def test_a_journal_is_played_once_more_as_it_was_recorded(journal: Path) -> None:
    ran = optimus("whatif", journal, "--add-nodes", "2x4")
    assert ran.code == 0, ran.err
    assert "recorded jobs once more" in ran.out and "starts from submission" in ran.out


def test_a_journal_goes_on_from_its_end_or_a_moment(journal: Path) -> None:
    ran = optimus("whatif", journal, "--ahead", "--at", "1", "--remove-node", "gpu-0", "--samples", "2")
    assert ran.code == 0, ran.err
    assert "run times drawn from what is known then, 2 futures" in ran.out and "starts from now" in ran.out


def test_what_had_not_ended_is_told_and_counted(story: Path) -> None:
    story.write_text(STORY + "cycles: 7\nbetween: {advance: 30m, endsOnTime: true}\n", encoding="utf-8")
    optimus("scenario", "run", story, "--journal", story.parent / "short")
    told = optimus("whatif", story.parent / "short", "--add-nodes", "1x4", "-o", "json").json()
    assert told["leftOut"] > 0 and "still ran when the journal ends" in told["notes"][0]


def test_a_journal_in_which_nothing_ended_says_what_to_do(story: Path) -> None:
    optimus("scenario", "run", story, "--journal", story.parent / "begun")
    ran = optimus("whatif", story.parent / "begun", "--add-nodes", "1x4")
    assert_refused(ran, 1, "--ahead plays on from the end of the journal instead")


def test_bad_input_is_refused_with_what_to_do(story: Path, tmp_path: Path) -> None:
    assert_refused(optimus("what-if", story), 2, "nothing is changed; add --add-nodes 4x8")
    assert_refused(optimus("whatif", story, "--remove-node", "gpu-7"), 2, "there is no node gpu-7; did you mean")
    assert_refused(optimus("whatif", story, "--quota", "visoin.limit=3"), 2, "did you mean vision?")
    assert_refused(optimus("whatif", story, "--policy", "sjf"), 2, "sjf is shortest-first here")
    assert_refused(optimus("whatif", tmp_path / "none", "--policy", "fifo"), 2, "there is no such file or folder")
    assert_refused(optimus("whatif", tmp_path, "--policy", "fifo"), 1, "neither a journal")
