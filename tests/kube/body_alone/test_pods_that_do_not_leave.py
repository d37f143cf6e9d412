"""Room that is promised to others and does not become free: it is seen from outside, with where it hangs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import structs

from optimus.drivers.kube.brain import Brain
from optimus.drivers.kube.metrics import STUCK, STUCK_S, Metrics
from optimus.drivers.kube.objects import Pod
from optimus.kube import Outcome, Refused
from optimus.kube.events import Recorder
from tests.kube.body_alone.cluster import Alone, ScriptedWriter, pod, settle


class Keeping(ScriptedWriter):
    """A server that lets nobody go."""

    async def evict(self, pod: str, **_: Any) -> Outcome:
        self.evicted.append(pod)
        return Refused("Forbidden", "an admission policy says no")


def told_to_end(one: Pod, ago_s: float) -> Pod:
    at = (datetime.now(UTC) - timedelta(seconds=ago_s)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return structs.replace(one, metadata=structs.replace(one.metadata, deletion_timestamp=at))


async def test_who_is_kept_by_the_server_and_who_never_ends() -> None:
    alone = Alone()
    alone.writer = Keeping()
    alone.acting._writer = alone.writer
    metrics = Metrics(alone.mirror, lambda: alone.now)
    recorder = Recorder(alone.writer, controller="optimus.dev/scheduler", instance="x")
    metrics.lead(Brain(), alone.acting, recorder, lambda: True)

    def stuck() -> dict[tuple[str, ...], object]:
        return dict(next(family.samples for family in metrics.families() if family.metric is STUCK))

    kept, ends, hangs = (pod(name, on="n0") for name in ("kept", "ends", "hangs"))
    for one in (kept, told_to_end(ends, 60), told_to_end(hangs, STUCK_S + 60)):
        alone.mirror.pod(one)
    alone.acting.send_away([kept])
    await settle()
    assert stuck() == {("refused",): 0, ("terminating",): 1}, "a minute late is no trouble"
    for _ in range(8):  # it is asked again and again; what counts is when it was asked first
        alone.now += STUCK_S / 4
        alone.acting.facts()
        await settle()
    assert len(alone.writer.evicted) > 2
    assert stuck() == {("refused",): 1, ("terminating",): 1}
    alone.mirror.pod(told_to_end(kept, 0))
    alone.mirror.pod_gone(hangs.metadata.uid)
    alone.acting.facts()
    assert stuck() == {("refused",): 0, ("terminating",): 0}
    metrics.lead_over()
    assert stuck() == {}, "who does not lead sends nobody away"
