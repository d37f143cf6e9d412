"""Starts of real processes per second: through a keeper, beside a bare loop, in the same run on the same machine.

    bare    posix_spawn and waitpid of /bin/true, one after the other: what the kernel alone takes
    disk    the same through a keeper: claim, supervisor, log, both records, events; attempts among temporary files
    memory  the same with attempts in memory, which leaves out what the disk takes
    limits  as memory, each with limits for CPU and memory by cgroups of its own; left out where there are none

Turns alternate and the best of each is told, since others may use the machine; the result file has every turn. On ext4
without a journal, files that were deleted in the last minutes slow down every new one: delete nothing large before.
Memory of a supervisor is its proportional share (PSS), and the part nobody shares, while its replica sleeps.

    python -m benchmarks.keeping                     # half a minute
    python -m benchmarks.keeping --starts 100 --dry  # to see that it works
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks import measuring
from optimus.drivers.local.keeping.events import Event, Exited, Limits, Request, Started
from optimus.drivers.local.keeping.keeper import Keeper
from optimus.drivers.local.keeping.limiting import Limiting, limiting_here

TARGET_PER_S = 300


class Tally:
    """Counts what is told, and wakes up who waits for a number of it."""

    def __init__(self) -> None:
        self.told: list[Event] = []
        self._more = asyncio.Event()

    def hear(self, event: Event) -> None:
        self.told.append(event)
        self._more.set()

    async def until(self, kind: type[Event], count: int) -> None:
        while sum(isinstance(event, kind) for event in self.told) < count:
            self._more.clear()
            await self._more.wait()
            await asyncio.sleep(0.01)


def bare(starts: int) -> float:
    begun = time.perf_counter()
    for _ in range(starts):
        os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)
    return starts / (time.perf_counter() - begun)


async def kept(starts: int, runs: Path, limiting: Limiting | None = None) -> float:
    tally = Tally()
    keeper = Keeper(runs, tally.hear, limiting=limiting)
    limits = None if limiting is None else Limits(cpu_milli=1000, memory_bytes=1 << 28)
    await keeper.start()
    await asyncio.sleep(0.2)  # the nursery is warm when a scheduler has been up for a moment
    begun = time.perf_counter()
    for number in range(starts):
        keeper.spawn(Request(f"r{number}", ("/bin/true",), {}, "/", limits))
    await tally.until(Exited, starts)
    took = time.perf_counter() - begun
    assert all(event.exit.code == 0 for event in tally.told if isinstance(event, Exited))
    await keeper.close()
    return starts / took


async def memory(replicas: int, runs: Path) -> dict[str, float]:
    tally = Tally()
    keeper = Keeper(runs, tally.hear)
    await keeper.start()
    names = [f"r{number}" for number in range(replicas)]
    for name in names:
        keeper.spawn(Request(name, ("/bin/sleep", "1000"), {}, "/"))
    await tally.until(Started, replicas)
    pids = [json.loads((runs / name / "started").read_text())["supervisor_pid"] for name in names]
    sizes = [_kib_of(pid) for pid in pids]
    for name in names:
        keeper.kill(name)
    await tally.until(Exited, replicas)
    await keeper.close()
    kinds = {"pss": ("Pss",), "private": ("Private_Clean", "Private_Dirty"), "rss": ("Rss",)}
    return {
        f"{kind}_kib": round(sum(size[part] for size in sizes for part in parts) / replicas)
        for kind, parts in kinds.items()
    }


def _kib_of(pid: int) -> dict[str, int]:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    return {line.split(":")[0]: int(line.split()[1]) for line in lines}


def measure(starts: int, turns: int, replicas: int, disk: Path, memory_disk: Path) -> dict[str, Any]:
    per_s: dict[str, list[float]] = {"bare": [], "disk": [], "memory": []}
    limiting = limiting_here(memory_disk)
    for turn in range(turns):
        per_s["bare"].append(bare(starts))
        for kind, folder in (("disk", disk), ("memory", memory_disk)):
            per_s[kind].append(asyncio.run(kept(starts, folder / f"turn-{turn}")))
        if limiting.groups:
            limited = kept(starts, memory_disk / f"limited-{turn}", limiting_here(memory_disk))
            per_s.setdefault("limits", []).append(asyncio.run(limited))
    limiting.close()
    return {
        "starts": starts,
        "limits": limiting.told(),
        "turns": {kind: _rounded(numbers) for kind, numbers in per_s.items()},
        "best_per_s": {kind: round(max(numbers)) for kind, numbers in per_s.items()},
        "target_per_s": TARGET_PER_S,
        "supervisor": {"replicas": replicas, **asyncio.run(memory(replicas, memory_disk / "supervisors"))},
        "machine": measuring.machine(),
    }


def _rounded(numbers: Iterable[float]) -> list[int]:
    return [round(number) for number in numbers]


def main(arguments: list[str] | None = None) -> int:
    parser = measuring.parser("keeping", __doc__)
    parser.add_argument("--starts", type=int, default=600)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--replicas", type=int, default=100, help="whose supervisors are measured")
    parser.add_argument("--dry", action="store_true", help="print, and leave the result file alone")
    chosen = parser.parse_args(arguments)
    folders = [Path(tempfile.mkdtemp(prefix="keeping-", dir=place)) for place in (None, "/dev/shm")]
    try:
        result = measure(chosen.starts, chosen.turns, chosen.replicas, *folders)
    finally:
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
    best, supervisor = result["best_per_s"], result["supervisor"]
    for kind in best:
        print(f"{kind:8}{best[kind]:6} starts per second, of {result['turns'][kind]}")
    print(f"limits: {result['limits']}")
    print(f"a supervisor: PSS {supervisor['pss_kib']} KiB, of it private {supervisor['private_kib']} KiB")
    if not chosen.dry:
        measuring.write("keeping", result)
    return 0 if best["disk"] >= TARGET_PER_S else 1


if __name__ == "__main__":
    sys.exit(main())
