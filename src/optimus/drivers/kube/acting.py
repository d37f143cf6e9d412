"""Plans become writes: binds, evictions and patches; what comes of them goes back to the brain as facts.

Why: a write may be done, refused, or nobody knows; the brain must count each right, and nothing may wait for one.
Owns: what was asked for and is not confirmed yet, and places that wait for a pod.
Must not: decide. A bind that fails gives its place back; whether to try again is the brain's business.

    Start, Grow ── a pod is there ──► bind ──► done      the watch confirms it
                │                          ├─► unknown   the watch confirms it, or a look after CONFIRM_S tells
                │                          └─► refused, gone: SlotFailed, with a pause that doubles
                └─ no pod yet ──► the place waits for it (work that is only now un-suspended, or made again)
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from msgspec import Struct

from optimus.drivers.kube.grouping import Group, Patch, Slot, start_patch, stop_patch
from optimus.drivers.kube.grouping.kinds import StopHow
from optimus.drivers.kube.grouping.overrides import SLOT, slot_text
from optimus.drivers.kube.mirror import Mirror
from optimus.drivers.kube.objects import Pod
from optimus.kube import Conflict, Done, Gone, KubeError, Outcome, Refused, Resource, Unknown, Writer
from optimus.kube.resources import PODS
from optimus.model.observations import Observation, SlotBinding, SlotFailed
from optimus.model.plans import Drop, Evict, Grow, Placement, Plan, Shrink, Start

LOG = logging.getLogger(__name__)
CONFIRM_S = 10.0
"""After this time a bind of which nothing was heard is looked at."""
PAUSE_S, LONGEST_PAUSE_S = 1.0, 300.0
LEAVE_AGAIN_S = 5.0
"""A pod that would not leave is asked again."""
POD_GRACE_S = 30


class Asked(Struct, frozen=True):
    """A bind under way."""

    workload: str
    slot: Slot
    node: str
    since: float


class Acting:
    def __init__(
        self,
        mirror: Mirror,
        writer: Writer,
        fetch: Callable[[Pod], Awaitable[Pod | None]],
        resource_of: Callable[[str, str], Resource | None],
        wake: Callable[[], object],
        clock: Callable[[], float],
        *,
        respect_budgets: bool = False,
    ) -> None:
        """`fetch`: the pod as the server has it now, None if it is gone. `resource_of`: kind and version -> where its
        objects live. `respect_budgets`: a disruption budget may keep our own pods where they are."""
        self.binds = 0
        self.failed_binds = 0
        self.evictions = 0
        self._mirror, self._writer = mirror, writer
        self._fetch, self._resource_of, self._wake, self._clock = fetch, resource_of, wake, clock
        self._respect_budgets = respect_budgets
        self._asked: dict[str, Asked] = {}
        self._places: dict[tuple[str, Slot], str] = {}
        """Places that wait for a pod, with their node."""
        self._leaving: dict[str, tuple[float, int]] = {}
        """By uid: when it was asked to leave last, and its grace in seconds."""
        self._failures: dict[str, int] = {}
        self._facts: list[Observation] = []
        self._tasks: set[asyncio.Task[None]] = set()

    # -- plans --------------------------------------------------------------------------------------------------------

    def act(self, plan: Plan) -> None:
        for action in plan.actions:
            match action:
                case Start(workload, _, placements):
                    self._admit(workload, placements)
                    self._place(workload, placements)
                case Grow(workload, placements):
                    self._place(workload, placements)
                case Evict(workload, _, grace_ms):
                    self._evict(workload, grace_ms)
                case Shrink(workload, slots):
                    self._shrink(workload, slots)
                case Drop(workload, slots):
                    for role, ordinal in slots:
                        self._places.pop((workload, Slot(role, ordinal)), None)
                        self._mirror.unseat(workload, Slot(role, ordinal))
                case _:
                    pass  # room that is held, and work that is refused for good: people are told, nothing is done

    def facts(self) -> list[Observation]:
        """What came of earlier plans; binds that are late are looked at."""
        self._fill_places()
        now = self._clock()
        for uid, asked in list(self._asked.items()):
            pod = self._mirror.pods.get(uid)
            if pod is None:
                self._failed(uid, "its pod was deleted", 0.0)
            elif pod.spec.node_name:
                del self._asked[uid]
                self._failures.pop(asked.workload, None)
            elif now - asked.since > CONFIRM_S:
                self._asked[uid] = Asked(asked.workload, asked.slot, asked.node, now)
                self._go(self._look(uid, pod))
        for uid, (since, grace_s) in list(self._leaving.items()):
            pod = self._mirror.pods.get(uid)
            if pod is None or pod.metadata.deletion_timestamp or pod.over:
                del self._leaving[uid]
            elif now - since > LEAVE_AGAIN_S:
                self._leave(pod, grace_s)
        facts, self._facts = self._facts, []
        return facts

    @property
    def unsettled(self) -> int:
        """Binds and departures of which the end is not known."""
        return len(self._asked) + len(self._leaving)

    async def close(self) -> None:
        """Waits for writes that are under way; their time is limited."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    # -- starting -----------------------------------------------------------------------------------------------------

    def _admit(self, workload: str, placements: tuple[Placement, ...]) -> None:
        group = self._mirror.groups.group(workload)
        if group is not None and group.admit and (patch := start_patch(group, self._one_place(group, placements))):
            self._go(self._patch(workload, patch, "un-suspend"))

    def _one_place(self, group: Group, placements: tuple[Placement, ...]) -> dict[str, str] | None:
        """Where all of it goes to one node, its pods are told so: whoever looks at them sees it."""
        nodes = {placement.node for placement in placements}
        node = self._mirror.nodes.get(next(iter(nodes))) if len(nodes) == 1 else None
        host = (node.metadata.labels or {}).get("kubernetes.io/hostname") if node is not None else None
        return {"kubernetes.io/hostname": host} if host and group.directives_field else None

    def _place(self, workload: str, placements: tuple[Placement, ...]) -> None:
        for placement in placements:
            slot = Slot(placement.role, placement.ordinal)
            self._places[workload, slot] = placement.node
        self._fill_places()

    def _fill_places(self) -> None:
        for (workload, slot), node in list(self._places.items()):
            if workload not in self._mirror.workloads:
                del self._places[workload, slot]
                continue
            pod = self._mirror.seat(workload, slot)
            if pod is None:
                continue
            del self._places[workload, slot]
            uid = pod.metadata.uid
            if pod.spec.node_name or uid in self._asked:
                continue
            self._asked[uid] = Asked(workload, slot, node, self._clock())
            if why := self._mirror.outgrown(workload, slot, pod):
                self._failed(uid, why, self._pause_s(workload))
                continue
            self._facts.append(SlotBinding(workload, slot.role, slot.ordinal))
            self._go(self._bind(pod, self._asked[uid]))
        held = {workload for workload, _ in self._places}
        for workload in self._mirror.held - held:
            self._mirror.look_again(workload)
        self._mirror.held = held

    async def _bind(self, pod: Pod, asked: Asked) -> None:
        meta = pod.metadata
        notes = {SLOT: slot_text(asked.slot.role, asked.slot.ordinal)}
        self.binds += 1
        outcome = await self._writer.bind(
            meta.name, asked.node, namespace=meta.namespace, uid=meta.uid, annotations=notes
        )
        match outcome:
            case Done() | Unknown() | Conflict():
                pass  # the watch decides; if it says nothing, a look does
            case Gone(message):
                self._failed(meta.uid, f"it is gone: {message}", 0.0)
            case Refused(reason, message, retry_after_s):
                self._failed(meta.uid, f"{reason}: {message}", retry_after_s or self._pause_s(asked.workload))

    async def _look(self, uid: str, pod: Pod) -> None:
        """A bind of which nothing was heard: the server knows."""
        try:
            found = await self._fetch(pod)
        except KubeError as error:
            LOG.info("look at %s: %s", pod.key, error)
            return  # it is looked at again
        asked = self._asked.get(uid)
        if asked is None:
            return
        if found is None or found.metadata.uid != uid:
            self._failed(uid, "its pod is gone", 0.0)
        elif found.spec.node_name:
            self._mirror.pod(found)
            self._wake()
        else:
            self._failed(uid, "the server did not bind it", self._pause_s(asked.workload))

    def _pause_s(self, workload: str) -> float:
        count = self._failures.get(workload, 0)
        return float(min(PAUSE_S * 2**count, LONGEST_PAUSE_S))

    def _failed(self, uid: str, why: str, retry_s: float) -> None:
        asked = self._asked.pop(uid, None)
        if asked is None:
            return
        self.failed_binds += 1
        self._failures[asked.workload] = self._failures.get(asked.workload, 0) + 1
        self._mirror.unseat(asked.workload, asked.slot)
        where = (asked.workload, asked.slot.role, asked.slot.ordinal)
        self._facts.append(SlotFailed(*where, f"bind to {asked.node}: {why}", int(retry_s * 1000)))
        self._wake()

    # -- stopping -----------------------------------------------------------------------------------------------------

    def _evict(self, workload: str, grace_ms: int) -> None:
        group = self._mirror.groups.group(workload)
        for place in [place for place in self._places if place[0] == workload]:
            del self._places[place]
        if group is not None and group.stop.how is StopHow.SUSPEND and (patch := stop_patch(group)) is not None:
            self._go(self._patch(workload, patch, "suspend"))
            return
        for pod in self._mirror.pods_of(workload):
            self._leave(pod, _grace_s(pod, grace_ms))

    def _shrink(self, workload: str, slots: tuple[tuple[str, int], ...]) -> None:
        spec = self._mirror.workloads.get(workload)
        for role, ordinal in slots:
            pod = self._mirror.pod_in(workload, Slot(role, ordinal))
            if pod is not None and pod.spec.node_name:
                self._leave(pod, _grace_s(pod, spec.grace_ms if spec is not None else 0))

    def _leave(self, pod: Pod, grace_s: int) -> None:
        if pod.metadata.deletion_timestamp or pod.over:
            return
        self._leaving[pod.metadata.uid] = (self._clock(), grace_s)
        self._go(self._ask_to_leave(pod, grace_s))

    async def _ask_to_leave(self, pod: Pod, grace_s: int) -> None:
        meta = pod.metadata
        self.evictions += 1
        outcome = await self._writer.evict(meta.name, namespace=meta.namespace, uid=meta.uid, grace_s=grace_s)
        if isinstance(outcome, Refused) and outcome.reason == "DisruptionBudget" and not self._respect_budgets:
            outcome = await self._writer.delete(
                PODS, meta.name, namespace=meta.namespace, uid=meta.uid, grace_s=grace_s
            )
        self._note("evict", f"{meta.namespace}/{meta.name}", outcome)

    async def _patch(self, workload: str, patch: Patch, what: str) -> None:
        thing = patch.object
        resource = self._resource_of(thing.kind, thing.api_version)
        if resource is None:
            LOG.warning("%s: cannot %s: nobody serves %s", workload, what, thing.kind)
            return
        outcome = await self._writer.patch(resource, thing.name, patch.body, namespace=thing.namespace)
        self._note(what, workload, outcome)
        if what == "suspend" and isinstance(outcome, Refused):
            for pod in self._mirror.pods_of(workload):
                self._leave(pod, _grace_s(pod, 0))

    def _note(self, what: str, whom: str, outcome: Outcome) -> None:
        if isinstance(outcome, Refused | Unknown | Conflict):
            LOG.info("%s %s: %s", what, whom, outcome.message)

    def _go(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._over)

    def _over(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            LOG.error("a write failed in a way nobody thought of", exc_info=error)


def _grace_s(pod: Pod, grace_ms: int) -> int:
    """What the work was promised, or what its pod says."""
    own = pod.spec.termination_grace_period_seconds
    return max(-(-grace_ms // 1000), POD_GRACE_S if own is None else own)
