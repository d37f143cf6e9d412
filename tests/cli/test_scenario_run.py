"""`optimus scenario run` from the outside: exit codes, formats, and no stack trace for anybody's mistake."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from optimus.cli.scenario import play_world
from optimus.drivers.sim import playing
from tests.cli.terminal import COMMAND, ROOT, Ran, environment, on_terminal, optimus

STORY = """
name: a small story
cluster: [{name: n, gpus: 2}]
workloads:
  - {name: fits, gpu: 1}
  - {name: huge, gpu: 4}
expect:
  workloads: {fits: running, huge: NoSuchDevice}
"""
WRONG = STORY.replace("fits: running", "fits: pending")


@pytest.fixture
def story(tmp_path: Path) -> Path:
    return written(tmp_path, "story.yaml", STORY)


def written(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def assert_no_trace(ran: Ran) -> None:
    assert "Traceback" not in ran.out + ran.err


def test_a_story_that_comes_true_succeeds_and_is_told(story: Path) -> None:
    ran = optimus("scenario", "run", story)
    assert ran.code == 0
    assert "a small story" in ran.out
    assert "starts" in ran.out and "1 replica on n" in ran.out
    assert "no node of pool default has 4 GPUs on one node" in ran.out
    assert "✓ 2 expectations hold" in ran.out
    assert not ran.err


def test_an_expectation_that_does_not_hold_fails_and_says_where(tmp_path: Path) -> None:
    path = written(tmp_path, "story.yaml", WRONG)
    ran = optimus("scenario", "run", path)
    assert ran.code == 1
    assert "✗ 1 of 2 expectations does not hold" in ran.out
    assert f"{path}:8:21: workload fits: expected pending, is running" in ran.out


def test_each_file_is_a_world_of_its_own(tmp_path: Path, story: Path) -> None:
    other = written(tmp_path, "other.yaml", WRONG)
    ran = optimus("scenario", "run", story, other)
    assert ran.code == 1
    assert f"✓ {story}" in ran.out and f"✗ {other}" in ran.out
    assert "2 scenarios: 1 passed, 1 failed" in ran.out


def test_together_several_files_are_one_world(tmp_path: Path) -> None:
    cluster = written(tmp_path, "cluster.yaml", "nodes: [{name: n, gpus: 2}]")
    jobs = written(tmp_path, "jobs.yaml", "workloads: [{name: w, gpu: 2}]\nexpect: {workloads: {w: running}}")
    assert optimus("scenario", "run", "--together", cluster, jobs).code == 0
    assert optimus("scenario", "run", cluster, jobs).code == 1


def test_of_a_folder_every_file_is_played(tmp_path: Path, story: Path) -> None:
    (tmp_path / "inside").mkdir()
    written(tmp_path / "inside", "another.yml", STORY)
    ran = optimus("scenario", "run", tmp_path, "-o", "json")
    assert ran.code == 0
    assert len(ran.json()["scenarios"]) == 2


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00\xff\xfe", "is not UTF-8 text"),
        ("{: [", "1 error in the file"),
        ("just words", "a document must be a mapping"),
        ("workloads: [{name: w, gpu: -1}]", "story.yaml:1:28: workload w: gpu: must not be negative: -1"),
        ("policy: no-such", "story.yaml:1:9: policy: there is no policy 'no-such'"),
        ("policy: gone.py:order", "story.yaml:1:9: policy: gone.py does not exist"),
    ],
)
def test_a_file_with_errors_fails_with_its_errors(tmp_path: Path, content: str | bytes, says: str) -> None:
    ran = optimus("scenario", "run", written(tmp_path, "story.yaml", content))
    assert ran.code == 1
    assert says in ran.out
    assert_no_trace(ran)


def test_all_errors_are_told_at_once_and_the_rest_is_played(tmp_path: Path) -> None:
    text = "cluster: [{name: n, gpus: 2}]\nworkloads: [{name: a, gpu: -1}, {name: b, gpu: 1}, {name: c, gpu: many}]"
    ran = optimus("scenario", "run", written(tmp_path, "story.yaml", text), "-o", "json")
    assert ran.code == 1
    told = ran.json()["scenarios"][0]
    assert [error["line"] for error in told["errors"]] == [2, 2]
    assert [(w["name"], w["state"]) for w in told["workloads"]] == [("default/b", "running")]


def test_announced_errors_are_no_failure(tmp_path: Path) -> None:
    text = "workloads: [{name: w, gpu: -1}]\nexpect: {workloads: {w: invalid}, errors: [must not be negative]}"
    ran = optimus("scenario", "run", written(tmp_path, "story.yaml", text))
    assert ran.code == 0
    assert "1 error that the file announces" in ran.out


def test_an_empty_file_is_an_empty_world(tmp_path: Path) -> None:
    ran = optimus("scenario", "run", written(tmp_path, "empty.yaml", ""))
    assert ran.code == 0
    assert "empty" in ran.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["scenario", "run", "nowhere.yaml"], "nowhere.yaml: there is no such file"),
        (["scenario", "run"], "FILE"),
        (["scenario", "run", "docs/adr", "-o", "json"], "is a folder without scenario files"),
        (["scenario", "run", "x.yaml", "-o", "xml"], "xml"),
        (["scenario", "ran"], "ran"),
        (["no-such-command"], "no-such-command"),
        (["--no-such-option"], "no-such-option"),
    ],
)
def test_wrong_usage_is_told_on_the_error_stream(tmp_path: Path, arguments: list[str], says: str) -> None:
    (tmp_path / "docs" / "adr").mkdir(parents=True)
    ran = optimus(*arguments, cwd=tmp_path)
    assert ran.code == 2
    assert says in ran.err
    assert not ran.out
    assert_no_trace(ran)


def test_several_missing_files_are_named_at_once(tmp_path: Path) -> None:
    ran = optimus("scenario", "run", tmp_path / "a.yaml", tmp_path / "b.yaml")
    assert ran.code == 2
    assert "a.yaml" in ran.err and "b.yaml" in ran.err


def test_a_policy_file_is_found_beside_the_story(tmp_path: Path, story: Path) -> None:
    written(tmp_path, "mine.py", "def order(jobs):\n    return jobs.submitted_ms\n")
    path = written(tmp_path, "own.yaml", "policy: mine.py:order\n" + STORY)
    told = optimus("scenario", "run", path, "-o", "json").json()["scenarios"][0]
    assert told["ok"] and told["policy"].endswith("mine.py:order")


def test_with_a_policy_that_is_not_there_the_default_one_plays(tmp_path: Path) -> None:
    path = written(tmp_path, "story.yaml", STORY + "policy: defalt\n")
    told = optimus("scenario", "run", path, "-o", "json").json()["scenarios"][0]
    assert (told["ok"], told["policy"], told["crash"], len(told["cycles"])) == (False, "default", "", 1)
    assert [(error["line"], error["column"], error["place"]) for error in told["errors"]] == [(9, 9, "policy")]
    assert optimus("story", path).code == 1
    announced = written(tmp_path, "announced.yaml", STORY + "  errors: [no policy 'defalt']\npolicy: defalt\n")
    assert optimus("scenario", "run", announced).code == 0


def test_yaml_and_json_say_the_same(story: Path) -> None:
    as_json = optimus("scenario", "run", story, "-o", "json")
    as_yaml = optimus("scenario", "run", story, OPTIMUS_OUTPUT="yaml")
    assert as_json.code == as_yaml.code == 0
    assert yaml.safe_load(as_yaml.out) == as_json.json()


def test_no_colours_in_a_pipe_and_lines_are_never_cut(story: Path) -> None:
    ran = optimus("scenario", "run", story, COLUMNS="20")
    assert "\x1b" not in ran.out
    assert "waits   huge  no node of pool default has 4 GPUs on one node" in ran.out


def test_colours_on_a_terminal_unless_told_otherwise(story: Path) -> None:
    assert "\x1b[1;32mstarts" in on_terminal("scenario", "run", story).out
    plain = on_terminal("scenario", "run", story, NO_COLOR="1").out
    assert "starts" in plain and "\x1b[1;32m" not in plain


def test_lines_fit_the_terminal(story: Path) -> None:
    ran = on_terminal("scenario", "run", ROOT / "examples" / "02-scenario-why-does-it-wait", NO_COLOR="1")
    assert ran.code == 0
    plain = re.sub(r"\x1b\[[0-9;]*m", "", ran.out)
    assert max(map(len, plain.splitlines())) <= 100


def test_an_output_that_nobody_reads_is_no_accident(story: Path) -> None:
    command = f"{' '.join(COMMAND)} scenario run {story} -o json | head -c 10"
    done = subprocess.run(
        ["bash", "-c", command], env=environment(), capture_output=True, encoding="utf-8", check=False
    )
    assert "Traceback" not in done.stderr


def test_a_breakdown_of_the_scheduler_is_told_in_the_outcome(story: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def break_down(*_arguments: object, **_named: object) -> None:
        raise AssertionError("a rule is broken")

    monkeypatch.setattr(playing, "play", break_down)
    outcome = play_world((story,))
    assert not outcome.ok and outcome.files == (str(story),)
    assert "the scheduler broke down: AssertionError: a rule is broken" in outcome.crash
    monkeypatch.setenv("OPTIMUS_DEBUG", "1")
    with pytest.raises(AssertionError):
        play_world((story,))


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("raise SystemExit(3)", "order raised SystemExit: 3; the default policy decided instead"),
        ("return jobs.priority * float('nan')", "order returned NaN or infinity in 2 of 2 rows; the default policy"),
    ],
)
def test_a_broken_policy_is_told_once_and_the_story_goes_on(tmp_path: Path, body: str, says: str) -> None:
    written(tmp_path, "mine.py", f"def order(jobs):\n    {body}\n")
    text = "policy: mine.py:order\ncluster: [{name: n, gpus: 4}]\nworkloads: [{name: a, gpu: 4}, {name: b, gpu: 1}]"
    ran = optimus("scenario", "run", written(tmp_path, "story.yaml", text), "-o", "json")
    assert ran.code == 0
    conditions = ran.json()["scenarios"][0]["cycles"][0]["conditions"]
    assert [condition["code"] for condition in conditions] == ["PolicyFailed"]
    assert says in conditions[0]["message"] and conditions[0]["subject"].endswith("mine.py:order, order")


def test_room_that_was_only_held_is_given_up_and_nobody_is_called_evicted(tmp_path: Path) -> None:
    text = """
cluster: [{name: n, gpus: 8}]
between: {slowStop: true, advance: 10s}
queues: [{name: a, gpu: {guarantee: 4, limit: 8}}, {name: b}]
workloads:
  - {name: w, queue: b, gpu: 8, checkpoint: {grace: 1m}, running: {on: n, since: -1h}}
  - {name: v, queue: a, gpu: 4}
cycles: [{}, {change: {queues: [{name: a, gpu: {limit: 2}}]}}]
"""
    ran = optimus("scenario", "run", written(tmp_path, "story.yaml", text))
    assert "gives up   v        its held room on n: queue a is above its limit of 2 GPUs in pool default" in ran.out
    assert "evicted    v" not in ran.out
