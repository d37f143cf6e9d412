"""The table of wrong calls: how they are made, what is kept of an answer, and the page that is made from it.

`python -m tests.cli.wrong_calls` makes all calls, and writes what was said into the table and the page.
"""

from __future__ import annotations

import re
import shlex
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.calling import called
from tests.cli.terminal import ROOT, environment
from tests.local.machines import Up

TABLE = Path(__file__).with_name("wrong_calls.yaml")
SAID = Path(__file__).with_name("wrong_calls_said.yaml")
PAGE = ROOT / "docs" / "reference" / "errors.md"
PREPARED = """
kind: Queue
metadata: {name: parent}
spec: {}
---
kind: Queue
metadata: {name: child}
spec: {parent: parent}
---
kind: UnifiedJob
metadata: {name: here}
spec: {command: [sleep, "600"], queue: default, gpu: 1, replicas: {min: 2, max: 4}, suspend: true}
---
kind: UnifiedJob
metadata: {name: over}
spec: {command: [bash, -c, "echo so"], queue: default, gpu: 1}
"""


class Call(NamedTuple):
    group: str
    words: tuple[str, ...]
    env: dict[str, str]
    stdin: str

    @property
    def shown(self) -> str:
        """As somebody types it."""
        before = [f"{name}={value}" for name, value in self.env.items() if name != "OPTIMUS_STORE"]
        piped = f"printf {shlex.quote(self.stdin)} | ".replace("\n", "\\n") if "-" in self.words else ""
        return piped + " ".join([*before, "optimus", *(word if word else "''" for word in map(_quoted, self.words))])


def _quoted(word: str) -> str:
    return word if re.fullmatch(r"[\w./:={}²ü-]+", word) else shlex.quote(word)


class Said(NamedTuple):
    code: int
    text: str
    whole: str
    """With usage and all."""


def table() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    return found


def calls() -> list[Call]:
    return [
        Call(group["title"], tuple(call["words"]), call.get("env", {}), call.get("stdin", ""))
        for group in table()["groups"]
        for call in group["calls"]
    ]


def said() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load(SAID.read_text(encoding="utf-8")) if SAID.exists() else {}
    return found


# -- a machine to be asked ----------------------------------------------------------------------------------------


class Place:
    """Two real schedulers and a folder with files that are wrong in many ways."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "files"
        self._fill()
        self.up = Up(folder / "store")
        self.guarded = Up(folder / "guarded", "--nodes", "1", "--gpus", "1", "--host", "127.0.0.2")
        try:
            self._prepare()
        except BaseException:
            self.end()
            raise

    def _prepare(self) -> None:
        prepared = self.up.cli("submit", "-", stdin=PREPARED)
        assert prepared.returncode == 0, prepared.stderr
        self.up.reaches("over", "Succeeded")
        self.up.reaches("here", "Suspended")
        address = self.up.api.address
        self._names = {
            "folder": str(self.folder),
            "store": str(self.up.folder),
            "guarded": self.guarded.api.address,
            "address": address,
            "hostport": address.removeprefix("http://"),
            "nobody": "http://127.0.0.1:1",
            "taken": address.rpartition(":")[2],
        }

    def _fill(self) -> None:
        (self.folder / "folder").mkdir(parents=True)
        for name, text in table()["files"].items():
            (self.folder / name).write_text(text, encoding="utf-8")
        (self.folder / "binary.bin").write_bytes(bytes(range(256)))
        (self.folder / "huge.yaml").write_bytes(b"#" * (17 << 20))
        for name in ("newer", "damaged"):
            (self.folder / name).mkdir()
        with sqlite3.connect(self.folder / "newer" / "optimus.db") as newer:
            newer.execute("CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID")
            newer.execute("INSERT INTO facts VALUES ('format', '99')")
        newer.close()
        (self.folder / "damaged" / "optimus.db").write_bytes(b"no database at all " * 100)

    def make(self, call: Call) -> Said:
        own = {"OPTIMUS_STORE": "{store}", **call.env}
        done = called(
            [self._filled(word) for word in call.words],
            cwd=self.folder,
            env=environment(**{name: self._filled(value) for name, value in own.items()}),
            stdin=call.stdin,
        )
        whole = self._emptied(done.stdout + done.stderr)
        return Said(done.returncode, _message(self._emptied(done.stderr) or self._emptied(done.stdout)), whole)

    def _filled(self, text: str) -> str:
        for name, value in self._names.items():
            text = text.replace(f"{{{name}}}", value)
        return text

    def _emptied(self, text: str) -> str:
        """The same on every machine, on every day."""
        for name, value in self._names.items():
            if name not in ("nobody", "taken"):
                text = text.replace(value, f"{{{name}}}")
        text = text.replace(f"port {self._names['taken']} ", "port {taken} ")
        text = re.sub(r"default/(true|job)-[0-9a-f]{4}", r"default/\1-4711", text)
        return re.sub(r"by process \d+", "by process 4711", text)

    def end(self) -> None:
        self.up.end()
        self.guarded.end()


def _message(text: str) -> str:
    """Without usage, which is the same for every wrong call of a command."""
    found = re.sub(r"^Usage: .*?\n(?=Error: )", "", text, flags=re.DOTALL)
    return found.strip()


@contextmanager
def place() -> Iterator[Place]:
    with tempfile.TemporaryDirectory(prefix="optimus-") as folder:
        made = Place(Path(folder))
        try:
            yield made
        finally:
            made.end()


# -- the page -----------------------------------------------------------------------------------------------------


def page() -> str:
    known = said()
    lines = [
        "# What is said when something is wrong",
        "",
        "Wrong calls of every command, with the exit code and the message. The tests make each of these calls",
        "and compare every letter; this page is made from what they found (`tests/cli/wrong_calls.yaml`). Usage,",
        "which comes before messages with code 2, is left out. `{folder}` and the like stand for what differs from",
        "machine to machine.",
        "",
        "Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 130 interrupted.",
    ]
    group = ""
    for call in calls():
        if call.group != group:
            group = call.group
            lines += ["", f"## {group}"]
        answer = known.get(call.shown, {"code": 0, "says": ""})
        lines += ["", "```", f"$ {call.shown}", *answer["says"].splitlines(), f"→ {answer['code']}", "```"]
    return "\n".join(lines) + "\n"


def main() -> int:
    found = {}
    with place() as here:
        for call in calls():
            answer = here.make(call)
            found[call.shown] = {"code": answer.code, "says": answer.text}
            print(
                answer.code, call.shown, "\n", answer.text if answer.code in (1, 2) else answer.whole, "\n", flush=True
            )
    SAID.write_text(yaml.safe_dump(found, sort_keys=False, allow_unicode=True, width=1000), encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
