"""It runs in the interpreter of the job, whatever that is: Python 3.9, nothing installed, two things copied."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import optimus
from optimus import inside
from tests.inside.jobs import SOURCES, Job

INSIDE = sorted((SOURCES / "optimus" / "inside").glob("*.py"))
SCRIPT = """
    import sys, optimus

    state = {"sum": 0}
    for step in optimus.steps(10, state=state, every=4):
        state["sum"] += step
    print(state["sum"], sorted(name for name in sys.modules if name.split(".")[0] in ("numpy", "msgspec", "pydantic")))
"""


@pytest.mark.parametrize("path", [SOURCES / "optimus" / "__init__.py", *INSIDE], ids=lambda path: path.name)
def test_the_syntax_is_that_of_python_3_9_and_imports_are_of_the_standard_library(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 9))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    foreign = {
        name
        for name in names
        if name.split(".")[0] not in sys.stdlib_module_names
        and name != "optimus"
        and not name.startswith(("optimus.inside", "optimus.client"))  # of the client, only its types are named
    }
    assert not foreign


def old_python() -> str | None:
    found = shutil.which("python3.9")
    works = found and subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode == 0
    return found if works else None


@pytest.mark.parametrize("python", [sys.executable, old_python()], ids=["this one", "3.9"])
def test_a_copy_of_the_folder_is_enough(tmp_path: Path, python: str | None) -> None:
    if python is None:
        pytest.skip("there is no Python 3.9 here")
    alone = tmp_path / "alone"
    shutil.copytree(SOURCES / "optimus" / "inside", alone / "optimus" / "inside")
    shutil.copy(SOURCES / "optimus" / "__init__.py", alone / "optimus")
    ended = Job(tmp_path, SCRIPT, python=python, sources=alone).run()
    assert (ended.code, ended.out) == (0, "45 []\n"), ended.err


def test_the_top_level_has_the_names_and_no_others() -> None:
    assert set(inside.__all__) == optimus.INSIDE_A_JOB <= set(dir(optimus))
    with pytest.raises(AttributeError, match="no attribute 'step'"):
        _ = optimus.step
