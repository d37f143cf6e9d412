"""Binding on a real API server: ours beside a bare loop, the stock scheduler, its native gangs, and Kueue. One run.

    drain     1,000 nodes of 8 GPUs, 6,000 pods of one GPU in 300 gangs of 20 wait; then the scheduler is started
    one500    one gang of 500;   ten500    ten of them
    admit     300 suspended Jobs of 20, let go one by one: Kueue with the stock scheduler, and ours
    arrive    gangs of 20 come while it runs, 200 pods a second: how long each pod waits
    restart   50,000 bound pods are there; how long after its start the first pod of a new gang is bound

Each on a server of its own with a fresh etcd, one after the other; client limits are off for everybody. `drain` is run
three times in turn, since a machine has good minutes and bad ones: shown is each contender's median, and a ratio is the
median of those of the rounds. What is judged are ratios: drained pods a second against the stock scheduler (at least 4)
and against the bare loop (at least 0.7), and the restart (at most 15 s). It ends with 1, and says why, if one of these
is missed or was not run, or if somebody has not bound all that was asked for.

    python -m benchmarks.kube                                    # forty minutes; the machine should be quiet
    python -m benchmarks.kube --only drain --contenders raw,optimus --gangs 30 --nodes 200 --dry
    python -m benchmarks.kube --peer volcano.yaml                # another scheduler, see benchmarks/kube_contenders.py
"""

from __future__ import annotations

import contextlib
import os
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import measuring
from benchmarks.kube_contenders import NATIVE, OPTIMUS, RAW, STOCK, WITH_KUEUE, Contender, Peer, peer
from benchmarks.kube_runs import admit, arrive, drain, restart
from benchmarks.kube_world import Shape

Result = dict[str, Any]
ALL = ("drain", "one500", "ten500", "admit", "arrive", "restart")
ARRIVING_PER_S = 200.0
AGAINST_STOCK, OF_RAW, RESTART_S = 4.0, 0.7, 15.0
CONSOLE = Console(width=120)


