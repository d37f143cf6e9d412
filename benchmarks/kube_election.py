"""Rivals at a real API server: how long nobody leads, and what lands late. Real processes, killed and frozen.

released   the leader leaves in order: until the next one writes (usual times: lease 15 s, renewal 10 s, every 2 s)
killed     kill -9 of the leader: until the next one writes, with the same times
frozen     SIGSTOP at any moment, SIGCONT after another has taken over: how many of its writes land after that
worst      SIGSTOP between the guard's yes and the request, no time-out: how many land late, how long after waking
usual      the same with the time-out of a write (4 s), which ends the request as soon as the process wakes up
fenced     the same, where each write names the version it means: how many land late on what both write

python -m benchmarks.kube_election                 # three minutes
python -m benchmarks.kube_election --rounds 1 --dry
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import measuring
from hack.controlplane import ControlPlane
from tests.kube.client.rivalry import stage
from tests.kube.client.world import until

USUAL = ("--lease", "15", "--renew", "10", "--retry", "2")
LONG_AFTER_S = 1.0


async def handed_over(plane: ControlPlane, name: str, folder: Path, after_s: float, *, kill: bool) -> float:
    async with stage(plane, name, folder) as played:
        first = played.enter("first", *USUAL)
        await played.leads("first")
        played.enter("second", *USUAL)
        await asyncio.sleep(after_s)
        begun = time.monotonic()
        os.kill(first.pid, signal.SIGKILL if kill else signal.SIGTERM)
        await until(lambda: played.audit.by("second") > 0)
        return played.audit.writes[-1][3] - begun


async def frozen(plane: ControlPlane, name: str, folder: Path, pause_s: float) -> int:
    async with stage(plane, name, folder) as played:
        first = played.enter("first")
        await played.leads("first")
        played.enter("second")
        await asyncio.sleep(pause_s)
        first.pause()
        await played.leads("second")
        before = played.audit.by("first")
        first.go_on()
        await asyncio.sleep(LONG_AFTER_S)
        return played.audit.by("first") - before


async def worst(plane: ControlPlane, name: str, folder: Path, *options: str) -> tuple[int, float, int]:
    """How many landed late, how long after waking up, and how often the latecomer touched what both write."""
    async with stage(plane, name, folder) as played:
        first = played.enter("first", "--freeze-at", "5", *options)
        await until(lambda: played.audit.by("first") == 4)
        played.enter("second", *options)
        await played.leads("second")
        before, shared = played.audit.by("first"), len(played.audit.shared)
        begun = time.monotonic()
        first.go_on()
        await asyncio.sleep(LONG_AFTER_S)
        late = played.audit.by("first") - before
        touched = sum(who == "first" for who, _ in played.audit.shared[shared:])
        return late, played.audit.last_of("first")[3] - begun if late else 0.0, touched


async def measure(plane: ControlPlane, folder: Path, rounds: int) -> dict[str, Any]:
    turns = range(rounds)
    released = [await handed_over(plane, f"released-{turn}", folder, 3 + 0.7 * turn, kill=False) for turn in turns]
    killed = [await handed_over(plane, f"killed-{turn}", folder, 3 + 0.7 * turn, kill=True) for turn in turns]
    any_moment = [await frozen(plane, f"frozen-{turn}", folder, 0.1 + 0.037 * turn) for turn in range(3 * rounds)]
    late = [await worst(plane, f"worst-{turn}", folder, "--timeout", "600") for turn in turns]
    usual = [await worst(plane, f"usual-{turn}", folder) for turn in turns]
    fenced = [await worst(plane, f"fenced-{turn}", folder, "--timeout", "600", "--fenced") for turn in turns]
    return {
        "released_s": [round(each, 2) for each in released],
        "killed_s": [round(each, 2) for each in killed],
        "frozen": {"rounds": len(any_moment), "landed_late": any_moment},
        "worst": {"landed_late": [count for count, _, _ in late], "after_s": [round(after, 4) for _, after, _ in late]},
        "usual": {"landed_late": [count for count, _, _ in usual]},
        "fenced": {"landed_late_on_what_both_write": [touched for _, _, touched in fenced]},
        "machine": measuring.machine(),
    }


def main(arguments: list[str] | None = None) -> int:
    parser = measuring.parser("kube_election", __doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dry", action="store_true", help="print, and leave the result file alone")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="kube-election-") as folder, ControlPlane(Path(folder)) as plane:
        result = asyncio.run(measure(plane, Path(folder), chosen.rounds))
    print(json.dumps(result, indent=2))
    if not chosen.dry:
        measuring.write("kube_election", result)
    at_most_one = max(max(result[kind]["landed_late"]) for kind in ("frozen", "worst", "usual")) <= 1
    return 0 if at_most_one and not any(result["fenced"]["landed_late_on_what_both_write"]) else 1


if __name__ == "__main__":
    sys.exit(main())
