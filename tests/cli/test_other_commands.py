"""Help, version, lists, checking files, and the story in the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from optimus import __version__
from optimus.cli.main import app
from optimus.decide import policies
from optimus.model.reasons import SENTENCES, Code
from tests.cli.terminal import ROOT, on_terminal, optimus


def test_version() -> None:
    ran = optimus("--version")
    assert (ran.code, ran.out) == (0, f"optimus {__version__}\n")


def commands() -> list[list[str]]:
    root = typer.main.get_command(app)
    found: list[list[str]] = [[]]
    for name, command in root.commands.items():  # type: ignore[attr-defined]
        below = getattr(command, "commands", {})
        found += [[name], *([name, inner] for inner in below)]
    return found


@pytest.mark.parametrize("command", commands(), ids=" ".join)
def test_every_command_has_help_with_an_example(command: list[str]) -> None:
    ran = optimus(*command, "--help")
    assert ran.code == 0
    assert "optimus " in ran.out.split("Options:")[1]
    assert optimus(*command, "-h").out == ran.out


def test_policies_are_listed() -> None:
    ran = optimus("policies")
    assert ran.code == 0
    assert all(any(line.startswith(f"{name} ") for line in ran.out.splitlines()) for name in policies.names())
    assert {policy["name"] for policy in optimus("policies", "-o", "json").json()} >= set(policies.names())


def test_reasons_are_listed() -> None:
    ran = optimus("reasons")
    assert ran.code == 0
    assert [line.split()[0] for line in ran.out.splitlines()] == [str(code) for code in Code]
    assert optimus("reasons", "-o", "json").json()[0] == {
        "code": "NoSuchQueue",
        "sentence": "there is no queue {queue}",
        "facts": ["queue"],
    }


def test_check_finds_all_errors_and_plays_nothing(tmp_path: Path) -> None:
    right, wrong = tmp_path / "right.yaml", tmp_path / "wrong.yaml"
    right.write_text("cluster: [{name: n, count: 2, gpus: 1}]\nworkloads: [{name: w, gpu: 1}]", encoding="utf-8")
    wrong.write_text("workloads: [{name: w, gpu: -1}, {name: v, gpu: x}]", encoding="utf-8")
    ran = optimus("scenario", "check", right, wrong)
    assert ran.code == 1
    assert f"✓ {right}  2 nodes, 1 queue, 1 workload, 1 cycle" in ran.out
    assert f"✗ {wrong}  2 errors" in ran.out
    assert f"{wrong}:1:28: workload w: gpu: must not be negative: -1" in ran.out
    assert optimus("scenario", "check", right).code == 0
    bogus = tmp_path / "bogus.yaml"
    bogus.write_text("seed: 1\npolicy: defalt", encoding="utf-8")
    assert (
        f"{bogus}:2:9: policy: there is no policy 'defalt'; did you mean default?"
        in optimus("scenario", "check", bogus).out
    )
    told = optimus("scenario", "check", wrong, "-o", "json").json()
    assert told["ok"] is False and len(told["scenarios"][0]["errors"]) == 2


def test_the_story_is_told_in_plain_text_without_a_terminal() -> None:
    ran = optimus("story")
    assert ran.code == 0, ran.out + ran.err
    assert "\x1b" not in ran.out
    for word in (
        "starts",
        "shrinks",
        "grows",
        "evicted",
        "room held",
        "waits",
        "borrowed",
        "S›V",
        "would delay segment",
    ):
        assert word in ran.out, word


def test_the_story_is_drawn_on_a_terminal() -> None:
    ran = on_terminal("story", "--fast")
    assert ran.code == 0
    assert "\x1b[1;30;46m V \x1b[0m" in ran.out
    assert ran.out.rindex("\x1b[?25h") > ran.out.rindex("\x1b[?25l"), "the cursor is back"


def test_the_story_can_be_interrupted() -> None:
    ran = on_terminal("story", interrupt_at="Vision submits")
    assert ran.code == 130
    assert "stopped" in ran.out and "Traceback" not in ran.out
    assert ran.out.rindex("\x1b[?25h") > ran.out.rindex("\x1b[?25l"), "the cursor is back"


def test_any_scenario_can_be_watched(tmp_path: Path) -> None:
    ran = optimus("story", ROOT / "examples" / "03-scenario-elastic-and-reserved" / "story.yaml")
    assert ran.code == 0 and "llm" in ran.out
    assert optimus("story", tmp_path / "nowhere.yaml").code == 2


def test_no_sentence_begins_with_its_own_code() -> None:
    for code, sentence in SENTENCES.items():
        first = sentence.removeprefix("being ").partition(" ")[0].lower()
        assert first in ("queue", "namespace") or first[:5] != code.lower()[:5], f"{code}: {sentence}"
