"""Arrays: many parts of one job, each a pod, as many at once as the scheduler says.

    waiting ──► at an ordinal ──► done
       ▲             │      └──► failed    after so many failures of its own
       └─────────────┘  stopped, lost, or to be tried again after a while

Why: a hundred thousand parts are no gang: one that fails is tried again by itself, and nobody waits for it.
Owns: which ordinal works on which part, and what has become of each part.
Must not: make pods; an ordinal gets its next part once the pod of the last one is counted.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, structs

from optimus.drivers.kube.jobs.keeping import Parts, as_text, numbers
from optimus.drivers.kube.jobs.placing import chosen_ordinals
from optimus.drivers.kube.jobs.words import WORKER
from optimus.lives import Blame, Ended, Leaving, LeavingCause, Life, Outcome, Place, Replica
from optimus.lives.reconciling import LONGEST_SHORT_WAIT_MS, MOST_SHORTAGES, SHORT_WAIT_MS, end
from optimus.model.jobs import Job
from optimus.model.reasons import named


class Array(Struct, frozen=True, kw_only=True):
    job: Job
    life: Life
    parts: Parts
    target: int
    suspended: bool = False
    because: str = ""
    final: str = ""
    """Why the scheduler has done with it for good."""


class Turn(Struct, frozen=True, kw_only=True):
    life: Life
    parts: Parts
    ask: tuple[str, ...] = ()
    """Uids of pods that are to leave."""


class _Book:
    """The parts of one array, while they are being changed."""

    def __init__(self, job: Job, parts: Parts) -> None:
        self.job = job
        self.done, self.failed = numbers(parts.done), numbers(parts.failed)
        self.failures, self.retry_at_ms = dict(parts.failures), dict(parts.retry_at_ms)
        self.starts, self.at = dict(parts.starts), dict(parts.at)

    @property
    def left(self) -> list[int]:
        return [part for part in range(self.job.array) if part not in self.done and part not in self.failed]

    def ended(self, replica: Replica, ended: Ended, now_ms: int) -> bool:
        """Tells whether the part has failed by itself."""
        part = self.at.pop(replica.ordinal, None)
        if part is None:
            return False
        asked, saves = replica.asked_ms is not None, self.job.workload.checkpoint is not None
        if ended.ok and not (asked and saves):
            self._close(part, self.done)
            return False
        if asked or (ended.lost and ended.blame is not Blame.REJECTED):
            return False
        return self._tries_again(part, ended, now_ms)

    def _tries_again(self, part: int, ended: Ended, now_ms: int) -> bool:
        limit, starts = self.job.restart.backoff_limit, self.starts.get(part, 1)
        own = ended.blame is Blame.OWN
        if own:
            self.failures[part] = self.failures.get(part, 0) + 1
        wait_ms = self.job.restart.wait_ms(self.failures.get(part, 0) if own else starts)
        if ended.blame is Blame.REJECTED:
            wait_ms = min(SHORT_WAIT_MS << min(starts, 16), LONGEST_SHORT_WAIT_MS)
        too_often = ended.blame is Blame.OUT_OF_MEMORY and starts > limit + MOST_SHORTAGES
        if self.failures.get(part, 0) > limit or too_often:
            self._close(part, self.failed)
        else:
            self.retry_at_ms[part] = now_ms + wait_ms
        return own

    def _close(self, part: int, where: set[int]) -> None:
        where.add(part)
        for known in (self.failures, self.retry_at_ms, self.starts):
            known.pop(part, None)

    def give(self, ordinal: int, part: int) -> None:
        self.at[ordinal] = part
        self.starts[part] = self.starts.get(part, 0) + 1
        self.retry_at_ms.pop(part, None)

    def take_back(self, ordinal: int) -> None:
        """Its pod was never made."""
        part = self.at.pop(ordinal)
        self.starts[part] -= 1

    def written(self) -> Parts:
        return Parts(
            done=as_text(self.done),
            failed=as_text(self.failed),
            failures=dict(sorted(self.failures.items())),
            retry_at_ms=dict(sorted(self.retry_at_ms.items())),
            starts=dict(sorted(self.starts.items())),
            at=dict(sorted(self.at.items())),
        )


def turn(array: Array, replicas: Sequence[Replica], now_ms: int) -> Turn:
    book, life = _Book(array.job, array.parts), array.life
    for replica in replicas:
        if replica.ended is not None and book.ended(replica, replica.ended, now_ms):
            life = structs.replace(life, failures=life.failures + 1)
    live = [replica for replica in replicas if replica.live]
    if not life.over:
        life = _ended_as_a_whole(array, book, life, now_ms)
    if life.over:
        return Turn(life=life, parts=book.written(), ask=_unasked(live))
    if life.leaving is None and not array.target and life.places:
        cause = LeavingCause.SUSPENDED if array.suspended else LeavingCause.PREEMPTED
        leaving = Leaving(cause=cause, text=array.because, since_ms=now_ms)
        more = cause is LeavingCause.PREEMPTED
        life = structs.replace(life, leaving=leaving, preemptions=life.preemptions + more)
    if life.leaving is not None:
        return _leaves(book, life, live, now_ms)
    return _goes_on(array, book, life, live, now_ms)


def _ended_as_a_whole(array: Array, book: _Book, life: Life, now_ms: int) -> Life:
    if array.final:
        return end(life, Outcome.FAILED, array.final, now_ms)[0]
    if book.left:
        return life
    if not book.failed:
        return end(life, Outcome.SUCCEEDED, "", now_ms)[0]
    which = named([str(part) for part in sorted(book.failed)])
    text = f"{len(book.failed)} of {array.job.array} parts failed: {which}"
    return end(structs.replace(life, last_blame=Blame.OWN), Outcome.FAILED, text, now_ms)[0]


def _leaves(book: _Book, life: Life, live: Sequence[Replica], now_ms: int) -> Turn:
    there = {replica.ordinal for replica in live}
    for ordinal in [one for one in book.at if one not in there]:
        book.take_back(ordinal)
    if not live and life.leaving is not None:
        ran_ms = life.ran_ms + (max(now_ms - life.since_ms, 0) if life.since_ms is not None else 0)
        life = structs.replace(
            life,
            places=(),
            leaving=None,
            since_ms=None,
            ran_ms=ran_ms,
            last_leaving=life.leaving.cause,
            last_text=life.leaving.text,
        )
    return Turn(life=life, parts=book.written(), ask=_unasked(live))


def _goes_on(array: Array, book: _Book, life: Life, live: Sequence[Replica], now_ms: int) -> Turn:
    going = {replica.ordinal for replica in live if replica.asked_ms is not None}
    there = {replica.ordinal for replica in live}
    busy = set(book.at.values())
    ready = [part for part in book.left if part not in busy and book.retry_at_ms.get(part, 0) <= now_ms]
    held = set(book.at) - going
    count = min(array.target, len(held) + len(ready))
    chosen = [one for one in chosen_ordinals(count + len(going), held | going) if one not in going][:count]
    for ordinal in [one for one in held if one not in chosen and one not in there]:
        book.take_back(ordinal)
    for ordinal in chosen:
        if ordinal not in book.at and ready:
            book.give(ordinal, ready.pop(0))
    places = tuple(Place(role=WORKER, ordinal=one, node="") for one in chosen if one in book.at)
    if places and life.since_ms is None:
        first = now_ms if life.first_started_ms is None else life.first_started_ms
        life = structs.replace(life, attempt=life.attempt + 1, first_started_ms=first, since_ms=now_ms)
    ask = tuple(one.start for one in live if one.ordinal not in chosen and one.asked_ms is None)
    return Turn(life=structs.replace(life, places=places), parts=book.written(), ask=ask)


def _unasked(live: Sequence[Replica]) -> tuple[str, ...]:
    return tuple(replica.start for replica in live if replica.asked_ms is None)
