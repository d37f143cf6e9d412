"""Past use: by queue, pool and resource, decayed with integers alone."""

from __future__ import annotations

import ast
import inspect
from fractions import Fraction

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimus.model.nodes import Device, Node
from optimus.model.observations import NodeSeen, PoolSeen, QueueSeen, RunRemembered, SlotRunning, WorkloadSeen
from optimus.model.pools import NodePool
from optimus.model.queues import Queue
from optimus.model.settings import Settings
from optimus.model.workloads import Group, Request, Role, Workload
from optimus.state import State, history
from optimus.state.history import A_FEW, DECAY_BITS, History, RunTimes, kept_part
from optimus.state.keyframe import dump, restore

DAY_MS = 86_400_000
YEAR_MS = 365 * DAY_MS
USE = ("team", "gpus", "gpu")


def test_decay_is_computed_with_integers_alone() -> None:
    """A float, or a power from the C library, may differ in its last bit between machines."""
    tree = ast.parse(inspect.getsource(history))
    floats = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, float)]
    divisions = [n for n in ast.walk(tree) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Div)]
    assert not floats and not divisions


def test_a_half_life_halves_and_ten_of_them_leave_a_thousandth() -> None:
    unit = 1 << DECAY_BITS
    assert kept_part(0, DAY_MS) == unit
    assert kept_part(DAY_MS, DAY_MS) == unit // 2
    assert kept_part(10 * DAY_MS, DAY_MS) == unit >> 10
    assert kept_part(1000 * DAY_MS, DAY_MS) == 0


