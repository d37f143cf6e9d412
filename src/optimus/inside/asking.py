"""Being asked to leave: one signal, heard while somebody listens, answered where the work is whole.

The handler only remembers. Whoever steps from one piece of work to the next looks at `REQUEST.asked` there. A script
with a loop of its own may instead name what saves its work (`savers`): that is called from the handler.

Traps it knows:
- the same request often arrives twice (to the process and to its group): within two seconds that is one request;
- a later second one means "now": the process ends without finishing its step, yet never in the middle of a save;
- a forked child would inherit the handler: it is given back there, or `Process.terminate()` never ends a data loader;
- whoever had a handler before gets the signal too, after the work is saved, and gets its handler back.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
import warnings

from optimus.inside import contract

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, Callable

ONE_REQUEST_SECONDS = 2.0


class Request:
    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """As in a new process."""
        self.asked = False
        self.asked_at = 0.0
        self.saving = False
        self.hurried = False
        """Asked again during a save: to be answered as soon as that is over."""
        self.seen = False
        """A script with its own loop has been told, and takes it from there."""
        self.loops = 0
        """Loops that answer at the end of their step."""
        self.savers: list[Callable[[], object]] = []
        self.leave_from_handler: Callable[[], None] | None = None
        self._listeners = 0
        self._signal: signal.Signals | None = None
        self._previous: Any = None
        self._told_about_threads = False

    @property
    def listening(self) -> bool:
        return self._listeners > 0

    def listen(self) -> bool:
        """Whether it was possible; each listener that was told yes ends with `stop_listening`."""
        if threading.current_thread() is not threading.main_thread():
            if not self.listening and not self._told_about_threads:
                self._told_about_threads = True
                warnings.warn(
                    "this loop is not in the main thread, where alone Python hears signals: it will not notice that it "
                    "is asked to leave. Call optimus.asked_to_leave() once in the main thread before.",
                    contract.CheckpointWarning,
                    stacklevel=2,
                )
            return False
        if not self._listeners:
            self._signal = named_signal()
            self._previous = signal.signal(self._signal, self._received)
        self._listeners += 1
        return True

    def stop_listening(self) -> None:
        self._listeners -= 1
        if self._listeners or self._signal is None:
            return
        if signal.getsignal(self._signal) == self._received:  # else somebody has taken it since: theirs stays
            signal.signal(self._signal, signal.SIG_DFL if self._previous is None else self._previous)

    def step_aside(self) -> None:
        """In a forked child."""
        if self._listeners:
            self._listeners = 1
            self.stop_listening()
            self.asked = False

    def call_previous(self) -> None:
        """The handler that was there before; it may clean up, what the process ends with is not its to say."""
        if self._signal is not None and callable(self._previous):
            with contextlib.suppress(SystemExit):
                self._previous(self._signal, None)

    def _received(self, _number: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        if not self.asked:
            self.asked, self.asked_at = True, now
            if not self.loops and self.leave_from_handler is not None:
                self.leave_from_handler()
        elif now - self.asked_at < ONE_REQUEST_SECONDS or (self.seen and not self.loops):
            return
        elif self.saving:
            self.hurried = True
        else:
            os._exit(contract.LEFT_ON_REQUEST)


def named_signal() -> signal.Signals:
    name = contract.text(contract.CHECKPOINT_SIGNAL, "SIGTERM")
    found = getattr(signal, name, None)
    if not isinstance(found, signal.Signals):
        raise contract.CheckpointError(
            f"the variable {contract.CHECKPOINT_SIGNAL} is {name!r}, which is no signal: SIGTERM and SIGUSR1 are"
        )
    return found


REQUEST = Request()
"""One process, one request."""
os.register_at_fork(after_in_child=REQUEST.step_aside)
