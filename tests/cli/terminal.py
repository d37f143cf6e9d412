"""Running `optimus` as people do: as a process, with pipes or on a terminal."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from tests.calling import called

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "optimus"]


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


def environment(**extra: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    return {**kept, "PYTHONPATH": str(ROOT / "src"), **extra}


def optimus(*arguments: str | Path, cwd: Path = ROOT, **extra: str) -> Ran:
    """With pipes, so nothing is a terminal."""
    done = called(arguments, cwd=cwd, env=environment(**extra), timeout_s=300)
    return Ran(done.returncode, done.stdout, done.stderr)


def on_terminal(*arguments: str | Path, interrupt_at: str = "", **extra: str) -> Ran:
    """On a pseudo terminal; `interrupt_at` is the text at which somebody presses Ctrl-C."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a shell; children would inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        cwd=ROOT,
        env=environment(TERM="xterm-256color", COLUMNS="100", LINES="40", **extra),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    text = b""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        ready, _, _ = select.select([ours], [], [], 0.2)
        if ready:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            text += piece
            if interrupt_at and interrupt_at.encode() in text:
                process.send_signal(signal.SIGINT)
                interrupt_at = ""
        elif process.poll() is not None:
            break
    os.close(ours)
    return Ran(process.wait(timeout=10), text.decode("utf-8", errors="replace"), "")


def assert_refused(ran: Ran, code: int, *words: str) -> None:
    """In words and not with a traceback; line ends and frames of the terminal do not count."""
    assert ran.code == code, ran.out + ran.err
    assert "Traceback" not in ran.out + ran.err
    text = " ".join(ran.err.replace("│", " ").split())
    assert [word for word in words if word not in text] == [], text
