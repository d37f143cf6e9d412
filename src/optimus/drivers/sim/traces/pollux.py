"""Pollux: six applications measured on T4 GPUs, and lists of jobs that run them.

    apps_t4/<application>/placements.csv     placement, local_bsz, step_time, sync_time
                          scalability.csv    num_nodes, num_replicas, local_bsz, step_time, sync_time
                          validation-<batch>.csv   progress, iteration, metric, grad_sqr, grad_var; a row per epoch
    workloads_load1.0/workload-1.csv         name, time, application, num_replicas, batch_size

A job can be run in three ways, which must not be mixed in one table. In all of them its ideal is what its owner asked
for, as far as it can have it; where sizes are free, policies see the range and not that number. Times are kept as they
are: decisions fall on whole minutes, and a shift would move them. The set-up is that of the paper's simulations: 16
nodes of four T4, decisions every 60 s, 30 s for each start.
Source: the artifact of Qiao et al., OSDI'21.
"""

from __future__ import annotations

import csv
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.setup import Setup, uniform_nodes
from optimus.drivers.sim.traces.gathering import Gathering
from optimus.drivers.sim.traces.rows import Row, RowError, Table, shown
from optimus.drivers.sim.traces.trace import Trace, TraceError
from optimus.drivers.sim.works.training import Application, Epochs, Training

COLUMNS = ("name", "time", "application", "num_replicas", "batch_size")
APPLICATIONS = "apps_t4"
RESTART_MS = 30_000
MOST_REPLICAS = 64
_MOST_LOCAL = {"yolov3": 8}
"""A limit of the artifact that its tables do not show."""
_ALONE = {"ncf": 32_768}
"""Does not scale: one replica with this batch, whoever decides."""


class Mode(StrEnum):
    RIGID = "rigid"  # replicas and batch size as asked for
    SCALING = "scaling"  # batch size as asked for, any number of replicas
    ADAPTIVE = "adaptive"  # both are free


def load_pollux(path: Path, *, applications: Path | None = None, mode: Mode | str = Mode.RIGID) -> Trace:
    """`applications` is the folder of the measured ones; by default `apps_t4` beside the list or its folder."""
    if mode not in tuple(Mode):
        raise TraceError(f"mode is {mode}; it is one of {', '.join(Mode)}")
    table = Table(path)
    table.demand(*COLUMNS)
    folder = applications or _find_applications(path)
    gathering = Gathering(table, from_zero=False)
    gathering.take(lambda row: _job(row, folder, Mode(mode)))
    return gathering.trace(setup=published_setup())


def published_setup() -> Setup:
    return Setup(nodes=uniform_nodes(16, 4, model="t4"), interval_ms=60_000)


def load_jobs(workload: Path, applications: Path, mode: Mode) -> list[Job]:
    return list(load_pollux(workload, applications=applications, mode=mode).jobs)


def _find_applications(path: Path) -> Path:
    for parent in path.parents[:2]:
        if (parent / APPLICATIONS).is_dir():
            return parent / APPLICATIONS
    raise TraceError(f"{path}: no {APPLICATIONS} beside it or its folder; name the folder of measured applications")


@lru_cache(maxsize=16)
def load_application(folder: Path) -> Application:
    try:
        return _application(folder)
    except FileNotFoundError as error:
        raise TraceError(f"{error.filename}: there is no such file") from None
    except (KeyError, ValueError) as error:
        raise TraceError(f"{folder}: not as measured applications are written: {error!r}") from None


def _application(folder: Path) -> Application:
    placements: dict[int, list[tuple[int, float, float]]] = {}
    for row in _rows(folder / "placements.csv"):
        measured = (int(row["local_bsz"]), float(row["step_time"]), float(row["sync_time"]))
        placements.setdefault(int(row["placement"]), []).append(measured)
    scalability = [
        (int(r["num_nodes"]), int(r["num_replicas"]), int(r["local_bsz"]), float(r["step_time"]), float(r["sync_time"]))
        for r in _rows(folder / "scalability.csv")
    ]
    validation = {}
    for path in sorted(folder.glob("validation-*.csv")):
        rows = _rows(path)
        validation[int(path.stem.partition("-")[2])] = Epochs(
            progress=tuple(float(r["progress"]) for r in rows),
            iteration=tuple(int(float(r["iteration"])) for r in rows),
            grad_sqr=tuple(float(r["grad_sqr"]) for r in rows),
            grad_var=tuple(float(r["grad_var"]) for r in rows),
        )
    return Application(
        folder.name,
        placements=placements,
        scalability=scalability,
        validation=validation,
        max_epochs=min(len(epochs.progress) for epochs in validation.values()),
        most_local=_MOST_LOCAL.get(folder.name),
    )


def _job(row: Row, applications: Path, mode: Mode) -> Job:
    name = row.name("application")
    if not (applications / name).is_dir():
        known = sorted(folder.name for folder in applications.iterdir() if folder.is_dir())
        raise RowError(f"application is {shown(name)}; measured are {', '.join(known)}")
    application = load_application(applications / name)
    asked, batch = row.gpus("num_replicas"), row.whole("batch_size")
    limits = application.batches
    if not limits.initial <= batch <= limits.most:
        raise RowError(f"batch_size is {batch}; {name} was measured with {limits.initial} to {limits.most}")
    elastic = mode is not Mode.RIGID
    most = MOST_REPLICAS
    if mode is Mode.SCALING:
        most = min(most, max(batch // limits.least_local, 1))
    elif mode is Mode.ADAPTIVE:
        most = min(most, limits.most // limits.least_local)
    alone = _ALONE.get(application.name) if elastic else None
    tuned = None if mode is Mode.ADAPTIVE else batch
    if alone is not None:
        most = 1
        tuned = alone if mode is Mode.ADAPTIVE else batch
    replicas = min(asked, most) if elastic else asked
    return Job(
        name=row.name("name"),
        submit_ms=row.ms("time"),
        family=application.name,
        work=Training(application, tuned, replicas),
        replicas=replicas,
        min_replicas=1 if elastic else 0,
        max_replicas=most if elastic else 0,
        start_ms=RESTART_MS,
        restart_ms=RESTART_MS,
    )


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))
