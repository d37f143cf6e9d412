"""A disk that is full or read-only: the start is refused with the reason, and the scheduler goes on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from optimus.drivers.local.keeping.events import Refused
from tests.local.keeping.keeping_house import house, played, request

FULL = """
mount -t tmpfs -o size=16k,nr_inodes=0 none {runs} || exit 77
head -c 100000 /dev/zero > {runs}/filling 2>/dev/null
exec {python} {scheduler} {runs} 2 'echo ran >&2; exit 0'
"""


def test_runs_that_cannot_be_written_to(tmp_path: Path) -> None:
    """A file where the folder should be: not even root can make a folder in it."""
    (tmp_path / "file").touch()

    async def story() -> None:
        async with house(tmp_path / "file") as here:
            for attempt in ("a", "b"):
                here.keeper.spawn(request(attempt, "true"))
                refused = await here.hears(Refused, attempt)
                assert refused == Refused(attempt, "its folder cannot be made: Not a directory")

    played(story)


def test_a_folder_of_runs_that_has_become_read_only_and_can_be_written_again(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    runs = tmp_path / "runs"

    async def story() -> None:
        async with house(runs) as here:
            runs.chmod(0o500)
            here.keeper.spawn(request("a", "true"))
            assert (await here.hears(Refused, "a")).why == "its folder cannot be made: Permission denied"
            runs.chmod(0o700)
            assert (await here.runs_to_its_end(request("b", "true"))).exit.code == 0

    played(story)


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="needs a small file system of its own")
def test_a_full_disk(tmp_path: Path) -> None:
    """The folder can be made, its start cannot be written down: user code is not run."""
    scheduler = Path(__file__).with_name("short_lived_scheduler.py")
    text = FULL.format(runs=tmp_path, python=sys.executable, scheduler=scheduler)
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(["unshare", "-m", "sh", "-c", text], stdout=subprocess.PIPE, text=True, env=env)
    assert process.stdout is not None
    told = sorted(process.stdout.readline() for _ in range(2))
    process.kill()
    process.wait()
    process.stdout.close()
    if process.returncode == 77:
        pytest.skip("no file system may be mounted here")
    assert told == ["Refused r0\n", "Refused r1\n"]
