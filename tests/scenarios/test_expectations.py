"""Every expectation can fail, and then says what is the case instead and where it stands."""

from __future__ import annotations

import pytest

from optimus.api.loading import load_text
from optimus.drivers.sim.playing import play

WORLD = """
cluster: [{name: n, count: 2, racks: 2, gpus: {count: 4, nvlinkGroups: 2}}]
queues:
  - {name: q, gpu: {guarantee: 8, limit: 8}}
  - {name: r, gpu: {guarantee: 0}}
workloads:
  - {name: runs, queue: q, replicas: 4, gpu: 1, running: {on: [n-0, n-0, n-0, n-1]}}
  - {name: lent, queue: r, replicas: 3, gpu: 1, checkpoint: {}, running: {on: [n-1, n-1, n-1]}}
  - {name: asks, queue: q, replicas: 3, gpu: 1}
  - {name: huge, queue: q, gpu: 8}
  - {name: small, count: 3, queue: r, gpu: 8}
"""

HOLDS = [
    "workloads: {runs: running}",
    "workloads: {runs: {replicas: 4, nodes: [n-0, n-1], within: ['n-*'], pool: default}}",
    "workloads: {runs: {devices: {n-0: [0, 1, 2], n-1: [0]}, domains: {rack: 2, host: 2, nvlink: 3}}}",
    "workloads: {runs: {replicas: {worker: {min: 4}}, started: never, evicted: never}}",
    "workloads: {lent: {state: stopping, evicted: 1, cause: Reclaimed}}",
    "workloads: {asks: {state: held, reason: WaitingForRoom, says: lent, replicas: 3, reserved: false}}",
    "workloads: {huge: NoSuchDevice}",
    "workloads: {'small-*': {count: 3, state: pending}}",
    "workloads: {'small-*': pending}",
    "queues: {q: {allocated: {gpu: 7}, running: 1, pending: {min: 1}}}",
    "queues: {r: {running: 0, pending: 3}}",
    "nodes: {n-0: {workloads: [runs], freeGpus: 1}, n-1: {freeGpus: 0, workloads: [lent, runs]}}",
    "plan: {actions: {Evict: 1, Hold: 1, Start: 0, Move: 0}, complete: true}",
    "plan: notEmpty",
]

FAILS = [
    ("workloads: {runs: pending}", "workload runs: expected pending, is running"),
    ("workloads: {asks: running}", "workload asks: expected running, is held: WaitingForRoom: room is held for it;"),
    ("workloads: {huge: NoRoom}", "workload huge: expected the reason NoRoom, is pending: NoSuchDevice: no node"),
    ("workloads: {runs: NoRoom}", "workload runs: expected pending: NoRoom, is running"),
    ("workloads: {runs: {replicas: 3}}", "workload runs: expected 3 replicas, has 4"),
    ("workloads: {runs: {replicas: {max: 1}}}", "workload runs: expected 0 to 1 replicas, has 4"),
    ("workloads: {runs: {replicas: {worker: 1}}}", "workload runs: expected 1 replica of role worker, has 4"),
    ("workloads: {runs: {nodes: [n-0]}}", "workload runs: expected on n-0, has 3 on n-0, 1 on n-1"),
    ("workloads: {runs: {within: n-1}}", "workload runs: expected only on n-1, has 3 on n-0, 1 on n-1"),
    ("workloads: {huge: {nodes: [n-0]}}", "workload huge: expected on n-0, is pending: NoSuchDevice: no node"),
    ("workloads: {runs: {devices: {n-0: [3]}}}", "workload runs: expected devices 3 of n-0, has 0, 1, 2"),
    ("workloads: {runs: {domains: {rack: 1}}}", "workload runs: expected in 1 rack domains, is in 2"),
    ("workloads: {runs: {domains: {nvlink: {max: 2}}}}", "workload runs: expected in 0 to 2 nvlink domains, is in 3"),
    ("workloads: {huge: {pool: default}}", "workload huge: expected in pool default, is in none"),
    ("workloads: {huge: {says: a lemon}}", "workload huge: expected a reason that says 'a lemon', is pending: NoSuch"),
    ("workloads: {lent: {cause: Preempted}}", "workload lent: expected the cause Preempted, was Reclaimed: taken back"),
    ("workloads: {runs: {cause: Idle}}", "workload runs: expected the cause Idle, nothing was done to it"),
    ("workloads: {huge: {reserved: true}}", "workload huge: expected a reservation, is pending: NoSuchDevice"),
    ("workloads: {lent: {evicted: never}}", "workload lent: expected evicted never, was in cycle 1"),
    ("workloads: {runs: {started: true}}", "workload runs: expected started at some time, was never"),
    ("workloads: {lent: {evicted: [1, 2]}}", "workload lent: expected evicted in cycle 1, 2, was in cycle 1"),
    (
        "workloads: {'small-*': {count: {max: 2}, state: pending}}",
        "workload small-*: expected 0 to 2 of 3 to match, 3 do",
    ),
    (
        "workloads: {'small-*': {count: 1, state: running}}",
        "expected 1 of 3 to match, 0 do (small-0: expected running, is",
    ),
    ("workloads: {'small-*': running}", "workload small-*: small-0: expected running, is pending"),
    ("workloads: {runs: invalid}", "workload runs: expected invalid, is running"),
    ("queues: {q: {allocated: {gpu: 2}}}", "queue q: expected allocated gpu 2, is 7"),
    ("queues: {q: {share: {cpu: 0.5}}}", "queue q: expected share cpu 0.5, is 0"),
    ("queues: {q: {running: 0}}", "queue q: expected 0 running, has 1: runs"),
    ("nodes: {n-0: empty}", "node n-0: expected nothing there, has runs"),
    ("nodes: {n-0: {freeGpus: {min: 1.5}}}", "node n-0: expected at least 1.5 free GPUs, has 1"),
    ("plan: empty", "plan of cycle 1: expected an empty plan, it does 1 Evict, 1 Hold"),
    ("plan: incomplete", "plan of cycle 1: expected an incomplete plan, it is complete"),
    ("plan: {actions: {Start: {min: 1}}}", "plan of cycle 1: expected at least 1 Start, it does 1 Evict, 1 Hold"),
    ("plan: {conditions: [PolicyFailed]}", "plan of cycle 1: expected the condition PolicyFailed, has none"),
]


def failures(expect: str) -> list[str]:
    loaded = load_text(f"{WORLD}expect: {{{expect}}}\n", "story.yaml")
    assert loaded.errors == ()
    outcome = play(loaded)
    assert outcome.checked
    return list(map(str, outcome.failures))


@pytest.mark.parametrize("expect", HOLDS)
def test_it_holds(expect: str) -> None:
    assert failures(expect) == []


@pytest.mark.parametrize(("expect", "says"), FAILS, ids=[expect for expect, _ in FAILS])
def test_it_fails_and_says_so(expect: str, says: str) -> None:
    found = failures(expect)
    assert found, "it should not hold"
    assert found[0].startswith("story.yaml:12:")
    assert says in found[0]


def test_expectations_of_a_cycle_are_about_this_cycle() -> None:
    text = f"{WORLD}cycles: [{{expect: {{workloads: {{asks: held}}}}}}, {{expect: {{workloads: {{asks: held}}}}}}]\n"
    outcome = play(load_text(text, "story.yaml"))
    assert [failure.cycle for failure in outcome.failures] == [2]
    assert outcome.failures[0].message == "expected held, is running"
