"""Others change the world under a gang: they delete nodes and queues, take GPUs, and set clocks."""

from __future__ import annotations

import subprocess
import sys
import time

import yaml

from optimus.api.crds import definitions
from tests.kube.body.clusters import until
from tests.kube.faults.checking import settle
from tests.kube.faults.front import Front
from tests.kube.faults.worlds import LEASE_S, World


def test_a_node_is_deleted_under_a_gang(world: World) -> None:
    """Its pods go with it; the gang starts again as a whole where there is room."""
    first, _ = world.nodes(2, gpus=4)
    world.lead()
    world.job("gang", 4, suspended=True)
    until(lambda: len(world.bound("gang")) == 4, "it is admitted, and runs")
    where = {pod["spec"]["nodeName"] for pod in world.bound("gang")}
    assert len(where) == 1, "on one node"
    world.delete("node", where.pop())
    until(lambda: len({pod["metadata"]["uid"] for pod in world.bound("gang")}) < 4, "pods go with their node")
    seen = settle(world)
    assert len(world.bound("gang")) == 4, "and come back on the other"
    assert seen.overbooked == 0
    assert first


def test_a_queue_is_deleted_with_running_work(world: World) -> None:
    """What runs goes on; what waits says that its queue is gone; when the queue is there again, it starts."""
    world.apply(yaml.safe_dump_all(definitions()))
    for name in ("queues", "nodepools"):
        words = world.plane.kubectl("wait", "--for=condition=Established", f"crd/{name}.optimus.dev", "--timeout=60s")
        subprocess.run(words, check=True, capture_output=True)
    queue = f"{world.namespace}-team"
    until(lambda: _made(world, queue), "the server knows queues")
    world.nodes(2, gpus=4)
    world.lead()
    world.job("runs", 4, queue=queue)
    until(lambda: len(world.bound("runs")) == 4, "it runs")
    before = {pod["metadata"]["uid"] for pod in world.bound("runs")}
    world.delete("queue", queue)
    time.sleep(1.0)
    world.job("waits", 4, queue=queue)
    until(lambda: world.told("NoSuchQueue"), "it is told why")
    settle(world)
    assert {pod["metadata"]["uid"] for pod in world.bound("runs")} == before
    assert world.bound("waits") == []
    until(lambda: _made(world, queue), "somebody makes it again")
    until(lambda: len(world.bound("waits")) == 4, "it starts")
    settle(world)


def _made(world: World, queue: str) -> bool:
    made = {
        "apiVersion": "optimus.dev/v1alpha1",
        "kind": "Queue",
        "metadata": {"name": queue},
        "spec": {"gpu": {"limit": "unlimited"}, "namespaces": [world.namespace]},
    }
    words = world.plane.kubectl("apply", "-f", "-")
    done = subprocess.run(words, input=yaml.safe_dump(made), text=True, check=False, capture_output=True)
    return done.returncode == 0


def test_a_foreign_scheduler_takes_the_last_gpu(world: World, front: Front) -> None:
    """While our binds are on their way. The server refuses neither; ours gives way, as a whole, and says why."""
    (node,) = world.nodes(1, gpus=4)
    world.lead(front.option)
    front.hold_binds()
    world.job("ours", 4)
    until(lambda: front.asked == 4, "all four are on their way")
    world.bind_foreign("theirs", node, 1)
    front.let_go()
    until(lambda: world.told("Overbooked"), "it is seen, and told")
    settle(world)
    assert world.bound("ours") == []
    assert [pod["metadata"]["name"] for pod in world.bound()] == ["theirs"]
    world.delete("pod", "theirs")
    until(lambda: len(world.bound("ours")) == 4, "once they have left")
    settle(world)


def test_a_clock_that_is_set_changes_nothing(world: World, front: Front) -> None:
    """The controller runs with a clock of the day that jumps a day ahead and two days back while a gang waits after a
    failed bind. It would wait two days longer, if it followed that clock."""
    world.nodes(1, gpus=4)
    words = [sys.executable, "-m", "tests.kube.faults.jumping_clock", "controller", front.option]
    words += [f"--scheduler-name={world.scheduler}", f"--lease-namespace={world.namespace}"]
    log = (world.plane.folder / f"{world.namespace}.log").open("ab")
    with log:
        jumping = subprocess.Popen([*words, f"--lease-seconds={LEASE_S}", "-v"], stdout=log, stderr=log)
    world.controllers.append(jumping)
    until(lambda: world.leader() is not None, "it leads")
    before = world.leader()
    world.job("gang", 4)
    until(lambda: "the clock is set" in world.log(), "the clock jumps")
    settle(world)
    assert len(world.bound("gang")) == 4
    world.job("waits", 4)
    until(lambda: world.log().count("the clock is set") >= 4, "and back, and again")
    world.forget("gang")
    until(lambda: len(world.bound("waits")) == 4, "decisions go on")
    settle(world)
    assert world.leader() == before, "and nobody has lost a lease"
