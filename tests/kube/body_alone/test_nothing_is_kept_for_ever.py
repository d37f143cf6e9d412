"""Pods, nodes and gangs come and go for days: what is left is what is there."""

from __future__ import annotations

import json
import sys
from typing import Any

import msgspec
import pytest
from msgspec import structs

from optimus.drivers.kube.leading import MOST_COLUMNS, Leading
from optimus.drivers.kube.mirror import Mirror
from optimus.drivers.kube.objects import Affinity, Pod, StorageClass, VolumeClaim
from optimus.drivers.kube.volumes import Around
from optimus.engine.engine import Engine
from optimus.kube import Done, Outcome, Refused, Unknown
from optimus.model.reasons import Code, reason
from tests.kube.body_alone.cluster import Alone, node, pod
from tests.kube.body_alone.test_devices_that_are_late import using as with_device
from tests.kube.body_alone.test_volumes_that_are_late import using as with_volume
from tests.pods.claiming import ANY, claim, device, device_class, slices
from tests.pods.claiming import asking as claimed

ROUNDS = 300


def sizes(*things: object) -> dict[str, int]:
    """Of every collection that they hold, by where it is."""
    return {
        f"{type(thing).__name__}.{name}": len(value)
        for thing in things
        for name, value in vars(thing).items()
        if isinstance(value, dict | set | list)
    }


def all_of(mirror: Mirror, *more: object) -> dict[str, int]:
    ours = (mirror.groups, mirror._places, mirror._counting, mirror._columns, mirror._hosting, mirror._spare)
    return sizes(mirror, *ours, mirror.around.devices.catalog, mirror.around.devices.catalog.selectors, *more)


def all_that_acts(alone: Alone) -> list[object]:
    """With what prepares its binds."""
    preparing = alone.acting.preparing
    assert preparing is not None and alone.acting._allocating in preparing._steps
    return [alone.acting, preparing, *preparing._steps]


def churn(alone: Alone, number: int, *, expressions: int = ROUNDS) -> list[str]:
    """A node, a pod of somebody else, and a gang of two that keeps apart by a label of its own and claims devices by an
    expression of its own."""
    alone.mirror.node(node(f"comes-{number}"))
    alone.mirror.storage_node(f"comes-{number}", {"~attach/csi": 8})
    uids = []
    for member in range(2):
        made = apart(pod(f"g{number}-{member}", gang=f"g{number}", size=2), f"label-{number}")
        alone.mirror.pod(claiming(alone, made, f'device.driver != "{number % expressions}"'))
        uids.append(made.metadata.uid)
    foreign = msgspec.structs.replace(pod(f"f{number}", on=f"comes-{number}"), spec=pod("x", on=f"comes-{number}").spec)
    foreign = msgspec.structs.replace(foreign, spec=msgspec.structs.replace(foreign.spec, scheduler_name="another"))
    alone.mirror.pod(foreign)
    return [*uids, foreign.metadata.uid]


def apart(made: Pod, key: str) -> Pod:
    term = {"labelSelector": {"matchExpressions": [{"key": key, "operator": "Exists"}]}, "topologyKey": "zone"}
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return structs.replace(made, spec=structs.replace(made.spec, affinity=msgspec.convert(rule, Affinity)))


def claiming(alone: Alone, made: Pod, expression: str) -> Pod:
    around = alone.mirror.around
    around.devices.catalog.classes["any"] = ANY
    around.devices.claims[made.key] = claim(made.metadata.name, claimed("any", 1, expression))
    alone.mirror.surroundings(around)
    return with_device(made, made.metadata.name)


def leave(alone: Alone, number: int, uids: list[str]) -> None:
    for uid in uids:
        alone.mirror.around.devices.claims.pop(alone.mirror.pods[uid].key, None)
        alone.mirror.pod_gone(uid)
    alone.mirror.storage_node(f"comes-{number}", {})
    alone.mirror.node_gone(f"comes-{number}")


async def test_a_leader_keeps_nothing_of_what_is_gone() -> None:
    alone = Alone()
    alone.writer.answer = Refused("Forbidden", "never")  # also what was tried in vain is forgotten
    counts = []
    for number in range(ROUNDS):
        uids = churn(alone, number, expressions=3)  # each has a name in a brain, for as long as that lives
        await alone.turn()
        leave(alone, number, uids)
        await alone.turn()
        await alone.turn()
        alone.mirror.take_bound()  # as `repairing` does once a turn
        if number in (20, ROUNDS - 1):
            state = alone.engine.state
            counts.append(all_of(alone.mirror, *all_that_acts(alone), state.resources, state.nodes, state.slots))
    assert _grown(*counts) == {}
    assert alone.acting._failures == {} and alone.acting._failing == set()


@pytest.mark.parametrize(
    "answer", [Done(), Unknown("no answer"), Refused("Forbidden", "never")], ids=["done", "lost", "refused"]
)
async def test_a_leader_keeps_nothing_of_claims_whose_pods_were_deleted_at_a_bad_moment(answer: Outcome) -> None:
    alone = Alone()
    written = list[str]()

    async def patch(_resource: object, name: str, _changes: object, **_: object) -> Outcome:
        written.append(name)
        made = {"metadata": {"name": name, "resourceVersion": "2"}}
        return Done(json.dumps(made).encode()) if isinstance(answer, Done) else answer

    alone.writer.patch = patch  # type: ignore[method-assign, assignment]
    counts = []
    for number in range(ROUNDS):
        name = f"c{number}"
        alone.mirror.surroundings(claims_around(alone, name))
        alone.mirror.pod(with_both(pod(f"p{number}"), name))
        await alone.turn()
        await alone.turn()
        if number % 2:
            await alone.turn()
        alone.mirror.pod_gone(f"uid-p{number}")
        alone.now += 1
        alone.mirror.take_bound()
        if number in (20, ROUNDS - 1):
            counts.append(all_of(alone.mirror, *all_that_acts(alone)))
    assert {f"c{number}" for number in range(ROUNDS)} == set(written), "all were asked for"
    assert _grown(*counts) == {}


