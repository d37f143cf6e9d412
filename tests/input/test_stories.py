"""Cycles, events and expectations: what the runner gets for what people write."""

from __future__ import annotations

import pytest

from optimus.api.loading import load_text
from optimus.api.scenario import Between, Cycle, ExpectedState, Range, Scenario, Times
from optimus.model import observations as seen
from optimus.model.reasons import Code
from tests.input.stories import COMPLETE, examples

WORLD = """
cluster: [{name: n, count: 2, gpus: 8, racks: 2}]
queues: [{name: q, gpu: {guarantee: 8, limit: 12}, maxWait: 1h}]
workloads:
  - {name: w, queue: q, replicas: 4, gpu: 1}
  - {name: x, queue: q, count: 3, gpu: 1}
"""


def story(text: str) -> Scenario:
    loaded = load_text(WORLD + text)
    assert [str(error) for error in loaded.errors] == []
    return loaded.scenario


def cycle(text: str) -> Cycle:
    """The second of two cycles, one minute after the start."""
    return story("cycles:\n  - {}\n  - " + text + "\n").cycles[1]


@pytest.mark.parametrize("text", examples())
def test_every_example_of_the_reference_page_is_right(text: str) -> None:
    assert [str(error) for error in load_text(text).unexpected] == []


def test_the_complete_example() -> None:
    scenario = load_text(COMPLETE).scenario
    assert scenario.name == "lent-and-taken-back"
    assert [cycle.at_ms - scenario.start_ms for cycle in scenario.cycles] == [0, 60_000, 3_660_000]
    assert [queue.parent for queue in scenario.queues] == ["", "research", "research"]
    assert sum(isinstance(fact, seen.SlotRunning) for fact in scenario.opening) == 16
    assert scenario.cycles[2].events == (seen.WorkloadEnded("default/first", seen.Outcome.SUCCEEDED),)


