"""When waiting work starts: the future is played by the real engine from the state as it is."""

from __future__ import annotations

from msgspec import structs

from optimus.drivers.sim.brain import Brain
from optimus.drivers.sim.clockwork import Clockwork, News
from optimus.drivers.sim.forecasting import Asked, forecast
from optimus.drivers.sim.forecasting.foreseeing import foresee
from optimus.drivers.sim.present import Present, of_engine
from optimus.drivers.sim.traces import shaping, synthetic
from optimus.engine.engine import Engine
from optimus.model.plans import Start
from optimus.model.reasons import Code
from tests.forecast.worlds import EXACT, HOUR_MS, ONE_GPU, present


def test_who_waits_starts_when_the_others_end() -> None:
    now = present(ONE_GPU)
    found = forecast(now, samples=5, past=EXACT)
    assert found["default/waits"].p50_ms == found["default/waits"].p90_ms == now.now_ms + HOUR_MS
    assert found["default/longer"].p50_ms == now.now_ms + HOUR_MS + HOUR_MS // 2


def test_what_is_known_less_well_has_a_wider_range() -> None:
    now = present(ONE_GPU)
    sure, unsure = forecast(now, samples=20, past=EXACT), forecast(now, samples=20)
    narrow, wide = sure["default/longer"], unsure["default/longer"]
    assert narrow.p50_ms == narrow.p90_ms
    assert wide.p50_ms is not None and wide.p90_ms is not None and wide.p50_ms < wide.p90_ms


def test_the_same_seed_gives_the_same_forecast() -> None:
    now = present(ONE_GPU)
    assert forecast(now, seed=3, samples=8) == forecast(now, seed=3, samples=8)
    assert forecast(now, seed=3, samples=8) != forecast(now, seed=4, samples=8)


def test_who_waits_has_its_reason_and_those_ahead_of_it() -> None:
    told = foresee(Asked(present=present(ONE_GPU), samples=5, past=EXACT))
    reasons = {one.workload.id: one.reason for one in told.waiting}
    assert reasons["default/waits"] is not None and reasons["default/waits"].code in (Code.RESERVED, Code.NO_ROOM)
    assert told.ahead == {"default/longer": ("default/waits",), "default/waits": ()}


def test_what_starts_at_once_is_forecast_for_now() -> None:
    now = present("{cluster: [{name: n, gpus: 2}], workloads: [{name: a, gpu: 1}]}")
    told = foresee(Asked(present=now, samples=2))
    assert [one.reason for one in told.waiting] == [None]
    assert told.quantiles["default/a"].p90_ms == now.now_ms


def test_what_time_does_not_help_is_told_and_not_sampled() -> None:
    now = present("{cluster: [{name: n, gpus: 2}], workloads: [{name: a, gpu: 8}, {name: b, gpu: 1, suspend: true}]}")
    told = foresee(Asked(present=now, samples=2))
    assert [one.hopeless for one in told.waiting] == [True, True]
    assert (told.quantiles, told.samples) == ({}, 0)


def test_where_nothing_waits_there_is_nothing_to_forecast() -> None:
    now = present("{cluster: [{name: n, gpus: 2}], workloads: [{name: a, gpu: 1, running: {on: n}}]}")
    assert forecast(now, samples=2) == {}


def test_inference_that_says_nothing_never_leaves() -> None:
    text = """
cluster: [{name: n, gpus: 1}]
workloads:
  - {name: serve, gpu: 1, class: inference, preemptible: "no", running: {on: n, since: -1h}}
  - {name: train, gpu: 1}
"""
    found = forecast(present(text), samples=2, horizon_ms=6 * HOUR_MS)
    assert (found["default/train"].p50_ms, found["default/train"].started) == (None, 0)


def test_submissions_the_story_knows_of_take_part() -> None:
    text = (
        ONE_GPU + "cycles: [{}, {advance: 30m, submit: [{name: first, gpu: 1, priority: 900, expectedDuration: 1h}]}]\n"
    )
    alone, crowded = (forecast(present(each), samples=3, past=EXACT)["default/waits"] for each in (ONE_GPU, text))
    assert alone.p50_ms is not None and crowded.p50_ms is not None
    assert crowded.p50_ms >= alone.p50_ms + HOUR_MS // 2


class Snapshots(Brain):
    """Takes the state in the middle of a run, and notes every start."""

    def __init__(self, engine: Engine, at_decision: int) -> None:
        super().__init__(engine)
        self.starts: dict[str, list[int]] = {}
        self.taken: Present | None = None
        self._at = at_decision
        self._count = 0

    def decide(self, clock: Clockwork, news: News) -> None:
        super().decide(clock, news)
        assert self.plan is not None
        for action in self.plan.actions:
            if isinstance(action, Start):
                self.starts.setdefault(action.workload, []).append(clock.now_ms)
        self._count += 1
        if self._count == self._at:
            self.taken = of_engine(self.engine, clock.now_ms)


def test_where_nothing_is_unknown_the_forecast_is_what_comes() -> None:
    """Run times are told and true, and everybody is there: gangs, turns and reservations go on as they went."""
    trace = synthetic.generate(synthetic.Mix(jobs=30, gpus=16, load=2.0, seed=5))
    trace = shaping.with_predictions(trace, 0.0, 0)
    jobs = tuple(structs.replace(job, submit_ms=0) for job in trace.jobs)
    assert trace.setup is not None
    brain = Snapshots(Engine(), at_decision=6)
    Clockwork(trace.setup, jobs).play(brain)
    assert brain.taken is not None
    found = forecast(brain.taken, samples=1, horizon_ms=41 * HOUR_MS, past=EXACT)
    true = {
        name: next((at for at in brain.starts[name] if at > brain.taken.now_ms), None)
        for name, quantiles in found.items()
        if quantiles.p50_ms is not None
    }
    off = {name: found[name].p50_ms for name, at in true.items() if at != found[name].p50_ms}
    assert len(true) > 5 and off == {}, (true, off)


def test_asked_about_one_only_the_others_are_played_as_far_as_it_needs() -> None:
    now = present(ONE_GPU)
    everybody = foresee(Asked(present=now, samples=8))
    one = foresee(Asked(present=now, samples=8, only=frozenset({"default/longer"})))
    assert one.quantiles == {"default/longer": everybody.quantiles["default/longer"]}
    assert one.ahead == {"default/longer": everybody.ahead["default/longer"]}
    nobody = foresee(Asked(present=now, samples=8, only=frozenset({"default/nobody"})))
    assert (nobody.quantiles, nobody.samples) == ({}, 0)
