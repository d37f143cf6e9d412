"""`optimus top` as people use it: in a real terminal (tmux), with keys, over the jobs of the demo."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.terminal import optimus
from tests.local.machines import Up, until

NEEDS_TMUX = pytest.mark.skipif(not shutil.which("tmux"), reason="needs tmux (a Debian package)")
WAITS_LONG = """
import optimus, time
for step in optimus.steps(2000, state={}):
    time.sleep(0.5)
"""


class Terminal:
    def __init__(self, folder: Path, width: int, height: int, **environment: str) -> None:
        self._tmux = ["tmux", "-f", os.devnull, "-S", str(folder / "tmux.socket")]
        words = ["env", *(f"{name}={value}" for name, value in environment.items())]
        words += [sys.executable, "-m", "optimus", "top"]
        self._call("new-session", "-d", "-x", str(width), "-y", str(height), f"{shlex.join(words)}; echo ended $?; cat")

    def press(self, *keys: str) -> None:
        for key in keys:
            self._call("send-keys", key)

    def resize(self, width: int, height: int) -> None:
        self._call("resize-window", "-x", str(width), "-y", str(height))

    def shown(self) -> str:
        return self._call("capture-pane", "-p")

    def shows(self, *words: str, gone: bool = False) -> str:
        try:
            until(lambda: all((word in self.shown()) != gone for word in words), f"the terminal shows {words}")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.shown()}") from None
        return self.shown()

    def close(self) -> None:
        self._call("kill-server")

    def _call(self, *words: str) -> str:
        return subprocess.run([*self._tmux, *words], check=True, capture_output=True, encoding="utf-8").stdout


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Up]:
    up = Up(tmp_path / "store", "--demo")
    try:
        yield up
    finally:
        up.end()


@NEEDS_TMUX
def test_a_visit(demo: Up, tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, 80, 24, OPTIMUS_STORE=str(demo.folder))
    try:
        terminal.shows("16 in use", "Queues 3", "S speech", "V vision", "too-large", "train", "Running", "live")
        terminal.press("/", *"too-large", "Enter")
        terminal.shows("› too-large", "Jobs 1 of 5")
        terminal.press("e")
        terminal.shows("explain default/too-large", "can hold 16", "What would start it now")
        terminal.press("Escape")
        terminal.shows("Jobs 1 of 5")
        terminal.press("Escape")
        terminal.shows("Jobs 5")
        terminal.press("/", *"shell", "Enter")
        terminal.shows("› shell")
        terminal.press("s")
        terminal.shows("Suspended")
        terminal.press("c")
        terminal.shows("Cancel default/shell", "y cancel it")
        terminal.press("n")
        terminal.shows("Cancel default/shell", gone=True)
        assert demo.phase("shell") == "Suspended"
        terminal.press("c")
        terminal.shows("y cancel it")
        terminal.press("y")
        terminal.shows("Cancelled")
        assert demo.phase("shell") == "Cancelled"
        terminal.press("Escape")
        terminal.resize(160, 45)
        wide = terminal.shows("unattended", "Jobs 5")
        assert any("GPUs" in line and "Queues" in line for line in wide.splitlines())
        terminal.resize(40, 10)
        terminal.resize(80, 24)
        demo.kill()
        terminal.shows("no answer since", "trying again", "too-large")
        demo.start(where_it_was=True)
        terminal.shows("live", "too-large")
        terminal.press("q")
        terminal.shows("ended 0")
    finally:
        terminal.close()


@NEEDS_TMUX
def test_a_job_says_when_it_ends(tmp_path: Path) -> None:
    up = Up(tmp_path / "store")
    script = tmp_path / "train.py"
    script.write_text(WAITS_LONG)
    assert up.cli("run", "-d", "--name", "train", "--", sys.executable, str(script)).returncode == 0
    terminal = Terminal(tmp_path, 80, 24, OPTIMUS_STORE=str(up.folder), NO_COLOR="1")
    try:
        terminal.shows("› train", "  in 1", "m")
        assert "in 1" in up.cli("get", "jobs", "-o", "wide").stdout
        assert "ends " in up.cli("describe", "train").stdout
    finally:
        terminal.close()
        up.end()


def test_without_a_terminal_it_says_what_to_use_instead() -> None:
    ran = optimus("top")
    assert ran.code == 1
    assert "needs a terminal" in ran.err and "optimus get jobs" in ran.err and "Traceback" not in ran.err


@NEEDS_TMUX
def test_an_address_that_is_none_is_refused(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, 80, 24, OPTIMUS_ADDRESS="ftp://x:y")
    try:
        terminal.shows("ftp://x:y is no address", "ended 2")
    finally:
        terminal.close()
