"""Every module says why it exists; every package also says what it owns and what it must not do."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.architecture.sources import PACKAGE, python_files, shown

PACKAGES = [path for path in python_files("src") if path.name == "__init__.py" and path.parent != PACKAGE]
PROMISES = ("Why:", "Owns:", "Must not:")


def docstring(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


@pytest.mark.parametrize("path", PACKAGES, ids=shown)
def test_a_package_says_why_what_it_owns_and_what_it_must_not_do(path: Path) -> None:
    text = docstring(path)
    missing = [promise for promise in PROMISES if promise not in text]
    assert not missing, f"the docstring of {shown(path)} has no line beginning with {missing}"


def test_every_module_has_a_docstring() -> None:
    silent = [shown(path) for path in python_files("src", "benchmarks") if not docstring(path)]
    assert not silent, f"say in a docstring why these exist: {silent}"


def test_every_folder_of_src_is_a_package() -> None:
    homes = {path.parent for path in python_files("src")}
    bare = [shown(home) for home in homes if home.is_relative_to(PACKAGE) and not (home / "__init__.py").exists()]
    assert not bare, f"no __init__.py, so nobody learns why these exist: {bare}"
