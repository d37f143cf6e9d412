"""Answering: one explanation in a process of its own, `python -m optimus.explaining.answering`.

Why: whoever serves people over HTTP asks for an explanation as for a file, and does not know how one is made.
Owns: the process: the question on its standard input, the record as JSON on its standard output, its low priority and
the CPU time that it may take at most. What is wrong is a sentence on the error stream, and an exit code of 1.
Must not: talk to the scheduler: all it needs is in the question.
"""

from __future__ import annotations

import os
import resource
import sys

import msgspec
from msgspec import structs

from optimus.drivers.local.web.explanations import Question
from optimus.engine.copying import read_copy
from optimus.engine.journal_past import Past, read_past
from optimus.explaining.explanation import explain, needs_copy
from optimus.explaining.page import WithPage, plain
from optimus.explaining.seen import JobSeen
from optimus.explaining.starts import Ask

NICENESS = 10
CPU_S = 300


def main() -> int:
    os.nice(max(0, NICENESS - os.nice(0)))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    try:
        sys.stdout.buffer.write(answer(sys.stdin.buffer.read()))
    except (msgspec.MsgspecError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def answer(question: bytes) -> bytes:
    """Raises what a question that cannot be read raises: CopyError, PastError, MsgspecError."""
    asked = msgspec.msgpack.decode(question, type=Question)
    seen, wish = JobSeen.of(asked.job), asked.wish
    copied = read_copy(asked.copied) if asked.copied and needs_copy(seen) else None
    past = read_past(asked.past).usable() if asked.past else Past()
    ask = Ask(samples=wish.samples, seconds=wish.seconds, past=past) if wish.forecast else None
    now_ms = asked.now_ms if copied is None else copied.now_ms
    told = explain(seen, now_ms, copied, ask)
    return msgspec.json.encode(WithPage(**structs.asdict(told), page=plain(told)) if wish.page else told)


if __name__ == "__main__":
    sys.exit(main())
