"""Replicas that train one model leave after the same step.

Every rank gets the signal, but not during the same step. If each left at once, the first to leave would let the others
wait for it for ever inside a collective operation, rank 0 with the unsaved work among them. So rank 0 says when: having
been asked, it announces in the shared folder that it leaves after its next step. No other rank can finish that step
without rank 0, so all of them find the announcement at its end. Steps are counted from the start of the attempt.

    asked ──► .leaving-3-4711  ──┬── rank 0 is asked, too: .leaving.json    leaves after the step that it names
              (of rank 3)        ├── rank 0 stays: it takes the file away   leaves now
                                 └── no answer                              leaves when half of the grace is over

An elastic job that shrinks asks some of its ranks, and rank 0 is not among them. Where torchrun starts all processes
again whenever somebody comes or goes, nobody stays: rank 0 announces a step that lies seconds ahead, so that also those
who were not asked hear of it in time.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import time

from optimus.inside import contract

NAME = ".leaving.json"
WISH = ".leaving-"
HEARD_SECONDS = 2.5
"""Within which every rank looks, at the end of one of its steps."""
STAYS_SECONDS = 2.0
"""So long after the wish of another rank rank 0 may still be asked itself: requests do not come at one moment."""


class Departure:
    def __init__(self, folder: str, *, rank: int) -> None:
        self.folder, self.leads = folder, rank == 0
        self.path = os.path.join(folder, NAME)
        self.round, self.all_leave = contract.together(), contract.torchrun()
        self.patience = contract.seconds(contract.GRACE_SECONDS, 30.0) / 2
        self._after: int | None = None
        self._wish = os.path.join(folder, f"{WISH}{rank}-{os.getpid()}")
        self._wished = False
        self._since: dict[str, float] = {}
        """By wish of another rank: when rank 0 saw it first."""

    def prepare(self) -> None:
        """Without what an earlier attempt has left."""
        if self.leads:
            for name in (NAME, *self._wishes()):
                _remove(os.path.join(self.folder, name))

    def is_now(self, done: int, asked_at: float, rate: float = 0.0) -> bool:
        """Whether to leave after `done` steps."""
        if self._after is None:
            self._after = self._announce(done + 1 + self._lead(rate)) if self.leads else self._announced()
        if self._after is not None:
            return done >= self._after
        if not self._wished:
            self._wished = _write(self._wish, b"")
        elif not os.path.exists(self._wish):
            return True  # rank 0 has seen it, and stays
        return (
            time.monotonic() - asked_at > self.patience
        )  # nobody says when: the folder is not shared, or rank 0 is gone

    def look(self, now: float, done: int, rate: float) -> bool:
        """Of one who was not asked: whether all leave because somebody was. Else rank 0 tells those that it stays."""
        if self.all_leave and self._after is None:
            if not self.leads:
                self._after = self._announced()
            elif self._wishes():
                self._after = self._announce(done + 1 + self._lead(rate))
            return self._after is not None
        if not self.leads:
            return False
        self._since = {name: self._since.get(name, now) for name in self._wishes()}
        for name, since in self._since.items():
            if now - since >= STAYS_SECONDS:
                _remove(os.path.join(self.folder, name))
        return False

    def _lead(self, rate: float) -> int:
        """Steps that are done while everybody hears of it."""
        return math.ceil(HEARD_SECONDS * rate) if self.all_leave else 0

    def _wishes(self) -> list[str]:
        try:
            return [name for name in os.listdir(self.folder) if name.startswith(WISH)]
        except OSError:
            return []

    def _announce(self, after: int) -> int:
        said = json.dumps({"round": self.round, "after": after}).encode()
        return (
            after if _write(self.path, said) else after - 1
        )  # nobody can be told: what counts is that this rank saves

    def _announced(self) -> int | None:
        try:
            with open(self.path, encoding="utf-8") as file:
                said = json.load(file)
        except (OSError, ValueError):
            return None
        return int(said["after"]) if said.get("round") == self.round else None


def _write(path: str, content: bytes) -> bool:
    """All of it at one moment; whether that was possible."""
    beside = f"{path}.{os.getpid()}"
    try:
        with open(beside, "wb") as file:
            file.write(content)
        os.replace(beside, path)
    except OSError:
        return False
    return True


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):  # somebody was faster, or the folder is read-only
        os.unlink(path)
