"""`optimus what-if` shows today's world beside a changed one, for a scenario and for a journal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.terminal import ROOT, assert_refused, optimus

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
        "10 to 90 % of futures",
        "0 pay, ",
        "Gains: starts or ends sooner, or is stopped less often",
    ):
        assert words in ran.out, ran.out


README_WORLD = """
cluster: [{name: a, count: 2, gpus: 8}]
queues: [{name: vision, gpu: {guarantee: 8}}, {name: speech, gpu: {guarantee: 8}}]
workloads:
  - {name: old, queue: speech, count: 2, replicas: 8, gpu: 1, running: {on: "a-*", since: -1h}}
  - {name: train, queue: vision, replicas: 4, gpu: 1}
"""


def test_who_is_stopped_on_the_way_is_shown_though_it_starts_as_before(story: Path) -> None:
    """Today vision takes room back from speech, whose jobs run already."""
    story.write_text(README_WORLD, encoding="utf-8")
    gained = optimus("whatif", story, "--add-nodes", "1x8", "--quota", "vision.guarantee=16", "--samples", "3")
    assert re.search(r"old-1 +speech +at once +\S+ → \S+ +−\S+ +−\S+ to −\S+ +1 → 0", gained.out), gained.out
    assert "0 pay, 1 gains, 2 as before" in gained.out
    paid = optimus("whatif", story, "--quota", "vision.guarantee=16", "--quota", "speech.guarantee=0", "--samples", "3")
    pays = paid.out[paid.out.index("Pays: starts or ends later") : paid.out.index("Gains:")]
    assert re.search(r"old-0 +speech +at once +\S+ → \S+ +\+\S+ +\+\S+ to \+\S+ +0 → 1", pays), paid.out


def test_programs_get_both_worlds(story: Path) -> None:
    told = optimus(
        "what-if", story, "--remove-node", "gpu-1", "--policy", "fifo", "--samples", "2", "-o", "json"
    ).json()
    effect = told["effect"]
    assert (effect["today"]["gpus"], effect["changed"]["gpus"], effect["samples"]) == (8, 4, 2)
    assert (effect["today"]["policy"], effect["changed"]["policy"]) == ("default", "fifo")
    assert effect["changed"]["waitMs"]["average"] > effect["today"]["waitMs"]["average"]
    assert effect["later"] > 0 and effect["starts"][0]["differenceMs"] > 0
    assert effect["pay"] > 0 and effect["pay"] + effect["gain"] + effect["neither"] == effect["today"]["jobs"]
    assert effect["differences"]["waitMs.average"]["low"] > 0
    page = (ROOT / "docs" / "reference" / "whatif.md").read_text(encoding="utf-8")
    told = set(re.findall(r"`([A-Za-z0-9]+)`", page))
    assert {
        *effect,
        *effect["moved"][0],
        *effect["moved"][0]["end"],
        *effect["differences"]["finished"],
    } - told == set()


def test_a_journal_is_played_once_more_as_it_was_recorded(journal: Path) -> None:
    ran = optimus("whatif", journal, "--add-nodes", "2x4")
    assert ran.code == 0, ran.err
    assert "recorded jobs once more" in ran.out and "starts from submission" in ran.out


def test_a_journal_goes_on_from_its_end_or_a_moment(journal: Path) -> None:
    ran = optimus("whatif", journal, "--ahead", "--at", "1", "--remove-node", "gpu-0", "--samples", "2")
    assert ran.code == 0, ran.err
    assert (
        "run times drawn from what is known then, nobody else comes, 2 futures" in ran.out
        and "starts from now" in ran.out
    )


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
    assert_refused(optimus("what-if", story), 2, "nothing is changed; add --add-nodes 2")
    assert_refused(optimus("whatif", story, "--remove-node", "gpu-7"), 2, "there is no node gpu-7; did you mean")
    assert_refused(optimus("whatif", story, "--queue", "visoin.limit=3"), 2, "did you mean vision?")
    assert_refused(optimus("whatif", story, "--policy", "sjf"), 2, "sjf is shortest-first here")
    assert_refused(optimus("whatif", tmp_path / "none", "--policy", "fifo"), 2, "there is no such file or folder")
    assert_refused(optimus("whatif", tmp_path, "--policy", "fifo"), 1, "neither a journal")
