"""Chronus: jobs with deadlines and jobs without, some of them on CPUs only, and what spreading costs five models.

    job_id, user, num_gpu (0: CPUs only), submit_time, model_name, duration, expect_time_list, job_type
    placement_slowdown.json    model -> GPUs -> nodes used -> speed relative to one node; beside the list, or named

A job of `job_type` strict must end within `expect_time_list` seconds of its submission (the last one, where there are
several steps); a best-effort job has no deadline. The value of a deadline is not used. A user becomes a queue.
A GPU job is replicas of one GPU each, so that it can be spread; the cost of a number of nodes between two that were
measured is that of the larger one. Rows are in no order of time.
Source: Gao et al., SoCC'21, and its artifact; the list is derived from Philly.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.traces.gathering import Cluster, Gathering
from optimus.drivers.sim.traces.rows import Row, RowError, Table, shown
from optimus.drivers.sim.traces.trace import Trace, TraceError
from optimus.drivers.sim.works.steady import Steady

COLUMNS = ("job_id", "user", "num_gpu", "submit_time", "model_name", "duration", "expect_time_list", "job_type")
SLOWDOWN = "placement_slowdown.json"
_KINDS = ("strict", "best")

Slowdowns = dict[str, dict[int, dict[int, float]]]


def load_chronus(
    path: Path,
    *,
    slowdown: Path | None = None,
    cluster_gpus: int | None = None,
    gpus_per_node: int = 8,
    cpu_milli: int = 1000,
) -> Trace:
    """`cpu_milli`: of a job without GPUs; the list does not say how much it takes."""
    table = Table(path)
    table.demand(*COLUMNS)
    cluster = Cluster(cluster_gpus, per_node=gpus_per_node)
    beside = path.parent / SLOWDOWN
    slowdowns = load_slowdowns(slowdown or beside) if slowdown or beside.exists() else {}
    gathering = Gathering(table, in_order=False)
    if not slowdowns:
        gathering.problems.note(f"no {SLOWDOWN} beside it; spreading a job over nodes costs nothing")
    gathering.take(lambda row: _job(row, cluster, slowdowns, cpu_milli))
    return gathering.trace(nodes=cluster.nodes())


def _job(row: Row, cluster: Cluster, slowdowns: Slowdowns, cpu_milli: int) -> Job:
    gpus = row.gpus_or_none("num_gpu")
    cluster.demand_room(gpus)
    model, kind = row.text("model_name"), row.text("job_type")
    if kind not in _KINDS:
        raise RowError(f"job_type is {shown(kind)}; write strict or best")
    submit_ms = row.ms("submit_time")
    replicas = max(gpus, 1)
    work = Steady(
        duration_ms=row.duration_ms("duration"),
        replicas=replicas,
        speed_by_nodes=_speed_by_nodes(slowdowns.get(model, {}).get(gpus, {}), -(-gpus // cluster.per_node)),
    )
    return Job(
        name=row.name("job_id"),
        submit_ms=submit_ms,
        work=work,
        queue=row.text("user") or "default",
        family=model,
        replicas=replicas,
        gpus=1 if gpus else 0,
        cpu_milli=0 if gpus else cpu_milli,
        deadline_ms=submit_ms + _last_step_ms(row) if kind == "strict" else None,
    )


def _last_step_ms(row: Row) -> int:
    text = row.text("expect_time_list")
    try:
        steps = [float(step) for step in text.replace("-", " ").split()]
    except ValueError:
        steps = []
    if not steps or max(steps) <= 0:
        raise RowError(f"expect_time_list is {shown(text)}; write the seconds from submission to deadline")
    return round(max(steps) * 1000)


def _speed_by_nodes(measured: dict[int, float], least_nodes: int) -> tuple[float, ...]:
    """Relative to as few nodes as possible, which is where its duration was measured."""
    if not measured:
        return ()
    most = max(measured)
    speeds = [measured[min(n for n in measured if n >= nodes)] for nodes in range(1, most + 1)]
    least = speeds[min(least_nodes, most) - 1]
    return tuple(speed / least for speed in speeds)


def load_slowdowns(path: Path) -> Slowdowns:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Slowdowns)
    except FileNotFoundError:
        raise TraceError(f"{path}: there is no such file") from None
    except msgspec.MsgspecError as error:
        message = f"{path}: {error}; expected model -> GPUs -> nodes -> speed, as in"
        raise TraceError(f'{message} {{"vgg16": {{"4": {{"1": 1.0, "2": 0.58}}}}}}') from None
