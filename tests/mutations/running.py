"""Makes copies of the source with one fault each, and finds out who notices.

A catch counts only if the same look at the source without the fault finds nothing to complain about.
"""

from __future__ import annotations

import compileall
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock

from tests.mutations.fault import Fault

ROOT = Path(__file__).resolve().parents[2]
LIVES = 160
WORLDS = range(1000, 1060)
PATIENCE = 25
"""How many looks more for the complaint that is expected, once something else has complained."""
TIME_LIMIT_S = 400
NOT_FOR_FAULTS = {"architecture", "cli", "input", "invariants", "mutations", "replay", "scenarios"}
"""Folders of tests about other things, and those that are looked at in their own way."""


@dataclass(frozen=True, slots=True)
class Catch:
    by: str
    """`invariant 3`, `story`, `test`, `crash` or `time limit`."""
    look: str
    what: str


@dataclass(frozen=True, slots=True)
class Verdict:
    name: str
    file: str
    breaks: str
    expected: str
    caught: bool
    by: str = ""
    look: str = ""
    what: str = ""
    seconds: float = 0.0

    @property
    def as_expected(self) -> bool:
        return self.by == kind(self.expected)


def kind(caught_by: str) -> str:
    """What kind of complaint an expectation is about."""
    if caught_by.startswith("invariant "):
        return caught_by
    return "story" if caught_by.endswith(".yaml") else "test"


class Workshop:
    """One copy of the source as it was at the beginning, so that nobody's edits get between two faults."""

    def __init__(self, folder: Path, src: Path) -> None:
        self._folder = folder
        self.clean = folder / "clean"
        shutil.copytree(src, self.clean, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        compileall.compile_dir(self.clean, quiet=2)
        self._sound: dict[tuple[str, str], bool] = {}
        self._lock = Lock()

    @contextmanager
    def with_fault(self, fault: Fault) -> Iterator[Path]:
        copy = Path(tempfile.mkdtemp(dir=self._folder))
        try:
            shutil.copytree(self.clean, copy, dirs_exist_ok=True)
            path = copy / "optimus" / fault.file
            path.write_text(fault.applied(path.read_text(encoding="utf-8")), encoding="utf-8")
            for stale in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
                stale.unlink()
            yield copy
        finally:
            shutil.rmtree(copy, ignore_errors=True)

    def is_sound(self, catch: Catch) -> bool:
        """Whether the source without a fault passes where the one with it was caught."""
        key = (catch.look, catch.by)
        with self._lock:
            known = self._sound.get(key)
        if known is None:
            known = ask(self.clean, [catch.look], catch.by, others=False) is None
            with self._lock:
                self._sound[key] = known
        return known


@contextmanager
def workshop(src: Path | None = None) -> Iterator[Workshop]:
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        yield Workshop(Path(folder), src or ROOT / "src")


def try_fault(shop: Workshop, fault: Fault, hint: str = "") -> Verdict:
    """Look where it was caught the last time, then where it is expected, then everywhere."""
    began = time.monotonic()
    with shop.with_fault(fault) as copy:
        catch = _caught(shop, copy, fault, hint)
        found = asdict(catch) if catch is not None else {}
        for folder in (copy, ROOT) if found else ():  # the result file is for every machine
            found["what"] = found["what"].replace(f"{folder}{os.sep}", "")
    seconds = round(time.monotonic() - began, 1)
    return Verdict(
        fault.name, fault.file, fault.breaks, fault.caught_by, caught=catch is not None, seconds=seconds, **found
    )


def _caught(shop: Workshop, copy: Path, fault: Fault, hint: str) -> Catch | None:
    best: Catch | None = None
    expected = kind(fault.caught_by)
    for looks in _rounds(fault, hint):
        left = list(looks) if best is None or _can_complain(looks[0], expected) else []
        while left:
            catch = ask(copy, left, expected, others=best is None)
            if catch is None:
                break
            if shop.is_sound(catch):
                if catch.by == expected:
                    return catch
                best = best or catch
                break
            left = left[left.index(catch.look) + 1 :] if catch.look in left else []
    return best


def _can_complain(look: str, expected: str) -> bool:
    """Whether a look of this kind can lead to a complaint of that kind."""
    match look.split(maxsplit=1)[0]:
        case "life":
            return expected.startswith("invariant ") and expected not in ("invariant 7", "invariant 8")
        case "world":
            return expected in ("invariant 4", "invariant 7", "invariant 8", "invariant 9")
        case other:
            return other == expected


def _rounds(fault: Fault, hint: str) -> Iterator[list[str]]:
    """What to look at, likeliest first."""
    lives = [f"life {seed}" for seed in range(LIVES)]
    lives += [f"life {seed} medium" for seed in range(0, 100, 10)]
    worlds = [f"world {seed}" for seed in WORLDS]
    stories = [f"story {path}" for path in all_stories()]
    expected = fault.caught_by
    if hint:
        yield [hint]
    match kind(expected):
        case "invariant 7" | "invariant 8":
            yield worlds
            yield lives
        case "invariant 9":
            yield lives[:30]
            yield worlds
            yield lives[30:]
        case "story":
            yield [f"story {expected}"]
            yield stories
            yield lives
            yield worlds
        case "test":
            yield [f"test {expected}"]
            yield lives
            yield worlds
        case _:
            yield lives
            yield worlds
    if kind(expected) != "story":
        yield stories
    yield [f"test {folder}" for folder in unit_test_folders()]


def all_stories() -> list[str]:
    here = ROOT / "tests" / "scenarios"
    return sorted(path.relative_to(here).as_posix() for path in here.rglob("*.yaml"))


def unit_test_folders() -> list[str]:
    folders = {path.parent for path in (ROOT / "tests").rglob("test_*.py")}
    named = (path.relative_to(ROOT) for path in folders)
    return sorted(path.as_posix() for path in named if len(path.parts) > 1 and path.parts[1] not in NOT_FOR_FAULTS)


def ask(src: Path, looks: list[str], expected: str, *, others: bool) -> Catch | None:
    """The first complaint about a copy of the source; None if there is none. `others`: not only the expected kind."""
    environment = {**os.environ, "PYTHONPATH": str(src), "PYTHONDONTWRITEBYTECODE": "1"}
    tests = [look.removeprefix("test ") for look in looks if look.startswith("test ")]
    if tests:
        return _ask_pytest(tests, environment)
    question = json.dumps(
        {"src": str(src), "looks": looks, "expected": expected, "others": others, "patience": PATIENCE}
    )
    command = [sys.executable, "-m", "tests.mutations.looking"]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, input=question, capture_output=True, text=True, timeout=TIME_LIMIT_S,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Catch("time limit", looks[0], f"no end after {TIME_LIMIT_S} s")
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no word"])[-1]
        return Catch("crash", looks[0], last)
    found = json.loads(done.stdout.strip().splitlines()[-1])
    return Catch(**found) if found is not None else None


def _ask_pytest(paths: list[str], environment: dict[str, str]) -> Catch | None:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=line", "-p", "no:cacheprovider", *paths]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return Catch("time limit", f"test {paths[0]}", f"no end after {TIME_LIMIT_S} s")
    if done.returncode in (0, 5):  # 5: nothing to run
        return None
    lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    what = lines[0] if lines else done.stdout.strip()[-200:]
    name = what.split()[1] if lines else paths[0]
    return Catch("test", f"test {name}", what)
