"""Whether those who watch slow down the work: a thousand watchers, and some who do not read, beside nobody.

One real `optimus up`; crowds come and go, and in turns the same work is done: an array of short jobs, and single jobs
one after the other. Told are, for each crowd, jobs a second and the time from asking to the start of the process,
beside the turns in which nobody watched; the CPU and memory of the process that serves; and whether all who read have
seen the end of every array.

    nobody     no watcher
    thousand   1,000 that watch everything and read
    deaf       10 that watch everything and never read, and one that reads one byte a second

The crowd stands in for people elsewhere: a process of its own that takes only CPU that nobody else wants. Turns are
short and alternate, and each is compared with its neighbour, since others may use the machine.

    python -m benchmarks.watchers                              # about four minutes
    python -m benchmarks.watchers --parts 200 --turns 1 --dry  # to see that it works
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import measuring
from benchmarks.machine import Machine

CROWDS = {"nobody": (0, 0, 0), "thousand": (1000, 0, 0), "deaf": (0, 10, 1)}
"""Readers, stuck, slow."""
PARTS, SINGLE, TURNS = 3000, 10, 6
LEAST_RATIO = 0.9
"""Of jobs a second, beside nobody watching."""
LOOK_S = 0.1
PATIENCE_S = 60.0
TICKS = os.sysconf("SC_CLK_TCK")


class Crowd:
    def __init__(self, address: str, readers: int, stuck: int, slow: int) -> None:
        self.readers = readers
        words = [sys.executable, "-m", "benchmarks.crowd", address, str(readers), str(stuck), str(slow)]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None and self._process.stdin is not None
        self._said, self._told = self._process.stdout, self._process.stdin
        assert self._said.readline() == "there\n"

    def saw(self, job: str) -> dict[str, int]:
        """Once all of them have seen its end, or when it is time to give up."""
        until = time.monotonic() + PATIENCE_S
        while True:
            self._told.write(job + "\n")
            self._told.flush()
            answer: dict[str, int] = json.loads(self._said.readline())
            if answer["seen"] == self.readers or time.monotonic() > until:
                return answer
            time.sleep(LOOK_S)

    def cpu_s(self) -> float:
        return cpu_s(self._process.pid)

    def leave(self) -> None:
        self._told.close()
        self._process.wait(PATIENCE_S)


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def rss_mib(pid: int) -> float:
    return int(Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1].split()[0]) / 1024


def web_of(machine: Machine) -> int:
    children = Path(f"/proc/{machine.process.pid}/task/{machine.process.pid}/children").read_text().split()
    return next(int(pid) for pid in children if b"web.process" in Path(f"/proc/{pid}/cmdline").read_bytes())


def array(machine: Machine, name: str, parts: int) -> float:
    """Jobs a second. It is looked for in the folders: asking would be one more who watches."""
    begun, runs = time.perf_counter(), machine.folder / "runs"
    machine.submit(name, array=parts)
    uid = machine.api.get(f"/v1/jobs/default/{name}")["uid"]
    while len([entry for entry in os.scandir(runs) if entry.name.startswith(uid)]) < parts:
        time.sleep(LOOK_S)
    while not machine.api.get(f"/v1/jobs/default/{name}")["final"]:
        time.sleep(LOOK_S)
    return parts / (time.perf_counter() - begun)


def single(machine: Machine, name: str) -> float:
    """Milliseconds from asking to the start of the process."""
    asked_ms = time.time() * 1000
    machine.submit(name)
    uid = machine.api.get(f"/v1/jobs/default/{name}")["uid"]
    while not (found := list((machine.folder / "runs").glob(f"{uid}-*/started"))):
        time.sleep(0.01)
    started_ms: float = json.loads(found[0].read_text().splitlines()[0])["wall_ms"]
    return started_ms - asked_ms


@contextlib.contextmanager
def watched(machine: Machine, kind: str) -> Iterator[Crowd | None]:
    sizes = CROWDS[kind]
    crowd = Crowd(machine.api.address, *sizes) if any(sizes) else None
    try:
        yield crowd
    finally:
        if crowd is not None:
            crowd.leave()


def turn(machine: Machine, kind: str, number: int, parts: int, singles: int) -> dict[str, Any]:
    name, web, engine = f"many-{kind}-{number}", web_of(machine), machine.process.pid
    with watched(machine, kind) as crowd:
        before = cpu_s(web), cpu_s(engine), crowd.cpu_s() if crowd is not None else 0.0
        begun = time.perf_counter()
        per_s = array(machine, name, parts)
        saw = crowd.saw(f"default/{name}") if crowd is not None else {"seen": 0, "open": 0, "events": 0}
        took = time.perf_counter() - begun
        after = cpu_s(web), cpu_s(engine), crowd.cpu_s() if crowd is not None else 0.0
        memory = rss_mib(web)
        latencies = [single(machine, f"one-{kind}-{number}-{one}") for one in range(singles)]
    shares = [round((late - early) / took, 2) for early, late in zip(before, after, strict=True)]
    return {
        "jobs_per_s": round(per_s, 1),
        "start_ms": round(statistics.median(latencies), 1),
        "start_p90_ms": round(sorted(latencies)[len(latencies) * 9 // 10], 1),
        "cores": dict(zip(("web", "engine", "crowd"), shares, strict=True)),
        "web_rss_mib": round(memory, 1),
        **saw,
    }


def summary(turns: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Medians; ratios are of turns that stood side by side."""
    told: dict[str, Any] = {}
    for kind, rows in turns.items():
        pairs = list(zip(rows, turns["nobody"], strict=True))
        told[kind] = {
            "jobs_per_s": statistics.median(row["jobs_per_s"] for row in rows),
            "start_ms": statistics.median(row["start_ms"] for row in rows),
            "start_p90_ms": statistics.median(row["start_p90_ms"] for row in rows),
            "web_cores": statistics.median(row["cores"]["web"] for row in rows),
            "web_rss_mib": max(row["web_rss_mib"] for row in rows),
            "jobs_ratio": round(statistics.median(a["jobs_per_s"] / b["jobs_per_s"] for a, b in pairs), 3),
            "start_ms_more": round(statistics.median(a["start_ms"] - b["start_ms"] for a, b in pairs), 1),
            "saw_the_end": min(row["seen"] for row in rows),
        }
    return told


