"""What people see of a decision: events on their objects, and the condition of pods that wait.

Why: `kubectl describe` is where they look first, and cluster autoscalers read the condition.
Owns: what was said last about each workload, so that the same is not said again.
Must not: hold up binds. Conditions are written a few at a time, and only for work that has waited for a while.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from optimus.drivers.kube.mirror import Mirror
from optimus.drivers.kube.objects import Pod
from optimus.kube import Writer
from optimus.kube.client import STRATEGIC
from optimus.kube.events import WARNING, Recorder, Regarding
from optimus.kube.resources import PODS
from optimus.model.plans import Evict, Plan, Reject, Shrink, Start
from optimus.model.reasons import Code, Reason

LOG = logging.getLogger(__name__)
SETTLED_S = 3.0
"""Work that has waited for so long is told why on its pods."""
AGAIN_S = 60.0
"""The same reason with other numbers is told again after this time."""
AT_ONCE = 4
KEPT = "inside the guarantee of its queue it stays, on room that is lent it may be ended when that is wanted back"


class Reporting:
    def __init__(
        self,
        mirror: Mirror,
        writer: Writer,
        recorder: Recorder,
        clock: Callable[[], float],
        decided: Callable[[Plan], object] = lambda _plan: None,
        preparing: Callable[[], Mapping[str, Reason]] = dict,
    ) -> None:
        """`decided`: whoever counts is told each plan, too, between two turns. `preparing`: work that has a place, and
        waits for something there."""
        self._decided, self._preparing = decided, preparing
        self._mirror, self._writer, self._recorder, self._clock = mirror, writer, recorder, clock
        self.waiting: dict[str, Reason] = {}
        self._since: dict[str, float] = {}
        """Since when each has waited for its present reason."""
        self._told: dict[str, tuple[str, str, float]] = {}
        """Reason code, text and time of what its pods say."""
        self._troubles: set[tuple[str, str]] = set()
        """Subject and code of what is wrong with the set-up, as it was logged."""

    def tell(self, plan: Plan) -> None:
        now = self._clock()
        for trouble in plan.conditions:
            if (trouble.subject, trouble.code) not in self._troubles:
                LOG.warning("%s: %s: %s", trouble.subject, trouble.code, trouble.message)
        self._troubles = {(trouble.subject, trouble.code) for trouble in plan.conditions}
        for action in plan.actions:
            match action:
                case Start(workload, pool, placements):
                    nodes = len({placement.node for placement in placements})
                    where = f"{len(placements)} of its pods on {nodes} nodes of pool {pool}"
                    group = self._mirror.groups.group(workload)
                    if group is not None and group.not_preemptible_why:
                        where += f"; {group.not_preemptible_why}: {KEPT}"
                    self._say(workload, "Scheduled", where, action="Binding")
                case Evict(workload, cause) if cause.code is Code.SUSPENDED:  # somebody's wish, and no preemption
                    self._say(workload, str(cause.code), cause.text(), action="Suspending")
                case Evict(workload, cause) | Shrink(workload, _, cause):
                    self._say(workload, str(cause.code), cause.text(), action="Preempting", kind=WARNING)
                case Reject(workload, cause):
                    self._say(workload, str(cause.code), cause.text(), action="Scheduling", kind=WARNING)
        waiting = {**self._preparing(), **{wait.workload: wait.reason for wait in plan.waiting}}
        for workload, why in waiting.items():
            before = self.waiting.get(workload)
            if before is None or before.code is not why.code:
                self._since[workload] = now
        for workload in self.waiting.keys() - waiting.keys():
            self._since.pop(workload, None)
            self._told.pop(workload, None)
        self.waiting = waiting
        self._decided(plan)

    def undone(self, workload: str, why: Reason) -> None:
        """A bind of it that came at the wrong moment."""
        self._say(workload, str(why.code), why.text(), action="Repairing", kind=WARNING)

    async def run(self) -> None:
        """Until it is cancelled."""
        room = asyncio.Semaphore(AT_ONCE)
        while True:
            await asyncio.sleep(1.0)
            async with asyncio.TaskGroup() as tasks:
                for workload, why in self._due():
                    placed = workload in self._preparing()
                    for pod in (self._mirror.unbound_pods if placed else self._mirror.waiting_pods)(workload):
                        tasks.create_task(self._condition(room, pod, why))

    def _due(self) -> list[tuple[str, Reason]]:
        now, found = self._clock(), []
        for workload, why in self.waiting.items():
            code, text = str(why.code), why.text()
            told = self._told.get(workload)
            if now - self._since.get(workload, now) < SETTLED_S or (told is not None and told[:2] == (code, text)):
                continue
            if told is not None and told[0] == code and now - told[2] < AGAIN_S:
                continue
            self._told[workload] = (code, text, now)
            self._say(workload, code, text, action="Scheduling", kind=WARNING)
            found.append((workload, why))
        return found

    async def _condition(self, room: asyncio.Semaphore, pod: Pod, why: Reason) -> None:
        """As kube-scheduler writes it: autoscalers look for this type and reason."""
        condition: dict[str, Any] = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": f"{why.code}: {why.text()}"[:1024],
            "lastTransitionTime": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        }
        meta = pod.metadata
        async with room:
            await self._writer.patch(
                PODS,
                meta.name,
                {"metadata": {"uid": meta.uid}, "status": {"conditions": [condition]}},
                namespace=meta.namespace,
                subresource="status",
                form=STRATEGIC,
            )

    def _say(self, workload: str, reason: str, note: str, *, action: str, kind: str = "Normal") -> None:
        about = self._regarding(workload)
        if about is not None:
            self._recorder.say(about, reason, note, action=action, kind=kind)

    def _regarding(self, workload: str) -> Regarding | None:
        group = self._mirror.groups.group(workload)
        if group is not None and group.object is not None and group.object.api_version:
            thing = group.object
            return Regarding(thing.api_version, thing.kind.rpartition("/")[2], thing.name, thing.namespace, thing.uid)
        pod = self._mirror.first_pod(workload)
        if pod is None:
            return None
        meta = pod.metadata
        return Regarding("v1", "Pod", meta.name, meta.namespace, meta.uid)
