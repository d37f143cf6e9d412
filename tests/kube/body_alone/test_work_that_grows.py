"""How much is done for one change, counted: it follows what has changed, and not what is there."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import structs

from optimus.drivers.kube import mirror as mirroring
from optimus.drivers.kube.grouping import Groups
from optimus.drivers.kube.objects import Anything, PersistentVolume, Pod, StorageClass, Volume, VolumeClaim
from optimus.drivers.kube.pods import read_pod
from optimus.drivers.kube.volumes import Around
from optimus.model.plans import Placement, Plan, Start
from tests.kube.body_alone.cluster import Alone, pod, settle

CLASS = {"metadata": {"name": "disks"}, "volumeBindingMode": "WaitForFirstConsumer", "provisioner": "disks.example"}


def mounting(one: Pod, *claims: str) -> Pod:
    """As every pod does: a token of its account, and perhaps claims."""
    volumes: list[Any] = [{"name": "token"}]
    volumes += [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
    return structs.replace(one, spec=structs.replace(one.spec, volumes=msgspec.convert(volumes, list[Volume])))


def claim(name: str, kind: str, volume: str = "") -> VolumeClaim:
    bound = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}} if volume else {}
    spec = {"storageClassName": kind, **({"volumeName": volume} if volume else {})}
    return msgspec.convert(
        {"metadata": {"name": name, "namespace": "team", "uid": name, **bound}, "spec": spec}, VolumeClaim
    )


def volume(name: str, kind: str) -> PersistentVolume:
    return msgspec.convert({"metadata": {"name": name}, "spec": {"storageClassName": kind}}, PersistentVolume)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of pods that were read."""
    names: list[str] = []

    def noted(one: Pod, *rest: Any) -> Any:
        names.append(one.metadata.name)
        return read_pod(one, *rest)

    monkeypatch.setattr(mirroring, "read_pod", noted)
    return names


def test_a_change_of_storage_is_for_those_who_mean_it(read: list[str]) -> None:
    mirror = Alone().mirror
    claims = {f"team/{one.metadata.name}": one for one in (claim("data", "disks"), claim("other", "slow", "pv-other"))}
    around = Around(claims=claims, classes={"disks": msgspec.convert(CLASS, StorageClass)})
    mirror.surroundings(around)
    for number in range(50):
        mirror.pod(mounting(pod(f"plain-{number}")))
    mirror.pod(mounting(pod("reader"), "data"))
    mirror.pod(mounting(pod("writer"), "other"))
    mirror.news()
    changes: list[tuple[Any, list[str]]] = [
        (lambda: mirror.dependents.claim_changed("team/data"), ["reader"]),
        (lambda: mirror.dependents.claim_changed("team/somebody-elses"), []),
        (lambda: mirror.dependents.class_changed("disks"), ["reader"]),
        (lambda: mirror.dependents.volume_changed(None, volume("pv-new", "disks")), ["reader"]),
        (lambda: mirror.dependents.volume_changed(volume("pv-other", "slow"), None), ["writer"]),
        (lambda: mirror.dependents.volume_changed(None, volume("pv-third", "slow")), []),
        (mirror.dependents.device_changed, []),
    ]
    for change, meant in changes:
        read.clear()
        change()
        mirror.beside(around)
        mirror.beside(around)
        mirror.news()
        assert read == meant
    mirror.pod_gone("uid-reader")
    read.clear()
    mirror.dependents.claim_changed("team/data")
    mirror.news()
    assert read == []


async def steps(monkeypatch: pytest.MonkeyPatch, size: int) -> int:
    """Questions for slots, while the pods of a job that has been let go come in ten turns."""
    alone = Alone()
    template = {"spec": msgspec.to_builtins(pod("x").spec)}
    spec = {"parallelism": size, "completions": size, "template": template}
    meta = {"name": "j", "namespace": "team", "uid": "uid-j"}
    alone.mirror.owner(
        msgspec.convert({"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}, Anything)
    )
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "uid-j", "controller": True}
    alone.mirror.news()
    places = tuple(Placement("worker", number, "n0") for number in range(size))
    alone.acting.act(Plan(version=0, actions=(Start("team/job/j", "default", places),)))
    asked = 0
    really = Groups.slot_of

    def noted(self: Groups, uid: str) -> Any:
        nonlocal asked
        asked += 1
        return really(self, uid)

    with monkeypatch.context() as patched:
        patched.setattr(Groups, "slot_of", noted)
        for turn in range(10):
            for number in range(turn * size // 10, (turn + 1) * size // 10):
                made = msgspec.to_builtins(pod(f"j-{number}"))
                made["metadata"]["ownerReferences"] = [owner]
                alone.mirror.pod(msgspec.convert(made, Pod))
            alone.mirror.news()
            alone.acting.facts()
    await settle()
    assert len(alone.writer.binds) == size
    return asked


async def test_twice_the_pods_are_twice_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = await steps(monkeypatch, 100), await steps(monkeypatch, 200)
    assert many < 2.5 * few