def main(arguments: list[str] | None = None) -> int:
    parser = measuring.parser("watchers", __doc__)
    parser.add_argument("--parts", type=int, default=PARTS)
    parser.add_argument("--single", type=int, default=SINGLE)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--dry", action="store_true", help="print, and leave the result file alone")
    chosen = parser.parse_args(arguments)
    turns: dict[str, list[dict[str, Any]]] = {kind: [] for kind in CROWDS}
    with tempfile.TemporaryDirectory(prefix="watchers-") as folder:
        machine = Machine(Path(folder) / "store")
        try:
            array(machine, "warm-up", chosen.parts)
            for number in range(chosen.turns):
                order = list(CROWDS) if number % 2 else list(CROWDS)[::-1]
                for kind in order:
                    turns[kind].append(turn(machine, kind, number, chosen.parts, chosen.single))
                    print(f"{kind:9}{turns[kind][-1]}", flush=True)
        finally:
            machine.stop()
    told = summary(turns)
    for kind, row in told.items():
        print(f"{kind:9}{row}")
    all_saw = all(row["seen"] == CROWDS[kind][0] for kind, rows in turns.items() for row in rows)
    met = all_saw and all(row["jobs_ratio"] >= LEAST_RATIO for row in told.values())
    if not chosen.dry:
        result = {"parts": chosen.parts, "single": chosen.single, "turns": turns, "summary": told}
        measuring.write("watchers", {"machine": measuring.machine(), **result, "all_saw_the_end": all_saw, "met": met})
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
