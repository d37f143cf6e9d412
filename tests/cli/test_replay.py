"""`optimus scenario run --journal` writes a journal; `optimus replay` replays it, compares policies, and looks back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.terminal import assert_refused, on_terminal, optimus

STORY = """
name: one GPU, three jobs
cluster: [{name: n, gpus: 1}]
workloads:
  - {name: long, gpu: 1, submitted: -3m, expectedDuration: 3m}
  - {name: short, gpu: 1, submitted: -2m, expectedDuration: 1m}
  - {name: huge, gpu: 4, submitted: -1m}
cycles: 6
between: {advance: 1m, endsOnTime: true}
"""


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """Six cycles from Monday, 12:00; decided first come, first served."""
    return recorded(tmp_path, STORY + "policy: fifo\n")


def recorded(folder: Path, story: str) -> Path:
    (folder / "story.yaml").write_text(story, encoding="utf-8")
    ran = optimus("scenario", "run", folder / "story.yaml", "--journal", folder / "journal")
    assert ran.code == 0, ran.out + ran.err
    return folder / "journal"


# -- writing ------------------------------------------------------------------------------------------------------


def test_a_story_is_told_as_ever_and_leaves_a_journal(tmp_path: Path) -> None:
    (tmp_path / "story.yaml").write_text(STORY, encoding="utf-8")
    without = optimus("scenario", "run", tmp_path / "story.yaml")
    with_one = optimus("scenario", "run", tmp_path / "story.yaml", "--journal", tmp_path / "new" / "journal")
    assert (with_one.code, with_one.out, with_one.err) == (without.code, without.out, without.err)
    assert [path.suffix for path in sorted((tmp_path / "new" / "journal").iterdir())] == [".journal", ".lock"]


def test_a_journal_is_never_mixed_with_another(journal: Path) -> None:
    story = journal.parent / "story.yaml"
    assert_refused(optimus("scenario", "run", story, "--journal", journal), 2, "already holds a journal")
    assert_refused(optimus("scenario", "run", story, "--journal", story), 2, "is a file")
    assert_refused(optimus("scenario", "run", story, story, "--journal", journal.parent / "b"), 2, "one scenario")


def test_a_journal_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "story.yaml").write_text(STORY, encoding="utf-8")
    (tmp_path / "file").write_text("", encoding="utf-8")
    ran = optimus("scenario", "run", tmp_path / "story.yaml", "--journal", tmp_path / "file" / "below")
    assert ran.code == 1
    assert "journal" in ran.out and "Not a directory" in ran.out and "Traceback" not in ran.out + ran.err


# -- replaying ----------------------------------------------------------------------------------------------------


def test_a_replay_agrees_with_the_record(journal: Path) -> None:
    ran = optimus("replay", journal)
    assert ran.code == 0, ran.err
    assert "cycles 0–5, 2026-01-05 12:00 to 2026-01-05 12:05, policy fifo" in ran.out
    assert "✓ 6 of 6 cycles agree" in ran.out
    told = optimus("replay", journal, "-o", "json").json()
    assert (told["ok"], told["cycles"], told["equal"], told["differences"]) == (True, 6, 6, [])
    assert told["policies"] == ["fifo"]


def test_another_policy_is_compared_cycle_by_cycle(journal: Path) -> None:
    ran = optimus("replay", journal, "--policy", "shortest-first")
    assert ran.code == 0, ran.err
    assert "shortest-first decides 5 of 6 cycles as recorded" in ran.out
    assert "first difference: cycle 0, 2026-01-05 12:00: action 0: recorded Start default/long" in ran.out
    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert "policy starts grows shrinks evictions moves refused waiting" in lines
    assert "fifo 2 0 0 0 0 0 1.5" in lines
    assert "shortest-first 2 0 0 0 0 0 1.5" in lines
    told = optimus("replay", journal, "--policy", "shortest-first", "-o", "json").json()
    assert told["differences"][0]["cycle"] == 0 and "default/short" in told["differences"][0]["text"]
    assert [tally["policy"] for tally in told["tallies"]] == ["fifo", "shortest-first"]
    assert told["tallies"][0]["starts"] == 2 and told["tallies"][0]["waiting"] == 9


def test_a_policy_from_a_file(journal: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def newest(columns):\n    return -columns.submitted_ms\n", encoding="utf-8")
    ran = optimus("replay", journal, "--policy", f"{tmp_path}/mine.py:newest")
    assert ran.code == 0 and "of 6 cycles as recorded" in ran.out
    assert_refused(optimus("replay", journal, "--policy", "fastest"), 2, "there is no policy 'fastest'", "--policy")
    assert_refused(optimus("replay", journal, "--policy", f"{tmp_path}/no.py:x"), 2, "does not exist")


def test_a_difference_without_another_policy_fails(journal: Path, tmp_path: Path) -> None:
    """The recorded policy is in a file, and the file has changed since."""
    mine = tmp_path / "mine.py"
    mine.write_text("def order(columns):\n    return columns.submitted_ms\n", encoding="utf-8")
    journal = tmp_path / "second"
    (tmp_path / "story.yaml").write_text(STORY + f"policy: {mine}:order\n", encoding="utf-8")
    assert optimus("scenario", "run", tmp_path / "story.yaml", "--journal", journal).code == 0
    assert optimus("replay", journal).code == 0
    mine.write_text("def order(columns):\n    return -columns.submitted_ms\n", encoding="utf-8")
    ran = optimus("replay", journal)
    assert ran.code == 1
    assert "of 6 cycles agree" in ran.out and "first difference: cycle 0" in ran.out
    assert ran.out.count("cycle 0") >= 1 and optimus("replay", journal, "-o", "json").json()["ok"] is False
    mine.unlink()
    assert_refused(optimus("replay", journal), 1, "does not exist", "--policy")


# -- one moment ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", ["0", "12:00", "12:00:30", "2026-01-05T12:00:00Z", "-5m"])
def test_a_moment_is_told_with_its_reasons(journal: Path, at: str) -> None:
    ran = optimus("replay", journal, "--at", at)
    assert ran.code == 0, ran.out + ran.err
    assert "cycle 0  2026-01-05 12:00" in ran.out and "policy fifo" in ran.out
    assert "submitted" in ran.out and "3 × " not in ran.out
    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert "starts long 1 replica on n" in lines
    assert any(line.startswith("waits short no node of pool default has 1 GPU free") for line in lines), lines
    assert any(line.startswith("waits huge no node of pool default has 4 GPUs on one node") for line in lines)
    assert "decided again: the same plan" in ran.out


def test_what_was_seen_and_stopped_is_told(tmp_path: Path) -> None:
    story = """
    cluster: [{name: n, gpus: 1}]
    workloads: [{name: old, gpu: 1, priority: 1, running: {on: n, since: -1h}, checkpoint: {grace: 30s}}]
    cycles: [{}, {submit: [{name: urgent, gpu: 1, priority: 900}]}, {}, {cordon: [n]}]
    """
    journal = recorded(tmp_path, story)
    lines = [" ".join(line.split()) for line in optimus("replay", journal, "--at", "1").out.splitlines()]
    assert "submitted urgent 1 × 1 GPU, queue default" in lines
    assert any(line.startswith("evicted old from n: gave way to urgent of higher priority 900") for line in lines), (
        lines
    )
    assert "room held urgent 1 replica on n until old has left" in lines
    lines = [" ".join(line.split()) for line in optimus("replay", journal, "--at", "2").out.splitlines()]
    assert "starts urgent 1 replica on n" in lines and not any("loses" in line for line in lines)
    assert "cordoned  node n" in optimus("replay", journal, "--at", "3").out
    told = optimus("replay", journal, "--at", "1", "-o", "json").json()
    assert told["cycle"]["number"] == 1 and told["cycle"]["actions"][0]["cause"]["code"] == "Preempted"
    assert told["policy"] == "default" and told["difference"] == ""


def test_a_moment_under_another_policy(journal: Path) -> None:
    ran = optimus("replay", journal, "--at", "0", "--policy", "shortest-first")
    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert "shortest-first would have decided:" in ran.out
    assert "starts long 1 replica on n" in lines and "starts short 1 replica on n" in lines


def test_moments_that_are_not_there(journal: Path) -> None:
    assert_refused(optimus("replay", journal, "--at", "6"), 1, "cycle 6 is not in the journal", "ends with cycle 5")
    assert_refused(optimus("replay", journal, "--at", "2026-01-04T12:00:00Z"), 1, "begins with cycle 0")
    assert_refused(optimus("replay", journal, "--at", "noon"), 2, "--at", "14:20")
    assert "cycle 5" in optimus("replay", journal, "--at", "2026-01-06T12:00:00Z").out


# -- what can be wrong --------------------------------------------------------------------------------------------


def test_folders_without_a_journal(tmp_path: Path) -> None:
    assert_refused(optimus("replay", tmp_path / "no"), 2, "there is no such folder")
    assert_refused(optimus("replay", tmp_path), 2, "holds no journal", "--journal")
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert_refused(optimus("replay", tmp_path / "file"), 2, "is a file")


def test_a_damaged_journal_is_said_and_fails(journal: Path) -> None:
    path = next(journal.glob("*.journal"))
    whole = path.read_bytes()
    path.write_bytes(whole[:-3])
    torn = optimus("replay", journal)
    assert torn.code == 0 and "✓ 5 of 5 cycles agree" in torn.out and "torn: 0000" in torn.out
    broken = bytearray(whole)
    broken[len(whole) // 2] ^= 1
    path.write_bytes(broken)
    damaged = optimus("replay", journal)
    assert damaged.code == 1
    assert path.name in damaged.out and "checksum" in damaged.out
    assert optimus("replay", journal, "-o", "json").json()["flaws"][0]["kind"] == "damaged"
    path.write_bytes(b"nonsense")
    assert_refused(optimus("replay", journal), 1, "no segment of the journal", "can be read")


def test_a_state_of_another_version_is_said(journal: Path) -> None:
    path = next(journal.glob("*.journal"))
    from optimus.engine.journal import Journal, JournalWriter

    policy = next(iter(Journal(journal).read())).policy  # type: ignore[union-attr]
    path.unlink()
    with JournalWriter(journal, dump=lambda: b"\x81\xa1x\x01", policy=policy) as writer:
        writer.start(0)
    assert_refused(optimus("replay", journal), 1, "cannot be restored")


def test_a_replay_on_a_terminal(journal: Path) -> None:
    ran = on_terminal("replay", journal)
    assert ran.code == 0 and "6 of 6 cycles agree" in ran.out
