"""Plans become writes: binds, evictions and patches; what comes of them goes back to the brain as facts.

Why: a write may be done, refused, or nobody knows; the brain must count each right, and nothing may wait for one.
Owns: what was asked for and is not confirmed yet, and places that wait for a pod.
Must not: decide. A bind that fails gives its place back; whether to try again is the brain's business.

    Start, Grow ── a pod is there ──► bind ──► done      the watch confirms it
                │                          ├─► unknown   the watch confirms it, or a look tells (LOOK_S, CONFIRM_S)
                │                          └─► refused, gone: SlotFailed, with a pause that doubles
                └─ no pod yet ──► the place waits for it (work that is only now un-suspended, or made again)
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any

from msgspec import Struct, structs

from optimus.drivers.kube.grouping import Group, Patch, Slot, start_patch, stop_patch
from optimus.drivers.kube.grouping.kinds import StopHow
from optimus.drivers.kube.grouping.overrides import SLOT, TERM, slot_text
from optimus.drivers.kube.mirror import Mirror
from optimus.drivers.kube.objects import Pod
from optimus.drivers.kube.preparing import Preparing
from optimus.kube import Conflict, Done, Gone, KubeError, Outcome, Refused, Resource, Unknown, Writer
from optimus.kube.resources import PODS
from optimus.model.observations import Observation, SlotBinding, SlotFailed
from optimus.model.plans import Drop, Evict, Grow, Placement, Plan, Shrink, Start

LOG = logging.getLogger(__name__)
CONFIRM_S = 10.0
"""So long after the server's answer, a bind of which the watch has said nothing is looked at. The time before does not
count: a bind that waits for its turn is late because the server is slow, and questions would make it slower."""
LOOK_S = 1.0
"""The same, where the answer was no clear yes or no."""
LOOKS = 8
"""At the same time."""
PAUSE_S, LONGEST_PAUSE_S = 1.0, 300.0
LEAVE_AGAIN_S = 5.0
"""A pod that would not leave is asked again."""
POD_GRACE_S = 30


class Asked(Struct, frozen=True):
    """A bind under way."""

    workload: str
    slot: Slot
    node: str


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
        term: int | None = None,
        chooses_volumes: bool = True,
    ) -> None:
        """`fetch`: the pod as the server has it now, None if it is gone. `resource_of`: kind and version -> where its
        objects live. `respect_budgets`: a disruption budget may keep our own pods where they are. `term`: written on
        every bind (`repairing` says why). `chooses_volumes`: whoever binds does not do it."""
        self.binds = 0
        self.failed_binds = 0
        self.evictions = 0
        self._mirror, self._writer = mirror, writer
        self._fetch, self._resource_of, self._wake, self._clock = fetch, resource_of, wake, clock
        self._respect_budgets = respect_budgets
        self._term = {} if term is None else {TERM: str(term)}
        self._asked: dict[str, Asked] = {}
        self._look_at: dict[str, float] = {}
        """Those of them that the server has answered, or has not in time: when to look, if nothing is heard."""
        self._looking: set[str] = set()
        self._places: dict[tuple[str, Slot], str] = {}
        """Places that wait for a pod, with their node."""
        self._leaving: dict[str, tuple[float, int]] = {}
        """By uid: when it was asked to leave last, and its grace in seconds."""
        self._failures: dict[str, int] = {}
        """Starts in a row of which a bind failed."""
        self._failing: set[str] = set()
        """Of which one has failed since they got their present places: a gang of a hundred fails once."""
        self._suspended: dict[str, bool] = {}
        """By workload: whether it was asked to be, until the watch shows it. Work may be started and stopped sooner."""
        self._patching: dict[str, asyncio.Task[None]] = {}
        """By workload: its last patch; the next one waits for it, or the two might land the other way round."""
        self._facts: list[Observation] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.preparing = Preparing(mirror, writer, self._go, clock) if chooses_volumes else None

    # -- plans --------------------------------------------------------------------------------------------------------

    def act(self, plan: Plan) -> None:
        for action in plan.actions:
            match action:
                case Start(workload, _, placements):
                    self._admit(workload)
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
        for uid in self._mirror.take_heard() & self._asked.keys():
            self._confirm(uid)
        self._look_for_volumes()
        for workload, asked in list(self._suspended.items()):
            group = self._mirror.groups.group(workload)
            if group is None or group.suspended == asked:
                del self._suspended[workload]
        now = self._clock()
        for uid in [uid for uid, at in self._look_at.items() if now > at and uid not in self._looking]:
            if len(self._looking) >= LOOKS:
                break
            self._looking.add(uid)
            self._go(self._look(uid, self._mirror.pods[uid]))
        for uid, (since, grace_s) in list(self._leaving.items()):
            pod = self._mirror.pods.get(uid)
            if pod is None or pod.metadata.deletion_timestamp or pod.over:
                del self._leaving[uid]
            elif now - since > LEAVE_AGAIN_S:
                self._leave(pod, grace_s)
        facts, self._facts = self._facts, []
        return facts

    def _confirm(self, uid: str) -> None:
        """The watch has told something of a pod that is being bound."""
        pod = self._mirror.pods.get(uid)
        if pod is None:
            self._failed(uid, "its pod was deleted", 0.0)
        elif pod.spec.node_name:
            self._failures.pop(self._asked.pop(uid).workload, None)
            self._look_at.pop(uid, None)
            self._prepared(uid)

    @property
    def unsettled(self) -> int:
        """Binds and departures of which the end is not known."""
        return len(self._asked) + len(self._leaving)

    def place_of(self, uid: str) -> str | None:
        """The node to which it is being bound by us."""
        asked = self._asked.get(uid)
        return asked.node if asked is not None else None

    def roles_coming(self, workload: str) -> list[str]:
        """The role of each of its replicas that is being bound, or has a place and waits for its pod."""
        pods = self._mirror.pods
        asked = [
            one.slot.role
            for uid, one in self._asked.items()
            if one.workload == workload and uid in pods and not pods[uid].spec.node_name
        ]
        return [*asked, *(slot.role for name, slot in self._places if name == workload)]

    async def close(self) -> None:
        """Waits for writes that are under way; their time is limited."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    # -- starting -----------------------------------------------------------------------------------------------------

    def _admit(self, workload: str) -> None:
        """Without a node selector, also where all goes to one node: it would outlive the node."""
        group = self._as_asked(workload)
        if group is not None and group.admit and (patch := start_patch(group)):
            self._send_patch(workload, patch, suspend=False)

    def _place(self, workload: str, placements: tuple[Placement, ...]) -> None:
        self._failing.discard(workload)
        for placement in placements:
            slot = Slot(placement.role, placement.ordinal)
            self._places[workload, slot] = placement.node
        self._fill_places()

    def _fill_places(self) -> None:
        seated: dict[str, list[tuple[Pod, Asked]]] = {}
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
            self._asked[uid] = Asked(workload, slot, node)
            if why := self._mirror.outgrown(workload, slot, pod):
                self._failed(uid, why, self._pause_s(workload))
                continue
            self._facts.append(SlotBinding(workload, slot.role, slot.ordinal))
            seated.setdefault(workload, []).append((pod, self._asked[uid]))
        for workload, pods in seated.items():
            if self.preparing is not None and self.preparing.is_needed(workload, [pod for pod, _ in pods]):
                for pod, asked in pods:
                    self.preparing.begin(workload, pod, asked.node)
                continue
            for pod, asked in pods:
                self._go(self._bind(pod, asked))
        held = {workload for workload, _ in self._places} | (self.preparing.workloads if self.preparing else set())
        if before := self._mirror.held - held:  # until the watch has shown their binds
            held |= before & {asked.workload for asked in self._asked.values()}
        for workload in self._mirror.held - held:
            self._mirror.look_again(workload)
        self._mirror.held = held

    def _look_for_volumes(self) -> None:
        """Gangs whose volumes are all there are bound; one that cannot have them gives its places back."""
        if self.preparing is None or not self.preparing.workloads:
            return
        waiting = {workload for workload, _ in self._places}
        found = self.preparing.look(lambda workload: workload not in waiting)
        for uid in found.ready:
            self.preparing.forget(uid)
            if uid in self._asked:
                self._go(self._bind(self._mirror.pods[uid], self._asked[uid]))
        for uid, why in found.given_up.items():
            self._failed(uid, why, self._pause_s(self._asked[uid].workload) if uid in self._asked else 0.0)

    async def _bind(self, pod: Pod, asked: Asked) -> None:
        meta = pod.metadata
        notes = {SLOT: slot_text(asked.slot.role, asked.slot.ordinal), **self._term}
        self.binds += 1
        outcome = await self._writer.bind(
            meta.name, asked.node, namespace=meta.namespace, uid=meta.uid, annotations=notes
        )
        match outcome:
            case Done() | Unknown(_, answered=False):
                self._look_later(meta.uid, CONFIRM_S)  # the watch decides; if it says nothing, a look does
            case Unknown() | Conflict():
                self._look_later(meta.uid, LOOK_S)  # the same, and it is decided already
            case Gone(message):
                self._failed(meta.uid, f"it is gone: {message}", 0.0)
            case Refused(reason, message, retry_after_s):
                self._failed(meta.uid, f"{reason}: {message}", retry_after_s or self._pause_s(asked.workload))

    def _look_later(self, uid: str, after_s: float) -> None:
        if uid in self._asked:
            self._look_at[uid] = self._clock() + after_s

    async def _look(self, uid: str, pod: Pod) -> None:
        """A bind of which nothing was heard: the server knows."""
        try:
            found = await self._fetch(pod)
        except KubeError as error:
            LOG.info("look at %s: %s", pod.key, error)
            self._look_later(uid, CONFIRM_S)
            return
        finally:
            self._looking.discard(uid)
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
        count = self._failures.get(workload, 0) - (workload in self._failing)
        return float(min(PAUSE_S * 2**count, LONGEST_PAUSE_S))

    def _failed(self, uid: str, why: str, retry_s: float) -> None:
        asked = self._asked.pop(uid, None)
        self._look_at.pop(uid, None)
        self._prepared(uid)
        if asked is None:
            return
        self.failed_binds += 1
        if asked.workload not in self._failing:
            self._failing.add(asked.workload)
            self._failures[asked.workload] = self._failures.get(asked.workload, 0) + 1
        self._mirror.unseat(asked.workload, asked.slot)
        where = (asked.workload, asked.slot.role, asked.slot.ordinal)
        self._facts.append(SlotFailed(*where, f"bind to {asked.node}: {why}", int(retry_s * 1000)))
        self._wake()

    def _prepared(self, uid: str) -> None:
        if self.preparing is not None:
            self.preparing.forget(uid)

    # -- stopping -----------------------------------------------------------------------------------------------------

    def stop(self, workload: str) -> None:
        """All of it, as it would be preempted."""
        self._evict(workload, 0)

    def send_away(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            self._leave(pod, _grace_s(pod, 0))

    def _evict(self, workload: str, grace_ms: int) -> None:
        group = self._as_asked(workload)
        for place in [place for place in self._places if place[0] == workload]:
            del self._places[place]
        for uid in self.preparing.uids(workload) if self.preparing is not None else ():
            self._failed(uid, "it has to leave before its volumes are there", 0.0)
        if group is not None and group.stop.how is StopHow.SUSPEND and (patch := stop_patch(group)) is not None:
            self._send_patch(workload, patch, suspend=True)
            return
        if group is not None and group.checkpoint_grace_ms is not None:  # the brain does not know it of bare pods
            grace_ms = max(grace_ms, group.checkpoint_grace_ms)
        for pod in self._mirror.pods_of(workload):
            self._leave(pod, _grace_s(pod, grace_ms))

    def _shrink(self, workload: str, slots: tuple[tuple[str, int], ...]) -> None:
        spec, group = self._mirror.workloads.get(workload), self._mirror.groups.group(workload)
        if group is not None and group.fragile_why:  # one lost pod would fail it: it leaves as a whole, and comes back
            LOG.info("%s leaves as a whole: %s", workload, group.fragile_why)
            self._evict(workload, spec.grace_ms if spec is not None else 0)
            return
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

    def _as_asked(self, workload: str) -> Group | None:
        """Its group; suspended as we have asked for it, where the watch does not show it yet."""
        group, asked = self._mirror.groups.group(workload), self._suspended.get(workload)
        return group if group is None or asked is None else structs.replace(group, suspended=asked, admit=asked)

    def _send_patch(self, workload: str, patch: Patch, *, suspend: bool) -> None:
        before = self._patching.get(workload)
        self._suspended[workload] = suspend
        what = "suspend" if suspend else "un-suspend"
        self._patching[workload] = self._go(self._patch(workload, patch, what, before))

    async def _patch(self, workload: str, patch: Patch, what: str, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait([before])
        try:
            await self._patch_now(workload, patch, what)
        finally:
            if self._patching.get(workload) is asyncio.current_task():
                del self._patching[workload]

    async def _patch_now(self, workload: str, patch: Patch, what: str) -> None:
        thing = patch.object
        resource = self._resource_of(thing.kind, thing.api_version)
        if resource is None:
            LOG.warning("%s: cannot %s: nobody serves %s", workload, what, thing.kind)
            return
        outcome = await self._writer.patch(resource, thing.name, patch.body, namespace=thing.namespace)
        self._note(what, workload, outcome)
        if not isinstance(outcome, Done):
            self._suspended.pop(workload, None)
        if what == "suspend" and isinstance(outcome, Refused):
            for pod in self._mirror.pods_of(workload):
                self._leave(pod, _grace_s(pod, 0))

    def _note(self, what: str, whom: str, outcome: Outcome) -> None:
        if isinstance(outcome, Refused | Unknown | Conflict):
            LOG.info("%s %s: %s", what, whom, outcome.message)

    def _go(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._over)
        return task

    def _over(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            LOG.error("a write failed in a way nobody thought of", exc_info=error)


def _grace_s(pod: Pod, grace_ms: int) -> int:
    """What the work was promised, or what its pod says."""
    own = pod.spec.termination_grace_period_seconds
    return max(-(-grace_ms // 1000), POD_GRACE_S if own is None else own)