def test_the_clock() -> None:
    scenario = story("""
start: "13:00"
cycles: [{}, {advance: 30s}, {repeat: 3, advance: 10s, note: three}, {at: "14:20"}, {at: 2h}, {}]
between: {advance: 5m}
""")
    offsets = [(cycle.at_ms - scenario.start_ms) // 1000 for cycle in scenario.cycles]
    assert offsets == [0, 30, 40, 50, 60, 4800, 7200, 7500]
    assert [cycle.number for cycle in scenario.cycles] == list(range(1, 9))
    assert [cycle.note for cycle in scenario.cycles][2:5] == ["three", "", ""]
    assert story("cycles: 4").cycles[3].at_ms - scenario.cycles[0].at_ms == 180_000 - 3_600_000


def test_events_happen_in_their_order() -> None:
    kinds = [
        type(event).__name__
        for event in cycle("""submit: [{name: late, queue: q, gpu: 1}]
    finish: [x-0]
    change: {queues: [{name: q, rank: 2}], nodes: [{name: n-0, cpu: 8}], workloads: [{name: w, priority: 5}]}
    add: {nodes: [{name: m, gpus: 8, pool: fast}], queues: [{name: r}]}
    remove: {nodes: [n-1]}
    cordon: [n-0]
    uncordon: [n-0]
    recover: {nodes: [n-1]}
    fail: {nodes: [n-1], devices: {n-0: [1]}, replicas: {w: [3]}, workloads: [x-1]}
    report: {checkpoint: [w], busy: {w: -30s}, duration: {w: 2h}}
    suspend: [x-2]""").events
    ]
    assert kinds == [
        *("Checkpointed", "ActivitySeen", "Predicted"),
        *("NodeSeen", "NodeSeen", "SlotGone", "WorkloadEnded"),
        *("NodeSeen", "NodeSeen", "NodeSeen", "NodeGone"),
        *("NodeSeen", "PoolSeen", "QueueSeen"),
        *("NodeSeen", "QueueSeen", "WorkloadSeen"),
        *("WorkloadEnded", "WorkloadSeen", "WorkloadSeen"),
    ]


def test_a_change_leaves_the_rest_as_it_was() -> None:
    scenario = story("""
cycles:
  - {}
  - {change: {queues: [{name: q, gpu: {limit: 4}}]}}
  - {change: {queues: [{name: q, gpu: {guarantee: null}, maxWait: null}], workloads: [{name: x-1, gpu: 2}]}}
""")
    (first,) = scenario.cycles[1].events
    second, workload = scenario.cycles[2].events
    assert isinstance(first, seen.QueueSeen)
    assert isinstance(second, seen.QueueSeen)
    assert isinstance(workload, seen.WorkloadSeen)
    quota = first.queue.quotas[0].resources["gpu"]
    assert (quota.guarantee, quota.limit, first.queue.policy.max_wait_ms) == (8000, 4000, 3_600_000)
    quota = second.queue.quotas[0].resources["gpu"]
    assert (quota.guarantee, quota.limit, second.queue.policy.max_wait_ms) == (0, 4000, None)
    assert workload.workload.id == "default/x-1"
    assert workload.workload.gang.roles[0].request.gpu_count == 2
    assert workload.workload.submitted_ms == scenario.start_ms


def test_devices_and_nodes_fail_and_come_back() -> None:
    failed, back = (
        story(f"cycles: [{{fail: {{nodes: [n-1], devices: {{n-0: [2]}}}}}}, {{{text}}}]").cycles[i].events
        for i, text in ((0, ""), (1, "recover: {nodes: [n-1], devices: {n-0: [2]}}"))
    )
    assert [(e.node.name, e.node.ready) for e in failed if isinstance(e, seen.NodeSeen)] == [
        ("n-1", False),
        ("n-0", True),
    ]
    assert [d.index for e in failed if isinstance(e, seen.NodeSeen) for d in e.node.devices if not d.healthy] == [2]
    assert [d.index for e in back if isinstance(e, seen.NodeSeen) for d in e.node.devices if not d.healthy] == []


def test_patterns_mean_all_that_match() -> None:
    events = cycle("{cancel: ['x-*'], fail: {starts: ['*']}}")
    assert [e.workload for e in events.events if isinstance(e, seen.WorkloadEnded)] == [
        f"default/x-{i}" for i in range(3)
    ]
    assert set(events.failing_starts) == {"default/w", *(f"default/x-{i}" for i in range(3))}


def test_between_and_settings() -> None:
    scenario = story("""
between: {advance: 10s, startsIn: 30s, slowStop: true, endsOnTime: true}
settings: {historyHalfLife: 7d, historyFactor: 50%, consolidation: false}
budget: {victimSearches: 5}
policy: mine.py:shortest
seed: 7
""")
    assert scenario.between == Between(advance_ms=10_000, starts_in_ms=30_000, slow_stop=True, ends_on_time=True)
    assert scenario.settings.history_half_life_ms == 604_800_000
    assert scenario.settings.history_factor_percent == 50
    assert not scenario.settings.consolidation
    assert scenario.budget.victim_searches == 5
    assert (scenario.policy, scenario.seed) == ("mine.py:shortest", 7)


def test_expectations_become_ids_and_integers() -> None:
    expect = story("""
expect:
  workloads:
    w: {state: running, replicas: {worker: 4}, devices: {n-0: [1, 0]}, nodes: n-0, domains: {rack: 1}, evicted: [3, 1]}
    x-0: NoRoom
    "x-*": {count: {min: 1, max: 2}, replicas: 1, moved: never, started: true, says: best has, cause: Reclaimed}
  queues: {q: {share: {gpu: 8.5, memory: 2Gi}, pending: 2}}
  nodes: {n-1: empty, n-0: {freeGpus: 0.5, workloads: [w, x-0]}}
  plan: {actions: {Evict: 0}, conditions: [PolicyBroken]}
""").expect
    train, blocked, small = expect.workloads
    assert (train.workloads, train.state) == (("default/w",), ExpectedState.RUNNING)
    assert train.replicas_by_role == {"worker": Range(4, 4)}
    assert (train.devices, train.nodes, train.evicted) == ({"n-0": (0, 1)}, ("n-0",), Times((1, 3)))
    assert (blocked.state, blocked.reason) == (ExpectedState.PENDING, Code.NO_ROOM)
    assert len(small.workloads) == 3
    assert (small.count, small.replicas) == (Range(1, 2), Range(1, 1))
    assert (small.moved, small.started, small.cause) == (Times(()), Times(None), Code.RECLAIMED)
    assert expect.queues[0].share == {"gpu": 8500, "memory": 2048}
    assert (expect.queues[0].pool, expect.queues[0].pending) == ("default", Range(2, 2))
    assert [node.workloads for node in expect.nodes] == [(), ("default/w", "default/x-0")]
    assert expect.nodes[1].free_gpu_milli == Range(500, 500)
    assert expect.plan is not None
    assert expect.plan.actions == {"Evict": Range(0, 0)}
    assert train.mark.line == 10


def test_ranges_and_times_judge_and_speak() -> None:
    assert Range(2, 4).holds(3)
    assert not Range(2, None).holds(1)
    assert [str(Range(2, 2)), str(Range(2, None)), str(Range(2, 4))] == ["2", "at least 2", "2 to 4"]
    assert Times(()).holds(())
    assert Times((1, 3)).holds((3, 1, 1))
    assert Times(None).holds((7,))
    assert not Times(None).holds(())
    assert not Times((2,)).holds((2, 3))
    assert [str(Times(())), str(Times((2,))), str(Times(None))] == ["never", "in cycle 2", "at some time"]
