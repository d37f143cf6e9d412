"""Placement rules of others against their published results on the Alibaba openb lists: first reproduce, then compare.

The protocol is that of `packing_openb`. Reproduced are Random, Best-Fit and FGD (`optimus.drivers.sim.peers.placement`)
at 100 % and 130 % of demand; a list counts as reproduced when both loads are within half a point of the published mean.

    python -m benchmarks.packing_peers --traces FOLDER

FOLDER has the lists and the published table (`expected_gpu_allocation_pct.csv`). They are not part of this repository:
`data/csv` and `experiments/analysis/expected_results` of github.com/hkust-adsl/kubernetes-scheduler-simulator.
"""

from __future__ import annotations

import csv
import statistics
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import measuring
from benchmarks.packing_openb import LISTS, ROOT, Count, Reached, arrivals, read_nodes, read_pods
from optimus.drivers.sim.peers.placement import BestFit, Cluster, Fgd, Placer, Pod, RandomFit, Rule

LOADS = (100, 130)
PUBLISHED = "expected_gpu_allocation_pct.csv"
RULES = {"random": "01-Random", "best-fit": "05-BestFit", "fgd": "06-FGD"}
CLOSE = 0.5
ENOUGH = 6
"""Lists that must be reproduced with every rule."""


def run(traces: Path, case: tuple[str, str, int]) -> Reached:
    """One list, rule and seed."""
    name, which, seed = case
    pods, room = read_pods(traces, name), read_nodes(traces)
    capacity = int(room.gpus.sum())
    order, chance = np.random.default_rng([seed, 0]), np.random.default_rng([seed, 1])
    cluster = Cluster(room.gpus, room.cpu, room.memory, [room.models[i] for i in room.device_model[:, 0]])
    mix: dict[Pod, int] = {}
    for pod in pods:
        mix[Pod(*pod)] = mix.get(Pod(*pod), 0) + 1
    rules: dict[str, Callable[[], Rule]] = {
        "random": lambda: RandomFit(chance),
        "best-fit": BestFit,
        "fgd": lambda: Fgd(cluster, mix),
    }
    placer = Placer(cluster, rules[which](), random_ties=chance if which == "random" else None)
    count = Count(capacity, LOADS)
    for pod in arrivals(pods, capacity, order):
        count.add(pod, placed=placer.place(Pod(*pod)) is not None)
    return count.reached()


def read_published(traces: Path) -> dict[tuple[str, str], dict[int, float]]:
    with (traces / PUBLISHED).open() as file:
        rows = list(csv.DictReader(file))
    known = {policy: rule for rule, policy in RULES.items()}
    return {
        (row["workload"], known[row["sc_policy"]]): {load: float(row[f"load{load}_mean"]) for load in LOADS}
        for row in rows
        if row["sc_policy"] in known
    }


def main(arguments: Iterable[str] | None = None) -> int:
    parser = measuring.parser("packing_peers", __doc__)
    parser.add_argument("--traces", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--lists", nargs="*", default=list(LISTS), choices=LISTS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    options = parser.parse_args(None if arguments is None else list(arguments))
    traces = measuring.folder_of(options.traces, "openb")
    missing = [f for f in ("openb_node_list_gpu_node.csv", PUBLISHED) if not (traces / f).exists()]
    if missing:
        print(f"No {missing[0]} in {traces}: give its folder with --traces (see --help)", file=sys.stderr)
        return 2
    published = read_published(traces)
    table: dict[str, dict[str, Any]] = {}
    cpu_only: dict[str, dict[str, float]] = {}
    print(f"{'list':<11} {'rule':<9} {'load %':>6} {'published':>10} {'here':>7} {'sd':>5} {'off by':>7}")
    with ProcessPoolExecutor(options.jobs) as pool:
        for name in options.lists:
            table[name], cpu_only[name] = {}, {}
            for rule in RULES:
                cases = [(name, rule, seed) for seed in range(options.seeds)]
                runs = list(pool.map(partial(run, traces), cases))
                rows = {
                    str(load): compare([r.allocated[load] for r in runs], published[name, rule][load]) for load in LOADS
                }
                table[name][rule] = rows
                cpu_only[name][rule] = round(statistics.mean(r.cpu_only for r in runs), 2)
                for load, row in rows.items():
                    figures = f"{row['published']:10.2f} {row['here']:7.2f} {row['sd']:5.2f} {row['off']:+7.2f}"
                    print(f"{name:<11} {rule:<9} {load:>6} {figures}", flush=True)
                print(f"{name:<11} {rule:<9} of the pods without a GPU {cpu_only[name][rule]:.2f} % were placed")
    close = {
        rule: [n for n in table if all(abs(row["off"]) <= CLOSE for row in table[n][rule].values())] for rule in RULES
    }
    for rule, lists in close.items():
        print(f"{rule}: within {CLOSE} points on {len(lists)} of {len(table)} lists")
    if set(options.lists) == set(LISTS):
        what = (
            "allocated GPU in % of all GPUs when the arrived demand reaches the load in %; published: mean of 10 seeds"
        )
        result = {"what": what, "seeds": options.seeds, "lists": table, "reproduced": close}
        result["cpu_only_placed_percent"] = cpu_only
        print("written:", measuring.write("packing_peers", result).relative_to(ROOT))
    return 0 if all(len(lists) >= min(ENOUGH, len(table)) for lists in close.values()) else 1


def compare(allocated: list[float], published: float) -> dict[str, float]:
    mean = statistics.mean(allocated)
    spread = statistics.stdev(allocated) if len(allocated) > 1 else 0.0
    return {
        "published": round(published, 2),
        "here": round(mean, 2),
        "sd": round(spread, 3),
        "off": round(mean - published, 2),
    }


if __name__ == "__main__":
    raise SystemExit(main())
