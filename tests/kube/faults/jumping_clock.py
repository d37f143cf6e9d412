"""`optimus` with a clock of the day that is set again and again: a day ahead, two days back.

    python -m tests.kube.faults.jumping_clock controller …

Every clock of the day that Python reads is replaced before anything is imported: time.time and time.time_ns, and with
them datetime.now where it is used by us. Clocks that only go forward are left alone: no one can set them.
"""

from __future__ import annotations

import itertools
import sys
import threading
import time

EVERY_S = 1.0
DAY_S = 86_400
_time, _time_ns = time.time, time.time_ns
_off_s = 0


def _jump() -> None:
    global _off_s
    for _off_s in itertools.cycle((DAY_S, -DAY_S)):
        print(f"the clock is set by {_off_s} s", file=sys.stderr, flush=True)
        time.sleep(EVERY_S)


def main() -> None:
    time.time = lambda: _time() + _off_s
    time.time_ns = lambda: _time_ns() + _off_s * 1_000_000_000
    threading.Thread(target=_jump, daemon=True).start()
    from optimus.cli.main import app

    app()


if __name__ == "__main__":
    main()
