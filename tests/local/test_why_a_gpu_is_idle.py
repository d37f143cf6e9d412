"""A GPU that nobody uses while somebody waits says for whom it is kept: as data, in tables, and on the screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import structs

from optimus.cli import job_tables, thing_tables
from optimus.cli.showing import Printer
from optimus.drivers.local.store import Submitted
from optimus.drivers.local.views import job_view, node_views, queue_views
from optimus.lives import Ended, JobPhase
from optimus.model.queues import GPU, PoolQuota, Queue, Quota
from optimus.model.reasons import Code
from tests.local.test_a_turn_of_the_body import Machine, job


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Two jobs have a GPU each; a gang that needs both has come, and only one of them has left so far."""
    machine = Machine(tmp_path)
    machine.submit(job("quick", saves=True), job("slow", saves=True))
    machine.runs()
    machine.turn(after_s=3600)
    machine.submit(job("gang", gpus=2, priority=900))
    machine.ends("quick", code=None, signal=15)
    return machine


def two_teams(folder: Path, nodes: int = 1) -> Machine:
    """Four GPUs, two of them guaranteed to each."""
    machine = Machine(folder, nodes, gpus=4 // nodes)
    for name in ("vision", "speech"):
        quota = PoolQuota(pool="default", resources={GPU: Quota(guarantee=2000)})
        machine.body.put_queue(Queue(name=name, quotas=(quota,)))
    return machine


def of(queue: str, one: Submitted) -> Submitted:
    workload = structs.replace(one.job.workload, queue=queue)
    return structs.replace(one, job=structs.replace(one.job, workload=workload))


def told(machine: Machine) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(node_views(machine.body)[0]))
    return found


def idle(node: dict[str, Any]) -> list[int]:
    return [device for device, milli in enumerate(node["usedMilli"]) if not milli]


def test_a_node_says_what_of_it_is_held_for_whom_and_until_when(machine: Machine) -> None:
    node = told(machine)
    [held] = node["held"]
    assert len(idle(node)) == 1 and set(idle(node)) < set(held["devices"]), "one is idle, the other is being left"
    assert (held["job"], held["queue"], held["reason"]["code"]) == ("default/gang", "default", str(Code.HELD_FOR))
    assert held["atMs"] > machine.now_ms
    assert held["reason"]["text"].startswith("held for default/gang of queue default until ")


def test_the_job_and_its_queue_say_it_too(machine: Machine) -> None:
    view = job_view(machine.body, "default/gang")
    assert view.phase == JobPhase.ADMITTED.value
    assert [(held.node, held.devices) for held in view.held] == [("node-0", (0, 1))]
    assert [share.held_milli for queue in queue_views(machine.body) for share in queue.gpu] == [2000]


def test_tables_show_it(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    node = told(machine)
    job_tables.nodes(Printer(), [node], wide=False)
    listed = capsys.readouterr().out
    assert "○" in listed and "·" not in listed
    assert "[0,1] held for default/gang of queue default until" in " ".join(listed.split())
    thing_tables.node(Printer(), {"node": node, "jobs": []})
    assert "held for gang" in capsys.readouterr().out
    job_tables.described(Printer(), msgspec.to_builtins(job_view(machine.body, "default/gang")), [])
    assert "on node-0 [0,1] held for default/gang" in " ".join(capsys.readouterr().out.split())


def test_when_it_has_started_nothing_is_held_any_more(machine: Machine) -> None:
    machine.ends("slow", code=None, signal=15)
    machine.runs("gang")
    assert told(machine)["held"] == [] and job_view(machine.body, "default/gang").held == ()
    assert sum(told(machine)["usedMilli"]) == 2000


def test_who_lost_its_promise_to_others_is_not_admitted_any_more(tmp_path: Path) -> None:
    machine = two_teams(tmp_path)
    for name, replicas in (("leaves", 2), ("a", 1), ("b", 1)):
        machine.submit(of("speech", job(name, replicas=replicas, saves=True)))
    machine.runs()
    machine.turn(after_s=100)
    machine.body.cancel("default/leaves", "cancelled", machine.now_ms)
    machine.submit(of("speech", job("next", saves=True)), of("speech", job("last", saves=True)))
    first, second = [one.start for one in machine.hands.spawned if one.command[1] == "leaves"]
    machine.body.saw_end(first, Ended(at_ms=machine.now_ms, code=0))
    machine.turn()
    machine.runs("next", "last")
    machine.submit(of("vision", job("gang", replicas=2)))
    [late] = machine.body.held
    assert late in ("default/next", "default/last") and job_view(machine.body, late).phase == JobPhase.ADMITTED.value
    machine.body.saw_end(second, Ended(at_ms=machine.now_ms, code=0))
    machine.turn()
    assert "default/gang" in machine.body.held and late not in machine.body.held
    assert job_view(machine.body, late).phase == JobPhase.PENDING.value


def test_a_cancelled_job_has_its_gpus_until_it_has_left(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.submit(job("gone", gpus=2, saves=True))
    machine.runs()
    machine.body.cancel("default/gone", "cancelled", machine.now_ms)
    machine.turn()
    assert told(machine)["usedMilli"] == [1000, 1000], "its processes are still there"
    assert told(machine)["jobs"] == [["default/gone"], ["default/gone"]]
    machine.ends("gone", code=0)
    assert told(machine)["usedMilli"] == [0, 0]


def test_a_reservation_is_told_where_a_gpu_is_idle_because_of_it(tmp_path: Path) -> None:
    machine = two_teams(tmp_path, nodes=2)
    machine.submit(of("speech", job("a")), of("speech", job("b", gpus=2)), of("speech", job("c")))
    machine.runs()
    machine.ends("b")
    machine.submit(of("speech", job("d")))
    machine.runs("d")
    machine.ends("c")
    machine.submit(of("speech", job("large", gpus=2)))
    [node] = [one for one in node_views(machine.body) if one.held]
    node_told = msgspec.json.decode(msgspec.json.encode(node))
    [reserved] = node_told["held"]
    assert (reserved["job"], reserved["devices"]) == ("default/large", [])
    assert reserved["reason"]["code"] == str(Code.RESERVED_FOR)
    assert job_tables.why_idle(node_told) == [reserved["reason"]["text"]]
    assert job_tables.why_idle({**node_told, "usedMilli": [1000, 1000]}) == [], "nothing is idle there"


def test_a_virtual_node_says_so_and_what_the_machine_really_has(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told(machine)["virtual"] is False, "unless somebody says so, it is this machine"
    machine.body.machine = "2 cores, 7.8 GiB"
    node = told(machine)
    assert (node["virtual"], node["machine"]) == (True, "2 cores, 7.8 GiB")
    job_tables.nodes(Printer(), [node], wide=True)
    listed = " ".join(capsys.readouterr().out.split())
    assert (
        "64 cores, 512 GiB" in listed
        and "ready, virtual" in listed
        and "are counted and not there; this machine has 2 cores, 7.8 GiB" in listed
    )
    thing_tables.node(Printer(), {"node": {**node, "cpuMilli": 0, "memoryMib": 0}, "jobs": []})
    described = " ".join(capsys.readouterr().out.split())
    assert "no CPU named, no memory named, 2 GPUs" in described
    assert "this machine has 2 cores, 7.8 GiB" in described
