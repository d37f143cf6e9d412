"""Looks at one copy of the brain until something complains.

Runs in a process of its own with PYTHONPATH at the copy (`running.py` starts it), because a broken brain may crash or
never come to an end. The question comes as JSON on stdin, the answer goes as JSON to stdout.

    life 17          a world with mishaps, every plan checked        invariants 0 to 6 (9: decided again and again)
    life 20 medium   the same with a larger world
    world 1003       stories that only their end can tell            invariants 4, 7, 8, 9
    story a/b.yaml   a scenario file and what it expects
"""

from __future__ import annotations

import json
import signal
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import optimus
from optimus.drivers.sim.playing import play_files
from optimus.testing import Cycle, PretendBody, check_cycle, check_world, live, random_world
from optimus.testing.body import ROUGH
from optimus.testing.drawing import Draw
from optimus.testing.examining import CYCLES, STEPS_MS
from optimus.testing.invariants import CYCLE_CHECKS, WORLD_CHECKS

STORIES = Path(__file__).resolve().parents[1] / "scenarios"
LONGEST_LOOK_S = 40
Complaint = tuple[str, str]
"""Who complains, and in which words."""


class EndlessError(Exception):
    pass


def look(what: str, expected: str, *, others: bool) -> Iterator[Complaint]:
    """Complaints about one life, world or story. `others`: not only those of the expected kind."""
    kind, where, *rest = what.split()
    if kind == "life":
        yield from _life(int(where), rest[0] if rest else "small", _number(expected), others=others)
    elif kind == "world":
        number = _number(expected)
        wanted = [number] if number in WORLD_CHECKS else []
        wanted += [n for n in WORLD_CHECKS if n not in wanted and others]
        for each in wanted:
            for violation in check_world(random_world(int(where)), (each,)):
                yield f"invariant {each}", str(violation)
    else:
        outcome = play_files(STORIES / where)
        for failure in outcome.failures:
            yield "story", f"{where}: {failure}"
        if not outcome.ok and not outcome.failures:
            yield "story", f"{where} is not well"


def _life(seed: int, size: str, number: int | None, *, others: bool) -> Iterator[Complaint]:
    steps = live(seed, size) if number == 9 else ((cycle, []) for cycle in _hasty_life(seed, size))
    for cycle, contradictions in steps:
        for contradiction in contradictions:
            yield "invariant 9", str(contradiction)
        first = [number] if number in CYCLE_CHECKS else []
        for each in [*first, *(n for n in CYCLE_CHECKS if n not in first and others)]:
            for violation in check_cycle(cycle, (each,)):
                yield f"invariant {each}", str(violation)


def _hasty_life(seed: int, size: str) -> Iterator[Cycle]:
    """The same life as `live` tells, with everything decided only once: four times as fast."""
    body, draw = PretendBody(random_world(seed, size), ROUGH), Draw(seed, "clock")
    for number in range(CYCLES):
        yield body.step(draw.pick(STEPS_MS) if number else 0)


def _number(expected: str) -> int | None:
    return int(expected.removeprefix("invariant ")) if expected.startswith("invariant ") else None


def answer(looks: list[str], expected: str, patience: int, *, others: bool) -> dict[str, str] | None:
    """The first complaint of the expected kind. If another comes first, so many looks more before it is good enough."""
    other: dict[str, str] | None = None
    since = 0
    for what in looks:
        for by, words in _safely(what, expected, others=others and other is None):
            found = {"look": what, "by": by, "what": words}
            if by == expected:
                return found
            other = other or (found if others else None)
        since += other is not None
        if since > patience:
            break
    return other


def _safely(what: str, expected: str, *, others: bool) -> Iterator[Complaint]:
    signal.alarm(LONGEST_LOOK_S)
    try:
        yield from look(what, expected, others=others)
    except EndlessError:
        yield "time limit", f"no end after {LONGEST_LOOK_S} s"
    except Exception:  # noqa: BLE001 - a crash of the brain is a complaint, too
        last = traceback.format_exc().strip().splitlines()
        yield "crash", f"{last[-1]} at {last[-3].strip()}"
    finally:
        signal.alarm(0)


def _give_up(_signal: int, _frame: FrameType | None) -> None:
    raise EndlessError


def main() -> None:
    question = json.load(sys.stdin)
    here = Path(optimus.__file__ or "").resolve()
    if not here.is_relative_to(Path(question["src"]).resolve()):
        sys.exit(f"{here} is not the copy that was to be looked at")
    signal.signal(signal.SIGALRM, _give_up)
    print(json.dumps(answer(question["looks"], question["expected"], question["patience"], others=question["others"])))


if __name__ == "__main__":
    main()
