"""What people see of a decision: events on their objects, and the condition of pods that wait.

Why: `kubectl describe` is where they look first, and cluster autoscalers read the condition.
Owns: what was said last about each workload, so that the same is not said again.
Must not: hold up binds. Conditions are written after them, so many a second, and only for work that has waited for a
while and says something else than before.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from optimus.drivers.kube.jobs.telling import Why
from optimus.drivers.kube.mirror import Mirror
from optimus.kube import Done, Writer
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
WRITES_A_SECOND = 50
PASS_S = 5
LONGEST_WAIT_S = 5.0
"""So long a condition waits for binds to be sent."""
KEPT = "inside the guarantee of its queue it stays, on room that is lent it may be ended when that is wanted back"


_NUMBER = re.compile(r"(?<![\w-])\d[\d.,:]*[a-zA-Z%]{0,3}(?![\w-])")


class Said(Struct, frozen=True):
    code: str
    text: str
    at: float


def gist(why: Reason) -> str:
    """What it says but for numbers, which change with everything that happens in a cluster: thousands of pods need not
    be written for that. Events and the command line have the numbers."""
    return _NUMBER.sub("#", why.text())


class Reporting:
    def __init__(
        self,
        mirror: Mirror,
        writer: Writer,
        recorder: Recorder,
        clock: Callable[[], float],
        decided: Callable[[Plan], object] = lambda _plan: None,
        preparing: Callable[[], Mapping[str, Reason]] = dict,
        binding: Callable[[], int] = lambda: 0,
        waits: Callable[[str, Why | None], object] = lambda _uid, _why: None,
    ) -> None:
        """`decided`: whoever counts is told each plan, too, between two turns. `preparing`: work that has a place, and
        waits for something there. `binding`: how many binds are on their way to the server. `waits`: told of each
        job of ours that waits what is said of it, and when it does not wait any more."""
        self._decided, self._preparing, self._binding, self._waits = decided, preparing, binding, waits
        self._mirror, self._writer, self._recorder, self._clock = mirror, writer, recorder, clock
        self.waiting: dict[str, Reason] = {}
        self._since: dict[str, float] = {}
        """Since when each has waited for its present reason."""
        self._told: dict[str, Said] = {}
        """By workload: what was said last."""
        self._written: dict[str, tuple[str, str]] = {}
        """By uid: code and gist of what a pod says."""
        self._rest: dict[str, list[str]] = {}
        """By workload: uids of pods that do not say it yet."""
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
            self._rest.pop(workload, None)
            self._tell_job(workload, None)
        self.waiting = waiting
        self._decided(plan)

    def undone(self, workload: str, why: Reason) -> None:
        """A bind of it that came at the wrong moment."""
        self._say(workload, str(why.code), why.text(), action="Repairing", kind=WARNING)

    def stays(self, workload: str, why: Reason) -> None:
        """It was to leave, and somebody refused it."""
        self._say(workload, str(why.code), why.text(), action="Preempting", kind=WARNING)

    async def run(self) -> None:
        """Until it is cancelled."""
        room = asyncio.Semaphore(AT_ONCE)
        while True:
            await asyncio.sleep(1.0)
            self._look()
            async with asyncio.TaskGroup() as tasks:
                for workload, uid in self._next():
                    await self._wait_for_binds()
                    await asyncio.sleep(1 / WRITES_A_SECOND)
                    tasks.create_task(self._condition(room, workload, uid))

    async def _wait_for_binds(self) -> None:
        """They come first, as long as they come to an end."""
        for _ in range(int(LONGEST_WAIT_S / 0.1)):
            if not self._binding():
                return
            await asyncio.sleep(0.1)

    def _look(self) -> None:
        """What is to be said of whom, and which pods do not say it yet."""
        now = self._clock()
        for workload, why in self.waiting.items():
            told, said = self._told.get(workload), Said(str(why.code), why.text(), now)
            if now - self._since.get(workload, now) < SETTLED_S:
                continue
            if told is not None and told.code == said.code and now - told.at < AGAIN_S:
                continue
            self._told[workload] = said
            if told is None or (told.code, told.text) != (said.code, said.text):
                self._say(workload, said.code, said.text, action="Scheduling", kind=WARNING)
                self._tell_job(workload, (said.code, said.text))
            of = self._mirror.unbound_pods if workload in self._preparing() else self._mirror.waiting_pods
            uids = [pod.metadata.uid for pod in of(workload)]
            self._rest[workload] = [uid for uid in uids if self._written.get(uid) != (said.code, gist(why))]
        self._written = {uid: said for uid, said in self._written.items() if uid in self._mirror.pods}

    def _tell_job(self, workload: str, why: Why | None) -> None:
        """It may have no pods that could say it."""
        group = self._mirror.groups.group(workload)
        if group is not None and group.job is not None and group.object is not None:
            self._waits(group.object.uid, why)

    def _next(self) -> Iterator[tuple[str, str]]:
        """Pods that are written to now: not more than a few seconds take, so that newcomers need not wait for all."""
        left = WRITES_A_SECOND * PASS_S
        for workload, uids in list(self._rest.items()):
            while uids and left:
                left -= 1
                yield workload, uids.pop()
            if not uids:
                self._rest.pop(workload, None)

    async def _condition(self, room: asyncio.Semaphore, workload: str, uid: str) -> None:
        """As kube-scheduler writes it: autoscalers look for this type and reason. Only if it still waits, as the server
        has it: a pod that was bound meanwhile is another version of it."""
        async with room:
            pod, why = self._mirror.pods.get(uid), self.waiting.get(workload)
            if pod is None or why is None or pod.spec.node_name or pod.over or pod.metadata.deletion_timestamp:
                return
            condition: dict[str, Any] = {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": f"{why.code}: {why.text()}"[:1024],
                "lastTransitionTime": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            }
            meta = pod.metadata
            self._written[uid] = (str(why.code), gist(why))
            outcome = await self._writer.patch(
                PODS,
                meta.name,
                {"metadata": {"uid": meta.uid}, "status": {"conditions": [condition]}},
                namespace=meta.namespace,
                subresource="status",
                form=STRATEGIC,
                resource_version=meta.resource_version,
            )
            if not isinstance(outcome, Done):
                self._written.pop(uid, None)  # told again with the next word on its workload

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
