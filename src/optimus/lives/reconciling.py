"""Reconciling: what is wanted beside what is there, and what has to be done about the difference.

Why: a body that died in the middle, saw things late or twice, or was told something new, asks the same question again
and gets the same answer. Nothing has to be remembered but the life of the job and what can be seen.
Owns: when a gang starts, saves, is killed, starts again and is over; what the brain is told of it.
Must not: start, signal or wait.

    place without a replica          start it
    replica without a place          ask it to save and leave; kill it when its grace is over
    one replica failed               the whole gang leaves; it waits for its retry, or has failed for good.
                                     Of a type that survives it, the others go on, if they are enough
    their anchor is to leave         all of them leave, and start again together
    the gang leaves                  ask all of them; once all are gone it waits again
    every replica ended well         it has succeeded
    it is over                       whoever is still there leaves

A replica that ends with code 0 after it was asked to leave has left, if its job saves its work (it will go on later)
or is interactive; else it had simply finished.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, structs

from optimus.lives.kinds import KINDS
from optimus.lives.life import Blame, Ended, Leaving, LeavingCause, Life, Outcome, Place, Replica, Slot
from optimus.model.gangs import chains
from optimus.model.jobs import Job, JobType
from optimus.model.observations import Observation, SlotDone, SlotFailed, SlotGone, SlotStopping, WorkloadEnded
from optimus.model.reasons import Code, Reason
from optimus.model.workloads import Workload

LAST_WORDS_MS = 2_000
"""What a replica without a checkpoint gets to leave in order, before it is killed."""
MOST_SHORTAGES = 6
"""So often a job that runs out of memory is tried again: another node may have more, but not for ever."""
SHORT_WAIT_MS, LONGEST_SHORT_WAIT_MS = 1_000, 60_000
"""Before work is tried again that a node has turned away: twice as long each time."""


class Changes(Struct, frozen=True, kw_only=True):
    life: Life
    start: tuple[Place, ...] = ()
    ask: tuple[Replica, ...] = ()
    """To be told to save their work and leave."""
    kill: tuple[Replica, ...] = ()
    forget: tuple[Replica, ...] = ()
    """Ended, and accounted for."""
    facts: tuple[Observation, ...] = ()
    """For the brain."""
    look_again_ms: int | None = None
    """When time alone changes the answer: somebody's grace is over."""


def grace_ms(workload: Workload) -> int:
    return workload.grace_ms if workload.checkpoint is not None else LAST_WORDS_MS


def reconcile(job: Job, workload: Workload, life: Life, replicas: Sequence[Replica], now_ms: int) -> Changes:
    facts: list[Observation] = []
    forget: list[Replica] = []
    there, done = {replica.slot for replica in replicas if replica.live}, life.done
    at_ms, was_over = _last_end_ms(life, replicas, now_ms), life.over
    for replica in replicas:
        if replica.ended is not None:
            life = _ended(job, workload, life, replica, replica.ended, facts)
            forget.append(replica)
    live = [replica for replica in replicas if replica.live]
    if not life.over and life.leaving is None and life.places and _all_done(life):
        life = _over(life, Outcome.SUCCEEDED, "", at_ms, facts)
    facts += [SlotDone(workload.id, *slot) for slot in sorted(life.done - done)]
    if _lost_its_anchor(job, life):
        leaving = Leaving(cause=LeavingCause.RESIZED, text="the replica where all meet is to leave", since_ms=now_ms)
        life = structs.replace(life, leaving=leaving)
    if life.leaving is not None and not live:
        life = _left(job, life, at_ms, now_ms, facts)
    if was_over and forget and not live:
        life = _really_over(life, at_ms)
    if life.over:
        wanted: tuple[Place, ...] = ()
    else:
        wanted = life.places if life.leaving is None else ()
    slots = {place.slot for place in wanted}
    start = tuple(place for place in wanted if place.slot not in there and place.slot not in life.done)
    if start and not there and not life.done:  # the gang starts as a whole
        first = now_ms if life.first_started_ms is None else life.first_started_ms
        life = structs.replace(life, attempt=life.attempt + 1, first_started_ms=first, since_ms=now_ms)
    unwanted = [replica for replica in live if replica.slot not in slots]
    ask = tuple(replica for replica in unwanted if replica.asked_ms is None)
    facts += [SlotStopping(workload.id, *replica.slot) for replica in ask if not life.over]
    limit = grace_ms(workload)
    asked = [(replica, replica.asked_ms) for replica in unwanted if replica.asked_ms is not None and not replica.killed]
    kill = tuple(replica for replica, since in asked if since + limit <= now_ms)
    ends = [since + limit for _, since in asked if since + limit > now_ms] + [now_ms + limit] * bool(ask)
    return Changes(
        life=life,
        start=start,
        ask=ask,
        kill=kill,
        forget=tuple(forget),
        facts=tuple(facts),
        look_again_ms=min(ends, default=None),
    )


