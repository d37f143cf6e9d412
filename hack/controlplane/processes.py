"""Programs of the plane as processes: started with a log of their own, paused, killed, stopped, and never left behind.

A process dies with whoever started it (`prctl`), so that a test that is killed leaves no server; `detached` ones stay
and are found again: each writes down its id and start time (`NAME.pid`) before it becomes the program, so that none is
lost when its starter is killed.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

STOP_S = 20.0
READY_S = 90.0
LOOK_S = 0.05
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)


class ProcessError(Exception):
    """A program did not come up, or ended; the text has the end of its log."""


class Process:
    def __init__(
        self,
        name: str,
        words: Sequence[str],
        folder: Path,
        *,
        environment: Mapping[str, str] | None = None,
        detached: bool = False,
        inherits: Sequence[int] = (),
    ) -> None:
        """`inherits`: open files that it gets too."""
        self.name = name
        self.words = list(words)
        self.log = folder / f"{name}.log"
        self._inherits = tuple(inherits)
        self._environment = {**os.environ, **(environment or {})}
        self._detached = detached
        self.child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self.child is not None
        return self.child.pid

    @property
    def alive(self) -> bool:
        return self.child is not None and self.child.poll() is None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.child = subprocess.Popen(
                self.words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment,
                start_new_session=True,
                pass_fds=self._inherits,
                preexec_fn=self.before,  # noqa: PLW1509 - sets one flag, or writes one line
            )

    def before(self) -> None:
        """In the new process, before it becomes the program."""
        if self._detached:
            self.log.with_suffix(".pid").write_text(json.dumps([os.getpid(), started_at(os.getpid())]))
        else:
            die_with_parent()

    def wait_until(self, ready: Callable[[], bool], seconds: float = READY_S) -> None:
        until = time.monotonic() + seconds
        while not ready():
            if not self.alive:
                raise ProcessError(f"{self.name} ended before it was ready:\n{self.tail()}")
            if time.monotonic() > until:
                raise ProcessError(f"{self.name} is not ready after {seconds:.0f} s:\n{self.tail()}")
            time.sleep(LOOK_S)

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """As nobody should be killed."""
        if self.alive:
            assert self.child is not None
            self.child.kill()
            self.child.wait()

    def stop(self) -> None:
        """In order; by force if that takes too long. Returns once it has ended, so that its port is free again."""
        if not self.alive:
            return
        assert self.child is not None
        self.go_on()
        self.child.terminate()
        try:
            self.child.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def tail(self, lines: int = 20) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:]) if self.log.exists() else ""


def free_ports(count: int) -> list[int]:
    """Of the loopback address; all different."""
    taken = [socket.socket() for _ in range(count)]
    try:
        for one in taken:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in taken]
    finally:
        for one in taken:
            one.close()


def started_at(pid: int) -> int:
    """Start time in ticks since boot, by which a process is told from a later one with the same id; 0 if it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] in "ZX" else int(fields[19])


def noted(folder: Path) -> dict[str, int]:
    """Detached processes of a folder that are alive, and really those that were started there: name -> id."""
    alive = {}
    for path in sorted(folder.glob("*.pid")):
        try:
            pid, since = json.loads(path.read_text())
        except ValueError:  # killed while it was written, and the process with it
            continue
        if since and started_at(pid) == since:
            alive[path.stem] = pid
    return alive


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mib(pid: int) -> int:
    return int(Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1].split()[0]) // 1024


def die_with_parent() -> None:
    """For `preexec_fn`. The parent is the thread that starts it."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
