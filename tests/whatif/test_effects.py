"""Both worlds are played with the same work, so that the difference is the change's."""

from __future__ import annotations

from optimus.api.loading import load_text
from optimus.drivers.sim.forecasting import Past, forecast
from optimus.drivers.sim.present import Present, of_scenario
from optimus.drivers.sim.traces import synthetic
from optimus.drivers.sim.whatif import (
    Effect,
    changed_present,
    changed_setup,
    effect,
    play_again,
    play_ahead,
    read_changes,
)
from optimus.drivers.sim.whatif.changes import Changes, setup_now
from optimus.drivers.sim.whatif.moves import range_of

HOUR_MS = 3_600_000
EXACT = Past(errors=(1.0,) * 5)
WORLD = """
cluster: [{name: n, count: 2, gpus: 4}]
queues: [{name: vision}, {name: speech}]
workloads:
  - {name: runs, queue: vision, count: 2, gpu: 4, running: {on: "n-*", since: -1h}, expectedDuration: 3h}
  - {name: waits, queue: speech, gpu: 4, expectedDuration: 1h}
"""


def ahead(changes: Changes, *, samples: int = 1, past: Past = EXACT, price: float | None = None) -> Effect:
    today = of_scenario(load_text(WORLD).or_raise())
    changed: Present = changed_present(today, changes)
    pairs = play_ahead(today, changed, samples=samples, seed=0, horizon_ms=48 * HOUR_MS, past=past, tell=lambda: None)
    return effect(pairs, (today.policy, changed.policy), price)


def words(**kwargs: list[str]) -> Changes:
    return read_changes(setup_now(of_scenario(load_text(WORLD).or_raise())), **kwargs)  # type: ignore[arg-type]


def test_a_world_that_is_not_changed_is_the_same() -> None:
    told = ahead(Changes(), samples=3, past=Past())
    assert told.today == told.changed
    assert (told.sooner, told.later, told.starts) == (0, 0, ())
    assert (told.gain, told.pay, told.neither, told.moved) == (0, 0, 3, ())
    assert {(one.low, one.mean, one.high) for one in told.differences.values()} == {(0, 0, 0)}


def test_another_node_lets_the_waiting_start_at_once() -> None:
    told = ahead(words(add=["1x4"]))
    (start,) = told.starts
    assert (start.workload, start.changed_ms) == ("default/waits", 0)
    assert start.today_ms is not None and start.today_ms > 0 and told.sooner == 1
    assert told.changed.longest_wait_ms == 0 < told.today.longest_wait_ms
    assert (told.today.gpus, told.changed.gpus) == (8, 12)


def test_without_a_node_what_ran_there_starts_again_later() -> None:
    told = ahead(words(remove=["n-1"]))
    lost = [one for one in told.starts if one.workload.startswith("default/runs") and one.today_ms == 0]
    assert lost and all(one.changed_ms is not None and one.changed_ms > 0 for one in lost)
    assert told.later >= 1 and told.changed.finished == told.today.finished == 3


def test_costs_are_the_price_of_all_gpus_for_the_same_time() -> None:
    told = ahead(words(add=["1x4"]), price=2.0)
    today, changed = told.today.cost, told.changed.cost
    assert today is not None and changed is not None
    hours = told.compared_ms / HOUR_MS
    assert today.cluster == round(8 * hours * 2, 2) and changed.cluster == round(12 * hours * 2, 2)
    assert round(today.used + today.idle, 2) == today.cluster
    assert today.per_finished_job == round(today.cluster / 3, 2)


def test_shares_and_use_are_told_queue_by_queue() -> None:
    told = ahead(words(quotas=["speech.guarantee=4"]))
    guarantees = {queue.queue: queue.guarantee_gpus for queue in told.changed.queues}
    assert guarantees == {"speech": 4, "vision": 0}
    assert told.sooner == 1, "a guarantee takes room back that was lent"
    used = {queue.queue: queue.gpu_hours for queue in told.today.queues}
    assert used["speech"] > 0 and used["vision"] > used["speech"]


def test_who_makes_room_pays_though_it_starts_as_before() -> None:
    told = ahead(words(quotas=["speech.guarantee=4"]))
    (pays,) = [one for one in told.moved if one.pays]
    assert (pays.queue, pays.start.today_ms, pays.start.changed_ms) == ("vision", 0, 0)
    assert (pays.preemptions_today, pays.preemptions_changed) == (0, 1)
    assert pays.end.difference_ms is not None and pays.end.difference_ms.mean >= HOUR_MS
    assert (told.pay, told.gain, told.neither) == (1, 1, 1)
    assert [one.workload for one in told.moved] == [pays.workload, "default/waits"], "who pays comes first"


