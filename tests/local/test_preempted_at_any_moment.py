"""Real trainings that are preempted again and again end as if nobody had ever disturbed them."""

from __future__ import annotations

from pathlib import Path

from tests.local.preemption_rounds import play


def test_nothing_is_lost_but_the_work_since_the_last_checkpoint(tmp_path: Path) -> None:
    """A sample; `python -m tests.local.preempting` has the full count."""
    outcome = play(1, 5, tmp_path)
    assert outcome.wrong == []
    assert sum(outcome.preemptions.values()) > 0
