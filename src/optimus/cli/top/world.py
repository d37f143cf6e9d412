"""The world: what the scheduler has told so far, and whether it still talks."""

from __future__ import annotations

from typing import Any

View = dict[str, Any]
LISTS = ("queues", "nodes", "pools")
LOST = "lost"
"""Beside the events of the stream: nobody answers, and why."""


class World:
    def __init__(self) -> None:
        self.jobs: dict[str, View] = {}
        self.queues: list[View] = []
        self.nodes: list[View] = []
        self.pools: list[View] = []
        self.trouble = ""
        self.seen = False
        """Whether it was ever told anything."""
        self.lost = ""
        self.lost_s: float | None = None
        """Since when nobody answers (of a clock that never goes back)."""

    def take(self, event: str, told: Any, now_s: float) -> None:
        """What an event of the stream says. What is not known any more stays as it was until it is known anew."""
        if event in ("behind", LOST):
            self.lost = str(told) if event == LOST else "the scheduler went away"
            self.lost_s = now_s if self.lost_s is None else self.lost_s
            return
        self.lost, self.lost_s = "", None
        if event == "everything":
            self.seen = True
            self.jobs = dict(told.get("jobs") or {})
        else:
            for job, view in (told.get("jobs") or {}).items():
                if view is None:
                    self.jobs.pop(job, None)
                else:
                    self.jobs[job] = view
        for name in LISTS:
            if told.get(name) is not None:
                setattr(self, name, told[name])
        self.trouble = told.get("trouble") or ""
