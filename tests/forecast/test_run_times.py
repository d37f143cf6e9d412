"""What is known about run times: history given that it has run so long, and what still runs counts too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec import structs

from optimus.drivers.sim.forecasting.knowledge import Basis, Knowledge
from optimus.drivers.sim.forecasting.lifetimes import Lifetimes
from optimus.drivers.sim.standing import read_state, standings
from tests.forecast.worlds import HOUR_MS, ONE_GPU, present


def drawn(lifetimes: Lifetimes, beyond: float = 0.0, count: int = 2_000) -> list[float]:
    draw = np.random.default_rng(1)
    return [lifetimes.draw(draw, beyond) for _ in range(count)]


def test_draws_are_what_was_seen_and_lasted_longer() -> None:
    assert set(drawn(Lifetimes([1.0, 2.0, 5.0, 9.0]), beyond=2.0)) == {5.0, 9.0}


def test_what_has_outlived_everything_lasts_longer_still() -> None:
    values = drawn(Lifetimes([1.0, 2.0]), beyond=10.0)
    assert min(values) >= 10.0 and max(values) > 20.0


def test_what_still_runs_is_neither_left_out_nor_taken_as_ended() -> None:
    """Of three, one ended at 1, one at 4, and one has reached 2: it will be at least that."""
    both = Lifetimes([1.0, 4.0], still=[2.0])
    values = drawn(both)
    assert set(values) == {1.0, 4.0}
    assert sum(value == 4.0 for value in values) / len(values) == pytest.approx(2 / 3, abs=0.04)
    assert both.quantile(0.5) == 4.0


def test_quantiles_without_anything_unfinished_are_the_usual_ones() -> None:
    assert Lifetimes(map(float, range(1, 11))).quantile(0.5) == 5.0
    assert Lifetimes(map(float, range(1, 11))).quantile(0.9) == 9.0


def test_a_quantile_that_nobody_has_reached_is_not_known() -> None:
    assert Lifetimes([1.0], still=[2.0, 2.0, 2.0]).quantile(0.9) is None


def knowledge_of(text: str, **frame_changes: object) -> tuple[Knowledge, dict[str, object]]:
    frame = structs.replace(read_state(present(text).state), **frame_changes)
    people = standings(frame)
    return Knowledge(frame, people), {one.workload.id.removeprefix("default/"): one for one in people}


UNKNOWN = """
cluster: [{name: n, gpus: 4}]
workloads:
  - {name: old, gpu: 1, family: bert, running: {on: n, since: -3h}}
  - {name: new, gpu: 1, family: bert}
  - {name: other, gpu: 1, family: gpt}
"""


def test_the_nearest_group_with_enough_ends_speaks() -> None:
    hours = [HOUR_MS * n for n in (1, 2, 4, 5, 6)]
    known, people = knowledge_of(UNKNOWN, family_times={"bert": hours}, queue_times={"default": [HOUR_MS] * 6})
    assert known.basis(people["new"]) is Basis.FAMILY  # type: ignore[arg-type]
    assert known.basis(people["other"]) is Basis.QUEUE  # type: ignore[arg-type]
    draws = {known.draw_ms(people["old"], 0, sample) for sample in range(60)}  # type: ignore[arg-type]
    assert draws == {HOUR_MS * 4.0, HOUR_MS * 5.0, HOUR_MS * 6.0}


def test_nothing_known_is_a_guess_and_says_so() -> None:
    known, people = knowledge_of(UNKNOWN)
    assert known.basis(people["new"]) is Basis.GUESS  # type: ignore[arg-type]
    assert min(known.draw_ms(people["old"], 0, sample) for sample in range(50)) > 3 * HOUR_MS  # type: ignore[arg-type]


YOUNG = """
cluster: [{name: n, gpus: 4}]
workloads:
  - {name: beyond, gpu: 1, running: {on: n, since: -20m}}
  - {name: somebody, gpu: 1, class: interactive, running: {on: n, since: -20m}}
"""


def spread(known: Knowledge, one: Any, count: int = 400) -> tuple[float, float]:
    """P50 and P90 of what is left of it, in minutes."""
    left = [(known.draw_ms(one, 0, sample) - one.elapsed_ms) / 60_000 for sample in range(count)]
    p50, p90 = np.percentile(left, (50, 90))
    return float(p50), float(p90)


def test_what_is_far_beyond_a_young_history_is_of_another_kind_and_a_guess() -> None:
    """A hundred that took a minute at most say next to nothing of one that has run for twenty."""
    known, people = knowledge_of(YOUNG, queue_times={"default": [600 * n for n in range(1, 101)]})
    assert known.basis(people["beyond"]) is Basis.GUESS  # type: ignore[arg-type]
    p50, p90 = spread(known, people["beyond"])
    assert p50 > 60 and p90 > 600, "as of work of which nothing is known"


def test_what_has_just_outlived_the_history_is_soon_over_in_half_and_not_in_nine_of_ten_futures() -> None:
    barely = "cluster: [{name: n, gpus: 4}]\nworkloads: [{name: barely, gpu: 1, running: {on: n, since: -70s}}]"
    known, people = knowledge_of(barely, queue_times={"default": [600 * n for n in range(1, 101)]})
    assert known.basis(people["barely"]) is Basis.CLUSTER  # type: ignore[arg-type]
    p50, p90 = spread(known, people["barely"])
    assert p50 < 5 and p90 > 30


def test_where_the_longest_took_days_what_outlives_it_is_not_known_any_less() -> None:
    """What nothing is known of would end about as soon: both kinds explain it alike."""
    days = [HOUR_MS * n for n in range(1, 101)]
    old = YOUNG.replace("-20m", "-110h").replace("interactive", "unattended")
    known, people = knowledge_of(old, queue_times={"default": days})
    assert known.basis(people["beyond"]) is Basis.CLUSTER  # type: ignore[arg-type]
    p50, p90 = spread(known, people["beyond"])
    assert 20 * 60 < p50 < 110 * 60 and p90 < 600 * 60


def test_a_history_of_nothing_but_moments_breaks_nothing() -> None:
    known, people = knowledge_of(YOUNG, queue_times={"default": [0] * 20})
    assert known.basis(people["beyond"]) is known.basis(people["somebody"]) is Basis.GUESS  # type: ignore[arg-type]
    newly = structs.replace(people["beyond"], elapsed_ms=0)  # type: ignore[type-var]
    assert known.draw_ms(newly, 0, 0) >= 0  # type: ignore[arg-type]


def test_a_workload_draws_the_same_whoever_else_is_there() -> None:
    alone, mine = knowledge_of(ONE_GPU)
    crowd, theirs = knowledge_of(ONE_GPU + "  - {name: more, gpu: 1}\n")
    assert alone.draw_ms(mine["longer"], 7, 3) == crowd.draw_ms(theirs["longer"], 7, 3)  # type: ignore[arg-type]
