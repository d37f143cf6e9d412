"""Looking: one job beside its pods, and what has to be done about the difference. Pure.

    the job is not ours yet          its finalizer first
    another number, a wish to rest   `lives`: places are granted or taken, all are told to leave
    a pod has ended                  counted into the life; then, and only then, released
    a place without a pod            make it, once nothing of that name is there
    a pod without a place            delete it, with its grace
    it is deleted                    all pods leave; the last one gone, its finalizer goes
    it is over                       nobody is left who runs; after its time the job is forgotten

Why: a controller that died in the middle, or saw things late or twice, asks again and gets the same answer.
Owns: what is written, made, deleted and released, in this order: first the status, then the rest.
Must not: talk to a server, or read a clock.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from optimus.drivers.kube.jobs import arrays
from optimus.drivers.kube.jobs.keeping import Kept, as_status, kept_in, remembered, status_of
from optimus.drivers.kube.jobs.last_words import LastWords, last_words
from optimus.drivers.kube.jobs.placing import places_for
from optimus.drivers.kube.jobs.reading import Written, because, held_because, target_of
from optimus.drivers.kube.jobs.records import Look, Make, View
from optimus.drivers.kube.jobs.replicas import (
    Answers,
    ended_of,
    is_stranded,
    replica_of,
    slot_of,
    stranded_at_ms,
    was_killed,
)
from optimus.drivers.kube.jobs.saying import Saying, what_happened
from optimus.drivers.kube.jobs.telling import Seen, look_at_rescale_ms, told, told_unreadable
from optimus.drivers.kube.jobs.words import ENDED, KEPT, REVISION, WORKER, pod_name
from optimus.drivers.kube.objects import Pod
from optimus.lives import Ended, Leaving, LeavingCause, Outcome, Replica, reconcile
from optimus.lives.kinds import Rescale
from optimus.lives.reconciling import end, told_to_leave
from optimus.model.gangs import chains
from optimus.model.jobs import JobType
from optimus.model.reasons import Code, reason

STALE_MS = 1_000
"""After so long, a status that is older than its pods is looked at again."""
SLOW_MS = 5_000
"""Between two looks at a pod that is late to leave: its node may stop answering."""
ORPHAN = "orphan"
"""The finalizer by which the server keeps what an object owns."""
NOT_MADE = "~"
"""In the place of the uid of a pod that is not there yet."""


def look(view: View, written: Written | str) -> Look:
    """`written`: or why it cannot be read."""
    thing = view.thing
    if thing.metadata.deletion_timestamp:
        return _end_of_job(view)
    if isinstance(written, str):
        status = told_unreadable(thing, written, view.now_ms)
        return Look(status=status if status != status_of(thing) else None)
    kept, problem = kept_in(thing, written.job.id)
    newest = max((_revision(pod) for pod in view.pods), default=0)
    if newest > kept.revision:
        if not view.certain:
            return Look(stale=True, look_again_ms=view.now_ms + STALE_MS)
        kept = structs.replace(kept, revision=newest)  # somebody has taken its status away
    if KEPT not in (thing.metadata.finalizers or ()):
        return Look(adopt=True)
    says = (Saying("LifeUnreadable", problem, warning=True),) if problem else ()
    return _Turn(view, written, kept, says).look()


def _revision(pod: Pod) -> int:
    """Of the status that asked for it: pods are made after that, so a status that is older is not the newest one."""
    revision = (pod.metadata.annotations or {}).get(REVISION, "")
    return int(revision) if revision.isascii() and revision.isdigit() and len(revision) < 16 else 0


def _end_of_job(view: View) -> Look:
    """It is being deleted. Whoever deletes it without its pods (`--cascade=orphan`) keeps them, as they are."""
    held = [pod for pod in view.pods if ENDED in (pod.metadata.finalizers or ())]
    finalizers = view.thing.metadata.finalizers or ()
    if ORPHAN in finalizers:
        return Look(release=tuple(held), let_go=not held and KEPT in finalizers)
    told = all(pod.metadata.deletion_timestamp for pod in view.pods)
    found = leave_all(view.pods, view.now_ms, view.answers)
    return structs.replace(found, let_go=not held and told and KEPT in finalizers)


def leave_all(pods: Sequence[Pod], now_ms: int, answers: Answers) -> Look:
    """Their job goes: what they did is of no interest any more, only that they are gone."""
    ended = [pod for pod in pods if ended_of(pod, now_ms, answers) is not None]
    live = [pod for pod in pods if pod not in ended]
    return Look(
        delete=tuple(pod for pod in live if not pod.metadata.deletion_timestamp),
        clear=tuple(pod for pod in ended if is_stranded(pod) or not pod.metadata.deletion_timestamp),
        release=tuple(pod for pod in ended if ENDED in (pod.metadata.finalizers or ())),
        look_again_ms=_next_stranding(live, now_ms),
    )


def _next_stranding(live: Sequence[Pod], now_ms: int) -> int | None:
    """When a node that does not answer is waited for no longer."""
    times = [stranded_at_ms(pod) for pod in live if is_stranded(pod)]
    return min((at for at in times if at > now_ms), default=now_ms + SLOW_MS) if times else None


class _Turn:
    def __init__(self, view: View, written: Written, kept: Kept, says: tuple[Saying, ...]) -> None:
        self.view, self.written, self.before, self.says = view, written, kept, list(says)
        self.job, self.workload = written.job, written.job.workload
        self.now_ms, self.name = view.now_ms, view.thing.metadata.name
        self.target = target_of(view.thing)
        self.counted = set(kept.counted)
        self.named = {pod.metadata.name: pod for pod in view.pods}
        self.pods = {pod.metadata.uid: pod for pod in view.pods}
        self.life = kept.life
        self.parts = kept.parts
        self.words: LastWords | None = None

    def look(self) -> Look:
        real = [
            replica_of(pod, slot, self.now_ms, self.view.answers)
            for pod in self.view.pods
            if pod.metadata.uid not in self.counted and (slot := slot_of(pod, self.name)) is not None
        ]
        lost, missing = self._vanished()
        if missing:
            return Look(missing=tuple(missing), look_again_ms=self.now_ms + STALE_MS)
        replicas = [*real, *lost]
        asked = self._array(replicas) if self.job.array else self._gang(replicas)
        self._hear(real)
        return self._answer(real, asked)

    def _vanished(self) -> tuple[list[Replica], list[str]]:
        """Pods that we know of and that are not there: they were taken away by force, if that is certain."""
        lost, missing = [], []
        for name, uid in self.before.known.items():
            if uid in self.pods or uid in self.counted:
                continue
            if uid not in self.view.gone:
                missing.append(uid)
                continue
            role, _, ordinal = name.removeprefix(f"{self.name}-").rpartition("-")
            if ordinal.isascii() and ordinal.isdigit():
                ended = Ended(at_ms=self.now_ms, lost=True)
                lost.append(Replica(start=uid, role=role, ordinal=int(ordinal), ended=ended))
        return lost, missing

    # -- a gang -------------------------------------------------------------------------------------------------------

    def _gang(self, replicas: list[Replica]) -> list[str]:
        """Uids of those that are to leave."""
        if (final := held_because(self.view.thing)) and not self.life.over:
            self.life, _ = end(self.life, Outcome.FAILED, final, self.now_ms)
        self._steer(replicas)
        awaited = self._awaited(replicas)
        changes = reconcile(self.job, self.workload, self.life, [*replicas, *awaited], self.now_ms)
        self.life = changes.life
        main = self.written.kind.ends_with
        if main and not self.life.over and (main, 0) in self.life.done:
            self.life, _ = end(self.life, Outcome.SUCCEEDED, "", self.now_ms)
            changes = reconcile(self.job, self.workload, self.life, [r for r in replicas if r.live], self.now_ms)
        self.counted |= {replica.start for replica in replicas if replica.ended is not None}
        return [replica.start for replica in changes.ask if replica.start != NOT_MADE]

    def _steer(self, replicas: list[Replica]) -> None:
        """What the number, the wish to rest and what others did mean for a life that goes on."""
        if self.life.over or self.life.leaving is not None:
            return
        code, text = because(self.view.thing)
        if self.workload.suspended:
            self.life = told_to_leave(self.life, reason(Code.SUSPENDED), self.now_ms)
        elif not self.target and self.life.places:
            self._leave(LeavingCause.SUSPENDED if code == Code.SUSPENDED else LeavingCause.PREEMPTED, text)
        elif (taken := self._taken_by_others(replicas)) is not None:
            self._leave(LeavingCause.LOST, f"replica {taken.role}-{taken.ordinal} was told to leave by somebody else")
        elif self._has_another_size():
            self._leave(LeavingCause.RESIZED, f"goes on with {self.target} replicas" + (f": {text}" if text else ""))
        if self.life.leaving is None and not self.workload.suspended and self.now_ms >= self.life.retry_at_ms:
            most = self.written.role.max
            places = places_for(self.written.kind, self.target, most, replicas, self.life.done)
            self.life = structs.replace(self.life, places=places, retry_at_ms=0)

    def _leave(self, cause: LeavingCause, text: str) -> None:
        leaving = Leaving(cause=cause, text=text, since_ms=self.now_ms)
        preempted = self.life.preemptions + (cause is LeavingCause.PREEMPTED)
        self.life = structs.replace(self.life, leaving=leaving, preemptions=preempted)

    def _taken_by_others(self, replicas: list[Replica]) -> Replica | None:
        """One that was evicted or deleted by somebody else, where the job cannot go on without it."""
        saves = self.workload.checkpoint is not None or self.job.job_type is JobType.INTERACTIVE
        asked = [
            one
            for one in replicas
            if one.asked_ms is not None
            and self.life.place(one.slot) is not None
            and not (one.ended is not None and one.ended.ok and not saves)
        ]
        least = {chain.role.name: chain.role.min for chain in chains(self.workload.gang)}
        for one in asked:
            others = sum(p.role == one.role for p in self.life.places) - sum(a.role == one.role for a in asked)
            in_place = self.written.kind.rescale is Rescale.IN_PLACE
            missed = in_place and one.role == WORKER and one.slot != self.written.kind.anchor
            if others < least.get(one.role, 1) or not missed:
                return one
        return None

    def _has_another_size(self) -> bool:
        if self.written.kind.rescale is Rescale.IN_PLACE or self.life.since_ms is None:
            return False
        workers = sum(place.role == WORKER for place in self.life.places)
        return workers != min(self.target, self.written.role.max)

    def _awaited(self, replicas: list[Replica]) -> list[Replica]:
        """Pods of an attempt that has begun and that are not made yet: they are as good as there. Without them, a
        controller that died between the status and the first pod would begin another attempt."""
        if self.life.since_ms is None or self.life.leaving is not None or self.life.over:
            return []
        there = {replica.slot for replica in replicas} | self.life.done
        return [
            Replica(start=NOT_MADE, role=place.role, ordinal=place.ordinal)
            for place in self.life.places
            if place.slot not in there
        ]

    # -- an array -----------------------------------------------------------------------------------------------------

    def _array(self, replicas: list[Replica]) -> list[str]:
        code, text = because(self.view.thing)
        turn = arrays.turn(
            arrays.Array(
                job=self.job,
                life=self.life,
                parts=self.parts,
                target=0 if self.workload.suspended else self.target,
                suspended=self.workload.suspended or code == Code.SUSPENDED,
                because=text,
                final=held_because(self.view.thing),
            ),
            replicas,
            self.now_ms,
        )
        self.life, self.parts = turn.life, turn.parts
        self.counted |= {replica.start for replica in replicas if replica.ended is not None}
        return list(turn.ask)

    # -- what follows -------------------------------------------------------------------------------------------------

    def _hear(self, real: list[Replica]) -> None:
        """The first replica speaks for all of them, once it has ended."""
        for one in real:
            if one.ended is None or one.role != WORKER:
                continue
            replica = f"{one.role}-{one.ordinal}"
            if one.asked_ms is not None and was_killed(one.ended):
                grace_s = self.pods[one.start].spec.termination_grace_period_seconds
                text = f"replica {replica} did not leave within its {grace_s or 'few'} seconds and was killed"
                self.says.append(Saying("GraceOver", text, warning=True))
            words, problem = last_words(self.pods[one.start], self.now_ms)
            if problem:
                self.says.append(Saying("StatusIgnored", f"replica {replica}: {problem}", warning=True))
            if words is not None and (one.ordinal == 0 or self.job.array):
                self.words = words

    def _answer(self, real: list[Replica], asked: list[str]) -> Look:
        make, clear = self._make_and_clear()
        counted = remembered((*self.before.counted, *sorted(self.counted - set(self.before.counted))), set(self.pods))
        known = {self.pods[one.start].metadata.name: one.start for one in real if one.start not in self.counted}
        kept = structs.replace(
            self.before, life=self.life, counted=counted, known=dict(sorted(known.items())), parts=self.parts
        )
        if kept != self.before:
            kept = structs.replace(kept, revision=self.before.revision + 1)
        seen = Seen(
            view_pods=tuple(pod for pod in self.view.pods if pod.metadata.uid not in self.counted),
            replicas=tuple(one for one in real if one.live),
            before=self.before.life,
            life=self.life,
            parts=self.parts,
            target=self.target,
            words=self.words,
            trouble=self.view.trouble,
            waits=self.view.waits,
        )
        status = told(self.view.thing, self.written, seen, self.now_ms) | {"life": as_status(kept)}
        released = [
            pod
            for uid, pod in self.pods.items()
            if ENDED in (pod.metadata.finalizers or ()) and (uid in self.counted or slot_of(pod, self.name) is None)
        ]
        live = [self.pods[one.start] for one in real if one.live]
        return Look(
            status=status if status != status_of(self.view.thing) else None,
            make=make,
            delete=tuple(self.pods[uid] for uid in asked),
            clear=clear,
            release=tuple(released),
            forget=self._is_forgotten(live),
            says=(*self.says, *what_happened(self.before.life, self.life)),
            kept=kept,
            look_again_ms=self._look_again(live),
        )

    def _make_and_clear(self) -> tuple[tuple[Make, ...], tuple[Pod, ...]]:
        """Pods that are missing, and ended ones that are in their way."""
        make: list[Make] = []
        clear = [pod for uid, pod in self.pods.items() if uid in self.counted and is_stranded(pod)]
        if self.life.over or self.life.leaving is not None:
            return (), tuple(clear)
        for place in self.life.places:
            if place.slot in self.life.done:
                continue
            there = self.named.get(pod_name(self.name, *place.slot))
            if there is None:
                part = self.parts.at.get(place.ordinal) if self.job.array else None
                make.append(Make(place.role, place.ordinal, part))
            elif there.metadata.uid in self.counted and self._is_in_the_way(there):
                clear.append(there)
        return tuple(make), tuple(clear)

    def _is_in_the_way(self, pod: Pod) -> bool:
        """It has ended and stays: nobody has deleted it, or the kubelet that should do the rest is gone."""
        return not pod.metadata.deletion_timestamp or self.now_ms >= stranded_at_ms(pod)

    def _is_forgotten(self, live: Sequence[Pod]) -> bool:
        life, keep_ms = self.life, self.job.keep_ms
        if live or life.ended_ms is None or keep_ms is None:
            return False
        return self.now_ms >= life.ended_ms + keep_ms

    def _look_again(self, live: Sequence[Pod]) -> int | None:
        blocked = [pod for pod in self.pods.values() if pod.metadata.uid in self.counted and pod.over]
        times: list[int | None] = [
            at
            for pod in blocked
            if pod.metadata.deletion_timestamp and (at := stranded_at_ms(pod)) > self.now_ms and not self.life.over
        ]
        times += [_next_stranding(live, self.now_ms), look_at_rescale_ms(self.view.thing, self.life, self.now_ms)]
        if not self.life.over and self.life.retry_at_ms > self.now_ms:
            times.append(self.life.retry_at_ms)
        times += [at for at in self.parts.retry_at_ms.values() if at > self.now_ms]
        if self.life.ended_ms is not None and self.job.keep_ms is not None:
            times.append(self.life.ended_ms + self.job.keep_ms)
        return min((at for at in times if at is not None), default=None)
