"""Results on Kubernetes say of which code they are, and it is noticed when the code has changed since."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchmarks.sources import FILES, ROOT, judged, source_of, told


def git(root: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run(["git", *who, *words], cwd=root, check=True, capture_output=True)


def test_other_code_is_another_source(tmp_path: Path) -> None:
    paths = ("code",)
    assert source_of(paths, tmp_path) == "unknown"
    git(tmp_path, "init", "--quiet")
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "a.py").write_text("one = 1\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "first")
    first = source_of(paths, tmp_path)
    (tmp_path / "words.md").write_text("more words\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "words")
    assert source_of(paths, tmp_path) == first, "words make no result old"
    (tmp_path / "code" / "a.py").write_text("one = 2\n")
    assert source_of(paths, tmp_path) == f"{first}-dirty"
    git(tmp_path, "commit", "--quiet", "-am", "code")
    assert source_of(paths, tmp_path) not in (first, "unknown")


def test_a_result_of_other_code_is_named() -> None:
    assert judged("kube_faults", "a", "a") == ""
    assert judged("kube_faults", "a", "b") == "kube_faults.json is of source a, and the code is b: run it again"


@pytest.mark.parametrize("name", FILES)
def test_the_page_says_of_which_source_a_result_is(name: str) -> None:
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert f"{name}.json, source {told(name)}" in page
