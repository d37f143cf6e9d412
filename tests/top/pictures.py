"""Views as the HTTP API tells them, a source that tells what a story says, and what is on the screen."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from textual.pilot import Pilot

from optimus.cli.top.app import Top
from optimus.client import ApiError

NOW_MS = 1_800_000_000_000
PATIENCE_S = 30.0
View = dict[str, Any]


def job(name: str, queue: str = "vision", phase: str = "Running", **others: Any) -> View:
    final = phase in ("Succeeded", "Failed", "Cancelled")
    return {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "jobType": "Job",
        "queue": queue,
        "jobClass": "unattended",
        "priority": 100,
        "phase": phase,
        "reason": None,
        "minReplicas": 1,
        "maxReplicas": 1,
        "runningReplicas": int(phase == "Running"),
        "gpuMilli": 1000,
        "attempt": 1,
        "failures": 0,
        "preemptions": 0,
        "submittedMs": NOW_MS - 60_000,
        "startedMs": None if phase == "Pending" else NOW_MS - 30_000,
        "endedMs": NOW_MS - 10_000 if final else None,
        "ranMs": 0,
        "sinceMs": NOW_MS - 30_000 if phase == "Running" else None,
        "suspended": phase == "Suspended",
        "command": ["python", "train.py"],
        "replicas": [],
        "parts": [],
        "counts": {},
        "final": final,
        "progress": None,
        **others,
    }


def reports(step: int, total: int, **others: Any) -> View:
    """What a job says of itself."""
    return {
        "version": 1,
        "attempt": 1,
        "phase": "running",
        "step": step,
        "total": total,
        "fraction": step / total,
        "steps_per_second": 2.0,
        "seconds_left": (total - step) / 2,
        "updated_ms": NOW_MS,
        **others,
    }


def replica(node: str, *devices: int, state: str = "running") -> View:
    return {"node": node, "devices": list(devices), "state": state, "gpuMilli": 1000}


def node(name: str, used: list[int], jobs: list[list[str]] | None = None, **others: Any) -> View:
    return {
        "name": name,
        "ready": True,
        "cpuMilli": 32_000,
        "memoryMib": 1024,
        "models": ["A100"] * len(used),
        "usedMilli": used,
        "jobs": jobs or [[] for _ in used],
        "labels": {},
        "limits": "",
        **others,
    }


def queue(name: str, parent: str = "", *shares: View, running: int = 0, waiting: int = 0) -> View:
    return {"name": name, "parent": parent, "state": "open", "gpu": shares, "running": running, "waiting": waiting}


def share(guarantee: int, use: int, *, limit: int | None = None, pool: str = "default") -> View:
    amounts = {"guaranteeMilli": guarantee, "limitMilli": limit, "shareMilli": use, "allocatedMilli": use}
    return {"pool": pool, "weight": 1, "demandMilli": use, **amounts}


def everything(
    *jobs: View, nodes: list[View] | None = None, queues: list[View] | None = None, trouble: str = ""
) -> tuple[str, View]:
    told = {f"{one['namespace']}/{one['name']}": one for one in jobs}
    lists = {"nodes": nodes or [], "queues": queues or [queue("vision", "", share(1000, 0))], "pools": []}
    return "everything", {"version": 1, "jobs": told, **lists, "trouble": trouble}


def change(**jobs: View | None) -> tuple[str, View]:
    return "change", {"version": 2, "jobs": {f"default/{name}": view for name, view in jobs.items()}, "trouble": ""}


class Story:
    """A source that tells what it is given."""

    def __init__(self, *events: tuple[str, Any]) -> None:
        self.untold = list(events)
        self.stopped = False

    def start(self) -> None: ...

    def stop(self) -> None:
        self.stopped = True

    def news(self) -> list[tuple[str, Any]]:
        told, self.untold = self.untold, []
        return told


class Answers:
    """Stands for a scheduler that is asked: it notes what, and answers or refuses."""

    address = "http://story"

    def __init__(self, refusal: str = "") -> None:
        self.asked: list[str] = []
        self._refusal = refusal

    def get(self, path: str) -> Any:
        self._note("GET", path)
        return [] if path.endswith("/events") else job(path.rpartition("/")[2])

    def post(self, path: str, body: bytes = b"") -> str:
        return self._note("POST", path + body.decode())

    def delete(self, path: str) -> str:
        return self._note("DELETE", path)

    def _note(self, verb: str, path: str) -> str:
        self.asked.append(f"{verb} {path}")
        if self._refusal:
            raise ApiError(409, "conflict", self._refusal)
        return f"{path.split('/')[4]}: done"


def screen(app: Top) -> str:
    """What is on it, line by line."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in strips)


async def sees(app: Top, pilot: Pilot[None], *words: str, gone: bool = False) -> str:
    """The screen, once all of the words are on it (or none)."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        await pilot.pause()
        shown = screen(app)
        if all((word in shown) != gone for word in words):
            return shown
        await asyncio.sleep(0.05)
    raise AssertionError(f"{'still' if gone else 'never'} seen: {words}\n{screen(app)}")
