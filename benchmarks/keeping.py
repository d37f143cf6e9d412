"""Starts of real processes per second: through a keeper, beside a bare loop, in the same run on the same machine.

    bare    posix_spawn and waitpid of /bin/true, one after the other: what the kernel alone takes
    keeper  the same program with everything that outlives a scheduler: claim, supervisor, log, both records, events

Turns alternate and the best of each is told, since others may use the machine; the result file has every turn. Memory is the proportional share (PSS)
and the part nobody shares (private) of supervisors whose replicas sleep.

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
from optimus.drivers.local.keeping.events import Event, Exited, Request, Started
from optimus.drivers.local.keeping.keeper import Keeper

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


async def kept(starts: int, runs: Path) -> float:
    tally = Tally()
    keeper = Keeper(runs, tally.hear)
    await keeper.start()
    await asyncio.sleep(0.2)  # the nursery is warm when a scheduler has been up for a moment
    begun = time.perf_counter()
    for number in range(starts):
        keeper.spawn(Request(f"r{number}", ("/bin/true",), {}, "/"))
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


def measure(starts: int, turns: int, replicas: int, folder: Path) -> dict[str, Any]:
    bare_per_s, kept_per_s = [], []
    for turn in range(turns):
        bare_per_s.append(bare(starts))
        kept_per_s.append(asyncio.run(kept(starts, folder / f"turn-{turn}")))
    return {
        "starts": starts,
        "turns": turns,
        "bare_per_s": _rounded(bare_per_s),
        "keeper_per_s": _rounded(kept_per_s),
        "best": {"bare_per_s": round(max(bare_per_s)), "keeper_per_s": round(max(kept_per_s))},
        "target_per_s": TARGET_PER_S,
        "supervisor": {"replicas": replicas, **asyncio.run(memory(replicas, folder / "memory"))},
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
    folder = Path(tempfile.mkdtemp(prefix="keeping-"))
    try:
        result = measure(chosen.starts, chosen.turns, chosen.replicas, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    best, supervisor = result["best"], result["supervisor"]
    print(f"starts per second   keeper {best['keeper_per_s']} (target {TARGET_PER_S})   bare {best['bare_per_s']}")
    print(f"every turn          keeper {result['keeper_per_s']}   bare {result['bare_per_s']}")
    print(f"a supervisor        PSS {supervisor['pss_kib']} KiB, of it private {supervisor['private_kib']} KiB")
    if not chosen.dry:
        measuring.write("keeping", result)
    return 0 if best["keeper_per_s"] >= TARGET_PER_S else 1


if __name__ == "__main__":
    sys.exit(main())
