"""How much of a cluster gets allocated: the placement rule against published results on the Alibaba openb lists.

The published protocol (FGD, ATC'23 artefact): 1,213 GPU nodes with 6,212 GPUs; the pods of a list, plus pods drawn
from it again until their demand is 130 % of the cluster, in random order; each pod is placed once or dropped, none
leaves. Reported is the allocated GPU in % of all GPUs when the demand that has arrived reaches 90 … 130 %.
The rule learns its tables from the arrivals so far, as the scheduler does. Ties between nodes are broken at random.

    python -m benchmarks.packing_openb --traces FOLDER        # FOLDER holds openb/

The lists are not part of this repository: `data/csv` of github.com/hkust-adsl/kubernetes-scheduler-simulator.
"""

from __future__ import annotations

import csv
import gzip
import statistics
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import measuring
from optimus.decide.packing import Room, idle_by_model, learn
from optimus.decide.placement.usable import Ask, CompiledTables, gain
from optimus.model.packing import MixEntry, PackingTables

ROOT = Path(__file__).resolve().parents[1]
LISTS = (
    "default",
    *("cpu050", "cpu100", "cpu200"),
    *("gpushare40", "gpushare60"),
    *("gpuspec10", "gpuspec20"),
    *("multigpu20", "multigpu30"),
)
WHAT = (
    "allocated GPU in % of 6,212 GPUs when the arrived demand reaches the load in %; fgd: published, mean of 10 seeds"
)
LOADS = (90, 95, 100, 130)
FIRST_REFRESH, REFRESH_EVERY = 50, 150
DEVICES = 8
NO_ROOM = np.iinfo(np.int64).min


class Shape(NamedTuple):
    """Pods that are alike."""

    cpu_milli: int
    memory_mib: int
    gpu_count: int
    gpu_milli: int
    models: tuple[str, ...]


