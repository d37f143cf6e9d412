"""Whatever the controller asks of the server goes wrong in the same way, twice each: binds, evictions, patches that
suspend or start, volumes for claims, its lease, what it reads, and what it says. Nothing is lost, and it ends well."""

from __future__ import annotations

import pytest

from tests.kube.body.clusters import until
from tests.kube.faults.checking import settle
from tests.kube.faults.front import VERBS, Front, Trouble
from tests.kube.faults.gangs import CLAIMS
from tests.kube.faults.worlds import World

TROUBLES = {
    "409": Trouble(fails=1.0, status=409, times=2),
    "429": Trouble(fails=1.0, status=429, retry_after_s=1, times=2),
    "500": Trouble(fails=1.0, status=500, times=2),
    "done, and the connection is cut": Trouble(cuts=1.0, times=2),
}
REPLICA_SET = """
apiVersion: apps/v1
kind: ReplicaSet
metadata: {{name: web, namespace: {namespace}}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web, optimus.dev/queue: {queue}}}, annotations: {{optimus.dev/preemptible: "true"}}}}
    spec:
      schedulerName: {scheduler}
      terminationGracePeriodSeconds: 1
      nodeSelector: {{stand: {namespace}}}
      containers: [{{name: main, image: none, resources: {{limits: {{nvidia.com/gpu: "1"}}}}}}]
"""


@pytest.mark.parametrize("how", TROUBLES)
def test_all_of_it_goes_wrong_and_ends_well(world: World, front: Front, how: str) -> None:
    """Lent work is started, taken back by suspending and evicting it, and started again."""
    owner, borrower = _queues(world)
    world.nodes(2, gpus=4)
    world.lead(front.option)
    until(world.leading, "it leads")
    for verb in VERBS:
        front.trouble[verb] = TROUBLES[how]
    front.cut_watches()
    world.job("lent", 4, queue=borrower, suspended=True)
    until(lambda: len(world.bound("lent")) == 4, "a gang is admitted, and bound")
    world.apply(REPLICA_SET.format(namespace=world.namespace, queue=borrower, scheduler=world.scheduler))
    until(lambda: len(world.bound("web")) == 2, "and pods that can only be evicted")
    world.create(CLAIMS, "claims", 2, queue=owner)
    until(lambda: len(world.bound("claims")) == 2, "and pods that wait for volumes")
    lent = {pod["metadata"]["uid"] for pod in world.bound("lent")}
    world.job("mine", 6, queue=owner)
    until(lambda: len(world.bound("mine")) == 6, "what was lent is taken back")
    seen = settle(world)
    assert seen.overbooked == 0
    assert world.is_suspended("lent") and world.bound("lent") == world.bound("web") == []
    until(lambda: all(world.condition(name) for name in _waiting(world, "web")), "whoever has to wait is told why")
    _is_unharmed(world, "lent")
    assert {verb: front.failed[verb] for verb in VERBS} == dict.fromkeys(VERBS, 2), "all of it went wrong"
    world.forget("mine")
    until(lambda: len(world.bound("lent")) == 4, "and lent again")
    assert not lent & {pod["metadata"]["uid"] for pod in world.bound("lent")}
    settle(world)


def _waiting(world: World, name: str) -> list[str]:
    found = [pod["metadata"]["name"] for pod in world.pods() if pod["metadata"]["name"].startswith(f"{name}-")]
    assert len(found) == 2, "they were made again"
    return found


def _is_unharmed(world: World, name: str) -> None:
    """It was stopped by its field: no pod of it was evicted, which would count as a failure of its own."""
    job = world.owner(world.gangs[name])
    assert job is not None and not job["status"].get("failed"), job


def _queues(world: World) -> tuple[str, str]:
    world.serve_queues()
    owner, borrower = (f"{world.namespace}-{name}" for name in ("owner", "borrower"))
    assert world.make_queue(owner, {"gpu": {"guarantee": 8}, "namespaces": [world.namespace]})
    assert world.make_queue(borrower, {"gpu": {"guarantee": 0}, "namespaces": [world.namespace]})
    return owner, borrower