def runs(chosen: Any, peers: list[Peer]) -> dict[str, dict[str, Callable[[], Result]]]:
    """What is run, in order: scenario -> contender -> run."""
    many = Shape(chosen.gangs, 20)
    coming = Shape(max(chosen.gangs // 3, 1), 20)
    by_peer = {one.name: one for one in peers}
    others = [one.contender() for one in peers]

    def draining(shape: Shape, *contenders: Contender) -> dict[str, Callable[[], Result]]:
        def run(one: Contender) -> Callable[[], Result]:
            return lambda: drain(one, chosen.nodes, shape, by_peer.get(one.name))

        return {one.name: run(one) for one in contenders}

    return {
        "drain": draining(many, RAW, OPTIMUS, STOCK, NATIVE, *others),
        "one500": draining(Shape(1, 500), RAW, OPTIMUS, STOCK, NATIVE, *others),
        "ten500": draining(Shape(10, 500), RAW, OPTIMUS, STOCK, NATIVE, *others),
        "admit": {
            one.name: lambda one=one: admit(one, chosen.nodes, many)  # type: ignore[misc]
            for one in (OPTIMUS, WITH_KUEUE)
        },
        "arrive": {
            one.name: lambda one=one: arrive(one, chosen.nodes, coming, ARRIVING_PER_S)  # type: ignore[misc]
            for one in (OPTIMUS, STOCK)
        },
        "restart": {
            one.name: lambda one=one: restart(one, chosen.nodes, chosen.before, Shape(5, 20))  # type: ignore[misc]
            for one in (OPTIMUS, STOCK)
        },
    }


CRITERIA: dict[str, Callable[[float], bool]] = {
    "drain: optimus / raw": lambda ratio: ratio >= OF_RAW,
    "drain: optimus / kube-scheduler": lambda ratio: ratio >= AGAINST_STOCK,
    "restart: first bind after s": lambda seconds: seconds <= RESTART_S,
}
"""Name in `judged` -> whether it is good enough."""


def judged(results: dict[str, dict[str, Result]]) -> Result:
    """Ratios of what was finished."""
    found: Result = {}
    for kind in ("drain", "one500", "ten500"):
        rates = {name: one.get("rates", []) for name, one in results.get(kind, {}).items()}
        ours = rates.pop(OPTIMUS.name, [])
        for peer_name, theirs in rates.items():
            if ratios := [mine / rate for mine, rate in zip(ours, theirs, strict=False) if mine and rate]:
                found[f"{kind}: optimus / {peer_name}"] = round(statistics.median(ratios), 2)
    if first := results.get("restart", {}).get(OPTIMUS.name, {}).get("first_after_s"):
        found["restart: first bind after s"] = first
    return found


def missed(results: dict[str, dict[str, Result]], found: Result) -> list[str]:
    """What keeps this run from being a success: work that was not finished, criteria that are not met or not known."""
    unfinished = [
        f"{kind}: {name}: {one['wrong']}"
        for kind, contenders in results.items()
        for name, one in contenders.items()
        if "wrong" in one
    ]
    unknown = [f"{name}: not known, its runs are missing" for name in CRITERIA if name not in found]
    unmet = [
        f"{name} is {found[name]}: missed" for name, good in CRITERIA.items() if name in found and not good(found[name])
    ]
    return unfinished + unmet + unknown


def of_rounds(rounds: list[Result]) -> Result:
    """The one in the middle, with the rates of all; one that went wrong speaks for all."""
    wrong = [one for one in rounds if "wrong" in one]
    middle = sorted(rounds, key=lambda one: one.get("draining", 0))[len(rounds) // 2]
    return {**(wrong[0] if wrong else middle), "rates": [one.get("draining", 0) for one in rounds]}


def show(kind: str, results: dict[str, Result]) -> None:
    table = Table(title=kind, title_justify="left", box=None)
    for heading in ("", "pods", "drained/s", "from start/s", "first s", "waited s", "CPU s", "MiB", "server", "etcd"):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    for name, one in results.items():
        waited = f"{one['waited_p50_s']} / {one['waited_p99_s']}" if "waited_p50_s" in one else ""
        numbers = (str(one.get(key, "")) for key in ("bound", "draining", "from_start", "first_after_s"))
        spent = dict(one["spent"])
        beside = [spent.pop(who)["cpu_s"] for who in ("kube-apiserver", "etcd")]
        own = [sum(each[what] for each in spent.values()) for what in ("cpu_s", "peak_mib")]
        table.add_row(name, *numbers, waited, *(f"{number:g}" for number in (round(own[0], 2), own[1], *beside)))
    CONSOLE.print(table)


def main(arguments: list[str] | None = None) -> int:
    parser = measuring.parser("kube", __doc__)
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--gangs", type=int, default=300, help="of 20 pods")
    parser.add_argument("--before", type=int, default=50_000, help="pods that are there at a restart")
    parser.add_argument("--rounds", type=int, default=3, help="of drain")
    parser.add_argument("--only", default=",".join(ALL), help="scenarios, with commas")
    parser.add_argument("--contenders", default="", help="names, with commas; all if not given")
    parser.add_argument("--peer", type=Path, action="append", default=[], help="a scheduler of others (drain only)")
    parser.add_argument("--dry", action="store_true", help="print, and leave the result file alone")
    chosen = parser.parse_args(arguments)
    wanted, only = set(filter(None, chosen.contenders.split(","))), chosen.only.split(",")
    if unknown := sorted(set(only) - set(ALL)):
        parser.error(f"--only: no scenario {unknown[0]}: there are {', '.join(ALL)}")
    try:
        planned = runs(chosen, [peer(path) for path in chosen.peer])
    except ValueError as error:
        parser.error(f"--peer: {error}")
    names = list(dict.fromkeys(name for kind in only for name in planned[kind]))
    if unknown := sorted(wanted - set(names)):
        parser.error(f"--contenders: no {unknown[0]} in {', '.join(only)}: there are {', '.join(names)}")
    results: dict[str, dict[str, Result]] = {}
    for kind, contenders in planned.items():
        if kind not in only:
            continue
        rounds: dict[str, list[Result]] = {name: [] for name in contenders if not wanted or name in wanted}
        for _ in range(chosen.rounds if kind == "drain" else 1):
            for name, found_so_far in rounds.items():
                load = round(os.getloadavg()[0], 1)
                CONSOLE.print(f"[dim]{kind}: {name} …[/]  load {load}")
                found_so_far.append({**contenders[name](), "load_before": load})
        results[kind] = {name: of_rounds(each) for name, each in rounds.items()}
        show(kind, results[kind])
    found = judged(results)
    for name, ratio in found.items():
        CONSOLE.print(f"{name:40s} {ratio}")
    wrong = missed(results, found)
    for each in wrong:
        CONSOLE.print(f"[red]{each}[/]")
    if not chosen.dry:
        shape = {"nodes": chosen.nodes, "gangs": chosen.gangs, "before": chosen.before}
        told = {"runs": results, "judged": found, "missed": wrong, "world": shape, "machine": measuring.machine()}
        measuring.write("kube", told)
    return 1 if wrong else 0


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
