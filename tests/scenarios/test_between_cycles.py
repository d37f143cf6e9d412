"""What becomes of a plan until the next cycle: the rules of `between`, and what events bring with them."""

from __future__ import annotations

from typing import TypeVar

from optimus.api.loading import load_text
from optimus.api.scenario import ExpectedState
from optimus.drivers.sim.book import Entry
from optimus.drivers.sim.playing import Moment, Play
from optimus.model import observations as seen
from optimus.model.slots import Phase

CLUSTER = """
cluster: [{name: n, count: 2, gpus: 4}]
queues: [{name: a, gpu: {guarantee: 4}}, {name: b, gpu: {guarantee: 4}}]
"""
Fact = TypeVar("Fact")


class Watched:
    """A story played step by step, with everything that the body tells the engine."""

    def __init__(self, text: str) -> None:
        self.play = Play(load_text(text, "story.yaml").or_raise())
        self.facts: list[list[seen.Observation]] = []
        step = self.play.engine.step

        def listen(facts: list[seen.Observation], now_ms: int) -> object:
            self.facts.append(list(facts))
            return step(facts, now_ms)

        self.play.engine.step = listen  # type: ignore[method-assign, assignment]
        self._moments = iter(self.play)

    def next(self) -> Moment:
        return next(self._moments)

    def entry(self, name: str) -> Entry:
        return self.play.stage.book.entries[f"default/{name}"]

    def state(self, name: str) -> ExpectedState:
        return self.entry(name).state


def reported(watched: Watched, kind: type[Fact]) -> list[Fact]:
    return [fact for fact in watched.facts[-1] if isinstance(fact, kind)]


def test_started_replicas_run_by_the_next_cycle_since_they_were_told() -> None:
    story = Watched(CLUSTER + "workloads: [{name: w, queue: a, replicas: 2, gpu: 1}]\ncycles: 2")
    began = story.next().told.at_ms
    assert {replica.phase for replica in story.entry("w").live.values()} == {Phase.HELD}
    story.next()
    assert {fact.since_ms for fact in reported(story, seen.SlotRunning)} == {began}
    assert {replica.phase for replica in story.entry("w").live.values()} == {Phase.RUNNING}


def test_starting_may_take_longer_than_a_cycle() -> None:
    story = Watched(CLUSTER + "workloads: [{name: w, queue: a, gpu: 1}]\nbetween: {startsIn: 90s}\ncycles: 4")
    story.next()
    story.next()
    assert reported(story, seen.SlotBinding) and not reported(story, seen.SlotRunning)
    assert story.state("w") is ExpectedState.RUNNING
    story.next()
    assert len(reported(story, seen.SlotRunning)) == 1
    story.next()
    assert story.facts[-1] == []


TAKEN = (
    CLUSTER
    + """
workloads:
  - {name: old, queue: b, replicas: 4, gpu: 1, checkpoint: {grace: 90s}, running: {on: n-0, since: -2h}}
  - {name: lent, queue: b, replicas: 4, gpu: 1, checkpoint: {grace: 90s}, running: {on: n-1, since: -1h}}
  - {name: asks, queue: a, replicas: 4, gpu: 1}
cycles: 4
"""
)


def test_evicted_replicas_are_gone_by_the_next_cycle() -> None:
    story = Watched(TAKEN)
    story.next()
    assert (story.state("lent"), story.state("asks")) == (ExpectedState.STOPPING, ExpectedState.HELD)
    story.next()
    assert len(reported(story, seen.SlotGone)) == 4
    assert (story.state("lent"), story.state("asks")) == (ExpectedState.PENDING, ExpectedState.RUNNING)


def test_slow_to_stop_they_keep_their_room_for_their_grace() -> None:
    story = Watched(TAKEN + "between: {slowStop: true}")
    story.next()
    story.next()
    assert not reported(story, seen.SlotGone)
    assert (story.state("lent"), story.state("asks")) == (ExpectedState.STOPPING, ExpectedState.HELD)
    story.next()
    assert len(reported(story, seen.SlotGone)) == 4
    assert story.entry("asks").cycles("started") == (3,)


def test_a_start_that_fails_is_tried_again_later() -> None:
    story = Watched(
        CLUSTER + "workloads: [{name: w, queue: a, replicas: 2, gpu: 1}]\nbetween: {advance: 20s}\n"
        "cycles: [{fail: {starts: {w: no image}}}, {}, {}]"
    )
    story.next()
    story.next()
    assert len(reported(story, seen.SlotFailed)) == 2
    reason = story.entry("w").reason
    assert reason is not None and reason.text() == "its last start failed (no image); next try at 12:00:30"
    story.next()
    assert story.entry("w").cycles("started") == (1, 3)
    assert story.entry("w").cycles("startFailed") == (2,)


