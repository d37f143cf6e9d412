"""What was loaded can be played: by the real engine, to the end."""

from __future__ import annotations

from pathlib import Path

from optimus.drivers.sim.brain import Brain
from optimus.drivers.sim.clockwork import Clockwork
from optimus.drivers.sim.records import Record
from optimus.drivers.sim.traces.formats import load
from optimus.drivers.sim.traces.synthetic import Mix, generate
from optimus.drivers.sim.traces.trace import Trace
from optimus.engine.engine import Engine
from tests.sim.traces.lists import GAVEL, ITP, PHILLY, RATES, THROUGHPUTS, written


def played(trace: Trace) -> Record:
    assert trace.setup is not None
    return Clockwork(trace.setup, trace.jobs).play(Brain(Engine()))


def ends(record: Record) -> dict[str, int | None]:
    return {job.name: job.end_ms for job in record.jobs}


def test_rigid_jobs_with_room_end_after_their_duration(tmp_path: Path) -> None:
    record = played(load(written(tmp_path, "philly.csv", PHILLY), cluster_gpus=64))
    assert ends(record) == {"0": 120_000, "1": 60_000 + 30_500, "2": 120_000 + 600_000}


def test_a_job_on_the_faster_gpus_is_done_sooner(tmp_path: Path) -> None:
    written(tmp_path, "throughputs_simulation.csv", RATES)
    record = played(load(written(tmp_path, "jobs.csv", GAVEL), gpus_of_each=4))
    assert ends(record)["0"] in (100_000, 500_000)  # on a V100 or on a K80
    assert all(job.end_ms is not None and not job.rejected for job in record.jobs)


def test_elastic_jobs_are_taken_as_such(tmp_path: Path) -> None:
    speeds = written(tmp_path, "throughputs.csv", THROUGHPUTS)
    record = played(load(written(tmp_path, "jobs.csv", ITP), throughputs=speeds, cluster_gpus=8))
    assert all(job.end_ms is not None for job in record.jobs)


def test_a_synthetic_day(tmp_path: Path) -> None:
    record = played(generate(Mix(jobs=60, gpus=32)))
    assert all(job.end_ms is not None and not job.rejected for job in record.jobs)
