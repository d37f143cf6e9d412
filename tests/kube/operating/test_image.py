"""The image: there is no engine here that could build it, so what is in the Dockerfile is looked at piece by piece."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from hack.image_packages import name_of, needed
from optimus.drivers.kube.installing import USER

ROOT = Path(__file__).parents[3]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
PROJECT = (ROOT / "pyproject.toml").read_text()
LOCK = (ROOT / "requirements.lock").read_text()


def packages(lock: str = LOCK) -> set[str]:
    return {name_of(entry) for entry in needed(PROJECT, lock)}


def test_it_has_all_that_the_package_needs_and_nothing_else() -> None:
    """What the installed packages say of themselves agrees with what the lock says of them."""
    project = tomllib.loads(PROJECT)
    waiting = [name_of(line) for line in (*project["project"]["dependencies"], *project["build-system"]["requires"])]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [name_of(line) for line in importlib.metadata.requires(name) or () if _here(line)]
    assert packages() == found
    assert not packages() & {"pytest", "mypy", "scipy", "hypothesis", "ruff"}


def _here(line: str) -> bool:
    """Whether a requirement is one of this platform, without extras."""
    condition = line.partition(";")[2]
    if "extra" in condition or re.search(r"(platform_system|sys_platform) *== *.(Windows|win32|darwin)", condition):
        return name_of(line) in {"linkify-it-py", "mdit-py-plugins"}  # extras that textual asks its own packages for
    version = re.search(r"python_version *< *.3\.(\d+)", condition) or re.search(
        r"python_full_version *< *.3\.(\d+)", condition
    )
    return version is None or int(version[1]) > 11


def test_every_package_comes_with_its_hashes() -> None:
    assert all("--hash=sha256:" in entry for entry in needed(PROJECT, LOCK))
    assert "--require-hashes" in DOCKERFILE


def test_a_package_that_is_not_in_the_lock_is_told() -> None:
    without = re.sub(r"(?ms)^msgspec==.*?(?=^[a-z])", "", LOCK)
    with pytest.raises(SystemExit, match="not in the lock: msgspec; run `make lock`"):
        needed(PROJECT, without)


def test_what_it_copies_is_there_and_not_ignored() -> None:
    copied = [path for line in re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.M) for path in line.split()]
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert set(copied) == let_in
    assert all((ROOT / path).exists() for path in copied)


def test_it_runs_as_nobody_in_particular_and_starts_the_controller() -> None:
    last = DOCKERFILE.rpartition("FROM ")[2]
    assert f"USER {USER}:{USER}" in last and 'ENTRYPOINT ["optimus"]' in last
    assert "PYTHONDONTWRITEBYTECODE=1" in last, "the root file system is read-only"


def test_it_is_compiled_once_and_not_at_every_start(tmp_path: Path) -> None:
    """The command of the Dockerfile, on a module whose source changes behind its back: what was compiled is what runs,
    and nothing is written."""
    after_installing = DOCKERFILE.partition("pip uninstall")[2].partition("FROM ")[0]
    [command] = re.findall(r"^RUN python (-m compileall .*) /optimus/lib$", after_installing, re.M)
    (tmp_path / "it.py").write_text("SAYS = 'compiled'\n")
    subprocess.run([sys.executable, *command.split(), str(tmp_path)], check=True)
    (tmp_path / "it.py").write_text("SAYS = 'read again'\n")
    before = sorted(tmp_path.rglob("*"))
    said = subprocess.run(
        [sys.executable, "-c", "import it; print(it.SAYS)"],
        env={**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == "compiled\n" and sorted(tmp_path.rglob("*")) == before
    last = DOCKERFILE.rpartition("FROM ")[2]
    assert "compileall" in last.partition("USER")[0], "the standard library, which the base image has not compiled"
