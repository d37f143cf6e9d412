"""Asking a scheduler without waiting for it.

A thread of its own that nobody waits for: one that does not answer must keep nobody from looking on, or from leaving.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from textual.app import App

Answer = TypeVar("Answer")


def in_background(app: App[Any], ask: Callable[[], Answer], tell: Callable[[Answer], None]) -> None:
    """`ask` is done elsewhere, `tell` with its answer where the view is drawn, if it is still there."""

    def run() -> None:
        answer = ask()
        with contextlib.suppress(RuntimeError):  # it has ended meanwhile
            app.call_from_thread(tell, answer)

    threading.Thread(target=run, daemon=True).start()