class Cluster:
    """Free room on the nodes, and score rows by shape that are brought up to date only where nodes changed."""

    def __init__(self, room: Room) -> None:
        self.room = Room(room.gpus.copy(), room.device_model, room.cpu.copy(), room.memory.copy(), room.models)
        self.adopt(PackingTables())

    def adopt(self, tables: PackingTables) -> None:
        self.tables = CompiledTables(tables, self.room.models)
        self.changed: list[int] = []
        self.rows: dict[Shape, tuple[Ask, NDArray[np.int64], NDArray[np.int64], int]] = {}

    def place(self, shape: Shape, ties: np.random.Generator) -> bool:
        devices, score = self._row(shape)
        best = score.max()
        if best == NO_ROOM:
            return False
        nodes = np.flatnonzero(score == best)
        node = int(nodes[ties.integers(len(nodes))]) if len(nodes) > 1 else int(nodes[0])
        gpus = self.room.gpus[node]
        if shape.gpu_count:
            shared = shape.gpu_milli < 1000
            chosen = devices[node : node + 1] if shared else np.flatnonzero(gpus == 1000)[: shape.gpu_count]
            gpus[chosen] -= shape.gpu_milli
        self.room.cpu[node] -= shape.cpu_milli
        self.room.memory[node] -= shape.memory_mib
        assert gpus.min() >= 0 <= min(self.room.cpu[node], self.room.memory[node])
        self.changed.append(node)
        return True

    def _row(self, shape: Shape) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        known = self.rows.get(shape)
        if known is None:
            ask = self.tables.ask(
                gpu_count=shape.gpu_count,
                gpu_milli=shape.gpu_milli,
                cpu_milli=shape.cpu_milli,
                memory_mib=shape.memory_mib,
                allowed=[model in shape.models for model in self.room.models] if shape.models else None,
            )
            devices, score = self._evaluate(shape, ask, slice(None))
        else:
            ask, devices, score, seen = known
            if seen < len(self.changed):
                nodes = np.array(list(set(self.changed[seen:])))
                devices[nodes], score[nodes] = self._evaluate(shape, ask, nodes)
        self.rows[shape] = ask, devices, score, len(self.changed)
        return devices, score

    def _evaluate(
        self, shape: Shape, ask: Ask, nodes: slice | NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        gpus, model = self.room.gpus[nodes], self.room.device_model[nodes]
        cpu, memory = self.room.cpu[nodes], self.room.memory[nodes]
        fits = (cpu >= shape.cpu_milli) & (memory >= shape.memory_mib)
        if shape.gpu_count:
            fitting = gpus >= shape.gpu_milli
            if shape.models:
                fitting &= np.isin(model, [i for i, name in enumerate(self.room.models) if name in shape.models])
            fits &= fitting.sum(axis=1) >= shape.gpu_count
        gains = gain(self.tables, ask, gpus, model, cpu, memory)
        return gains.device, np.where(fits, gains.gain, NO_ROOM)


class Reached(NamedTuple):
    allocated: dict[int, float]
    """GPU in % of all, by load."""
    cpu_only: float
    """Of the pods without a GPU, so many percent had found a place in the end."""


class Count:
    """What has arrived and what was placed of it."""

    def __init__(self, capacity: int, loads: Iterable[int]) -> None:
        self._capacity, self._loads = capacity, tuple(loads)
        self._arrived = self._allocated = self._without_gpu = self._placed_without_gpu = 0
        self._reached: dict[int, float] = {}

    def add(self, pod: Shape, *, placed: bool) -> None:
        self._arrived += demand_of(pod)
        self._allocated += placed * demand_of(pod)
        self._without_gpu += not pod.gpu_count
        self._placed_without_gpu += placed and not pod.gpu_count
        for load in self._loads:
            if load not in self._reached and self._arrived >= self._capacity * load / 100:
                self._reached[load] = 100 * self._allocated / self._capacity

    def reached(self) -> Reached:
        return Reached(self._reached, 100 * self._placed_without_gpu / max(self._without_gpu, 1))


def run(traces: Path, case: tuple[str, int]) -> Reached:
    """One list and one seed."""
    name, seed = case
    pods = read_pods(traces, name)
    room = read_nodes(traces)
    capacity = int(room.gpus.sum())
    order, ties = np.random.default_rng([seed, 0]), np.random.default_rng([seed, 1])
    cluster = Cluster(room)
    counts: dict[Shape, int] = {}
    count = Count(capacity, LOADS)
    for number, pod in enumerate(arrivals(pods, capacity, order), start=1):
        counts[pod] = counts.get(pod, 0) + 1
        if number >= FIRST_REFRESH and (number - FIRST_REFRESH) % REFRESH_EVERY == 0:
            mix = [MixEntry(count, *shape) for shape, count in counts.items()]
            cluster.adopt(learn(mix, idle_by_model(cluster.room), cluster.room))
        count.add(pod, placed=cluster.place(pod, ties))
    return count.reached()


def arrivals(pods: list[Shape], capacity: int, order: np.random.Generator) -> Iterator[Shape]:
    """The published protocol: the list, filled up from itself to the last load, in random order."""
    arriving = list(pods)
    demand = sum(demand_of(pod) for pod in pods)
    while demand < capacity * LOADS[-1] / 100:
        pod = pods[order.integers(len(pods))]
        arriving.append(pod)
        demand += demand_of(pod)
    return (arriving[index] for index in order.permutation(len(arriving)))


def demand_of(pod: Shape) -> int:
    return pod.gpu_count * pod.gpu_milli


def read_nodes(traces: Path) -> Room:
    with (traces / "openb_node_list_gpu_node.csv").open() as file:
        nodes = list(csv.DictReader(file))
    models = tuple(sorted({node["model"] for node in nodes}))
    count = np.array([int(node["gpu"]) for node in nodes])
    present = np.arange(DEVICES) < count[:, None]
    model = np.array([models.index(node["model"]) for node in nodes])
    return Room(
        gpus=np.where(present, 1000, 0),
        device_model=np.where(present, model[:, None], -1),
        cpu=np.array([int(node["cpu_milli"]) for node in nodes]),
        memory=np.array([int(node["memory_mib"]) for node in nodes]),
        models=models,
    )


def read_pods(traces: Path, name: str) -> list[Shape]:
    with gzip.open(traces / f"openb_pod_list_{name}.csv.gz", "rt") as file:
        return [
            Shape(
                cpu_milli=int(pod["cpu_milli"]),
                memory_mib=int(pod["memory_mib"]),
                gpu_count=int(pod["num_gpu"]),
                gpu_milli=int(pod["gpu_milli"]) if int(pod["num_gpu"]) == 1 else 1000 * (int(pod["num_gpu"]) > 0),
                models=tuple(sorted({model for model in pod.get("gpu_spec", "").split("|") if model})),
            )
            for pod in csv.DictReader(file)
        ]


def read_published(traces: Path) -> dict[str, dict[int, float]]:
    with (traces / "expected_gpu_allocation_pct.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if "FGD" in row["sc_policy"]]
    return {row["workload"]: {load: float(row[f"load{load}_mean"]) for load in LOADS} for row in rows}


def main(arguments: Iterable[str] | None = None) -> int:
    parser = measuring.parser("packing_openb", __doc__)
    parser.add_argument("--traces", type=Path, default=ROOT.parent / "shared" / "traces", metavar="FOLDER")
    parser.add_argument("--lists", nargs="*", default=list(LISTS), choices=LISTS)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    options = parser.parse_args(None if arguments is None else list(arguments))
    traces = measuring.folder_of(options.traces, "openb")
    if not (traces / "openb_node_list_gpu_node.csv").exists():
        print(f"No openb lists in {traces}: give their folder with --traces (see --help)", file=sys.stderr)
        return 2
    published = read_published(traces)
    table: dict[str, Any] = {}
    cpu_only: dict[str, float] = {}
    print(f"{'list':<11} {'load %':>7} {'FGD':>7} {'optimus':>8} {'sd':>5} {'gain':>6}")
    with ProcessPoolExecutor(options.jobs) as pool:
        for name in options.lists:
            runs = list(pool.map(partial(run, traces), [(name, seed) for seed in range(options.seeds)]))
            table[name] = {
                str(load): compare([r.allocated[load] for r in runs], published[name][load]) for load in LOADS
            }
            cpu_only[name] = round(statistics.mean(r.cpu_only for r in runs), 2)
            for load, row in table[name].items():
                ours = f"{row['optimus']:8.2f} {row['sd']:5.2f} {row['gain']:+6.2f}"
                print(f"{name:<11} {load:>7} {row['fgd']:7.2f} {ours}", flush=True)
            print(f"{name:<11} of the pods without a GPU {cpu_only[name]:.2f} % were placed", flush=True)
    summary = {load: summarise([rows[str(load)]["gain"] for rows in table.values()]) for load in LOADS}
    print("gain over FGD:", {load: f"mean {s['mean']:+.2f}, worst {s['worst']:+.2f}" for load, s in summary.items()})
    if set(options.lists) == set(LISTS):
        result = {
            "seeds": list(range(options.seeds)),
            "what": WHAT,
            "refresh": {"first": FIRST_REFRESH, "every": REFRESH_EVERY},
            "lists": table,
            "cpu_only_placed_percent": cpu_only,
            "gain": {str(load): row for load, row in summary.items()},
        }
        measuring.write("packing_openb", result)
    return 0


def compare(allocated: list[float], fgd: float) -> dict[str, float]:
    mean = statistics.mean(allocated)
    spread = statistics.stdev(allocated) if len(allocated) > 1 else 0.0
    return {"fgd": round(fgd, 2), "optimus": round(mean, 2), "sd": round(spread, 3), "gain": round(mean - fgd, 2)}


def summarise(gains: list[float]) -> dict[str, float]:
    return {"mean": round(statistics.mean(gains), 2), "worst": round(min(gains), 2)}


if __name__ == "__main__":
    raise SystemExit(main())
