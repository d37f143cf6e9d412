"""From its first place to its end: every arrow of `optimus.lives.phases`, as a story."""

from __future__ import annotations

from msgspec import structs

from optimus.lives import Ended, JobPhase, LeavingCause, Outcome, Shortage
from optimus.lives.reconciling import end, take_away, told_to_leave
from optimus.model.jobs import JobType
from optimus.model.observations import SlotDone, SlotFailed, SlotGone, SlotStopping, WorkloadEnded
from optimus.model.reasons import Code, reason
from tests.lives.worlds import SECOND, Body, job

WHO = "default/train"
GIVES_WAY = reason(Code.PREEMPTED, beneficiary="vision/urgent", priority=200)


def test_it_waits_starts_runs_and_succeeds() -> None:
    body = Body(job())
    assert body.phase() is JobPhase.PENDING
    body.grant(0)
    assert body.phase() is JobPhase.STARTING and body.life.attempt == 1
    body.runs()
    assert body.phase() is JobPhase.RUNNING
    body.ends(0)
    assert body.phase() is JobPhase.SUCCEEDED
    assert body.facts == [WorkloadEnded(WHO, Outcome.SUCCEEDED), SlotGone(WHO, "worker", 0)]


def test_asking_again_changes_nothing() -> None:
    body = Body(job(least=2))
    body.grant(0, 1)
    body.runs()
    changes = body.look()
    assert (changes.start, changes.ask, changes.kill, changes.facts) == ((), (), (), ())


def test_a_gang_is_over_when_all_have_ended_well() -> None:
    body = Body(job(least=2))
    body.grant(0, 1)
    body.runs()
    body.ends(0)
    assert body.phase() is JobPhase.RUNNING and body.facts == [SlotDone("default/train", "worker", 0)]
    body.ends(1)
    assert body.phase() is JobPhase.SUCCEEDED


def test_one_failure_takes_the_whole_gang_along_and_it_waits_for_its_retry() -> None:
    body = Body(job(least=2))
    body.grant(0, 1)
    body.runs()
    body.ends(0, code=3)
    assert body.asked == [1] and body.phase() is JobPhase.STOPPING
    body.ends(1, code=None, signal=15)
    assert body.phase() is JobPhase.PENDING and body.life.failures == 1
    assert body.life.retry_at_ms == body.now_ms + 10 * SECOND
    told = body.facts[-1]
    assert isinstance(told, SlotFailed) and told.retry_after_ms == 10 * SECOND
    assert told.failure == "replica worker-0 exited with code 3"
    body.grant(0, 1)
    assert body.phase() is JobPhase.STARTING and body.life.attempt == 2


def test_retries_get_rarer_and_end() -> None:
    body = Body(job(limit=2))
    waits = []
    for _ in range(3):
        body.grant(0)
        body.runs()
        body.ends(0, code=1)
        waits.append(body.life.retry_at_ms - body.now_ms)
    assert waits[:2] == [10 * SECOND, 20 * SECOND]
    assert body.phase() is JobPhase.FAILED
    assert body.life.ended_text == "replica worker-0 exited with code 1 (3 failures)"
    assert WorkloadEnded(WHO, Outcome.FAILED) in body.facts


def test_a_preempted_job_saves_first_and_goes_on_later() -> None:
    body = Body(job(saves=True))
    body.grant(0)
    body.runs()
    body.life = told_to_leave(body.life, GIVES_WAY, body.now_ms)
    body.look()
    assert body.asked == [0] and body.phase() is JobPhase.CHECKPOINTING
    assert body.facts == [SlotStopping(WHO, "worker", 0)]
    body.ends(0, code=0)
    assert body.phase() is JobPhase.PREEMPTED and body.life.preemptions == 1 and not body.life.failures
    assert body.facts[-1] == SlotGone(WHO, "worker", 0)
    body.grant(0)
    body.runs()
    assert body.phase() is JobPhase.RUNNING and body.life.attempt == 2


def test_whoever_does_not_leave_in_its_grace_is_killed() -> None:
    body = Body(job(saves=True))
    body.grant(0)
    body.runs()
    body.life = told_to_leave(body.life, GIVES_WAY, body.now_ms)
    changes = body.look()
    assert changes.look_again_ms == body.now_ms + 30 * SECOND
    body.look(after_s=29)
    assert body.killed == []
    body.look(after_s=1)
    assert body.killed == [0]
    body.ends(0, code=None, signal=9)
    assert body.phase() is JobPhase.PREEMPTED and not body.life.failures


def test_work_that_cannot_be_saved_has_finished_if_it_ends_well_when_asked() -> None:
    body = Body(job())
    body.grant(0)
    body.runs()
    body.life = told_to_leave(body.life, GIVES_WAY, body.now_ms)
    body.look()
    assert body.phase() is JobPhase.STOPPING
    body.ends(0, code=0)
    assert body.phase() is JobPhase.SUCCEEDED


