"""Replicas that train one model leave after the same step.

Every rank gets the signal, but not during the same step. If each left at once, the first to leave would let the others
wait for it for ever inside a collective operation, rank 0 with the unsaved work among them. So rank 0 says when: having
been asked, it announces in the shared folder that it leaves after its next step. No other rank can finish that step
without rank 0, so all of them find the announcement at its end. Steps are counted from the start of the attempt.
"""

from __future__ import annotations

import json
import os
import time

from optimus.inside import contract

NAME = ".leaving.json"


class Departure:
    def __init__(self, folder: str, *, leads: bool) -> None:
        self.path, self.leads = os.path.join(folder, NAME), leads
        self.attempt = contract.whole_number(contract.ATTEMPT, 1)
        self.patience = contract.seconds(contract.GRACE_SECONDS, 30.0) / 2
        self._after: int | None = None

    def prepare(self) -> None:
        """Without what an earlier attempt has announced."""
        if self.leads and os.path.exists(self.path):
            os.unlink(self.path)

    def is_now(self, done: int, asked_at: float) -> bool:
        """Whether to leave after `done` steps."""
        if self._after is None:
            self._after = self._announce(done + 1) if self.leads else self._announced()
        if self._after is not None:
            return done >= self._after
        return (
            time.monotonic() - asked_at > self.patience
        )  # nobody says when: the folder is not shared, or rank 0 is gone

    def _announce(self, after: int) -> int:
        beside = f"{self.path}.{os.getpid()}"
        try:
            with open(beside, "w", encoding="utf-8") as file:
                json.dump({"attempt": self.attempt, "after": after}, file)
            os.replace(beside, self.path)
        except OSError:
            return after - 1  # nobody can be told: what counts is that this rank saves
        return after

    def _announced(self) -> int | None:
        try:
            with open(self.path, encoding="utf-8") as file:
                said = json.load(file)
        except (OSError, ValueError):
            return None
        return int(said["after"]) if said.get("attempt") == self.attempt else None
