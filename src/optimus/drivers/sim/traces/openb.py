"""openb: pods of an Alibaba cluster that shares GPUs, and its nodes.

    openb_node_list_gpu_node.csv     sn, cpu_milli, memory_mib, gpu, model
    openb_pod_list_default.csv       name, cpu_milli, memory_mib, num_gpu, gpu_milli, and where the list has them
                                     gpu_spec (models joined with |), qos, creation_time, scheduled_time, deletion_time

The nodes are the set-up; a pod is a job of one replica, on a part of a device when `gpu_milli` is below 1000. It runs
from `scheduled_time` to `deletion_time`; a pod that was never scheduled has no run time and is left out. Pods of
class LS (latency-sensitive) are inference, the others unattended.

A list without times, or any with `closed`, is a closed workload: every pod is there at the beginning and none ends.
Only placement can be measured on it (how much of the cluster gets allocated); the simulation needs an end.
Source: Weng et al., ATC'23.
"""

from __future__ import annotations

from pathlib import Path

from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.setup import Setup
from optimus.drivers.sim.traces.gathering import Gathering
from optimus.drivers.sim.traces.rows import Row, RowError, Table, positive_ms
from optimus.drivers.sim.traces.trace import ENDLESS_MS, Trace, TraceError, TraceProblem
from optimus.drivers.sim.works.steady import Steady
from optimus.model.nodes import WHOLE_DEVICE_MILLI, Device, Node
from optimus.model.workloads import ModelSpeed, WorkloadClass

NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
TIMES = ("creation_time", "scheduled_time", "deletion_time")
NODE_LISTS = ("openb_node_list_gpu_node.csv", "openb_node_list_all_node.csv")
POD_LISTS = ("openb_pod_list_default.csv.gz", "openb_pod_list_default.csv")


def load_openb(path: Path, *, nodes: Path | None = None, closed: bool = False) -> Trace:
    """`path` is a list of pods, or a folder with the default one; `nodes` the list of nodes, by default beside it."""
    if path.is_dir():
        path = _first(path, POD_LISTS, "list of pods")
    table = Table(path)
    table.demand(*COLUMNS)
    cluster, more = load_nodes(nodes or _first(path.parent, NODE_LISTS, "list of nodes"))
    timed = all(column in table for column in TIMES) and not closed
    shapes = _Shapes(cluster)
    gathering = Gathering(table)
    if not timed:
        gathering.problems.note(
            "a closed workload: all pods are there at the beginning and none ends, so placement can be measured and "
            "completion times cannot; give the simulation an end"
        )
    gathering.take(lambda row: _job(row, shapes, timed=timed))
    return gathering.trace(setup=Setup(nodes=cluster), more=more, endless=not timed)


def load_nodes(path: Path) -> tuple[tuple[Node, ...], list[TraceProblem]]:
    table = Table(path)
    table.demand(*NODE_COLUMNS)
    nodes: dict[str, Node] = {}

    def add(row: Row) -> None:
        name, gpus = row.name("sn"), row.gpus_or_none("gpu")
        if name in nodes:
            raise RowError(f"{name} is there twice; give each node its own name")
        model = row.text("model")
        if gpus and not model:
            raise RowError("model is empty; name the model of the GPUs")
        nodes[name] = Node(
            name=name,
            cpu_milli=row.whole("cpu_milli"),
            memory_mib=row.whole("memory_mib"),
            devices=tuple(Device(index=i, model=model) for i in range(gpus)),
        )

    table.for_each(add)
    if not nodes:
        raise TraceError(f"{path}: no node in it; expected rows of {', '.join(NODE_COLUMNS)}")
    return tuple(nodes.values()), table.problems.found


def _job(row: Row, shapes: _Shapes, *, timed: bool) -> Job:
    gpus, milli = row.gpus_or_none("num_gpu"), row.whole("gpu_milli")
    cpu, memory = row.whole("cpu_milli"), row.whole("memory_mib")
    if min(cpu, memory) < 0:
        raise RowError("asks for less than nothing; correct cpu_milli and memory_mib")
    if gpus and not 0 < milli <= WHOLE_DEVICE_MILLI:
        raise RowError(f"gpu_milli is {milli}; write 1 to 1000 thousandths of a device")
    if gpus > 1 and milli != WHOLE_DEVICE_MILLI:
        raise RowError(f"gpu_milli is {milli} and num_gpu {gpus}; only a single device can be shared")
    models = tuple(filter(None, row.text_or("gpu_spec").split("|"))) if gpus else ()
    if not shapes.fit(gpus, cpu, memory, models):
        raise RowError("no node of the cluster is large enough for it, or has its GPU model; it could never start")
    duration_ms = positive_ms("run time", _ran_ms(row)) if timed else ENDLESS_MS
    return Job(
        name=row.name("name"),
        submit_ms=row.ms("creation_time") if timed else 0,
        work=Steady(duration_ms=duration_ms),
        workload_class=WorkloadClass.INFERENCE if row.text_or("qos") == "LS" else WorkloadClass.UNATTENDED,
        gpus=gpus,
        gpu_milli=milli if gpus else WHOLE_DEVICE_MILLI,
        models=tuple(ModelSpeed(model) for model in models),
        cpu_milli=cpu,
        memory_mib=memory,
    )


def _ran_ms(row: Row) -> float:
    if not row.text("scheduled_time"):
        raise RowError("was never scheduled, so nobody knows how long it would have run; closed workloads include it")
    return (row.number("deletion_time") - row.number("scheduled_time")) * 1000


class _Shapes:
    """The kinds of nodes that there are."""

    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self._kinds = {
            (len(n.devices), n.devices[0].model if n.devices else "", n.cpu_milli, n.memory_mib) for n in nodes
        }
        self._known: dict[tuple[int, int, int, tuple[str, ...]], bool] = {}

    def fit(self, gpus: int, cpu: int, memory: int, models: tuple[str, ...]) -> bool:
        key = (gpus, cpu, memory, models)
        if key not in self._known:
            self._known[key] = any(
                gpus <= has_gpus and cpu <= has_cpu and memory <= has_memory and (not models or model in models)
                for has_gpus, model, has_cpu, has_memory in self._kinds
            )
        return self._known[key]


def _first(folder: Path, names: tuple[str, ...], what: str) -> Path:
    for name in names:
        if (folder / name).exists():
            return folder / name
    raise TraceError(f"{folder}: no {what} in it; expected {' or '.join(names)}, or name another file")