def test_a_notebook_that_ends_well_when_asked_has_only_left() -> None:
    body = Body(job(kind=JobType.INTERACTIVE))
    body.grant(0)
    body.runs()
    body.life = told_to_leave(body.life, GIVES_WAY, body.now_ms)
    body.look()
    body.ends(0, code=0)
    assert body.phase() is JobPhase.PREEMPTED


def test_it_grows_and_shrinks_while_it_runs() -> None:
    body = Body(job(least=1, most=3, saves=True))
    body.grant(0)
    body.runs()
    body.grant(1, 2)
    assert body.phase() is JobPhase.RESCALING and body.life.attempt == 1
    body.runs()
    assert body.phase() is JobPhase.RUNNING
    body.life = take_away(body.life, [("worker", 2)])
    body.look()
    assert body.asked == [2] and body.phase() is JobPhase.RESCALING
    body.ends(2, code=None, signal=15)
    assert body.phase() is JobPhase.RUNNING and not body.life.failures
    assert body.facts == [SlotStopping(WHO, "worker", 2), SlotGone(WHO, "worker", 2)]


def test_a_replica_that_vanished_is_nobodys_failure() -> None:
    body = Body(job(limit=0))
    body.grant(0)
    body.runs()
    body.ends(0, code=None, lost=True)
    assert body.phase() is JobPhase.PENDING and body.life.failures == 0
    assert body.life.last_text == "replica worker-0 vanished, and nobody knows how it ended"


def test_cancelled_work_is_over_at_once_and_leaves_then() -> None:
    body = Body(job(least=2))
    body.grant(0, 1)
    body.runs()
    body.life, facts = end(body.life, Outcome.CANCELLED, "cancelled by ada", body.now_ms)
    assert facts == (WorkloadEnded(WHO, Outcome.CANCELLED),)
    body.look()
    assert body.asked == [0, 1] and body.phase() is JobPhase.STOPPING
    body.ends(0, code=None, signal=15)
    body.ends(1, code=0)
    assert body.phase() is JobPhase.CANCELLED
    assert body.facts == [SlotGone(WHO, "worker", 0), SlotGone(WHO, "worker", 1)]
    assert end(body.life, Outcome.FAILED, "", body.now_ms) == (body.life, ())


def test_whoever_suspends_a_job_has_not_preempted_it() -> None:
    body = Body(job(saves=True))
    body.grant(0)
    body.runs()
    body.suspend()
    assert body.phase() is JobPhase.CHECKPOINTING and body.life.leaving is not None
    assert body.life.leaving.cause is LeavingCause.SUSPENDED
    body.ends(0, code=None, signal=15)
    assert body.phase() is JobPhase.SUSPENDED
    body.resume()
    assert body.phase() is JobPhase.PENDING and body.life.preemptions == 0
    body.grant(0)
    body.runs()
    assert body.phase() is JobPhase.RUNNING and (body.life.attempt, body.life.preemptions) == (2, 0)


def test_work_without_a_checkpoint_stops_when_it_is_suspended() -> None:
    body = Body(job())
    body.grant(0)
    body.runs()
    body.suspend()
    assert body.phase() is JobPhase.STOPPING
    body.ends(0, code=None, signal=15)
    assert body.phase() is JobPhase.SUSPENDED


def test_resumed_before_it_has_left_it_waits_like_others() -> None:
    body = Body(job(saves=True))
    body.grant(0)
    body.runs()
    body.suspend()
    body.resume()
    assert body.phase() is JobPhase.CHECKPOINTING
    body.ends(0, code=0)
    assert body.phase() is JobPhase.PENDING and body.life.preemptions == 0


def test_who_was_preempted_and_then_suspended_is_preempted_again_when_resumed() -> None:
    body = Body(job(saves=True))
    body.grant(0)
    body.runs()
    body.life = told_to_leave(body.life, GIVES_WAY, body.now_ms)
    body.suspend()
    body.ends(0, code=0)
    assert body.phase() is JobPhase.SUSPENDED
    body.resume()
    assert body.phase() is JobPhase.PREEMPTED and body.life.preemptions == 1


def test_a_start_that_fails_is_told_with_its_reason() -> None:
    body = Body(job(limit=0))
    body.grant(0)
    replica = next(iter(body.replicas.values()))
    body.replicas[replica.start] = structs.replace(replica, ended=Ended(at_ms=0, error="no such file: train"))
    body.look()
    assert body.phase() is JobPhase.FAILED
    assert body.life.ended_text == "replica worker-0 could not start: no such file: train"


def test_lack_of_memory_is_told_with_its_numbers() -> None:
    def told(used_mib: int, limit_mib: int | None) -> str:
        return Ended(at_ms=0, signal=9, shortage=Shortage(used_mib=used_mib, limit_mib=limit_mib)).text()

    assert told(512, 512) == "ran out of memory: used 512 MiB of 512 MiB"
    assert told(65_535, 65_536) == "ran out of memory: used 64 GiB of 64 GiB"
    assert told(15_872, None) == "was ended because the machine ran out of memory: it used 15.5 GiB"
