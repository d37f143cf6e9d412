"""What `optimus top` costs: its CPU in a terminal of 120x40 while a large cluster changes.

A pretended scheduler tells 2,000 GPUs and 2,000 jobs over a real stream, of which each job reports once a second, in 20
changes a second; nodes and queues change five times a second. The real command runs in a pseudo terminal that is read.

    python -m benchmarks.top_view                # about half a minute
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import fcntl
import os
import pty
import struct
import sys
import termios
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import msgspec
from aiohttp import web

from benchmarks.watchers import cpu_s, rss_mib

WIDTH, HEIGHT = 120, 40
PER_NODE, PER_SECOND = 8, 20
WARM_S = 4.0


class Cluster:
    """Jobs of one GPU each, in ten queues; three of four run."""

    def __init__(self, size: int) -> None:
        self.names = [f"default/job-{number:05}" for number in range(size)]
        self.version = 0

    def job(self, number: int) -> dict[str, Any]:
        now_ms, runs = time.time_ns() // 1_000_000, number % 4 != 3
        step = (number * 7 + self.version // PER_SECOND) % 10_000
        told = {"attempt": 1, "phase": "running", "step": step, "total": 10_000, "fraction": step / 10_000}
        told |= {"steps_per_second": 1.0, "seconds_left": 10_000 - step, "updated_ms": now_ms}
        where = {"start": "s", "part": "", "role": "worker", "ordinal": 0, "node": f"node-{number // PER_NODE}"}
        where |= {"devices": [number % PER_NODE], "gpuMilli": 1000, "state": "running", "startedMs": 1}
        why = {"code": "NoRoom", "text": "queue is at its limit of 200 GPUs in pool default: 200 in use, 1 asked"}
        return {
            "name": f"job-{number:05}", "namespace": "default", "uid": str(number), "jobType": "Job",
            "queue": f"team-{number % 10}", "jobClass": "unattended", "priority": 100,
            "phase": "Running" if runs else "Pending", "reason": None if runs else why, "minReplicas": 1,
            "maxReplicas": 1, "runningReplicas": int(runs), "gpuMilli": 1000, "attempt": 1, "failures": 0,
            "preemptions": 0, "submittedMs": now_ms - number * 1000, "startedMs": 1 if runs else None, "endedMs": None,
            "ranMs": 0, "sinceMs": now_ms - 1000, "suspended": False, "command": ["python", "train.py"],
            "replicas": [where] if runs else [], "parts": [], "counts": {}, "final": False,
            "progress": told if runs else None,
        }  # fmt: skip

    def lists(self) -> dict[str, Any]:
        nodes = []
        for node in range(0, len(self.names), PER_NODE):
            held = [[self.names[at]] if at % 4 != 3 else [] for at in range(node, node + PER_NODE)]
            nodes.append({
                "name": f"node-{node // PER_NODE}", "ready": True, "cpuMilli": 96_000, "memoryMib": 1 << 20,
                "models": ["A100"] * PER_NODE, "usedMilli": [1000 * len(one) for one in held], "jobs": held,
                "labels": {"rack": f"rack-{node // PER_NODE // 16}"}, "limits": "",
            })  # fmt: skip
        share = {"pool": "default", "guaranteeMilli": 100_000, "limitMilli": 200_000, "weight": 1}
        share |= {"shareMilli": 200_000, "allocatedMilli": 150_000, "demandMilli": 200_000}
        queues = [
            {"name": f"team-{at}", "parent": "", "state": "open", "gpu": [share], "running": 150, "waiting": 50}
            for at in range(10)
        ]
        return {"nodes": nodes, "queues": queues, "pools": []}

    async def watch(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            async for event, told in self._events():
                await response.write(b"event: " + event + b"\ndata: " + msgspec.json.encode(told) + b"\n\n")
        return response

    async def _events(self) -> AsyncIterator[tuple[bytes, dict[str, Any]]]:
        every = {name: self.job(number) for number, name in enumerate(self.names)}
        yield b"everything", {"version": 0, "jobs": every, "trouble": "", **self.lists()}
        while True:
            await asyncio.sleep(1 / PER_SECOND)
            self.version += 1
            mine = range(self.version % PER_SECOND, len(self.names), PER_SECOND)
            lists = self.lists() if self.version % 4 == 0 else {"nodes": None, "queues": None, "pools": None}
            jobs = {self.names[number]: self.job(number) for number in mine}
            yield b"change", {"version": self.version, "jobs": jobs, "trouble": "", **lists}


async def measured(size: int, seconds: float) -> dict[str, Any]:
    app = web.Application()
    app.router.add_get("/v1/watch", Cluster(size).watch)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    address = f"http://127.0.0.1:{runner.addresses[0][1]}"
    process, drawn = _in_a_terminal(address)
    try:
        await asyncio.sleep(WARM_S)
        if f"Jobs {size}".encode() not in drawn.first:
            raise SystemExit("it does not show the jobs: there is nothing to measure")
        began, cpu, bytes_before = time.monotonic(), cpu_s(process), drawn.total
        await asyncio.sleep(seconds)
        passed = time.monotonic() - began
        return {
            "gpus": size,
            "jobs": size,
            "cpu_percent": round(100 * (cpu_s(process) - cpu) / passed, 1),
            "rss_mib": round(rss_mib(process)),
            "drawn_kib_per_s": round((drawn.total - bytes_before) / 1024 / passed, 1),
        }
    finally:
        os.kill(process, 9)
        os.waitpid(process, 0)
        await runner.cleanup()


class Drawn:
    """Reads a terminal, and counts."""

    def __init__(self, terminal: int) -> None:
        self.total = 0
        self.first = b""
        """What came first: enough to see that the jobs are there."""
        self._terminal = terminal
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while came := os.read(self._terminal, 1 << 16):
                self.total += len(came)
                self.first += came if len(self.first) < 1 << 20 else b""


def _in_a_terminal(address: str) -> tuple[int, Drawn]:
    process, terminal = pty.fork()
    if process == 0:
        os.environ["TERM"] = "xterm-256color"
        os.execv(sys.executable, [sys.executable, "-m", "optimus", "top", "--address", address])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
    return process, Drawn(terminal)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=2000, help="GPUs, and jobs")
    parser.add_argument("--seconds", type=float, default=20.0)
    asked = parser.parse_args()
    told = asyncio.run(measured(asked.size, asked.seconds))
    print(", ".join(f"{key} {value}" for key, value in told.items()))


if __name__ == "__main__":
    main()
