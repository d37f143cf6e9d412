"""Jobs as a body starts them: real processes with the variables of the contract, asked or killed from outside."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).resolve().parents[2] / "src"
LONGEST = 60  # seconds until a test gives up on a process that hangs


class Job:
    """A script and what outlives its attempts."""

    def __init__(self, home: Path, script: str, *, python: str = sys.executable, sources: Path = SOURCES) -> None:
        self.home, self.python, self.sources = home, python, sources
        self.script = home / "train.py"
        self.script.write_text(textwrap.dedent(script), encoding="utf-8")
        self.checkpoints = home / "checkpoints"
        self.attempts = 0

    def start(self, *arguments: object, rank: int = 0, **variables: str) -> Attempt:
        self.attempts += 1
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPTIMUS_", "PYTHON"))}
        contract = {
            "OPTIMUS_CHECKPOINT_DIR": str(self.checkpoints),
            "OPTIMUS_ATTEMPT": str(self.attempts),
            "OPTIMUS_STATUS_FILE": str(self.home / f"status-{rank}.json"),
            "OPTIMUS_RANK": str(rank),
            "PYTHONPATH": str(self.sources),
            "PYTHONUNBUFFERED": "1",
        }
        process = subprocess.Popen(
            [self.python, str(self.script), *map(str, arguments)],
            env={**kept, **contract, **variables},
            cwd=self.home,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        return Attempt(process)

    def run(self, *arguments: object, rank: int = 0, **variables: str) -> Ended:
        return self.start(*arguments, rank=rank, **variables).end()

    def status(self, rank: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.home / f"status-{rank}.json").read_text(encoding="utf-8"))
        return found

    def saved(self, loop: str = "steps") -> list[str]:
        return sorted(path.name for path in (self.checkpoints / loop).iterdir())


class Ended:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def lines(self) -> list[str]:
        return self.out.split("\n")[:-1]


class Attempt:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def tell(self, word: str = "") -> None:
        """A script that waits in input() goes on."""
        assert self.process.stdin is not None
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def ask(self, how: signal.Signals = signal.SIGTERM) -> None:
        self.process.send_signal(how)

    def end(self) -> Ended:
        """Not by `communicate`: it does not know of lines that `line` has taken from the pipe and not given out yet."""
        process = self.process
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        patience = threading.Timer(LONGEST, process.kill)
        patience.start()
        with process.stdout, process.stderr:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            out, err = process.stdout.read(), process.stderr.read()
        code = process.wait()
        patience.cancel()
        return Ended(code, out, err)
