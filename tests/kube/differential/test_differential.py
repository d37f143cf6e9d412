"""A sample of random worlds: kube-scheduler and the brain find the same nodes feasible, pod by pod; and whoever reads a
rule wrongly is found out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from msgspec import structs

from hack.controlplane import ControlPlane, missing_toolchain
from optimus.drivers.kube import attaching, mirror
from optimus.drivers.kube.attaching import Attached
from optimus.drivers.kube.capacities import Capacities
from optimus.drivers.kube.first_consumers import SPARE
from optimus.drivers.kube.objects import Pod
from optimus.drivers.kube.pods import PodNeeds, read_pod, without_devices
from optimus.drivers.kube.volumes import Around
from optimus.model.workloads import Request
from tests.kube.differential import comparing, judging
from tests.kube.differential.cluster import FLAGS, Cluster
from tests.kube.differential.comparing import Outcome, play
from tests.kube.differential.worlds import random_world

pytestmark = pytest.mark.slow
SAMPLE = range(25)
EVERYTHING = {
    "GPUs",
    "claims that wait for a pod",
    "devices to be chosen",
    "disks in pods",
    "extended resources",
    "host ports",
    "init containers",
    "node affinity",
    "node selector",
    "overhead",
    "pod affinity",
    "pod anti-affinity",
    "pod-level resources",
    "resource claims",
    "room that drivers have",
    "scheduling gate",
    "sidecars",
    "tolerations",
    "topology spread",
    "volumes",
}


@pytest.fixture(scope="module")
def plain_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Of its own: worlds end with the deletion of all nodes."""
    if why := missing_toolchain():
        pytest.skip(why)
    with ControlPlane(tmp_path_factory.mktemp("differential"), api_server_flags=FLAGS) as started:
        yield started


async def played(plane: ControlPlane) -> list[Outcome]:
    async with Cluster(plane) as cluster:
        return [await play(cluster, random_world(seed)) for seed in SAMPLE]


def test_a_sample_of_worlds_is_judged_as_kube_scheduler_does(plain_plane: ControlPlane) -> None:
    found = asyncio.run(played(plain_plane))
    assert [one for outcome in found for one in outcome.differences] == []
    assert {rule for outcome in found for rule in outcome.by_rule} >= EVERYTHING
    assert sum(outcome.placed for outcome in found) > 50
    assert sum(outcome.refused for outcome in found) > 50


def without(part: str, **nothing: Any) -> Callable[[PodNeeds], PodNeeds]:
    def broken(needs: PodNeeds) -> PodNeeds:
        return structs.replace(needs, **{part: structs.replace(getattr(needs, part), **nothing)})

    return broken


def _without_spare(request: Request) -> Request:
    return structs.replace(
        request, accelerators=tuple(one for one in request.accelerators if not one[0].startswith(SPARE))
    )


WRONG: dict[str, Callable[[PodNeeds], PodNeeds]] = {
    "tolerations": without("where", tolerations=()),
    "node affinity": without("where", any_of=()),
    "volumes": without("where", all_of=()),
    "ports and extended resources": without("request", accelerators=(("~pods", 1),)),
    "devices": lambda needs: structs.replace(needs, request=without_devices(needs.request)),
    "volumes that must be there": lambda needs: structs.replace(needs, request=_without_spare(needs.request)),
    "pod affinity": without("social", near=()),
    "pod anti-affinity": without("social", apart=()),
    "topology spread": without("social", spread=()),
    "what it waits for": lambda needs: structs.replace(needs, obstacles=()),
}


Read = Callable[[Pod, Around], PodNeeds]
BLIND: dict[str, Callable[[Around], Around]] = {
    "room that drivers have": lambda around: structs.replace(around, capacities=Capacities()),
}
"""What is not seen at all."""


BROKEN: dict[str, tuple[object, str, object]] = {
    "disks that hang there without a pod": (Attached, "disks_on", lambda *_: set()),
    "disks as they were written of old": (attaching, "_old_disk", lambda *_: None),
}
"""What is counted wrongly on nodes."""


async def found_out(plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """The first differences that each of the wrong readings makes."""
    found: dict[str, list[str]] = {}
    async with Cluster(plane) as cluster:
        for what, reading in _wrong_readings().items():
            monkeypatch.setattr(judging, "read_pod", reading)
            worlds = iter(SAMPLE)
            while not found.get(what) and (seed := next(worlds, None)) is not None:
                found[what] = (await play(cluster, random_world(seed))).differences
        monkeypatch.setattr(judging, "read_pod", read_pod)
        for what, (where, name, broken) in BROKEN.items():
            with monkeypatch.context() as patch:
                patch.setattr(where, name, broken)
                worlds = iter(SAMPLE)
                while not found.get(what) and (seed := next(worlds, None)) is not None:
                    found[what] = (await play(cluster, random_world(seed))).differences
    return found


def _wrong_readings() -> dict[str, Read]:
    forgetful = {what: partial(_read_and_forget, wrong) for what, wrong in WRONG.items()}
    return {**forgetful, **{what: partial(_read_blindly, without_it) for what, without_it in BLIND.items()}}


def _read_and_forget(wrong: Callable[[PodNeeds], PodNeeds], pod: Pod, around: Around) -> PodNeeds:
    return wrong(read_pod(pod, around))


def _read_blindly(without_it: Callable[[Around], Around], pod: Pod, around: Around) -> PodNeeds:
    return read_pod(pod, without_it(around))


def test_whoever_forgets_a_rule_is_found_out(plain_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "LOOKS", 1)
    found = asyncio.run(found_out(plain_plane, monkeypatch))
    assert [what for what, differences in found.items() if not differences] == []


async def followed_wrongly(plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is found when the mirror of the controller, and nobody else, forgets tolerations."""
    wrong = WRONG["tolerations"]
    monkeypatch.setattr(mirror, "read_pod", lambda pod, around, names: wrong(read_pod(pod, around, names)))
    async with Cluster(plane) as cluster:
        return [one for seed in range(5) for one in (await play(cluster, random_world(seed))).differences]


def test_a_controller_that_forgets_a_rule_is_found_out(
    plain_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparing, "LOOKS", 1)
    found = asyncio.run(followed_wrongly(plain_plane, monkeypatch))
    assert found and all("the controller may" in one for one in found)
