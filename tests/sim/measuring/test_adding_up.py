"""Whatever was played: every GPU-second is somewhere, once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimus.drivers.sim.clockwork import Clockwork
from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.measuring import Watched, measure
from optimus.drivers.sim.measuring.timelines import bins, gpus, integral, means, waiting, window
from optimus.drivers.sim.peers.tiresias import tiresias
from optimus.drivers.sim.setup import Outage, Setup, uniform_nodes
from optimus.drivers.sim.works.steady import Steady


@st.composite
def traces(draw: st.DrawFn) -> list[Job]:
    jobs = []
    for i in range(draw(st.integers(1, 12))):
        gpus_ = draw(st.sampled_from([1, 2, 4, 8]))
        jobs.append(
            Job(
                name=f"job-{i:02d}",
                submit_ms=draw(st.integers(0, 7_200_000)),
                replicas=gpus_,
                work=Steady(duration_ms=draw(st.integers(1, 40)) * 60_000.0, replicas=gpus_),
                queue=draw(st.sampled_from(["x", "y"])),
                checkpoint_ms=draw(st.sampled_from([0, 300_000, None])),
                fails_at=draw(st.sampled_from([(), (0.5,)])),
            )
        )
    return jobs


@settings(max_examples=40)
@given(jobs=traces(), outage=st.booleans())
def test_time_adds_up(jobs: list[Job], outage: bool) -> None:
    lost = (Outage(node="gpu-1", at_ms=1_800_000, for_ms=600_000),) if outage else ()
    setup = Setup(nodes=uniform_nodes(2, 4), interval_ms=60_000, outages=lost)
    record = Clockwork(setup, jobs).play(tiresias())
    told = measure(record, jobs, setup)
    table, use = told.columns, told.metrics.use
    held = sum((s.end_ms - s.start_ms) * s.gpu_milli // 1000 for s in record.segments)
    assert table.gpu_ms.sum() == held
    assert integral(gpus(table), np.array([record.end_ms + 1]))[0] == pytest.approx(held)
    assert use.useful_gpu_hours + use.paused_gpu_hours + use.lost_gpu_hours == pytest.approx(use.gpu_hours, abs=1e-5)
    assert integral(waiting(table), np.array([record.end_ms + 1]))[0] == pytest.approx(table.wait_ms.sum())
    assert (table.longest_wait_ms <= table.wait_ms + 1e-6).all()
    assert (table.first_wait_ms <= table.longest_wait_ms).all()
    assert (table.useful_gpu_ms >= -1e-6).all() and (table.lost_gpu_ms >= -1e-6).all()
    assert use.allocated is not None and 0 < use.allocated <= 1 + 1e-9
    assert use.allocated_while_waiting is None or use.allocated_while_waiting <= 1 + 1e-9
    assert sum(q.due_gpu_hours for q in told.metrics.queues) <= sum(table.asked.gpus * table.jct_ms) / 3_600_000 + 1e-6
    # Work that is never slowed down is worth exactly the useful time it took.
    assert use.goodput == pytest.approx(use.useful, abs=1e-4)


@settings(max_examples=20)
@given(jobs=traces(), most=st.integers(1, 50))
def test_means_over_bins_lose_nothing(jobs: list[Job], most: int) -> None:
    setup = Setup(nodes=uniform_nodes(2, 4), interval_ms=60_000)
    table = measure(Clockwork(setup, jobs).play(tiresias()), jobs, setup).columns
    edges = bins(*window(table), most)
    assert len(edges) - 1 <= most and edges[-1] >= window(table)[1]
    assert means(gpus(table), edges) @ np.diff(edges) == pytest.approx(table.gpu_ms.sum())


def test_watching_changes_nothing() -> None:
    jobs = [
        Job(name=f"job-{i}", submit_ms=i * 100_000, replicas=1 + i % 4, work=Steady(duration_ms=900_000.0))
        for i in range(12)
    ]
    setup = Setup(nodes=uniform_nodes(2, 4), interval_ms=60_000)
    ticks = iter(range(0, 10**9, 500_000))
    watched = Watched(tiresias(), timer=lambda: next(ticks))
    assert Clockwork(setup, jobs).play(watched) == Clockwork(setup, jobs).play(tiresias())
    took = watched.decision_ms()
    assert took is not None and set(took.tolist()) == {0.5}
