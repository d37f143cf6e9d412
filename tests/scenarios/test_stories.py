"""Every scenario file below this folder is a test: it is played, and what it expects must be true.

A new story needs no Python: put a YAML file into the folder of the behaviour it shows.
"""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from optimus.cli.scenario_report import tell
from optimus.cli.showing import Printer
from optimus.drivers.sim.outcome import Outcome
from optimus.drivers.sim.playing import play_files

HERE = Path(__file__).parent
STORIES = sorted(HERE.rglob("*.yaml"))


def told(outcome: Outcome) -> str:
    """The story in words, for whoever has to find out what went wrong."""
    text = StringIO()
    tell(Printer(Console(file=text, width=120)), outcome, wide=False)
    return text.getvalue()


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.relative_to(HERE).as_posix())
def test_story(path: Path) -> None:
    outcome = play_files(path)
    if not outcome.ok:
        pytest.fail(f"\n{told(outcome)}", pytrace=False)


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.relative_to(HERE).as_posix())
def test_a_story_says_what_it_is_about_and_expects_something(path: Path) -> None:
    outcome = play_files(path)
    assert outcome.name and outcome.description, "give it a name and a description"
    assert outcome.checked or outcome.errors, "a story without expectations cannot fail"


def test_there_are_stories() -> None:
    assert len(STORIES) >= 5
