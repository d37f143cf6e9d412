"""Plans become writes: binds, evictions and patches; what comes of them goes back to the brain as facts.

Why: a write may be done, refused, or nobody knows; the brain must count each right, and nothing may wait for one.
Owns: what was asked for and is not confirmed yet, and places that wait for a pod.
Must not: decide. A bind that fails gives its place back; whether to try again is the brain's business.

    Start, Grow ── a pod is there ──► bind ──► done      the watch confirms it
                │                          ├─► busy      it is sent again when the server says (BUSY_TIMES)
                │                          ├─► unknown   the watch confirms it, or a look tells (LOOK_S, CONFIRM_S)
                │                          └─► refused, gone: SlotFailed, with a pause that doubles
                ├─ no pod yet ──► the place waits for it (work that is only now un-suspended, or made again)
                └─ its bind to a node that is gone has no end yet ──► the place waits, for it or who comes instead
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any

from msgspec import Struct, structs

from optimus.drivers.kube.allocating import Allocating
from optimus.drivers.kube.avoiding import Avoiding, was_refused
from optimus.drivers.kube.binding_volumes import BindingVolumes
from optimus.drivers.kube.grouping import Group, Patch, Slot, hold_patch, start_patch, stop_patch
from optimus.drivers.kube.grouping.kinds import StopHow
from optimus.drivers.kube.grouping.overrides import SLOT, TERM, slot_text
from optimus.drivers.kube.grouping.unified import is_worker
from optimus.drivers.kube.mirror import Mirror
from optimus.drivers.kube.objects import Pod
from optimus.drivers.kube.preparing import Preparing
from optimus.drivers.kube.targets import Targets
from optimus.kube import Conflict, Done, Gone, KubeError, Outcome, Refused, Resource, Unknown, Writer
from optimus.kube.resources import PODS
from optimus.kube.writing import BUDGET, BUSY, NOT_SENT
from optimus.model.observations import Observation, SlotBinding, SlotFailed, SlotStays
from optimus.model.plans import Drop, Evict, Grow, Placement, Plan, Reject, Shrink, Start
from optimus.model.reasons import Code, Reason, reason

LOG = logging.getLogger(__name__)
CONFIRM_S = 10.0
"""So long after the server's answer, a bind of which the watch has said nothing is looked at. The time before does not
count: a bind that waits for its turn is late because the server is slow, and questions would make it slower."""
LOOK_S = 1.0
"""The same, where the answer was no clear yes or no."""
LOOKS = 8
"""At the same time."""
PAUSE_S, LONGEST_PAUSE_S = 1.0, 300.0
STAY_S = 30.0
"""So long, at first, nobody asks work to leave again that somebody has refused to stop."""
LEAVE_AGAIN_S = 5.0
"""A pod that would not leave is asked again."""
PATCH_AGAIN_S = 1.0
"""The same, for work that is to be suspended or started."""
POD_GRACE_S = 30
STARTED, GROWN = "Started: there is room for it", "Grown: there is room for more of it"
BUSY_TIMES = 5
"""So often in a row a bind that the server had no time for is sent again, before its place is given up."""


class Asked(Struct, frozen=True):
    """A bind under way."""

    workload: str
    slot: Slot
    node: str


class Leaving(Struct, frozen=True):
    """A pod that was asked to leave, and is not told to end."""

    since: float
    """When it was asked first."""
    at: float
    """And last."""
    grace_s: int


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
        every bind (`repairing` says why). `chooses_volumes`: and devices; whoever binds does not do it."""
        self.binds = 0
        self.sending = 0
        """Binds that the server has not answered."""
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
        self._busy: dict[str, tuple[float, int]] = {}
        """Those of them that the server had no time for: when they are sent again, and for which time."""
        self._places: dict[str, dict[Slot, str]] = {}
        """By workload: places that wait for a pod, with their node."""
        self._leaving: dict[str, Leaving] = {}
        """By uid."""
        self._refusals: dict[str, tuple[int, float]] = {}
        """By workload: how often in a row somebody has refused to stop it, and until when it is left alone."""
        self._over_for_good: set[str] = set()
        """Work that the brain has done with: whoever refuses to stop it is asked again and again."""
        self.tell: Callable[[str, Reason], object] = lambda _workload, _why: None
        """Told of work that stays although it was to leave."""
        self._failures: dict[str, int] = {}
        """Starts in a row of which a bind failed."""
        self._failing: set[str] = set()
        """Of which one has failed since they got their present places: a gang of a hundred fails once."""
        self._avoiding = Avoiding(mirror.avoid, clock)
        self._suspended: dict[str, bool] = {}
        """By workload: whether it was asked to be, until the watch shows it. Work may be started and stopped sooner."""
        self._patching: dict[str, asyncio.Task[None]] = {}
        """By workload: its last patch; the next one waits for it, or the two might land the other way round."""
        self._again: dict[str, tuple[float, bool]] = {}
        """By workload: a patch that came at a bad moment; when it is sent again, and whether it suspends."""
        self._facts: list[Observation] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._allocating = Allocating(mirror, writer, self._go, clock)
        steps = (BindingVolumes(mirror, writer, self._go, clock), self._allocating)
        self.preparing = Preparing(mirror, steps, clock) if chooses_volumes else None
        self._targets = Targets(mirror, writer, resource_of, self._go, clock, self._note)
        self._targets.refused = self._give_back

    # -- plans --------------------------------------------------------------------------------------------------------

    def act(self, plan: Plan) -> None:
        for action in plan.actions:
            match action:
                case Start(workload, _, placements):
                    self._admit(workload)
                    self._place(workload, placements)
                    self._resize(workload, workers(one.role for one in placements), STARTED)
                case Grow(workload, placements):
                    self._place(workload, placements)
                    self._resize(workload, self._changed(workload, workers(one.role for one in placements)), GROWN)
                case Evict(workload, cause, grace_ms, final=True):
                    if not self._hold(workload, cause):
                        self._over_for_good.add(workload)
                        self._evict(workload, grace_ms, cause)
                case Evict(workload, cause, grace_ms):
                    self._evict(workload, grace_ms, cause)
                case Reject(workload, cause):
                    self._hold(workload, cause)
                case Shrink(workload, slots, cause):
                    self._resize(workload, self._changed(workload, -workers(role for role, _ in slots)), said(cause))
                    self._shrink(workload, slots, cause)
                case Drop(workload, slots, cause):
                    self._give_places_up(workload, [Slot(role, ordinal) for role, ordinal in slots], said(cause))
                case _:
                    pass  # room that is held: people are told, nothing is done
        self._note_held()

    def facts(self) -> list[Observation]:
        """What came of earlier plans; binds that are late are looked at."""
        self._fill_places(list(self._places))
        self._note_held()
        for uid in self._mirror.take_heard() & self._asked.keys():
            self._confirm(uid)
        self._look_after_claims()
        for workload, asked in list(self._suspended.items()):
            group = self._mirror.groups.group(workload)
            if group is None or group.suspended == asked:
                del self._suspended[workload]
        known, now = self._mirror.workloads.keys(), self._clock()
        self._patch_again(now)
        for workload, trouble in self._targets.look(lambda one: len(self._places.get(one, ())), self._granted):
            self._give_up(workload, trouble)
        while self._mirror.refusing:
            self._avoiding.failed(*self._mirror.refusing.pop())
        self._avoiding.look(known.__contains__)
        self._over_for_good &= known
        for workload in self._refusals.keys() - known:
            del self._refusals[workload]
        for workload in self._failures.keys() - known:
            del self._failures[workload]
            self._failing.discard(workload)
        self._bind_again(now)
        for uid in [uid for uid, at in self._look_at.items() if now > at and uid not in self._looking]:
            if len(self._looking) >= LOOKS:
                break
            self._looking.add(uid)
            self._go(self._look(uid, self._mirror.pods[uid]))
        for uid, leaving in list(self._leaving.items()):
            pod = self._mirror.pods.get(uid)
            if pod is None or pod.metadata.deletion_timestamp or pod.over:
                del self._leaving[uid]
                self._refusals.pop(self._mirror.groups.group_of(uid) or "", None)
            elif now - leaving.at > LEAVE_AGAIN_S:
                self._leave(pod, leaving.grace_s)
        facts, self._facts = self._facts, []
        return facts

    def _confirm(self, uid: str) -> None:
        """The watch has told something of a pod that is being bound."""
        pod = self._mirror.pods.get(uid)
        if pod is None:
            self._failed(uid, "its pod was deleted", 0.0)
        elif pod.over and self._mirror.seat_of(uid) is None:  # before anybody has heard that it was there
            refused = was_refused(pod)
            why = f"{pod.status.reason}: {pod.status.message}" if refused else "it was over at once"
            self._failed(uid, why, self._pause_s(self._asked[uid].workload) if refused else 0.0, there=refused)
        elif pod.spec.node_name:
            self._failures.pop(self._asked.pop(uid).workload, None)
            self._look_at.pop(uid, None)
            self._prepared(uid)

    @property
    def unsettled(self) -> int:
        """Binds, departures, claims and patches of which the end is not known."""
        mine = len(self._asked) + len(self._leaving) + len(self._again)
        return mine + self._allocating.unsettled + self._targets.unsettled

    def refused_to_leave(self, after_s: float) -> int:
        """Pods that were asked to leave so long ago and are not even told to end."""
        return sum(self._clock() - leaving.since > after_s for leaving in self._leaving.values())

    def place_of(self, uid: str) -> str | None:
        """The node to which it is being bound by us."""
        asked = self._asked.get(uid)
        return asked.node if asked is not None else None

    def roles_coming(self, workload: str) -> list[str]:
        """The role of each of its replicas that is being bound, or has a place and waits for its pod."""
        pods = self._mirror.pods
        asked = {
            one.slot
            for uid, one in self._asked.items()
            if one.workload == workload and uid in pods and not pods[uid].spec.node_name
        }
        return [slot.role for slot in asked | self._places.get(workload, {}).keys()]

    async def close(self) -> None:
        """Waits for writes that are under way; their time is limited."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    # -- starting -----------------------------------------------------------------------------------------------------

    def _admit(self, workload: str) -> None:
        group = self._as_asked(workload)
        if group is not None and group.admit and (patch := start_patch(group)):
            self._send_patch(workload, patch, suspend=False)

    def _give_places_up(self, workload: str, slots: list[Slot], why: str) -> None:
        """Nobody has come to them yet. Those that were only promised are in no number."""
        places = self._places.get(workload, {})
        granted = workers(slot.role for slot in slots if slot in places or self._mirror.pod_in(workload, slot))
        number = self._changed(workload, -granted)
        for slot in slots:
            places.pop(slot, None)
            self._mirror.unseat(workload, slot)
        if granted:
            self._resize(workload, number, why)

    def _resize(self, workload: str, number: int, why: str) -> None:
        """Of a job whose controller follows a number. Parts of an array come and go by themselves: there it is those
        that have a place."""
        if self._targets.is_array(workload):
            number = self._granted(workload)
        if self._targets.steers(workload) and number != self._targets.now_at(workload):
            self._targets.want(workload, number, why)

    def _changed(self, workload: str, by: int) -> int:
        """The number after that. Whoever takes over may find one for which pods still come: what the brain then grants
        are places for these, and no more of them."""
        now, has = self._targets.now_at(workload), self._granted(workload) + self._done(workload)
        return min(now + by, max(now, has)) if by > 0 else min(now, has) + by

    def _granted(self, workload: str) -> int:
        """Replicas that are on a node and stay there, or are about to come to one."""
        return workers([*self._mirror.roles_seated(workload), *self.roles_coming(workload)])

    def _done(self, workload: str) -> int:
        """Replicas that have ended well: their places are taken for good."""
        groups, pods = self._mirror.groups, self._mirror.pods
        done = [groups.slot_of(uid) for uid in groups.members(workload) if uid in pods and pods[uid].done]
        return workers(slot.role for slot in done if slot is not None)

    def _give_up(self, workload: str, trouble: str) -> None:
        """Nobody has come for its places, most of the time because a quota or a policy keeps its controller from making
        pods; or those that came do not begin to run, such as for an image that is nowhere. What runs stays."""
        stuck = [pod for pod in self._mirror.pods_of(workload) if pod.status.phase == "Pending"]
        seats = [seat for pod in stuck if (seat := self._mirror.seat_of(pod.metadata.uid)) is not None]
        for seat in seats:
            self._avoiding.failed(workload, seat.node)
        missing = workers(slot.role for slot in [*self._places.get(workload, ()), *(seat.slot for seat in seats)])
        self._give_back(workload, trouble)
        self.send_away(stuck)
        self._resize(workload, self._targets.now_at(workload) - missing, f"RolledBack: {trouble}")

    def _place(self, workload: str, placements: tuple[Placement, ...]) -> None:
        self._failing.discard(workload)
        places = self._places.setdefault(workload, {})
        places.update({Slot(one.role, one.ordinal): one.node for one in placements})
        self._fill_places([workload])

    def _fill_places(self, workloads: Iterable[str]) -> None:
        for workload in workloads:
            self._seat(workload)
            if not self._places[workload]:
                del self._places[workload]

    def _note_held(self) -> None:
        """What the brain knows of work with places that wait stays as it is."""
        held = self._places.keys() | (self.preparing.workloads if self.preparing else set())
        if before := self._mirror.held - held:  # until the watch has shown their binds
            held |= before & {asked.workload for asked in self._asked.values()}
        for workload in self._mirror.held - held:
            self._mirror.look_again(workload)
        self._mirror.held = held

    def _seat(self, workload: str) -> None:
        """Pods that have come for its places are bound there, or wait there for their volumes."""
        known, places = self._mirror.workloads.get(workload), self._places[workload]
        roles = {role.name for role in known.gang.roles} if known is not None else set()
        for slot, node in list(places.items()):
            if slot.role not in roles or self._mirror.node_known(node) is None:
                del places[slot]  # the brain has lost it, too
            elif self._is_nowhere(self._mirror.pod_in(workload, slot)):
                self._mirror.unseat(workload, slot)
        seated: list[tuple[Pod, Asked]] = []
        for slot, pod in self._mirror.seat(workload, places).items():
            uid = pod.metadata.uid
            if uid in self._asked and not pod.spec.node_name and not self._is_preparing(uid, workload):
                continue  # to a node that the brain has lost. Where it lands is seen first; the place waits for that
            node = places.pop(slot)
            if pod.spec.node_name:
                continue
            self._asked[uid] = Asked(workload, slot, node)
            if why := self._mirror.outgrown(workload, slot, pod, node):
                self._failed(uid, why, self._pause_s(workload))
                continue
            self._facts.append(SlotBinding(workload, slot.role, slot.ordinal))
            seated.append((pod, self._asked[uid]))
        if self.preparing is not None and self.preparing.is_needed(workload, [pod for pod, _ in seated]):
            for pod, asked in seated:
                self.preparing.begin(workload, pod, asked.node)
            return
        for pod, asked in seated:
            self._go(self._bind(pod, asked))

    def _is_nowhere(self, pod: Pod | None) -> bool:
        """Its bind has landed on a node that is gone: the brain is not told of it, and others take its place."""
        return pod is not None and bool(pod.spec.node_name) and pod.spec.node_name not in self._mirror.nodes

    def _look_after_claims(self) -> None:
        """Gangs whose volumes and devices are all there are bound; one that cannot have them gives its places back."""
        if self.preparing is None:
            return
        self._allocating.sweep(self._asked.__contains__)
        if not self.preparing.workloads:
            return
        found = self.preparing.look(lambda workload: workload not in self._places)
        for uid in found.ready:
            self.preparing.forget(uid)
            if uid in self._asked:
                self._go(self._bind(self._mirror.pods[uid], self._asked[uid]))
        for uid, why in found.given_up.items():
            pause_s = self._pause_s(self._asked[uid].workload) if uid in self._asked else 0.0
            self._failed(uid, why, pause_s, there=uid in found.culprits)

    async def _bind(self, pod: Pod, asked: Asked) -> None:
        meta = pod.metadata
        notes = {SLOT: slot_text(asked.slot.role, asked.slot.ordinal), **self._term}
        self.binds += 1
        self.sending += 1
        try:
            outcome = await self._writer.bind(
                meta.name, asked.node, namespace=meta.namespace, uid=meta.uid, annotations=notes
            )
        finally:
            self.sending -= 1
        match outcome:
            case Done() | Unknown(_, answered=False):
                self._look_later(meta.uid, CONFIRM_S)  # the watch decides; if it says nothing, a look does
            case Unknown() | Conflict():
                self._look_later(meta.uid, LOOK_S)  # the same, and it is decided already
            case Gone(message):
                self._failed(meta.uid, f"it is gone: {message}", 0.0)
            case Refused(reason, _, retry_after_s) if reason == BUSY and self._times_busy(meta.uid) < BUSY_TIMES:
                again_at = self._clock() + (retry_after_s or PAUSE_S)
                self._busy[meta.uid] = (again_at, self._times_busy(meta.uid) + 1)
            case Refused(reason, message, retry_after_s):
                pause_s = retry_after_s or self._pause_s(asked.workload)
                self._failed(meta.uid, f"{reason}: {message}", pause_s, there=not outcome.passing)

    def _times_busy(self, uid: str) -> int:
        return self._busy[uid][1] if uid in self._busy else 0

    def _bind_again(self, now: float) -> None:
        for uid, (at, times) in list(self._busy.items()):
            pod, asked = self._mirror.pods.get(uid), self._asked.get(uid)
            if asked is None or pod is None:
                del self._busy[uid]
            elif at < math.inf and self._mirror.node_known(asked.node) is None:
                self._failed(uid, "the node is gone", 0.0)
            elif now >= at:
                self._busy[uid] = (math.inf, times)  # until it is answered
                self._go(self._bind(pod, asked))

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
        elif self._mirror.pods.get(uid) is not pod:
            self._look_later(uid, LOOK_S)  # the watch has told of it meanwhile, and may know better
        elif found.spec.node_name:
            self._mirror.pod(found)
            self._wake()
        else:
            self._failed(uid, "the server did not bind it", self._pause_s(asked.workload), there=True)

    def _pause_s(self, workload: str) -> float:
        count = self._failures.get(workload, 0) - (workload in self._failing)
        return float(min(PAUSE_S * 2**count, LONGEST_PAUSE_S))

    def _failed(self, uid: str, why: str, retry_s: float, *, there: bool = False) -> None:
        """`there`: it may go well elsewhere."""
        asked = self._asked.pop(uid, None)
        self._look_at.pop(uid, None)
        self._busy.pop(uid, None)
        self._prepared(uid)
        if asked is None:
            return
        self.failed_binds += 1
        if asked.slot in self._places.get(asked.workload, {}):  # the brain has long given it another place
            self._wake()
            return
        if asked.workload not in self._failing:
            self._failing.add(asked.workload)
            self._failures[asked.workload] = self._failures.get(asked.workload, 0) + 1
        if there:
            self._avoiding.failed(asked.workload, asked.node)
        self._mirror.unseat(asked.workload, asked.slot)
        where = (asked.workload, asked.slot.role, asked.slot.ordinal)
        self._facts.append(SlotFailed(*where, f"bind to {asked.node}: {why}", int(retry_s * 1000)))
        self._wake()

    def _is_preparing(self, uid: str, workload: str) -> bool:
        """Nothing is sent yet."""
        return self.preparing is not None and uid in self.preparing.uids(workload)

    def _prepared(self, uid: str) -> None:
        if self.preparing is not None:
            self.preparing.forget(uid)

    # -- stopping -----------------------------------------------------------------------------------------------------

    def stop(self, workload: str, why: Reason) -> None:
        """All of it, as it would be preempted."""
        self._evict(workload, 0, why)

    def send_away(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            self._leave(pod, _grace_s(pod, 0))

    def _evict(self, workload: str, grace_ms: int, why: Reason) -> None:
        group = self._as_asked(workload)
        self._places.pop(workload, None)
        for uid in self.preparing.uids(workload) if self.preparing is not None else ():
            self._failed(uid, "it has to leave before its volumes or devices are there", 0.0)
        if self._targets.steers(workload):
            self._targets.want(workload, 0, said(why))
            return
        if group is not None and group.stop.how is StopHow.SUSPEND and (patch := stop_patch(group)) is not None:
            self._send_patch(workload, patch, suspend=True)
            return
        if group is not None and group.checkpoint_grace_ms is not None:  # the brain does not know it of bare pods
            grace_ms = max(grace_ms, group.checkpoint_grace_ms)
        for pod in self._mirror.pods_of(workload):
            self._leave(pod, _grace_s(pod, grace_ms))

    def _hold(self, workload: str, why: Reason) -> bool:
        """It ends here, for the next leader, too. False: nothing can be written on it that would stop it."""
        group = self._as_asked(workload)
        steered = self._targets.steers(workload)
        patch = hold_patch(group, said(why)) if group is not None and not steered else None
        if patch is None and not steered:
            return False
        self._places.pop(workload, None)
        for uid in self.preparing.uids(workload) if self.preparing is not None else ():
            self._failed(uid, "it has to leave before its volumes are there", 0.0)
        if patch is None:
            self._targets.want(workload, 0, said(why), held=True)
        else:
            self._send_patch(workload, patch, suspend=True)
        return True

    def _shrink(self, workload: str, slots: tuple[tuple[str, int], ...], why: Reason) -> None:
        spec, group = self._mirror.workloads.get(workload), self._mirror.groups.group(workload)
        if group is not None and group.fragile_why:  # one lost pod would fail it: it leaves as a whole, and comes back
            LOG.info("%s leaves as a whole: %s", workload, group.fragile_why)
            self._evict(workload, spec.grace_ms if spec is not None else 0, why)
            return
        for role, ordinal in slots:
            pod = self._mirror.pod_in(workload, Slot(role, ordinal))
            if pod is not None and pod.spec.node_name:
                self._leave(pod, _grace_s(pod, spec.grace_ms if spec is not None else 0))

    def _leave(self, pod: Pod, grace_s: int) -> None:
        if pod.metadata.deletion_timestamp or pod.over:
            return
        uid, now = pod.metadata.uid, self._clock()
        self._leaving[uid] = Leaving(self._leaving[uid].since if uid in self._leaving else now, now, grace_s)
        self._go(self._ask_to_leave(pod, grace_s))

    async def _ask_to_leave(self, pod: Pod, grace_s: int) -> None:
        meta = pod.metadata
        self.evictions += 1
        outcome = await self._writer.evict(meta.name, namespace=meta.namespace, uid=meta.uid, grace_s=grace_s)
        if isinstance(outcome, Refused) and outcome.reason == BUDGET and not self._respect_budgets:
            outcome = await self._writer.delete(
                PODS, meta.name, namespace=meta.namespace, uid=meta.uid, grace_s=grace_s
            )
        self._note("evict", f"{meta.namespace}/{meta.name}", outcome)
        if isinstance(outcome, Refused) and outcome.reason != NOT_SENT:
            self._refused(pod, outcome)

    def _refused(self, pod: Pod, outcome: Refused) -> None:
        """It stays, and the brain has to know: it has promised the room. All pods of a gang that are refused at once
        are one refusal."""
        uid = pod.metadata.uid
        seat, now = self._mirror.seat_of(uid), self._clock()
        if seat is None or seat.workload in self._over_for_good or self._leaving.pop(uid, None) is None:
            return
        count, until = self._refusals.get(seat.workload, (0, now))
        failure = f"{outcome.reason}: {outcome.message}"
        if until <= now:
            pause_s = max(min(STAY_S * 2**count, LONGEST_PAUSE_S), outcome.retry_after_s or 0.0)
            until = now + pause_s
            self._refusals[seat.workload] = (count + 1, until)
            self.tell(seat.workload, reason(Code.STAYS, failure=failure, pause=f"{pause_s:.0f} s"))
        where = (seat.workload, seat.slot.role, seat.slot.ordinal)
        self._facts.append(SlotStays(*where, failure, int((until - now) * 1000)))
        self._wake()

    def _as_asked(self, workload: str) -> Group | None:
        """Its group; suspended as we have asked for it, where the watch does not show it yet."""
        group, asked = self._mirror.groups.group(workload), self._suspended.get(workload)
        return group if group is None or asked is None else structs.replace(group, suspended=asked, admit=asked)

    def _send_patch(self, workload: str, patch: Patch, *, suspend: bool) -> None:
        before = self._patching.get(workload)
        self._again.pop(workload, None)
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
        if isinstance(outcome, Done | Gone):
            return
        suspend = what == "suspend"
        if self._suspended.get(workload) == suspend:
            del self._suspended[workload]
        if not isinstance(outcome, Refused) or outcome.passing:
            after_s = (outcome.retry_after_s if isinstance(outcome, Refused) else None) or PATCH_AGAIN_S
            self._again[workload] = (self._clock() + after_s, suspend)
        elif suspend:
            for pod in self._mirror.pods_of(workload):
                self._leave(pod, _grace_s(pod, 0))
        else:
            self._give_back(workload, f"{outcome.reason}: {outcome.message}")
        self._wake()

    def _patch_again(self, now: float) -> None:
        """Unless the watch shows that it was done, or it is not wanted any more."""
        for workload, (at, suspend) in list(self._again.items()):
            group = self._mirror.groups.group(workload)
            wanted = suspend or workload in self._places
            if group is None or group.suspended == suspend or not wanted:
                del self._again[workload]
            elif now > at and (patch := stop_patch(group) if suspend else start_patch(group)) is not None:
                self._send_patch(workload, patch, suspend=suspend)

    def _give_back(self, workload: str, why: str) -> None:
        """The places of work that may not be started: nobody would come to them."""
        self._failures[workload] = self._failures.get(workload, 0) + 1
        retry_ms = int(self._pause_s(workload) * 1000)
        for slot in self._places.pop(workload, {}):
            self._facts.append(SlotFailed(workload, slot.role, slot.ordinal, f"it cannot be started: {why}", retry_ms))

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


def workers(roles: Iterable[str]) -> int:
    """How many of them are counted by the number on a job."""
    return sum(map(is_worker, roles))


def said(why: Reason) -> str:
    return f"{why.code}: {why.text()}"


def _grace_s(pod: Pod, grace_ms: int) -> int:
    """What the work was promised, or what its pod says."""
    own = pod.spec.termination_grace_period_seconds
    return max(-(-grace_ms // 1000), POD_GRACE_S if own is None else own)
