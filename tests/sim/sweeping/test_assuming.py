"""What a command line assumes of starts, checkpoints, failures, spreading and neighbours reaches the simulation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from optimus.drivers.sim.setup import Several, SharedDevice
from optimus.drivers.sim.sweeping import Assumptions, Finished, Scene, SweepError, cluster_of_nodes, neighbours_of
from optimus.drivers.sim.sweeping.assuming import NEVER
from optimus.drivers.sim.works.steady import Steady
from tests.sim.sweeping.small import listed, swept, tiny

DAY_MS = 86_400_000


def played(given: Assumptions, policy: str = "fifo", **more: Any) -> tuple[Scene, Finished]:
    found, runs = tiny(policy, assumed=given, **more)
    result = swept(found, runs)[0][0]
    assert isinstance(result, Finished), result
    return found[0], result


def told(scene: Scene) -> dict[str, str]:
    return dict(scene.assumptions)


def test_without_a_word_starts_are_free_restarts_take_half_a_minute_and_nothing_fails() -> None:
    scene, _ = played(Assumptions())
    assert told(scene) == {
        "first start": "free",
        "restart, new size or place": "30s",
        "checkpoint": "always up to date, free",
        "leaving": "free",
        "job failures": "none",
        "node failures": "none",
        "spreading": "free",
        "neighbours": "do not disturb each other",
    }


def test_starts_and_checkpoints_take_their_time() -> None:
    _, free = played(Assumptions())
    scene, costly = played(Assumptions(start_ms=60_000, checkpoint_ms=600_000, checkpoint_cost_ms=60_000))
    assert (told(scene)["first start"], told(scene)["checkpoint"]) == ("1m", "every 10m, 1m each")
    for before, after in zip(free.record.jobs, costly.record.jobs, strict=True):
        assert after.run_ms == pytest.approx(60_000 + 1.1 * before.run_ms, rel=0.01)


def test_a_job_that_fails_goes_on_from_its_last_checkpoint() -> None:
    records = {}
    for every in (0, 600_000, NEVER):
        scene, result = played(Assumptions(job_failures=0.5, checkpoint_ms=every))
        failed = sum(job.failures for job in result.record.jobs)
        assert failed == sum(bool(job.fails_at) for job in scene.trace.jobs) > 3
        records[every] = sum(job.lost for job in result.record.jobs)
    assert records[0] == 0.0 < records[600_000] < records[NEVER]


def test_nodes_fail_for_everybody_at_the_same_moments() -> None:
    given = Assumptions(node_mtbf_ms=DAY_MS // 4, node_repair_ms=3_600_000)
    first, result = played(given)
    again, _ = played(given, policy="native")
    assert first.setup.outages == again.setup.outages
    assert sum(job.losses for job in result.record.jobs) > 0
    assert told(first)["node failures"] == "every 6h for each node, 1h of repair, both on average"
    other, _ = played(given, seeds=(1,))
    assert other.setup.outages != first.setup.outages


def test_jobs_apart_are_slower_unless_they_need_the_room(tmp_path: Path) -> None:
    path = listed(tmp_path, "a,2017-09-04 10:00:00,600,8,x", "b,2017-09-04 10:01:00,600,2,x")
    given = Assumptions(racks=2, across_nodes=0.5, across_racks=0.25)
    found, _ = tiny("fifo", text=str(path), cluster=cluster_of_nodes(["4x4"]), assumed=given)
    large, small = (job.work for job in found[0].trace.jobs)
    assert isinstance(large, Steady) and isinstance(small, Steady)
    assert (large.speed_by_nodes, small.speed_by_nodes) == ((1.0, 1.0, 0.5), (1.0, 0.5))
    assert small.speed_across_racks == 0.25
    assert {node.labels["rack"] for node in found[0].setup.nodes} == {"rack-0", "rack-1"}
    assert found[0].setup.pools[0].levels == ("rack",)
    with pytest.raises(SweepError, match="5 racks for 4 nodes"):
        tiny("fifo", text=str(path), cluster=cluster_of_nodes(["4x4"]), assumed=Assumptions(racks=5))


def test_neighbours_can_share_devices_and_the_network() -> None:
    assert neighbours_of(False, 0.0) is None
    assert neighbours_of(True, 0.0) == SharedDevice()
    both = neighbours_of(True, 0.3)
    assert isinstance(both, Several)
    scene, _ = played(Assumptions(neighbours=both), policy="lucid")
    assert told(scene)["neighbours"] == ("share the time of a device; jobs over several nodes lose 0.3 where they meet")


def test_what_is_assumed_is_another_run() -> None:
    plain, _ = played(Assumptions())
    slow, _ = played(Assumptions(restart_ms=60_000))
    assert plain.digest != slow.digest