# -- what happens to a life ------------------------------------------------------------------------------------------


def grant(life: Life, places: Sequence[Place]) -> Life:
    """The brain gives it these places, besides those it has."""
    slots = {place.slot for place in places}
    kept = tuple(place for place in life.places if place.slot not in slots)
    return structs.replace(life, places=(*kept, *places), retry_at_ms=0)


def take_away(life: Life, slots: Sequence[tuple[str, int]]) -> Life:
    """The brain takes single places back."""
    gone = set(slots)
    return structs.replace(
        life, places=tuple(place for place in life.places if place.slot not in gone), done=life.done - gone
    )


def told_to_leave(life: Life, why: Reason, now_ms: int) -> Life:
    """The whole gang gives up its room, and waits again."""
    if life.over or life.leaving is not None or not life.places:
        return life
    cause = LeavingCause.SUSPENDED if why.code is Code.SUSPENDED else LeavingCause.PREEMPTED
    leaving = Leaving(cause=cause, text=why.text(), since_ms=now_ms)
    return structs.replace(life, leaving=leaving, preemptions=life.preemptions + (cause is LeavingCause.PREEMPTED))


def end(life: Life, outcome: Outcome, text: str, now_ms: int) -> tuple[Life, tuple[Observation, ...]]:
    """It is over: cancelled, refused for good, or out of time."""
    facts: list[Observation] = []
    if not life.over:
        life = _over(life, outcome, text, now_ms, facts)
    return life, tuple(facts)


# -- inside --------------------------------------------------------------------------------------------------------


def _ended(job: Job, workload: Workload, life: Life, replica: Replica, ended: Ended, facts: list[Observation]) -> Life:
    slot, asked = replica.slot, replica.asked_ms is not None
    saves = workload.checkpoint is not None or job.job_type is JobType.INTERACTIVE
    if life.over:
        facts.append(SlotGone(workload.id, *slot))
        return life
    if ended.ok and not (asked and saves) and life.place(slot) is not None:
        return structs.replace(life, done=life.done | {slot})
    facts.append(SlotGone(workload.id, *slot))
    if asked or life.place(slot) is None:
        keep = life.leaving is not None  # those of a gang that leaves are cleared together
        return life if keep else take_away(life, [slot])
    if life.leaving is not None:
        return life
    return _failed(job, workload, life, replica, ended)


def _failed(job: Job, workload: Workload, life: Life, replica: Replica, ended: Ended) -> Life:
    """The whole gang leaves, unless it can do without. Only what is the job's own fault counts against it."""
    failures, wait_ms, cause = life.failures, 0, LeavingCause.LOST
    if ended.blame is Blame.REJECTED:
        wait_ms = min(SHORT_WAIT_MS << min(life.rejections, 16), LONGEST_SHORT_WAIT_MS)
        life = structs.replace(life, rejections=life.rejections + 1)
    elif ended.blame is Blame.OUT_OF_MEMORY:
        life = structs.replace(life, shortages=life.shortages + 1)
        wait_ms = job.restart.wait_ms(life.shortages)
    elif not ended.lost and ended.blame is Blame.OWN:
        failures, cause = failures + 1, LeavingCause.FAILED
        wait_ms = job.restart.wait_ms(failures)
    if failures <= job.restart.backoff_limit and _goes_on_without(job, workload, life, replica.slot):
        return structs.replace(take_away(life, [replica.slot]), failures=failures, last_blame=ended.blame)
    leaving = Leaving(
        cause=cause,
        text=f"replica {replica.role}-{replica.ordinal} {ended.text()}",
        since_ms=ended.at_ms,
        retry_after_ms=wait_ms,
        blame=ended.blame,
    )
    return structs.replace(life, leaving=leaving, failures=failures)


