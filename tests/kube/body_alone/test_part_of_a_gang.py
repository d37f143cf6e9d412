"""A gang of which a part cannot be bound does not keep the rest for longer than a controller may take to mend it."""

from __future__ import annotations

from optimus.drivers.kube.describing import LOSS_GRACE_MS
from optimus.kube import Refused
from tests.kube.body_alone.cluster import Alone, pod


async def test_what_was_bound_of_a_gang_leaves_when_the_rest_cannot_follow() -> None:
    alone = Alone()
    names = ["a", "b", "c"]
    alone.writer.answers["c"] = Refused("NotTaken", "kube-scheduler did not take n0")
    for name in names:
        alone.mirror.pod(pod(name, gang="g", size=3))
    await alone.turn()
    for name in ("a", "b"):
        alone.mirror.pod(pod(name, gang="g", size=3, on="n0"))
    while alone.now * 1000 < 2 * LOSS_GRACE_MS and not alone.writer.evicted:
        alone.now += 5.0
        await alone.turn()
    assert sorted(alone.writer.evicted) == ["a", "b"]
    assert alone.now * 1000 <= LOSS_GRACE_MS + 60_000
