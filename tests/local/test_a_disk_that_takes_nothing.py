"""A disk that is full, or can suddenly only be read: what runs goes on, nothing is lost, and it is said.

On real file systems that are small: one in memory that fills up, and one that the kernel makes read-only by itself, as
it does after an error of the disk.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.local.machines import Up, until

BEATS = "while sleep 0.1; do date +%s%N > {}; done"


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A disk of 24 MiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    if (
        os.geteuid()
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "none", folder], check=False).returncode
    ):
        pytest.skip("no file system may be mounted here")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.fixture
def breakable(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """A disk of 24 MiB, and where to write so that the kernel stops writing to it."""
    folder, image = tmp_path / "breakable", tmp_path / "image"
    folder.mkdir()
    with image.open("wb") as file:
        file.truncate(24 << 20)
    make = ["mkfs.ext4", "-q", "-O", "^has_journal", str(image)]
    mount = ["mount", "-o", "loop,errors=remount-ro", str(image), str(folder)]
    able = not os.geteuid() and shutil.which("mkfs.ext4") and shutil.which("findmnt")
    if not able or any(subprocess.run(step, check=False).returncode for step in (make, mount)):
        pytest.skip("no image of a disk may be mounted here")
    try:
        device = subprocess.check_output(["findmnt", "-no", "SOURCE", folder], text=True).strip()
        trigger = Path("/sys/fs/ext4", Path(device).name, "trigger_fs_error")
        if not os.access(trigger, os.W_OK):
            pytest.skip("this kernel does not let a disk fail on request")
        yield folder, trigger
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


class Terminal:
    """What `optimus up` says, line by line, while it runs."""

    def __init__(self, up: Up) -> None:
        self.text = ""
        assert up.process is not None
        self._from = up.process.stderr
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._from is not None
        with contextlib.suppress(ValueError):
            for line in self._from:
                self.text += line

    def says(self, words: str, times: int = 1) -> None:
        until(lambda: self.text.count(words) == times, f"it says {words!r} {times} times: {self.text}")


def fill(folder: Path) -> Path:
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    return ballast


def beats(file: Path) -> None:
    """The work that writes it goes on."""
    before = file.read_text()
    until(lambda: file.read_text() not in ("", before), f"{file.name} still beats")


def test_a_disk_that_is_full_before_the_start(small: Path, tmp_path: Path) -> None:
    up = Up(small / "store")
    try:
        up.cli("run", "-d", "--name", "long", "--", "bash", "-c", BEATS.format(tmp_path / "beat"))
        up.reaches("long", "Running")
        up.stop()
        ballast = fill(small)
        up.start(where_it_was=True)
        said = Terminal(up)
        said.says("is full")
        shown = up.cli("get", "jobs")
        assert shown.returncode == 0 and "Running" in shown.stdout, "clients find it by its file"
        refused = up.cli("run", "-d", "--", "true")
        assert refused.returncode == 1 and "is full" in refused.stderr and "make room" in refused.stderr
        beats(tmp_path / "beat")
        ballast.unlink()
        said.says("can be written again")
        assert up.cli("run", "--", "true").returncode == 0
        assert said.text.count("is full") == 1
        assert up.phase("long") == "Running"
    finally:
        up.end()


def test_a_disk_that_fills_up_while_work_runs(small: Path, tmp_path: Path) -> None:
    up = Up(small / "store")
    try:
        said, go = Terminal(up), tmp_path / "go"
        up.cli("run", "-d", "--name", "long", "--", "bash", "-c", BEATS.format(tmp_path / "beat"))
        up.cli("run", "-d", "--name", "ends", "--", "bash", "-c", f"until [ -e {go} ]; do sleep 0.1; done")
        up.cli("run", "-d", "--name", "waits", "--gpus", "4", "--replicas", "2", "--", "true")
        up.reaches("long", "Running")
        up.reaches("ends", "Running")
        ballast = fill(small)
        said.says("is full")
        go.touch()
        up.reaches("ends", "Succeeded")
        up.kill()
        beats(tmp_path / "beat")
        up.start(where_it_was=True)
        said = Terminal(up)
        assert (up.phase("ends"), up.phase("long"), up.phase("waits")) == ("Succeeded", "Running", "Pending")
        ballast.unlink()
        said.says("can be written again")
        up.cli("cancel", "long")
        up.reaches("waits", "Succeeded")
        up.kill()
        up.start()
        assert (up.phase("ends"), up.phase("long"), up.phase("waits")) == ("Succeeded", "Cancelled", "Succeeded")
    finally:
        up.end()


def test_a_disk_that_can_suddenly_only_be_read(breakable: tuple[Path, Path], tmp_path: Path) -> None:
    folder, trigger = breakable
    up = Up(folder / "store")
    try:
        said = Terminal(up)
        up.cli("run", "-d", "--name", "long", "--", "bash", "-c", BEATS.format(tmp_path / "beat"))
        up.cli("run", "-d", "--name", "ends", "--", "sleep", "4")
        up.reaches("long", "Running")
        trigger.write_text("1")
        refused = up.cli("run", "-d", "--name", "new", "--", "true")
        assert refused.returncode == 1 and "can only be read" in refused.stderr, refused.stderr
        said.says("can only be read")
        beats(tmp_path / "beat")
        time.sleep(3)
        assert up.phase("long") == "Running" and said.text.count("can only be read") == 1, said.text
        assert "can be written again" not in said.text
        assert "new" not in [job["name"] for job in up.api.get("/v1/jobs")], "who was refused is not there"
    finally:
        up.end()