def test_work_ends_when_it_has_run_as_long_as_it_said() -> None:
    story = Watched(
        CLUSTER + "workloads: [{name: w, queue: a, gpu: 1, expectedDuration: 90s}, {name: open, queue: a, gpu: 1}]\n"
        "between: {endsOnTime: true}\ncycles: 4"
    )
    story.next()
    story.next()
    assert story.state("w") is ExpectedState.RUNNING
    moment = story.next()
    assert story.state("w") is ExpectedState.FINISHED and story.state("open") is ExpectedState.RUNNING
    assert [(line.kind, line.subject) for line in moment.told.events] == [("finishes", "default/w")]
    assert [fact.workload for fact in reported(story, seen.SlotGone)] == ["default/w"]


def test_what_a_checkpoint_has_kept_need_not_be_done_again() -> None:
    lent = "{name: lent, queue: b, replicas: 4, gpu: 1, expectedDuration: 70m, running: {on: n-1, since: -1h}"
    text = TAKEN.replace(
        "cycles: 4", "cycles: [{}, {advance: 1m}, {advance: 1m, finish: [asks]}, {advance: 9m}, {advance: 2m}]"
    )
    for checkpoint, state in (("checkpoint: {}", ExpectedState.FINISHED), ("restartCost: 1m", ExpectedState.RUNNING)):
        old = next(line for line in text.splitlines() if "name: lent" in line)
        story = Watched(text.replace(old, f"  - {lent}, {checkpoint}}}") + "between: {endsOnTime: true}")
        for _ in range(4):
            story.next()
        assert story.state("lent") is ExpectedState.RUNNING
        story.next()
        assert story.state("lent") is state


def test_work_that_had_overrun_when_the_story_began_does_not_end_by_itself() -> None:
    story = Watched(
        CLUSTER + "workloads: [{name: w, queue: a, gpu: 1, expectedDuration: 1h, running: {on: n-0, since: -2h}}]\n"
        "between: {endsOnTime: true}\ncycles: 3"
    )
    for _ in range(3):
        story.next()
    assert story.state("w") is ExpectedState.RUNNING


def test_finished_work_is_gone_at_once_and_cancelled_work_after_its_grace() -> None:
    text = TAKEN + "between: {slowStop: true}"
    story = Watched(text.replace("cycles: 4", "cycles: [{finish: [old], cancel: [lent]}, {}, {}]"))
    story.next()
    assert story.state("old") is ExpectedState.FINISHED and story.state("lent") is ExpectedState.STOPPING
    assert story.entry("asks").cycles("started") == (1,)
    story.next()
    story.next()
    assert story.state("lent") is ExpectedState.FINISHED


def test_a_node_that_leaves_takes_everything_along() -> None:
    story = Watched(
        CLUSTER + "workloads: [{name: w, queue: a, replicas: 4, gpu: 1, running: {on: [n-0, n-0, n-1, n-1]}}]\n"
        "cycles: [{remove: {nodes: [n-1]}}, {advance: 10m}, {}]"
    )
    story.next()
    assert story.entry("w").cycles("lost") == (1,)
    assert all(replica.node == "n-0" for replica in story.entry("w").live.values())


def test_refused_for_good_is_stopped_with_its_reason() -> None:
    story = Watched(
        "cluster: [{name: n, gpus: 1}]\nqueues: [{name: q, maxWait: 1m, maxWaitAction: fail}]\n"
        "workloads: [{name: w, queue: q, gpu: 1, submitted: -5m}, {name: v, queue: q, gpu: 1, running: {on: n}}]\n"
        "cycles: 2"
    )
    for _ in range(2):
        story.next()
        assert story.state("w") is ExpectedState.STOPPED
        reason = story.entry("w").reason
        assert reason is not None and reason.text() == "did not start within the 1m that queue q allows"


def test_counted_devices_are_reported_without_indices() -> None:
    story = Watched(
        "cluster: [{name: n, gpus: 4, assignable: false}]\nworkloads: [{name: w, replicas: 2, gpu: 1}]\n"
        "cycles: 2\nexpect: {nodes: {n: {freeGpus: 2}}}"
    )
    story.next()
    story.next()
    assert {fact.devices for fact in reported(story, seen.SlotRunning)} == {()}
    assert not any(True for _ in story._moments)
    assert story.play.checker.failures == []
