"""Calling `optimus` as a process of its own, that need not read its modules first.

    story ── words, environment, folder, open files ──► a process that has read everything ── fork ──► the command
      ◄───────────────────────────── its pid, its exit code ────────────────────────────────────────────┘

Why: stories call the command a thousand times, and reading modules takes ten times as long as most of the calls.
Owns: one such process for each process of tests; it ends with it.
Must not: stand for what happens before the first line of a command; `tests.cli.terminal.COMMAND` starts a true one.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import json
import os
import pkgutil
import random
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

import optimus

ROOT = Path(__file__).resolve().parents[1]
SOURCES = str(ROOT / "src")
AT_THE_START = ("PYTHON", "LC_", "LANG", "TZ")
"""Variables of which an interpreter takes notice only when it starts."""
MOST = 1 << 20
"""Bytes of one call."""


def called(
    words: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str = "",
    timeout_s: float = 120.0,
) -> subprocess.CompletedProcess[str]:
    """What `subprocess.run` says of `optimus WORDS`. Nothing is a terminal."""
    given = dict(os.environ if env is None else env)
    said = [str(word) for word in words]
    if _of_the_start(given) != _of_the_start(os.environ):
        true = [sys.executable, "-m", "optimus", *said]
        return subprocess.run(
            true, cwd=cwd, env=given, input=stdin, capture_output=True, encoding="utf-8", timeout=timeout_s, check=False
        )
    with tempfile.TemporaryFile() as into, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        into.write(stdin.encode())
        into.seek(0)
        end, far_end = os.pipe()
        call = {"words": said, "cwd": str(cwd or Path.cwd()), "env": given}
        try:
            files = [into.fileno(), out.fileno(), err.fileno(), far_end]
            socket.send_fds(_forking(os.getpid()).line, [json.dumps(call).encode()], files)
        finally:
            os.close(far_end)
        code = _end_of(end, said, timeout_s)
        return subprocess.CompletedProcess(said, code, *(_read(file) for file in (out, err)))


def _of_the_start(env: Mapping[str, str]) -> dict[str, str]:
    told = {name: value for name, value in env.items() if name.startswith(AT_THE_START)}
    if told.get("PYTHONPATH", SOURCES) == SOURCES:
        told.pop("PYTHONPATH", None)
    return told


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


def _end_of(end: int, words: list[str], timeout_s: float) -> int:
    with os.fdopen(end, "r") as told:
        pid = int(told.readline())
        if not select.select([told], [], [], timeout_s)[0]:
            os.kill(pid, signal.SIGKILL)
            raise subprocess.TimeoutExpired(words, timeout_s)
        return int(told.readline())


# -- the process that forks -------------------------------------------------------------------------------------------


class Forking:
    """For as long as the process of tests lives."""

    def __init__(self) -> None:
        self.line, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        mine = {name: value for name, value in os.environ.items() if not name.startswith("OPTIMUS_")}
        """Without a store: at its end a story kills whoever was started with its own."""
        with far:
            self.line.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MOST)
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.calling", str(far.fileno())],
                cwd=ROOT,
                env={**mine, "PYTHONPATH": SOURCES, "OPENBLAS_NUM_THREADS": "1"},
                pass_fds=[far.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        atexit.register(self.end)

    def end(self) -> None:
        self.line.close()
        self._process.wait()


@functools.cache
def _forking(_pid: int) -> Forking:
    """One for each process of tests: what was forked with it does not share it."""
    return Forking()


def _serve(line: socket.socket) -> None:
    """Until whoever asks is gone. Comes back in a process that is the command; the caller runs it."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that wait
    while True:
        asked, files, _, _ = socket.recv_fds(line, MOST, 4)
        if not asked:
            sys.exit()
        if os.fork() == 0:
            line.close()
            _become(json.loads(asked), files)
            return
        for file in files:
            os.close(file)


def _become(call: dict[str, object], files: list[int]) -> None:
    """The child of a process that waits for its end, and tells it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    *streams, told = files
    if pid := os.fork():
        for file in streams:
            os.close(file)
        os.write(told, f"{pid}\n".encode())
        _, status = os.waitpid(pid, 0)
        os.write(told, f"{os.waitstatus_to_exitcode(status)}\n".encode())
        os._exit(0)
    for number, file in enumerate(streams):
        os.dup2(file, number)
    for file in files:
        os.close(file)
    os.chdir(str(call["cwd"]))
    os.environ.clear()
    os.environ.update(dict(call["env"]))  # type: ignore[call-overload]
    words = call["words"]
    assert isinstance(words, list)
    sys.argv = ["optimus", *words]
    random.seed()


def _read_everything() -> None:
    for module in pkgutil.walk_packages(optimus.__path__, "optimus."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    from optimus.__main__ import main

    _read_everything()
    with socket.socket(fileno=int(sys.argv[1])) as line:
        _serve(line)
    main()