def test_who_ends_only_today_pays() -> None:
    """One node is left, and a job of two nodes cannot start on it."""
    world = load_text(WORLD + "  - {name: wide, queue: vision, replicas: 2, gpu: 4, expectedDuration: 1h}\n").or_raise()
    today = of_scenario(world)
    changed = changed_present(today, read_changes(setup_now(today), remove=["n-1"]))
    pairs = play_ahead(today, changed, samples=2, seed=0, horizon_ms=48 * HOUR_MS, past=EXACT, tell=lambda: None)
    first = effect(pairs, (today.policy, changed.policy), None).moved[0]
    assert (first.workload, first.end.today_futures, first.end.changed_futures) == ("default/wide", 2, 0)
    assert first.pays and first.end.changed_ms is None and first.end.difference_ms is None


def test_a_difference_tells_how_much_it_varies_from_future_to_future() -> None:
    told = ahead(words(add=["1x4"]), samples=8, past=Past())
    waiting = told.differences["waitMs.average"]
    assert waiting.low < waiting.mean < waiting.high <= 0
    assert "gpus" in told.differences and told.differences["gpus"].low == told.differences["gpus"].high == 4


def test_recorded_jobs_are_played_once_more_in_both_worlds() -> None:
    trace = synthetic.generate(synthetic.Mix(jobs=40, gpus=16, load=1.5, seed=2))
    assert trace.setup is not None
    changes = read_changes(trace.setup, add=["1x8"], policy="fifo")
    worlds = ((trace.setup, "default"), (changed_setup(trace.setup, changes), "fifo"))
    told = effect([play_again(trace, worlds, lambda: None)], ("default", "fifo"), None)
    assert (told.today.jobs, told.changed.jobs, told.today.finished) == (40, 40, 40)
    assert (told.today.gpus, told.changed.gpus) == (16, 24)
    assert told.sooner + told.later + told.same == 40
    assert told.gain + told.pay + told.neither == 40 and len(told.moved) == told.gain + told.pay


def test_today_starts_as_it_is_forecast() -> None:
    """The same futures: also beside work that can never start, is suspended, or is told to come later."""
    text = (
        WORLD
        + "  - {name: huge, queue: speech, gpu: 64}\n  - {name: asleep, queue: speech, gpu: 1, suspend: true}\n"
        + "  - {name: many, queue: vision, count: 6, gpu: 2}\n  - {name: whole, queue: speech, replicas: 2, gpu: 4}\n"
    )
    today = of_scenario(load_text(text).or_raise())
    changed = changed_present(today, read_changes(setup_now(today), add=["2x4"]))
    pairs = play_ahead(today, changed, samples=8, seed=3, horizon_ms=48 * HOUR_MS, past=Past(), tell=lambda: None)
    told = effect(pairs, (today.policy, changed.policy), None)
    forecasts = forecast(today, seed=3, samples=8, horizon_ms=48 * HOUR_MS)
    moved = {one.workload: one.start.today_ms for one in told.moved}
    waited = {name: found for name, found in forecasts.items() if name in moved}
    assert len(waited) >= 5
    for name, found in waited.items():
        assert moved[name] == (None if found.p50_ms is None else found.p50_ms - today.now_ms), name
    assert told.today.rejected == 2, "who waits in vain is told apart"


def test_what_is_shown_lies_inside_its_own_range() -> None:
    """Nothing is known of run times: one future in eight is far off, and drags a mean out of the range."""
    told = ahead(words(add=["1x4"]), samples=16, past=Past())
    assert all(one.low <= one.median <= one.high for one in told.differences.values())
    for one in told.moved:
        assert one.end.difference_ms is not None
        assert one.end.difference_ms.low <= one.end.difference_ms.median <= one.end.difference_ms.high


def test_the_median_of_a_heavy_tail_is_told_and_the_mean_beside_it() -> None:
    found = range_of([-10.0] * 19 + [-10_000.0])
    assert found is not None and found.mean < found.low == found.median == found.high == -10.0


LATE = """
cluster: [{name: n, gpus: 4}]
workloads:
  - {name: runs, gpu: 4, running: {on: n, since: -1h}, expectedDuration: 3h}
  - {name: waits, gpu: 4, expectedDuration: 1h, submitted: -1m}
  - {name: large, gpu: 8, expectedDuration: 1h}
"""


def test_who_could_not_start_before_makes_no_average_worse() -> None:
    today = of_scenario(load_text(LATE).or_raise())
    changes = read_changes(setup_now(today), add=["1x8"])
    both = today, changed_present(today, changes)
    for one, two, now, no_more in ((*both, ("default/large",), ()), (*both[::-1], (), ("default/large",))):
        pairs = play_ahead(one, two, samples=1, seed=0, horizon_ms=48 * HOUR_MS, past=EXACT, tell=lambda: None)
        told = effect(pairs, (one.policy, two.policy), None)
        assert (told.starts_now, told.starts_no_more) == (now, no_more)
        assert told.today.wait_ms.count == told.changed.wait_ms.count == 2, "those who start in both"
        assert told.today.jct_ms.count == told.changed.jct_ms.count == 2
        better, worse = (told.changed, told.today) if now else (told.today, told.changed)
        assert (better.wait_ms.average or 0) < (worse.wait_ms.average or 0)
        assert better.queues[0].wait_ms == better.wait_ms
