"""Every peer can be found, says what it is, and finishes a small day's work."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from optimus.drivers.sim import peers
from optimus.drivers.sim.clockwork import Clockwork
from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.peers.registry import PEERS, Peer, Takes, peer
from optimus.drivers.sim.setup import Outage, Setup, SharedDevice, uniform_nodes
from optimus.drivers.sim.works.steady import Steady
from tests.sim.peers.stories import job

FRAMES = {
    "expectations",
    "from_inside",
    "knapsack",
    "lines",
    "placement",
    "registry",
    "room",
    "rounds",
    "scaling",
    "seating",
    "whole_nodes",
}


def a_day(seed: int) -> Iterator[Job]:
    """Sixty jobs of one to four GPUs, half of them elastic."""
    random = np.random.default_rng(seed)
    for i in range(60):
        replicas, seconds = int(random.choice([1, 1, 2, 4])), float(random.exponential(1500)) + 5
        elastic: dict[str, int] = {"min_replicas": 1, "max_replicas": 4} if i % 2 else {}
        work = Steady(duration_ms=seconds * 1000, replicas=replicas)
        yield job(
            f"j{i:02d}",
            seconds,
            at=float(random.uniform(0, 7200)),
            replicas=replicas,
            work=work,
            queue="ab"[i % 2],
            family=str(i % 5),
            activity_milli=300,
            restart_ms=30_000,
            expected_ms=round(seconds * 1000),
            **elastic,
        )


@pytest.mark.parametrize("name", sorted(PEERS))
def test_every_job_ends_and_nothing_is_left_behind(name: str) -> None:
    """With a lost node in between."""
    outage = Outage(node="gpu-1", at_ms=3_000_000, for_ms=900_000)
    entry = PEERS[name]
    setup = Setup(
        nodes=uniform_nodes(3, 4), interval_ms=entry.round_ms, outages=(outage,), neighbours=SharedDevice(), seed=1
    )
    clock = Clockwork(setup, list(a_day(7)))
    record = clock.play(entry.make())
    assert all(each.end_ms is not None for each in record.jobs)
    assert clock.free == clock.capacity
    assert ("oracle" in record.scheduler or "error" in record.scheduler) == entry.oracle


@pytest.mark.parametrize("name", ["native-pods", "lucid", "kai", "sjf-0.7"])
def test_the_same_seed_gives_the_same_day(name: str) -> None:
    def once() -> list[int | None]:
        setup = Setup(nodes=uniform_nodes(3, 4), neighbours=SharedDevice())
        return [each.end_ms for each in Clockwork(setup, list(a_day(3))).play(PEERS[name].make()).jobs]

    assert once() == once()


def test_each_has_a_line_for_the_help() -> None:
    for name, entry in PEERS.items():
        assert entry.name == name
        assert entry.doc.endswith(".")
        assert len(entry.doc) <= 90
        assert ("oracle" in entry.line()) == entry.oracle
        assert all(take in entry.line() for take in entry.takes)
    assert PEERS["gavel-las"].takes == (Takes.RIGID, Takes.MIXED)


def test_a_new_one_every_time() -> None:
    entry: Peer = peer("tiresias")
    assert entry.make() is not entry.make()


def test_a_wrong_name_gets_a_hint() -> None:
    with pytest.raises(KeyError, match="Did you mean tiresias"):
        peer("tiresius")
    with pytest.raises(KeyError, match="There are: native-pods"):
        peer("xyzzy")


def test_each_peer_names_its_source_and_its_differences() -> None:
    for path in sorted(Path(peers.__path__[0]).glob("*.py")):
        if path.stem in FRAMES | {"__init__", "fifo"}:
            continue
        told = ast.get_docstring(ast.parse(path.read_text())) or ""
        assert "Source" in told, path.stem
        assert "Differences:" in told, path.stem
