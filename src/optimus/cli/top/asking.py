"""Asking a scheduler without waiting for it.

A thread of its own that nobody waits for: one that does not answer must keep nobody from looking on, or from leaving.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")


def in_background(ask: Callable[[], Answer], tell: Callable[[Answer], None]) -> None:
    """`ask` is done elsewhere, `tell` with its answer here, where the view is drawn, if it is still there."""
    loop, here = asyncio.get_running_loop(), contextvars.copy_context()

    def run() -> None:
        answer = ask()
        with contextlib.suppress(RuntimeError):  # the view has ended meanwhile
            loop.call_soon_threadsafe(tell, answer, context=here)

    threading.Thread(target=run, daemon=True).start()
