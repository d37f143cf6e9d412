"""How fast a job says it is: from what it did while it was watched, whatever it had done before."""

from __future__ import annotations

from optimus.inside.status import Status


def test_a_loop_of_ones_own_that_begins_late_has_no_rate_before_its_second_word() -> None:
    status = Status()
    status.progress(5_000, None, 5_000, now=1_000_000.0)
    assert status.rate is None
    status.progress(5_020, None, 5_020, now=1_000_010.0)
    assert status.rate == 2.0


def test_a_loop_that_begins_again_is_not_going_backwards() -> None:
    status = Status()
    for step, now in ((100, 1.0), (200, 2.0), (1, 3.0), (101, 4.0)):
        status.progress(step, None, step, now=now)
    assert status.rate is not None and status.rate > 90
