"""A job ended when its last replica did, whenever somebody noticed, and ran until then."""

from __future__ import annotations

from msgspec import structs

from optimus.lives import Ended, JobPhase, Outcome
from optimus.lives.reconciling import end
from tests.lives.worlds import SECOND, Body, job


def runs_since(body: Body, at_s: float) -> None:
    body.now_ms = round(at_s * SECOND)
    body.grant(*range(body.job.workload.gang.roles[0].min))
    body.runs()


def ended_unseen(body: Body, ordinal: int, at_s: float, code: int = 0) -> None:
    replica = next(one for one in body.replicas.values() if one.ordinal == ordinal)
    ended = Ended(at_ms=round(at_s * SECOND), code=code)
    body.replicas[replica.start] = structs.replace(replica, ended=ended)


def test_who_succeeded_while_nobody_looked_ended_then_and_ran_no_longer() -> None:
    body = Body(job())
    runs_since(body, 100)
    ended_unseen(body, 0, at_s=150)
    body.look(after_s=3600)
    assert (body.phase(), body.life.ended_ms, body.life.ran_ms) == (JobPhase.SUCCEEDED, 150 * SECOND, 50 * SECOND)


def test_a_gang_ended_with_the_last_of_it() -> None:
    body = Body(job(least=2))
    runs_since(body, 100)
    ended_unseen(body, 0, at_s=180)
    ended_unseen(body, 1, at_s=150)
    body.look(after_s=3600)
    assert (body.life.ended_ms, body.life.ran_ms) == (180 * SECOND, 80 * SECOND)


def test_who_failed_for_good_while_nobody_looked_ended_then() -> None:
    body = Body(job(limit=0))
    runs_since(body, 100)
    ended_unseen(body, 0, at_s=130, code=1)
    body.look(after_s=3600)
    assert (body.phase(), body.life.ended_ms, body.life.ran_ms) == (JobPhase.FAILED, 130 * SECOND, 30 * SECOND)


def test_who_failed_and_tries_again_ran_until_it_failed_and_waits_from_now_on() -> None:
    body = Body(job())
    runs_since(body, 100)
    ended_unseen(body, 0, at_s=130, code=1)
    body.look(after_s=3600)
    assert (body.phase(), body.life.ran_ms) == (JobPhase.PENDING, 30 * SECOND)
    assert body.life.retry_at_ms == body.now_ms + 10 * SECOND


def test_who_was_cancelled_had_its_room_until_its_save_was_over() -> None:
    body = Body(job(least=2, saves=True))
    runs_since(body, 100)
    body.now_ms = 160 * SECOND
    body.life, _ = end(body.life, Outcome.CANCELLED, "cancelled", body.now_ms)
    body.look()
    assert body.phase() is JobPhase.STOPPING
    body.look(after_s=10)
    body.ends(1, code=143)
    assert body.life.ended_ms == 160 * SECOND, "one is still there"
    body.look(after_s=10)
    body.ends(0, code=143)
    assert (body.phase(), body.life.ended_ms, body.life.ran_ms) == (JobPhase.CANCELLED, 180 * SECOND, 80 * SECOND)
    body.look(after_s=10)
    assert body.life.ended_ms == 180 * SECOND


def test_who_was_cancelled_while_it_waited_ended_there() -> None:
    body = Body(job())
    body.now_ms = 5 * SECOND
    body.life, _ = end(body.life, Outcome.CANCELLED, "cancelled", body.now_ms)
    body.look(after_s=10)
    assert (body.life.ended_ms, body.life.ran_ms) == (5 * SECOND, 0)


def test_a_clock_that_was_set_back_makes_no_end_before_the_beginning_and_none_to_come() -> None:
    body = Body(job())
    runs_since(body, 100)
    ended_unseen(body, 0, at_s=40)
    body.look(after_s=60)
    assert (body.life.ended_ms, body.life.ran_ms) == (100 * SECOND, 0)
    other = Body(job())
    runs_since(other, 100)
    ended_unseen(other, 0, at_s=9_000)
    other.look(after_s=60)
    assert (other.life.ended_ms, other.life.ran_ms) == (160 * SECOND, 60 * SECOND)
