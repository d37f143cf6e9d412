"""Calls that nobody would make: known words and junk in any order, many of them from one process that is copied.

    python -m tests.cli.fuzzing SEED COUNT       with the environment that the calls shall have

Prints a JSON line for each call that did not end as a call must: with 0, 1, 2 or 130, in words, and soon after Ctrl-C.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from random import Random
from typing import Any, NoReturn

from optimus.__main__ import main as optimus
from optimus.cli.main import app
from optimus.cli.settings import settings_of

PATIENCE_S = 3.0
"""Then somebody presses Ctrl-C."""
DEAF_S = 30.0
CODES = (0, 1, 2, 130)
NOT_FOUND = ("Traceback", "fault of optimus")
JUNK = [
    *(
        "",
        " ",
        "-",
        "--",
        "---",
        "/",
        "a/b",
        "a/b/c",
        "..",
        "~",
        "*",
        "%s",
        "{}",
        "[",
        "]]",
        "'",
        '"',
        "\\",
        "\n",
        "\t",
    ),
    *(
        "0",
        "-1",
        "1.5",
        "1e400",
        "nan",
        "inf",
        "²",
        "9" * 40,
        "0x10",
        "1_000",
        "true",
        "null",
        "None",
        "=",
        "==x",
        "a=b",
    ),
    *(
        "übung",
        "日本語",
        "🙂",
        "\u202e",
        "x" * 3000,
        "\udcff",
        "job",
        "jobs",
        "queue",
        "pool",
        "node",
        "here",
        "nobody",
    ),
    *("default", "default/here", "vision", "worker-0", "Pending", "http://127.0.0.1:1", "kube:x", "file:///etc/passwd"),
    *(
        ".",
        "/",
        "/dev/null",
        "/proc/self/mem",
        "not-there.yaml",
        "world.yaml",
        "synthetic:jobs=3,gpus=4",
        "4x8",
        "q.limit=1",
    ),
    *("json", "yaml", "wide", "table", "5s", "14:20", "fifo", "mine.py:x"),
]
LIKELY = [
    "here",
    "over",
    "job",
    "jobs",
    "queue",
    "queues",
    "default",
    "1",
    "2",
    "0.5",
    "json",
    "5s",
    "world.yaml",
    "true",
    "--",
]
LONG = ("up", "bench", "story")
"""Take long when they are called rightly; junk after them is enough."""


def words(random: Random, commands: list[tuple[str, ...]], options: dict[tuple[str, ...], list[str]]) -> list[str]:
    command = random.choice(commands)
    known = options.get(command, [])
    chosen: list[str] = list(command) if random.random() < 0.95 else []
    chosen += random.sample(LIKELY, random.choice((0, 1, 1, 2)))
    for _ in range(random.choice((0, 0, 1, 1, 2, 4))):
        draw = random.random()
        value = random.choice(LIKELY if random.random() < 0.5 else JUNK)
        if known and draw < 0.6:
            chosen.append(f"{random.choice(known)}={value}")
        elif known and draw < 0.8:
            chosen.append(random.choice(known))
        elif draw < 0.85:
            chosen.append(random.choice(random.choice(list(options.values()))))
        else:
            chosen.append(value)
    if chosen and chosen[0] in LONG and len(chosen) < 4:
        chosen += ["--no-such-option"]
    return [word for word in chosen if "\0" not in word]


def outcome(argv: list[str]) -> dict[str, Any]:
    with tempfile.TemporaryFile() as said:
        child = os.fork()
        if not child:
            _be(argv, said.fileno())
        code = _waited(child)
        said.seek(0)
        text = said.read().decode(errors="replace")
    return {"argv": argv, "code": code, "said": text[-2000:]}


def _be(argv: list[str], said: int) -> NoReturn:
    code = 99
    try:
        os.setpgid(0, 0)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for own, other in ((0, nothing), (1, said), (2, said)):
            os.dup2(other, own)
        sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
        sys.argv = ["optimus", *argv]
        optimus()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 98
    except BaseException:  # noqa: BLE001 - that is what is looked for
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(code)


def _waited(child: int) -> int:
    begun, asked = time.monotonic(), False
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        passed = time.monotonic() - begun
        if passed > PATIENCE_S and not asked:
            asked = True
            os.kill(child, signal.SIGINT)
        if passed > PATIENCE_S + DEAF_S:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return -9
        time.sleep(0.005)


def main() -> int:
    import typer

    random, count = Random(int(sys.argv[1])), int(sys.argv[2])
    options: dict[tuple[str, ...], list[str]] = {}
    for setting in settings_of(typer.main.get_command(app)):
        options.setdefault(setting.words, []).extend(setting.option.opts)
    commands = sorted({*options, ("policies",), ("completion",), ("scenario",), ("bench",)})
    codes: dict[int, int] = {}
    for _ in range(count):
        found = outcome(words(random, commands, options))
        codes[found["code"]] = codes.get(found["code"], 0) + 1
        if found["code"] not in CODES or any(word in found["said"] for word in NOT_FOUND):
            print(json.dumps(found), flush=True)
    print(f"{count} calls: {codes}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
