"""Others change the world under a gang: they delete nodes and queues, take GPUs, and set clocks."""

from __future__ import annotations

import signal
import time

from tests.kube.body.clusters import until
from tests.kube.faults.checking import settle
from tests.kube.faults.front import BIND, Front, Trouble
from tests.kube.faults.worlds import World


def test_a_node_is_deleted_under_a_gang(world: World) -> None:
    """Half of the gang goes with it, and is made again where there is room; no GPU of the other half is given away. Its
    pods are cleared away by the story: the collector of Kubernetes would do it, too, but waits for a minute."""
    names = world.nodes(3, gpus=1)
    world.lead()
    world.job("gang", 2, suspended=True)
    until(lambda: len(world.bound("gang")) == 2, "it is admitted, and runs")
    lost = world.bound("gang")[0]["spec"]["nodeName"]
    world.delete("node", lost)
    for pod in world.bound("gang"):
        if pod["spec"]["nodeName"] == lost:
            world.delete("pod", pod["metadata"]["name"])
    seen = settle(world)
    assert len(world.bound("gang")) == 2
    assert {pod["spec"]["nodeName"] for pod in world.bound("gang")} == set(names) - {lost}
    assert seen.overbooked == 0


def test_a_queue_is_deleted_with_running_work(world: World) -> None:
    """What runs goes on; what waits says that its queue is gone; when the queue is there again, it starts."""
    world.serve_queues()
    queue = f"{world.namespace}-team"
    spec = {"gpu": {"limit": "unlimited"}, "namespaces": [world.namespace]}
    assert world.make_queue(queue, spec)
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
    assert world.make_queue(queue, spec)
    until(lambda: len(world.bound("waits")) == 4, "it starts")
    settle(world)


def test_a_foreign_scheduler_takes_the_last_gpu(world: World, front: Front) -> None:
    """While our binds are on their way. The server refuses neither; ours gives way, as a whole, and says why."""
    (node,) = world.nodes(1, gpus=4)
    world.lead(front.option)
    front.hold_binds()
    world.job("ours", 4)
    until(lambda: front.asked[BIND] == 4, "all four are on their way")
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
    """It is a day ahead when a bind fails and its gang has to pause, and two days are taken back before the pause is
    over: by the clock of the day, the pause would last so long."""
    world.nodes(1, gpus=4)
    controller = world.lead(front.option, module="tests.kube.faults.jumping_clock")
    until(lambda: world.leader() is not None, "it leads")
    before = world.leader()
    front.trouble[BIND] = Trouble(fails=1.0, status=422)
    world.job("gang", 4)
    until(lambda: front.failed[BIND] >= 4, "binds fail, and the gang pauses")
    controller.send_signal(signal.SIGUSR1)
    until(lambda: world.log().count("the clock is set") == 2, "the clock is set back")
    front.trouble[BIND] = Trouble()
    until(lambda: len(world.bound("gang")) == 4, "the pause ends")
    world.job("waits", 4)
    controller.send_signal(signal.SIGUSR1)
    until(lambda: world.log().count("the clock is set") == 3, "and ahead again")
    settle(world)
    assert len(world.bound("gang")) == 4
    world.forget("gang")
    until(lambda: len(world.bound("waits")) == 4, "decisions go on")
    settle(world)
    assert world.leader() == before, "and nobody has lost a lease"
