"""The import rule holds, and the contract that proves it can fail.

The second half plants one forbidden import into a copy of the package and expects the linter to name it:
a contract that never breaks would protect nothing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.architecture.sources import PACKAGE, ROOT

LINTER = Path(sys.executable).parent / "lint-imports"
CONFIG = ROOT / "pyproject.toml"


def lint(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Check the `optimus` package found in `folder`; the linter puts its working folder first on the path."""
    return subprocess.run(
        [str(LINTER), "--config", str(CONFIG), "--no-cache", "--no-logo", *options],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_contracts_are_there() -> None:
    contracts = tomllib.loads(CONFIG.read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    assert {contract["id"] for contract in contracts} >= {"layers", "leaves", "inside", "pure"}


def test_the_contracts_are_kept() -> None:
    result = lint(ROOT / "src")
    assert result.returncode == 0, result.stdout + result.stderr


PLANTED = [
    ("layers", "model/planted.py", "import optimus.state"),
    ("layers", "state/planted.py", "import optimus.decide"),
    ("layers", "decide/planted.py", "import optimus.engine.planted"),
    ("layers", "api/planted.py", "import optimus.engine.planted"),
    ("layers", "engine/planted.py", "import optimus.api.planted"),
    ("layers", "engine/planted.py", "import optimus.drivers.sim.planted"),
    ("layers", "drivers/sim/planted.py", "import optimus.drivers.local.planted"),
    ("layers", "kube/planted.py", "import optimus.model"),
    ("layers", "inside/planted.py", "import optimus.model"),
    ("layers", "planted.py", ""),
    ("inside", "inside/planted.py", "import numpy"),
    ("leaves", "decide/planted.py", "import optimus.telemetry.planted"),
    ("pure", "model/planted.py", "import pydantic"),
    ("pure", "state/planted.py", "import asyncio"),
    ("pure", "decide/planted.py", "from time import monotonic"),
    ("pure", "decide/planted.py", "def draw():\n    import random\n    return random.random()"),
]


@pytest.mark.parametrize(
    ("contract", "where", "code"), PLANTED, ids=[f"{p[1]}: {p[2]}".splitlines()[0] for p in PLANTED]
)
def test_a_planted_import_breaks_its_contract(tmp_path: Path, contract: str, where: str, code: str) -> None:
    copy = tmp_path / "optimus"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for target in ("decide", "engine", "api", "kube", "telemetry", "drivers", "drivers/sim", "drivers/local"):
        (copy / target).mkdir(exist_ok=True)
        (copy / target / "__init__.py").touch()
        (copy / target / "planted.py").touch()
    (copy / where).write_text(code + "\n", encoding="utf-8")

    result = lint(tmp_path, "--contract", contract)

    assert result.returncode == 1, result.stdout + result.stderr
    assert "optimus." + where.removesuffix(".py").replace("/", ".") in result.stdout
