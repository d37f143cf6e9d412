"""Completion beside bash, which `test_a_real_terminal` types in: fish, and where nobody answers."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.terminal import environment, optimus


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_are_lines_for_each_shell(shell: str) -> None:
    ran = optimus("completion", shell)
    assert ran.code == 0 and "_OPTIMUS_COMPLETE=complete_" + shell in ran.out


def offered(words: str) -> list[str]:
    """By the command itself, as bash asks it."""
    typed = {"_OPTIMUS_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    ran = optimus(**typed, OPTIMUS_TARGET="http://127.0.0.1:1")  # type: ignore[arg-type]
    assert ran.code == 0 and ran.err == "", "it offers, or it is silent"
    return ran.out.split()


def test_words_that_need_no_scheduler() -> None:
    assert offered("optimus sus") == ["suspend"]
    assert offered("optimus get jobs --class int") == ["interactive"]
    assert offered("optimus up --policy least") == ["least-attained-service"]
    assert offered("optimus describe q") == ["queue"]
    assert "--checkpoint" in offered("optimus run --")


def test_where_nobody_answers_nothing_is_offered() -> None:
    assert offered("optimus logs tra") == []
    assert offered("optimus get jobs --queue v") == []


def test_a_broken_file_of_settings_is_no_hindrance(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("no settings")
    typed = {"_OPTIMUS_COMPLETE": "complete_bash", "COMP_WORDS": "optimus sus", "COMP_CWORD": "1"}
    ran = optimus(**typed, OPTIMUS_CONFIG=str(tmp_path / "config.toml"))  # type: ignore[arg-type]
    assert (ran.code, ran.out.split(), ran.err) == (0, ["suspend"], "")


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed (apt install fish)")
def test_fish(tmp_path: Path) -> None:
    command = tmp_path / "optimus"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m optimus "$@"\n')
    command.chmod(0o755)
    script = "source (optimus completion fish | psub); complete -C 'optimus get jobs --phase Pen'"
    kept = environment(HOME=str(tmp_path))
    kept["PATH"] = f"{tmp_path}:{kept['PATH']}"
    done = subprocess.run(["fish", "-c", script], env=kept, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["Pending"], done.stderr
