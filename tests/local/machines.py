"""A real `optimus up` for stories: real processes in a folder of its own, ended with the story."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from optimus.client import ApiError, Connection, Unreachable
from tests.calling import called

PATIENCE_S = 60.0
"""Nothing here takes so long; a machine that is busy with other things may."""
SOON_S = 5.0
"""For what ends by itself at any moment."""


class Up:
    def __init__(self, folder: Path, *options: str, inside: Sequence[str] = ()) -> None:
        """`inside`: a command that starts another one, in surroundings of its own."""
        self.folder = folder
        self.inside = inside
        self.options = options or ("--nodes", "2", "--gpus", "4")
        self.environment = {**os.environ, "OPTIMUS_STORE": str(folder), "OPENBLAS_NUM_THREADS": "1"}
        self.environment.pop("OPTIMUS_ADDRESS", None)
        self.process: subprocess.Popen[str] | None = None
        self.api: Connection
        self.start()

    def start(self, *, where_it_was: bool = False) -> None:
        """Anew. `where_it_was`: at the same port, and what is written down is not touched before."""
        address, port = self.folder / "address", "0"
        if where_it_was:
            port = self.api.address.rpartition(":")[2]
        else:
            address.unlink(missing_ok=True)
        command = [*self.inside, sys.executable, "-m", "optimus", "up", "--port", port, *self.options]
        self.process = subprocess.Popen(
            command, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        try:
            until(lambda: address.exists() and address.read_text().strip(), "optimus up has an address")
            token = self.folder / "token"
            self.api = Connection(address.read_text().strip(), token.read_text() if token.exists() else "")
            until(self._is_there if where_it_was else self._answers, "optimus up answers")
        except AssertionError as error:
            raise AssertionError(f"{error}: {self._heard()}") from None

    def _heard(self) -> str:
        """Why it does not answer, as far as it can be told from outside: its end or where it stands, and its words."""
        assert self.process is not None
        ended = self.process.poll()
        if ended is None:
            with contextlib.suppress(ApiError, Unreachable, AttributeError):
                return f"it says {self.api.get('/healthz')}"
            with contextlib.suppress(OSError):
                stack = Path(f"/proc/{self.process.pid}/stack").read_text().split("\n")[0]
                return f"process {self.process.pid} is there and silent, in {stack or 'nothing of the kernel'}"
        _, told = self.process.communicate(timeout=SOON_S)
        return f"it has ended with {ended}: {told[-2000:]}"

    def _answers(self) -> bool:
        try:
            return bool(self.api.get("/healthz")["ok"])
        except (ApiError, Unreachable):
            return False

    def _is_there(self) -> bool:
        """Well or not."""
        try:
            return self.api.get("/v1/info")["turn"] is not None
        except (ApiError, Unreachable):
            return False

    def kill(self) -> None:
        """As nobody should be killed."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate(timeout=PATIENCE_S)

    def stop(self) -> str:
        """In order; what it says at last."""
        assert self.process is not None
        self.process.terminate()
        _, told = self.process.communicate(timeout=PATIENCE_S)
        return told

    def cli(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return called(words, env=self.environment, stdin=stdin, timeout_s=PATIENCE_S * 2)

    def job(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.api.get(f"/v1/jobs/default/{name}")
        return found

    def phase(self, name: str) -> str:
        return str(self.job(name)["phase"])

    def reaches(self, name: str, *phases: str) -> None:
        until(lambda: self.phase(name) in phases, f"{name} is {' or '.join(phases)}")

    def at_work(self) -> int:
        """Processes of replicas."""
        return len(_processes_with(f"OPTIMUS_ATTEMPT_FOLDER={self.folder}"))

    def left_behind(self) -> list[str]:
        """What is wrong if replicas still run although every job is over."""
        end = time.monotonic() + SOON_S
        while left := _processes_with(f"OPTIMUS_ATTEMPT_FOLDER={self.folder}"):
            if time.monotonic() > end:
                return [f"{len(left)} processes are left behind"]
            time.sleep(0.1)
        return []

    def end(self) -> None:
        """Whatever is left of it."""
        if self.process is not None and self.process.poll() is None:
            self.kill()
        for number in _processes_with(str(self.folder)):
            with contextlib.suppress(OSError):
                os.kill(number, signal.SIGKILL)
        remembered = self.folder / "cgroups"
        groups = [Path(line) for line in remembered.read_text().splitlines()] if remembered.exists() else []
        until(lambda: all(map(_removed, groups)), "its cgroups can be removed")


def _removed(group: Path) -> bool:
    """What a killed scheduler leaves for the next one, which never comes."""
    for left in (*group.glob("*/"), group):
        with contextlib.suppress(OSError):
            left.rmdir()
    return not group.exists()


def _processes_with(words: str) -> list[int]:
    """Others whose environment has them."""
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if words.encode() in environ.read_bytes() and int(environ.parent.name) != os.getpid():
                found.append(int(environ.parent.name))
    return found


def until(holds: Callable[[], Any], what: str) -> None:
    """Patiently: a slow machine is no failure, a thing that never comes is."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError(f"in vain: {what}")
