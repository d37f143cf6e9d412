"""Any CSV: jobs from a list of one's own, by a mapping file (see `mapping`).

`gpus` are all devices of a job, split over as few nodes as possible, unless `replicas` says into how many parts;
`models` are the GPU models it may use, joined with `|`. A job with `minReplicas` and `maxReplicas` is elastic, and
its speed is in proportion to its replicas. A job of 0 GPUs must ask for CPUs. Times are shifted so that the first
submission is 0.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import structs

from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.traces.gathering import Cluster, Gathering, split_gpus
from optimus.drivers.sim.traces.mapping import Mapping, constant_of, load_mapping, reader_of
from optimus.drivers.sim.traces.rows import Row, RowError, Table, counted_gpus, positive_ms, shown
from optimus.drivers.sim.traces.trace import Trace
from optimus.drivers.sim.works.steady import Steady
from optimus.model.nodes import WHOLE_DEVICE_MILLI
from optimus.model.workloads import ModelSpeed, WorkloadClass

_NEVER_NEGATIVE = ("minReplicas", "maxReplicas", "cpu", "memory")


def load_csv(path: Path, *, mapping: Path, cluster_gpus: int | None = None, gpus_per_node: int | None = None) -> Trace:
    """The cluster of the options counts before that of the mapping."""
    meaning = load_mapping(mapping)
    table = Table(path, encoding=meaning.encoding, delimiter=meaning.delimiter)
    fields = {field: column for field in meaning.columns if (column := meaning.column(field))}
    table.demand(*dict.fromkeys(column.column for column in fields.values()))
    cluster = Cluster(
        cluster_gpus or meaning.cluster.gpus,
        per_node=gpus_per_node or meaning.cluster.per_node,
        model=meaning.cluster.model,
    )
    cells = _Cells(meaning)
    gathering = Gathering(table)
    gathering.take(lambda row: _job(row.line, cells.read(row), cluster))
    trace = gathering.trace(nodes=cluster.nodes())
    return structs.replace(trace, name=meaning.name or trace.name)


class _Cells:
    """What a row says, field by field; constants for what it does not."""

    def __init__(self, meaning: Mapping) -> None:
        self._constants = {field: constant_of(field, value) for field, value in meaning.constants.items()}
        self._columns: list[tuple[str, str, dict[str, str], str | None, Callable[[str], object]]] = []
        for field in meaning.columns:
            column = meaning.column(field)
            assert column is not None
            values = {key: str(value) for key, value in column.values.items()}
            default = None if column.default is None else str(column.default)
            self._columns.append((field, column.column, values, default, reader_of(field, column)))

    def read(self, row: Row) -> dict[str, Any]:
        said = dict(self._constants)
        for field, column, values, default, read in self._columns:
            text = row.text(column)
            text = values.get(text, text)
            if not text and default is not None:
                text = default
            if text:
                said[field] = read(text)
        return said


def _job(line: int, said: dict[str, Any], cluster: Cluster) -> Job:
    for field in _NEVER_NEGATIVE:
        if said.get(field, 0) < 0:
            raise RowError(f"{field} is negative; there cannot be less than nothing of it")
    total = counted_gpus("gpus", said.get("gpus", 1))
    if not total and not said.get("cpu"):
        raise RowError("gpus is 0 and no cpu is asked for; leave the job out, give it a GPU, or say what CPU it needs")
    cluster.demand_room(total)
    replicas, gpus = _parts(total, said.get("replicas"), cluster.per_node)
    least, most = said.get("minReplicas", 0), said.get("maxReplicas", 0)
    if least and not least <= replicas <= max(most, replicas):
        raise RowError(f"minReplicas is {least}, and the job has {replicas}; it must not be above that")
    if "submit" not in said:
        raise RowError("the time of submission is empty; every job needs one")
    milli = said.get("gpuMilli", WHOLE_DEVICE_MILLI)
    if not 0 < milli <= WHOLE_DEVICE_MILLI:
        raise RowError(f"gpuMilli is {milli}; write 1 to 1000 thousandths of a device")
    return Job(
        name=said.get("name", f"line-{line}"),
        submit_ms=said["submit"],
        work=Steady(duration_ms=_duration_ms(said), replicas=replicas),
        queue=said.get("queue", "default"),
        family=said.get("family", ""),
        workload_class=_class(said.get("class", "unattended")),
        priority=said.get("priority"),
        replicas=replicas,
        min_replicas=least,
        max_replicas=most,
        gpus=gpus,
        gpu_milli=milli,
        models=tuple(ModelSpeed(model) for model in said.get("models", "").split("|") if model),
        cpu_milli=said.get("cpu", 0),
        memory_mib=said.get("memory", 0),
        expected_ms=said.get("expected"),
        deadline_ms=said.get("deadline"),
    )


def _parts(total: int, replicas: int | None, per_node: int) -> tuple[int, int]:
    if replicas is None:
        return split_gpus(total, per_node) if total else (1, 0)
    if replicas < 1 or total % replicas:
        raise RowError(f"{total} GPUs cannot be split into {replicas} equal replicas; correct one of them")
    if total // replicas > per_node:
        raise RowError(f"a replica of {total // replicas} GPUs fits on no node of {per_node}; split it into more")
    return replicas, total // replicas


def _duration_ms(said: dict[str, Any]) -> int:
    if "duration" in said:
        return positive_ms("duration", said["duration"])
    if "start" not in said or "end" not in said:
        raise RowError("its duration is empty, or its start or end; a job that has not ended has no duration yet")
    return positive_ms("end - start", said["end"] - said["start"])


def _class(text: str) -> WorkloadClass:
    try:
        return WorkloadClass(text)
    except ValueError:
        known = ", ".join(WorkloadClass)
        raise RowError(f"class is {shown(text)}; it is one of {known}; `values` in the mapping translates") from None
