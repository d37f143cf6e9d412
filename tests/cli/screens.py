"""A real terminal to look at: tmux with a shell in it, of any size, and keys that somebody presses."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

from tests.cli.terminal import ROOT

PATIENCE_S = 60.0
PROMPT = "ready> "


class Screen:
    """One tmux server of its own, one window after the other in it."""

    def __init__(self, folder: Path, columns: int = 80, lines: int = 40) -> None:
        self._socket = folder / "tmux"
        self._rc = folder / "bashrc"
        bin_folder = folder / "bin"
        bin_folder.mkdir()
        command = bin_folder / "optimus"
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m optimus "$@"\n')
        command.chmod(0o755)
        self._rc.write_text(
            f"PS1='{PROMPT}'\nexport PATH={bin_folder}:$PATH PYTHONPATH={ROOT / 'src'}\n"
            f"export OPTIMUS_STORE={folder / 'store'}\n"
            "unset PROMPT_COMMAND OPTIMUS_TARGET OPTIMUS_ADDRESS NO_COLOR\nsource <(optimus completion bash)\n"
        )
        self.shell = f"bash --rcfile {self._rc} -i"
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(lines), "-s", "s", self.shell)

    def _tmux(self, *words: str) -> str:
        environment = {**os.environ, "LC_ALL": "C.UTF-8"}
        environment.pop("TMUX", None)
        done = subprocess.run(
            ["tmux", "-u", "-S", str(self._socket), *words], env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    def window(self) -> None:
        """Another one, which is looked at from now on."""
        self._tmux("new-window", "-t", "s", self.shell)

    def resize(self, columns: int, lines: int = 40) -> None:
        self._tmux("resize-window", "-t", "s", "-x", str(columns), "-y", str(lines))

    def text(self, *, colours: bool = False) -> str:
        """What is on the screen now."""
        return self._tmux("capture-pane", "-p", "-t", "s", *(["-e"] if colours else [])).rstrip()

    def press(self, *keys: str) -> None:
        """Enter, C-c, Tab."""
        self._tmux("send-keys", "-t", "s", *keys)

    def write(self, text: str) -> None:
        self._tmux("send-keys", "-t", "s", "-l", text)

    def shows(self, pattern: str) -> str:
        """The screen, once it has that."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            text = self.text()
            if re.search(pattern, text, re.MULTILINE):
                return text
            time.sleep(0.1)
        raise AssertionError(f"in vain: {pattern}\n{self.text()}")

    def start(self, line: str) -> None:
        """On an empty screen."""
        self.shows(f"{PROMPT.strip()}$")
        self.write("clear")
        self.press("Enter")
        self.shows(rf"\A{PROMPT.strip()}$")
        self.write(line)
        self.press("Enter")

    def ran(self, line: str) -> str:
        """What is on the screen after it; the last line is the exit code in brackets."""
        self.start(f'{line}; echo "[$?]"')
        return self.shows(r"^\[\d+\]$").removesuffix(PROMPT.strip()).rstrip()

    def end(self) -> None:
        subprocess.run(["tmux", "-S", str(self._socket), "kill-server"], capture_output=True, check=False)
