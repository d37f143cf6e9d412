"""What `kubectl get queues` shows, and how often it is written."""

from __future__ import annotations

import asyncio
import subprocess
from typing import Any

from optimus.drivers.kube.objects import Anything, Meta
from optimus.drivers.kube.queues import SetUp
from optimus.drivers.kube.standing import PoolStanding, QueueStanding, Share, Standing
from optimus.drivers.kube.status import Status, dated, pool_status, queue_status
from optimus.kube import Done, Outcome
from optimus.model.plans import Condition
from tests.kube.body.clusters import until
from tests.kube.operating.installed import Installed

SHARE = Share(pool="a100", resource="gpu", guarantee=4000, limit=8000, share=6000, allocated=5500, demand=9000)
MEMORY = Share(pool="a100", resource="memory", guarantee=0, limit=None, share=2048, allocated=2048, demand=2048)


def test_a_queue_in_numbers_people_write() -> None:
    found = QueueStanding(name="q", shares=(SHARE, MEMORY), running=2, waiting={"NoRoom": 3, "OverLimit": 1})
    told = queue_status(found, "")
    assert {name: told[name] for name in ("gpus", "guarantee", "limit", "borrowed", "running", "waiting")} == {
        "gpus": "5.5", "guarantee": "4", "limit": "8", "borrowed": "1.5", "running": 2, "waiting": 4,
    }  # fmt: skip
    assert told["waitingFor"] == {"NoRoom": 3, "OverLimit": 1}
    assert told["shares"][1]["allocated"] == "2Gi" and "limit" not in told["shares"][1]
    assert told["conditions"] == [{"type": "Ready", "status": "True", "reason": "Ready", "message": ""}]


def test_what_is_wrong_is_the_reason_why_it_is_not_ready() -> None:
    def ready(*troubles: Condition, unreadable: str = "") -> tuple[str, str]:
        told = queue_status(QueueStanding(name="q", conditions=troubles), unreadable)["conditions"][0]
        return told["status"], told["reason"]

    assert ready(Condition("queue q", "QueueInvalid", "parent p does not exist")) == ("False", "ParentMissing")
    assert ready(Condition("queue q", "QueueInvalid", "its ancestors form a circle: a -> b")) == ("False", "Circle")
    assert ready(unreadable="gpu: is no gpu") == ("False", "Malformed")
    assert ready(Condition("queue q", "UnknownPool", "quotas for unknown pools are not used: x")) == ("True", "Ready")


def test_a_pool_by_model_and_how_broken_up_it_is() -> None:
    found = PoolStanding(name="p", nodes=3, usable=2, models={"a100": 16}, free={"a100": 10_000}, fragmented=2_500)
    told = pool_status(found, "")
    assert (told["nodes"], told["usableNodes"], told["gpus"], told["freeGpus"]) == (3, 2, 16, "10")
    assert told["fragmentation"] == "25%" and told["free"] == {"a100": "10"}
    empty = pool_status(PoolStanding(name="p", nodes=0, usable=0), "")
    assert empty["conditions"][0]["reason"] == "Empty" and empty["fragmentation"] == "0%"


def test_a_condition_keeps_the_time_at_which_it_became_so() -> None:
    well = {"conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": ""}]}
    first = dated(well, {}, 1, "10:00")
    assert dated(well, first, 1, "11:00") == first
    sick = {"conditions": [{"type": "Ready", "status": "False", "reason": "Circle", "message": "a -> a"}]}
    assert dated(sick, first, 2, "12:00")["conditions"][0]["lastTransitionTime"] == "12:00"


class Counting:
    """In the place of a writer: nothing is sent, everything is done."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    async def patch(self, _resource: object, name: str, _body: object, **_more: object) -> Outcome:
        self.sent.append(name)
        return Done()


def test_only_what_has_changed_is_written() -> None:
    set_up, writer = SetUp(), Counting()
    for name in ("a", "b"):
        set_up.queues[name] = Anything(metadata=Meta(name=name, uid=name))
    status = Status(set_up, writer, lambda: None)  # type: ignore[arg-type]
    standing = Standing((QueueStanding(name="a"), QueueStanding(name="b")), ())
    asyncio.run(status.write(standing))
    asyncio.run(status.write(standing))
    assert writer.sent == ["a", "b"]
    asyncio.run(status.write(Standing((QueueStanding(name="a", running=1), QueueStanding(name="b")), ())))
    assert writer.sent == ["a", "b", "a"]
    set_up.queues["b"] = Anything(metadata=Meta(name="b", uid="another"))  # deleted and made anew
    asyncio.run(status.write(Standing((QueueStanding(name="a", running=1), QueueStanding(name="b")), ())))
    assert writer.sent == ["a", "b", "a", "b"]


def test_people_see_it(stand: Installed) -> None:
    queue = stand.queue("team", gpu={"guarantee": 2}, namespaces=[stand.namespace])
    orphan = stand.queue("orphan", parent="nobody")
    stand.nodes(2, gpus=4)
    stand.apply(
        "apiVersion: optimus.dev/v1alpha1\nkind: NodePool\n"
        f"metadata: {{name: {stand.namespace}}}\nspec: {{selector: {{kubernetes.io/hostname: {stand.namespace}-1}}}}\n"
    )
    stand.start("--lease-seconds=6")
    stand.gang("runs", 3, notes=f", optimus.dev/queue: {queue}")
    until(lambda: len(stand.bound("runs")) == 3, "three run")
    base = "/apis/optimus.dev/v1alpha1"
    until(lambda: _status(stand, f"{base}/queues/{queue}").get("gpus") == "3", "the queue says so")
    until(lambda: _status(stand, f"{base}/nodepools/{stand.namespace}").get("gpus") == 4, "the pool says so")
    assert _status(stand, f"{base}/queues/{orphan}")["conditions"][0]["reason"] == "ParentMissing"
    shown = subprocess.run(stand.plane.kubectl("get", "oq", queue), check=True, capture_output=True, text=True).stdout
    assert shown.split()[10:18] == [queue, "3", "2", "1", "1", "0", "True", shown.split()[17]]
    subprocess.run(stand.plane.kubectl("delete", "queue", orphan, queue), check=True, capture_output=True)
    subprocess.run(stand.plane.kubectl("delete", "nodepool", stand.namespace), check=True, capture_output=True)
    assert "Traceback" not in stand.log()


def _status(stand: Installed, path: str) -> dict[str, Any]:
    return dict(stand.thing(path).get("status", {}))
