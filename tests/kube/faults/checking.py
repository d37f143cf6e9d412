"""The one question after every fault, asked of the server itself: is nothing given twice, half done, or lost?

    no node has more GPUs given away than it has, by pods that are really there
    no gang runs in part
    every gang runs whole, is done, or waits and says why
    and it stays so

`settle` asks until all of it is true for QUIET_S, at most for the bound that its caller states: a bound of patience,
not of speed. What was seen on the way is counted.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from msgspec import Struct

from tests.kube.faults.worlds import Gang, World

BOUND_S = 90.0
QUIET_S = 2.0
LOOK_S = 0.15
_OVER = ("Succeeded", "Failed")
SUSPENDED_BY_US = "optimus.dev/suspended"
GPU = "nvidia.com/gpu"


class Settled(Struct, frozen=True, kw_only=True):
    looks: int
    overbooked: int
    """Looks at which a node had more given away than it has."""
    partial: int
    """Looks at which a gang ran in part."""
    after_s: float
    """When everything was in order for good."""


class Look(Struct, frozen=True, kw_only=True):
    overbooked: list[str]
    partial: list[str]
    unsettled: list[str]

    @property
    def flaws(self) -> list[str]:
        return [*self.overbooked, *self.partial, *self.unsettled]


def settle(world: World, bound_s: float = BOUND_S, quiet_s: float = QUIET_S) -> Settled:
    begun = time.monotonic()
    good_since: float | None = None
    looks = overbooked = partial = 0
    while True:
        seen = look(world)
        now = time.monotonic()
        looks += 1
        overbooked += bool(seen.overbooked)
        partial += bool(seen.partial)
        good_since = None if seen.flaws else good_since or now
        if good_since is not None and now - good_since >= quiet_s:
            after_s = round(good_since - begun, 2)
            return Settled(looks=looks, overbooked=overbooked, partial=partial, after_s=after_s)
        assert now - begun < bound_s + quiet_s, (
            f"not in order after {bound_s:.0f} s: {'; '.join(seen.flaws)}\n{world.log()[-4000:]}"
        )
        time.sleep(LOOK_S)


def look(world: World) -> Look:
    pods = world.pods()
    partial: list[str] = []
    unsettled: list[str] = []
    for gang in world.gangs.values():
        flaw = _flaw(world, gang, [pod for pod in pods if _gang_of(pod) == gang.name])
        if flaw:
            (partial if flaw.startswith("in part") else unsettled).append(f"{gang.name}: {flaw}")
    return Look(overbooked=overbooked(world, pods), partial=partial, unsettled=unsettled)


def overbooked(world: World, pods: list[dict[str, Any]]) -> list[str]:
    """By node: pods that are there, whoever they belong to, also those that are leaving."""
    nodes = world.get(f"/api/v1/nodes?labelSelector=stand%3D{world.namespace}")["items"]
    have = {node["metadata"]["name"]: int(node["status"]["allocatable"][GPU]) for node in nodes}
    given: Counter[str] = Counter()
    for pod in pods:
        if (node := pod["spec"].get("nodeName")) and pod["status"].get("phase") not in _OVER:
            given[node] += sum(int(one["resources"].get("limits", {}).get(GPU, 0)) for one in pod["spec"]["containers"])
    return [
        f"{node} has {have[node]} GPUs, and {count} are given away"
        for node, count in sorted(given.items())
        if node in have and count > have[node]
    ]


def _flaw(world: World, gang: Gang, pods: list[dict[str, Any]]) -> str:
    owner = world.owner(gang) if gang.sort.collection else None
    if owner is None and gang.sort.collection:
        return f"lost: there is no such {gang.sort.name}"
    if owner is not None:
        told = owner.get("status", {}).get("conditions") or ()
        conditions = {one["type"] for one in told if one["status"] == "True"}
        well, badly = gang.sort.over
        if badly in conditions:
            return f"lost: its {gang.sort.name} has failed"
        if well in conditions:
            return ""
    leaving = sum("deletionTimestamp" in pod["metadata"] for pod in pods)
    there = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    there = [pod for pod in there if pod["status"].get("phase") not in _OVER]
    bound = sum(bool(pod["spec"].get("nodeName")) for pod in there)
    if leaving:
        return f"{leaving} of its pods are leaving"
    if 0 < bound < gang.pods:
        return f"in part: {bound} of {gang.pods} are bound"
    if bound == gang.pods:
        return ""
    if owner is not None and gang.sort.is_suspended(owner):
        ours = SUSPENDED_BY_US in owner["metadata"].get("annotations", {})
        return "" if ours or not pods else "suspended, and its pods are still there"
    if len(there) != gang.pods:
        return f"lost: {len(there)} of {gang.pods} pods are there"
    return "" if all(_why(pod) for pod in there) else "waits, and nobody says why"


def _why(pod: dict[str, Any]) -> str:
    told = [one for one in pod["status"].get("conditions", ()) if one["type"] == "PodScheduled"]
    return str(told[0].get("message", "")) if told and told[0]["status"] == "False" else ""


def _gang_of(pod: dict[str, Any]) -> str:
    return str(pod["metadata"].get("labels", {}).get("gang", ""))