@pytest.mark.parametrize(
    ("passed", "half_life", "expected"),
    [
        (1, YEAR_MS, Fraction(2) ** 64 - Fraction(405451187)),  # 2^64 x (1 - ln 2 / year)
        (DAY_MS // 2, DAY_MS, Fraction(13043817825332782212)),  # 2^64 / sqrt 2
        (DAY_MS // 3, DAY_MS, Fraction(14641190473997345813)),  # 2^64 / cube root of 2
    ],
)
def test_the_kept_part_is_right_to_fifteen_digits(passed: int, half_life: int, expected: Fraction) -> None:
    assert abs(kept_part(passed, half_life) - expected) < 1 << 14


def test_many_short_steps_decay_like_one_long_step() -> None:
    one, many = History(), History()
    for past in (one, many):
        past.remember_use({USE: 4000}, DAY_MS, YEAR_MS)
    one.remember_use({}, 2 * DAY_MS, YEAR_MS)
    for step in range(1, 1441):
        many.remember_use({}, DAY_MS + step * 60_000, YEAR_MS)
    assert abs(one.past_use[USE] - many.past_use[USE]) <= 1440


def test_what_was_used_long_ago_is_forgotten() -> None:
    past = History()
    past.remember_use({USE: 4000}, DAY_MS, DAY_MS)
    past.remember_use({}, 100 * DAY_MS, DAY_MS)
    assert past.past_use == {}


def cluster(half_life_ms: int, memory_mib: int = 64) -> State:
    """One queue that uses a GPU in pool gpus and cores in pool cores."""
    state = State(Settings(history_half_life_ms=half_life_ms))
    state.apply(PoolSeen(NodePool(name="gpus", selector={"pool": "gpus"})), 0)
    state.apply(PoolSeen(NodePool(name="cores", selector={"pool": "cores"})), 0)
    device = Device(index=0, model="a100", memory_mib=81920)
    state.apply(NodeSeen(Node(name="g", labels={"pool": "gpus"}, cpu_milli=8000, devices=(device,))), 0)
    state.apply(NodeSeen(Node(name="c", labels={"pool": "cores"}, cpu_milli=8000, memory_mib=memory_mib)), 0)
    state.apply(QueueSeen(Queue(name="all")), 0)
    state.apply(QueueSeen(Queue(name="team", parent="all")), 0)
    for name, node, request in (
        ("ns/train", "g", Request(gpu_count=1)),
        ("ns/build", "c", Request(cpu_milli=3000, memory_mib=memory_mib)),
    ):
        gang = Group(roles=(Role(name="worker", min=1, max=1, request=request),))
        assert not state.apply(WorkloadSeen(Workload(id=name, queue="team", gang=gang)), 0)
        assert not state.apply(SlotRunning(name, "worker", 0, node), 0)
    state.snapshot(0)
    return state


def test_use_is_counted_by_queue_pool_and_resource_up_the_tree() -> None:
    state = cluster(DAY_MS)
    used = state.snapshot(1000).history.past_use
    for queue in ("team", "all"):
        assert {key[1:]: value for key, value in used.items() if key[0] == queue} == {
            ("gpus", "gpu"): 1000 * 1000,
            ("cores", "cpu"): 3000 * 1000,
            ("cores", "memory"): 64 * 1000,
        }


def test_a_dump_carries_past_use_however_large() -> None:
    """MiB x ms over a long half-life needs more than the 64 bits that msgpack has."""
    state = cluster(YEAR_MS, memory_mib=2**38)
    state.snapshot(10 * YEAR_MS)
    assert max(state.history.past_use.values()) > 2**64
    again = restore(dump(state))
    assert again.history.past_use == state.history.past_use
    assert again.history.past_use_at == state.history.past_use_at
    assert dump(again) == dump(state)


def test_a_dump_from_before_pools_were_told_apart_still_restores() -> None:
    state = cluster(DAY_MS)
    state.snapshot(1000)
    frame = msgspec.msgpack.decode(dump(state))
    del frame["uses"]
    assert restore(msgspec.msgpack.encode({**frame, "past_use": {"team": 5}})).history.past_use == {}


def test_runs_of_another_cluster_are_remembered_like_own_ones() -> None:
    state = State()
    for run_ms in (60_000, 120_000, 180_000):
        assert state.apply(RunRemembered("vision", run_ms, "resnet"), 0) == []
    problems = state.apply(RunRemembered("vision", 0, "resnet"), 0)
    assert [str(problem) for problem in problems] == ["run of queue vision: run_ms: must be more than 0: 0"]
    assert state.history.by_family["resnet"].means_beyond_ms(np.array([60_000])).tolist() == [150_000]
    assert state.history.by_queue["vision"].recent() == [60_000, 120_000, 180_000]


@given(st.lists(st.integers(1, 10**9), max_size=40), st.lists(st.integers(0, 10**9), min_size=1, max_size=20))
def test_many_high_quantiles_at_once_are_the_same_as_one_by_one(runs: list[int], beyond: list[int]) -> None:
    times = RunTimes(runs)
    single = [times.high_ms(each) for each in beyond]
    assert times.highs_ms(np.array(beyond)).tolist() == [-1 if high is None else high for high in single]


@given(st.lists(st.integers(1, 10**9), max_size=40), st.lists(st.integers(0, 10**9), min_size=1, max_size=20))
def test_the_effort_until_an_end_is_the_least_over_all_ages_at_which_to_give_up(
    runs: list[int], elapsed: list[int]
) -> None:
    """The definition, word by word: time given to those that lived as long, by how many of them end for it."""
    expected = []
    for age in elapsed:
        longer = sorted(run - age for run in runs if run > age)
        efforts = [
            sum(min(rest, until) for rest in longer) // ended
            for ended, until in enumerate(longer, start=1)
            if ended >= min(len(longer), A_FEW)
        ]
        expected.append(age + max(min(efforts), 1) if efforts else 0)
    assert RunTimes(runs).efforts_beyond_ms(np.array(elapsed)).tolist() == expected


def test_of_a_mix_the_young_may_be_short_and_the_old_are_long() -> None:
    mix = RunTimes([60_000] * 9 + [86_400_000])
    young, old = mix.efforts_beyond_ms(np.array([0, 120_000])).tolist()
    assert young == 66_666, "nine of ten end within a minute: give each a minute"
    assert old == 86_400_000
    assert mix.means_beyond_ms(np.array([0])).tolist() == [8_694_000], "the mean is made by the long one"
    alike = RunTimes([3_600_000] * 10)
    assert alike.efforts_beyond_ms(np.array([0, 1_800_000])).tolist() == [3_600_000, 3_600_000]
