"""`python -m optimus`, `optimus` and `kubectl optimus`: the very first lines that run.

Why: whoever presses Ctrl-C while modules are still read meant it, and gets no traceback.
Must not: import anything of weight before it can be interrupted.
"""

import sys
from collections.abc import Callable

INTERRUPTED = 130


def main() -> None:
    _interruptible(_optimus)


def plugin() -> None:
    _interruptible(_kubectl_optimus)


def _optimus() -> None:
    from optimus.cli.calling import call

    call()


def _kubectl_optimus() -> None:
    from optimus.cli.plugin import call

    call()


def _interruptible(call: Callable[[], None]) -> None:
    try:
        call()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
