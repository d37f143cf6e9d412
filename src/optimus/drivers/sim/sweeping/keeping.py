"""Keeping: a run that is done is stored, and found again by everything that decides its outcome.

Why: a sweep of hours is stopped, continued and extended; only what is new should be computed.
Owns: the key of a run and the files in the folder, one for each run.
Must not: believe a file. One that cannot be read is as good as none.

The key is made of the jobs, the set-up, the contender with the text of its file, and the code of this project. What a
policy file imports is not looked at.
"""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache
from pathlib import Path

import msgspec

import optimus
from optimus.drivers.sim.sweeping.complaints import unusable
from optimus.drivers.sim.sweeping.running import Finished, Run
from optimus.drivers.sim.sweeping.scenes import Scene

SUFFIX = ".run"
_NOT_DECIDING = ("cli", "drivers/sim/report", "drivers/sim/measuring", "testing")
"""Parts of the project that cannot change how a run goes."""


class Shelf:
    def __init__(self, folder: Path) -> None:
        """SweepError if there can be no such folder."""
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unusable(f"{folder}: cannot be made: {error.strerror}") from None

    def find(self, scene: Scene, run: Run) -> Finished | None:
        try:
            return msgspec.msgpack.decode(self._path(scene, run).read_bytes(), type=Finished)
        except (OSError, msgspec.MsgspecError):
            return None

    def put(self, scene: Scene, run: Run, finished: Finished) -> None:
        """SweepError if it cannot be written."""
        path = self._path(scene, run)
        part = path.with_suffix(f".{os.getpid()}.part")
        try:
            part.write_bytes(msgspec.msgpack.encode(finished))
            part.replace(path)  # whole or not at all, whenever somebody presses Ctrl-C
        except OSError as error:
            raise unusable(
                f"{path}: cannot be written: {error.strerror}; what was kept before is still there"
            ) from None

    def _path(self, scene: Scene, run: Run) -> Path:
        return self.folder / f"{key(scene, run)}{SUFFIX}"


def key(scene: Scene, run: Run) -> str:
    one = run.contender
    whole = [
        code_of_the_project(),
        scene.digest,
        scene.own_rhythm,
        one.reference,
        one.peer,
        one.label,
        one.code,
        run.timed,
    ]
    return hashlib.sha256(msgspec.json.encode(whole)).hexdigest()[:32]


@lru_cache(maxsize=1)
def code_of_the_project() -> str:
    """Version and text: while somebody works on the scheduler the version stays and results do not."""
    root = Path(optimus.__file__).parent
    digest = hashlib.sha256(optimus.__version__.encode())
    for path in sorted(root.rglob("*.py")):
        if not path.relative_to(root).as_posix().startswith(_NOT_DECIDING):
            digest.update(path.read_bytes())
    return digest.hexdigest()