async def test_a_leader_keeps_nothing_of_pods_that_were_asked_to_leave() -> None:
    """Whether anybody reads the metrics or not."""
    alone = Alone()
    counts = []
    for number in range(ROUNDS):
        alone.mirror.pod(pod(f"p{number}", on="n0"))
        await alone.turn()
        alone.acting.stop(f"team/pod/p{number}", reason(Code.SUSPENDED))
        await alone.turn()
        alone.mirror.pod_gone(f"uid-p{number}")
        await alone.turn()
        alone.mirror.take_bound()
        if number in (20, ROUNDS - 1):
            counts.append(all_of(alone.mirror, *all_that_acts(alone)))
    assert len(alone.writer.evicted) == ROUNDS
    assert _grown(*counts) == {}


async def test_a_follower_keeps_nothing_at_all_that_is_new() -> None:
    alone = Alone()
    counts = []
    for number in range(ROUNDS):
        leave(alone, number, churn(alone, number))
        alone.mirror.follow()
        if number in (20, ROUNDS - 1):
            counts.append(all_of(alone.mirror))
    assert _grown(*counts) == {}
    alone.mirror.pod(pod("honest"))
    alone.mirror.follow()
    alone.engine = Engine()
    alone.engine.observe(alone.mirror.everything(), 0)
    await alone.turn()
    assert alone.writer.binds == [("honest", "n0")], "who begins to lead is told everything"


async def test_names_that_no_node_has_are_not_counted() -> None:
    alone = Alone()
    await alone.turn()
    before = alone.engine.state.resources.count
    for number in range(200):
        alone.mirror.pod(asking(f"wild-{number}", **{f"x.io/a{number}": "1"}))
    alone.mirror.pod(asking("huge", **{"hugepages-3Mi": "3Mi"}))
    plan = await alone.turn()
    assert alone.engine.state.resources.count <= before + 1
    assert {wait.reason.code for wait in plan.waiting} == {Code.NO_SUCH_DEVICE}
    assert "no node of pool any has x.io/a7" in {wait.reason.text() for wait in plan.waiting}
    room = {"cpu": "64", "memory": "512Gi", "pods": "110", "x.io/a7": "1"}
    fresh = node("has-it")
    alone.mirror.node(msgspec.structs.replace(fresh, status=msgspec.structs.replace(fresh.status, allocatable=room)))
    await alone.turn()
    await alone.turn()
    assert alone.writer.binds == [("wild-7", "has-it")], "as soon as a node has it"


async def test_names_of_the_past_are_given_back() -> None:
    """Each port, selector or device that was ever named has a column: a brain with too many is followed by another."""
    alone = Alone()
    leading = Leading(alone.mirror, alone.engine, alone.acting, _silent(), _silent())
    await alone.turn()
    assert not leading._is_worn_out()
    for number in range(MOST_COLUMNS + 10):
        name = f"p{number}"
        made = pod(name)
        port = msgspec.convert({"name": "main", "ports": [{"hostPort": number + 1}]}, type(made.spec.containers[0]))
        alone.mirror.pod(msgspec.structs.replace(made, spec=msgspec.structs.replace(made.spec, containers=[port])))
        await alone.turn()
        alone.mirror.pod_gone(f"uid-{name}")
    assert leading._is_worn_out()
    anew = Engine()
    anew.observe(alone.mirror.everything(), 0)
    assert anew.state.resources.count < 20


def claims_around(alone: Alone, name: str) -> Around:
    """One claim of a device and one of a volume, and what there is of both."""
    devices = alone.mirror.around.devices
    devices.catalog.classes["nics"] = device_class("nics", 'device.driver == "nic.example.com"')
    devices.catalog.slices["s"] = slices("n0", [device("port")], "nic.example.com")
    devices.claims.clear()
    devices.claims[f"team/{name}"] = claim(name, claimed("nics"))
    meta = {"name": name, "namespace": "team", "uid": f"volume-{name}"}
    disk = msgspec.convert({"metadata": meta, "spec": {"storageClassName": "disks"}}, VolumeClaim)
    kind = {"metadata": {"name": "disks"}, "volumeBindingMode": "WaitForFirstConsumer", "provisioner": "disks.example"}
    classes = {"disks": msgspec.convert(kind, StorageClass)}
    return Around(claims={f"team/{name}": disk}, classes=classes, devices=devices)


def with_both(one: Pod, name: str) -> Pod:
    return with_volume(with_device(one, name), name)


def asking(name: str, **amounts: str) -> Any:
    made = pod(name)
    resources = {"requests": amounts}
    container = msgspec.convert({"name": "main", "resources": resources}, type(made.spec.containers[0]))
    return msgspec.structs.replace(made, spec=msgspec.structs.replace(made.spec, containers=[container]))


def _grown(before: dict[str, int], after: dict[str, int]) -> dict[str, tuple[int, int]]:
    return {name: (before.get(name, 0), size) for name, size in after.items() if size > before.get(name, 0) + 5}


def _silent() -> Any:
    return sys  # nobody is asked
