"""`optimus` with a clock of the day that is set, at each SIGUSR1: a day ahead, a day behind, and so on.

    python -m tests.kube.faults.jumping_clock controller …

The clocks of the day that Python code reads (time.time, time.time_ns) are replaced before anything is imported. Clocks
that only go forward are left alone: nobody can set them. datetime.now reads the machine's: what we take from it is
written for people and never read.
"""

from __future__ import annotations

import itertools
import signal
import sys
import time

DAY_S = 86_400
_time, _time_ns = time.time, time.time_ns
_settings = itertools.cycle((DAY_S, -DAY_S))
_off_s = [0]


def _set(*_: object) -> None:
    _off_s[0] = next(_settings)
    print(f"the clock is set: {_off_s[0]} s off", file=sys.stderr, flush=True)


def main() -> None:
    _set()
    signal.signal(signal.SIGUSR1, _set)
    time.time = lambda: _time() + _off_s[0]
    time.time_ns = lambda: _time_ns() + _off_s[0] * 1_000_000_000
    from optimus.cli.main import app

    app()


if __name__ == "__main__":
    main()
