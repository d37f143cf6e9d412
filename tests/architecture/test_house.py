"""House rules that no linter knows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT, python_files, shown, tracked_files

DRAWERS = {"util", "utils", "manager", "managers", "helper", "helpers", "common", "base", "misc", "stuff"}
HOMES = re.compile(r"(?<![\w.$}])/(?:home|Users|root)/[\w.-]+")


def test_the_readme_names_the_first_two_commands() -> None:
    readme = ROOT / "README.md"
    if not readme.exists():
        pytest.skip("README.md is not written yet")
    text = readme.read_text(encoding="utf-8")
    assert [command for command in ("make run", "make test") if command not in text] == []


def test_modules_are_named_by_their_subject() -> None:
    paths = python_files("src", "benchmarks", "tests")
    drawers = {shown(path) for path in paths if DRAWERS & set(path.stem.split("_"))}
    drawers |= {shown(path.parent) for path in paths if path.parent.name in DRAWERS}
    assert not drawers, f"name these by what is inside: {drawers}"


def test_no_tracked_file_names_a_place_on_one_machine() -> None:
    found = [f"{shown(path)}: {place}" for path in tracked_files() for place in places_in(path)]
    assert not found, found


@pytest.mark.parametrize("text", ["see /home/ada/notes.txt", "PATH=/Users/ada/bin", f"cd {ROOT}/src"])
def test_places_on_one_machine_are_recognised(tmp_path: Path, text: str) -> None:
    (tmp_path / "file.md").write_text(text, encoding="utf-8")
    assert places_in(tmp_path / "file.md")


@pytest.mark.parametrize("text", ["cat /etc/hosts", "docs/home/index.md", "$HOME/root/x", "ls ./root/x"])
def test_ordinary_paths_are_not(tmp_path: Path, text: str) -> None:
    (tmp_path / "file.md").write_text(text, encoding="utf-8")
    assert not places_in(tmp_path / "file.md")


def places_in(path: Path) -> list[str]:
    """Home folders, and the folder this checkout is in (unless its name is too short to mean anything)."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:  # a picture or an archive
        return []
    if path == Path(__file__):
        return []
    found = HOMES.findall(text)
    if len(ROOT.parts) > 2 and f"{ROOT}/" in text:
        found.append(str(ROOT))
    return found
