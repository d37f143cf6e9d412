"""Who runs where when a story begins: ordinals, nodes, devices, times."""

from __future__ import annotations

import pytest

from optimus.api.loading import load_text
from optimus.model.observations import ActivitySeen, Checkpointed, Predicted, SlotRunning, SlotStopping

CLUSTER = (
    "cluster: [{name: n, count: 3, gpus: {count: 4, memory: 80Gi}, cpu: 16}, {name: c, gpus: 4, assignable: false}]\n"
)
TWO_ROLES = """{roles: [{name: p}, {name: w, replicas: {max: 4}, gpu: 1}],
      running: {on: [{node: n-1, role: w, replicas: 2}, {node: n-0, role: p}]}}"""


def slots(text: str) -> list[SlotRunning]:
    loaded = load_text(CLUSTER + "workloads:\n" + text)
    assert loaded.errors == ()
    return [fact for fact in loaded.scenario.opening if isinstance(fact, SlotRunning)]


def seats(text: str) -> list[tuple[str, int, str, tuple[int, ...]]]:
    return [(slot.role, slot.ordinal, slot.node, slot.devices) for slot in slots(text)]


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("{gpu: 1, running: {on: n-1}}", [("worker", 0, "n-1", (0,))]),
        ("{gpu: 2, running: {on: {node: n-1, devices: [3, 1]}}}", [("worker", 0, "n-1", (1, 3))]),
        (
            "{gpu: 2, replicas: 3, running: {on: [n-0, n-0, n-2]}}",
            [("worker", 0, "n-0", (0, 1)), ("worker", 1, "n-0", (2, 3)), ("worker", 2, "n-2", (0, 1))],
        ),
        (
            "{gpu: 0.5, replicas: 3, running: {on: n-0}}",
            [("worker", 0, "n-0", (0,)), ("worker", 1, "n-0", (0,)), ("worker", 2, "n-0", (1,))],
        ),
        (
            "{gpu: {memory: 50Gi}, replicas: 2, running: {on: n-0}}",
            [("worker", 0, "n-0", (0,)), ("worker", 1, "n-0", (1,))],
        ),
        (
            "{gpu: 3, replicas: 2, running: {on: 'n-*'}}",
            [("worker", 0, "n-0", (0, 1, 2)), ("worker", 1, "n-1", (0, 1, 2))],
        ),
        ("{gpu: 1, running: {on: c}}", [("worker", 0, "c", ())]),
        ("{cpu: 2, running: {on: n-0}}", [("worker", 0, "n-0", ())]),
        (
            "{gpu: 1, replicas: {min: 1, max: 4}, running: {on: n-0, replicas: 3}}",
            [("worker", 0, "n-0", (0,)), ("worker", 1, "n-0", (1,)), ("worker", 2, "n-0", (2,))],
        ),
        (
            "{gpu: 1, replicas: {min: 1, max: 4}, running: {on: [{node: n-0, replicas: 2}, n-1]}}",
            [("worker", 0, "n-0", (0,)), ("worker", 1, "n-0", (1,)), ("worker", 2, "n-1", (0,))],
        ),
        ("{gpu: 1, replicas: 4, running: {on: [n-2], partial: true}}", [("worker", 0, "n-2", (0,))]),
        (
            "{roles: [{name: ps}, {name: w, replicas: 2, gpu: 1}], running: {on: n-0}}",
            [("ps", 0, "n-0", ()), ("w", 0, "n-0", (0,)), ("w", 1, "n-0", (1,))],
        ),
        (
            TWO_ROLES,
            [("w", 0, "n-1", (0,)), ("w", 1, "n-1", (1,)), ("p", 0, "n-0", ())],
        ),
        (
            "{groups: [{name: g, copies: {min: 1, max: 3}, replicas: 2, gpu: 1}], running: {on: n-0, replicas: 4}}",
            [("g", 0, "n-0", (0,)), ("g", 1, "n-0", (1,)), ("g", 2, "n-0", (2,)), ("g", 3, "n-0", (3,))],
        ),
    ],
)
def test_places(written: str, found: list[tuple[str, int, str, tuple[int, ...]]]) -> None:
    assert seats("  - " + written.replace("{", "{name: w, ", 1)) == found


def test_places_run_through_the_copies() -> None:
    found = slots("  - {name: x, count: 3, replicas: 2, gpu: 1, running: {on: [n-0, n-0, n-1, n-1, n-2, n-2]}}\n")
    assert [(slot.workload, slot.node) for slot in found] == [
        (f"default/x-{copy}", f"n-{copy}") for copy in range(3) for _ in range(2)
    ]


def test_one_list_of_places_for_each_copy() -> None:
    found = slots("  - {name: x, count: 2, replicas: 2, gpu: 1, running: {on: [n-0, n-1]}}\n")
    assert [(slot.workload, slot.node, slot.devices) for slot in found] == [
        ("default/x-0", "n-0", (0,)),
        ("default/x-0", "n-1", (0,)),
        ("default/x-1", "n-0", (1,)),
        ("default/x-1", "n-1", (1,)),
    ]


def test_named_devices_are_kept_free_for_those_who_name_them() -> None:
    found = slots(
        "  - {name: any, gpu: 1, running: {on: n-0}}\n"
        "  - {name: exact, gpu: 1, running: {on: {node: n-0, devices: [0]}}}\n"
    )
    assert [(slot.workload, slot.devices) for slot in found] == [("default/any", (1,)), ("default/exact", (0,))]


def test_models_are_respected() -> None:
    text = """
cluster: [{name: n, gpus: {devices: [{model: A100}, {model: H100}]}}]
workloads: [{name: w, gpu: {models: [H100]}, running: {on: n}}]
"""
    assert [slot.devices for slot in load_text(text).scenario.opening if isinstance(slot, SlotRunning)] == [(1,)]


def test_times_count_from_the_start() -> None:
    text = CLUSTER + (
        "start: 2026-01-05T10:00:00Z\n"
        "workloads:\n"
        "  - {name: w, gpu: 1, running: {on: n-0, since: -2h, lastCheckpoint: -10m, busyAt: -5m, stopping: true},"
        " predicted: 4h}\n"
        "  - {name: v, gpu: 1, submitted: -30s, deadline: 1h}\n"
    )
    scenario = load_text(text).scenario
    start = scenario.start_ms
    facts = scenario.opening
    assert start == 1_767_607_200_000
    assert [fact.since_ms for fact in facts if isinstance(fact, SlotRunning)] == [start - 7_200_000]
    assert Checkpointed("default/w", start - 600_000) in facts
    assert ActivitySeen("default/w", start - 300_000) in facts
    assert Predicted("default/w", 14_400_000) in facts
    assert SlotStopping("default/w", "worker", 0) in facts
    running, waiting = scenario.workloads
    assert (running.submitted_ms, waiting.submitted_ms) == (start - 7_200_000, start - 30_000)
    assert waiting.deadline_ms == start - 30_000 + 3_600_000


def test_sums_of_fractions_are_exact() -> None:
    text = """
cluster: [{name: n, gpus: 1, foreign: {gpu: {0: 0.7}}}]
workloads: [{name: a, gpu: 0.1, running: {on: n}}, {name: b, gpu: 0.2, running: {on: n}}]
"""
    assert load_text(text).errors == ()
    assert "node n has no GPU left for a replica: 0.199 free" in str(load_text(text.replace("0.7", "0.701")).errors[0])