def _goes_on_without(job: Job, workload: Workload, life: Life, slot: Slot) -> bool:
    kind = KINDS.get(job.job_type)
    if kind is None or not kind.survives or slot == kind.anchor:
        return False
    least = next((chain.role.min for chain in chains(workload.gang) if chain.role.name == slot[0]), 1)
    return sum(place.role == slot[0] for place in life.places) > least


def _lost_its_anchor(job: Job, life: Life) -> bool:
    """Its place was taken back, and others go on that cannot."""
    kind = KINDS.get(job.job_type)
    if kind is None or kind.anchor is None or life.over or life.leaving is not None or life.since_ms is None:
        return False
    return bool(life.places) and life.place(kind.anchor) is None


def _left(job: Job, life: Life, at_ms: int, now_ms: int, facts: list[Observation]) -> Life:
    """Nobody is left of a gang that was leaving, since `at_ms`."""
    leaving = life.leaving
    assert leaving is not None
    done = tuple(place for place in life.places if place.slot in life.done)
    if done and len(done) == len(life.places):  # it finished while it was asked
        return _over(structs.replace(life, leaving=None), Outcome.SUCCEEDED, "", at_ms, facts)
    facts += [SlotGone(life.workload, *place.slot) for place in done]
    failed = leaving.cause is LeavingCause.FAILED
    if failed and life.failures > job.restart.backoff_limit:
        tries = f" ({life.failures} failures)" if life.failures > 1 else ""
        life = structs.replace(life, leaving=None, last_blame=leaving.blame)
        return _over(life, Outcome.FAILED, leaving.text + tries, at_ms, facts)
    if leaving.cause is LeavingCause.LOST and life.shortages > MOST_SHORTAGES:
        life = structs.replace(life, leaving=None, last_blame=leaving.blame)
        return _over(life, Outcome.FAILED, f"{leaving.text} ({life.shortages} times)", at_ms, facts)
    if failed:
        facts.append(SlotFailed(life.workload, *life.places[0].slot, leaving.text, leaving.retry_after_ms))
    return structs.replace(
        life,
        places=(),
        done=frozenset(),
        leaving=None,
        since_ms=None,
        ran_ms=_ran_ms(life, at_ms),
        last_leaving=leaving.cause,
        last_text=leaving.text,
        last_blame=leaving.blame,
        retry_at_ms=now_ms + leaving.retry_after_ms if failed or leaving.retry_after_ms else 0,
    )


def _over(life: Life, outcome: Outcome, text: str, at_ms: int, facts: list[Observation]) -> Life:
    facts.append(WorkloadEnded(life.workload, outcome))
    facts += [SlotGone(life.workload, *slot) for slot in sorted(life.done)]
    return structs.replace(
        life,
        outcome=outcome,
        ended_ms=at_ms,
        ended_text=text,
        since_ms=None,
        ran_ms=_ran_ms(life, at_ms),
        places=(),
        done=frozenset(),
        leaving=None,
    )


def _really_over(life: Life, at_ms: int) -> Life:
    """The last replica of one that was over has left: until then it had its room, perhaps for a long save."""
    assert life.ended_ms is not None
    longer_ms = max(at_ms - life.ended_ms, 0)
    return structs.replace(life, ended_ms=life.ended_ms + longer_ms, ran_ms=life.ran_ms + longer_ms)


def _last_end_ms(life: Life, replicas: Sequence[Replica], now_ms: int) -> int:
    """When the last of those that have ended did, by what is on record: nobody may have looked for hours."""
    ends = [replica.ended.at_ms for replica in replicas if replica.ended is not None]
    return max(min(max(ends), now_ms), life.since_ms or 0) if ends else now_ms


def _ran_ms(life: Life, at_ms: int) -> int:
    return life.ran_ms + (max(at_ms - life.since_ms, 0) if life.since_ms is not None else 0)


def _all_done(life: Life) -> bool:
    return all(place.slot in life.done for place in life.places)
