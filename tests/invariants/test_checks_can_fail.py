"""A check that never complains proves nothing: each meets a plan that breaks its invariant, and one that does not."""

from __future__ import annotations

import pytest
from msgspec import structs

from optimus.model.nodes import Taint
from optimus.model.observations import QueueSeen, SlotGone
from optimus.model.plans import Action, Evict, Hold, Placement, Plan
from optimus.model.pools import DEFAULT_POOL
from optimus.model.queues import QueuePolicy
from optimus.model.reasons import Code, Reason, reason
from optimus.model.workloads import OnLoss, Preemptible
from optimus.testing import Cycle, check_cycle, check_world, random_world
from optimus.testing.invariants import CarefulEngine
from tests.invariants.staged import NOW_MS, job, node, played, queue, runs, stage, start


def complaints(cycle: Cycle, invariant: int) -> str:
    return " | ".join(violation.what for violation in check_cycle(cycle, (invariant,)))


def hold(workload: str, where: str, *devices: tuple[int, ...]) -> Hold:
    placements = tuple(Placement("main", i, where, chosen, 1000) for i, chosen in enumerate(devices))
    return Hold(f"team/{workload}", DEFAULT_POOL, placements, NOW_MS + 1000, ())


def evict(workload: str, beneficiary: str = "", cause: Reason | None = None) -> Evict:
    why = cause or reason(Code.RECLAIMED, beneficiary=beneficiary, queue="b", entitlement="guarantee")
    return Evict(f"team/{workload}", why, 0, f"team/{beneficiary}" if beneficiary else "")


# -- 0 ----------------------------------------------------------------------------------------------------------------


def test_a_missing_reason_is_noticed() -> None:
    ledger = stage(node("n"), queue("a"), job("x", "a"))
    assert "waits without a reason" in complaints(played(ledger), 0)
    assert "has 2 reasons" in complaints(played(ledger, waiting=("x", "x")), 0)
    assert "does not wait" in complaints(played(ledger, start("x", ("n", (0,))), waiting=("x",)), 0)


def test_wrong_shares_are_noticed() -> None:
    ledger = stage(node("n"), queue("a", 2), runs(job("x", "a"), ("n", (0,))))
    assert "share, allocated, demand" in complaints(played(ledger), 0)


# -- 1 ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "what"),
    [
        (start("y", ("n", (0,))), "device n 0"),
        (hold("y", "n", (0,)), "device n 0"),
        (start("y", ("n", (1,)), ("n", (2,))), "limit a"),
        (start("y", ("m", (1,))), "missing node"),
        (start("y", ("n", (1,))), ""),
    ],
)
def test_over_commitment_is_noticed(action: Action, what: str) -> None:
    ledger = stage(node("n"), queue("a", limit=2), runs(job("x", "a"), ("n", (0,))), job("y", "a"))
    found = complaints(played(ledger, action), 1)
    assert what in found
    assert bool(found) == bool(what)


def test_room_is_busy_until_it_is_left() -> None:
    ledger = stage(node("n", 1), queue("a"), runs(job("x", "a"), ("n", (0,))), job("y", "a"))
    assert complaints(played(ledger, evict("x", "y"), hold("y", "n", (0,))), 1) == ""
    assert "now: device n 0" in complaints(played(ledger, evict("x", "y"), start("y", ("n", (0,)))), 1)


def test_old_over_commitment_is_no_fault_of_the_plan() -> None:
    ledger = stage(node("n"), queue("a", limit=2), runs(job("x", "a", 2), ("n", (0,)), ("n", (1,))), job("y", "a"))
    ledger.observe(QueueSeen(queue("a", limit=1)), NOW_MS)
    assert complaints(played(ledger), 1) == ""
    assert "limit a" in complaints(played(ledger, start("y", ("n", (2,)))), 1)


# -- 2 ----------------------------------------------------------------------------------------------------------------


def test_half_a_gang_is_noticed() -> None:
    ledger = stage(node("n"), node("m"), queue("a"), job("x", "a", 2, rack=True))
    assert "below its minimum" in complaints(played(ledger, start("x", ("n", (0,)))), 2)
    assert "not in one rack" in complaints(played(ledger, start("x", ("n", (0,)), ("m", (0,)))), 2)
    assert complaints(played(ledger, start("x", ("n", (0,)), ("n", (1,)))), 2) == ""


def test_places_that_are_not_allowed_are_noticed() -> None:
    tainted = node("t", taints=(Taint("maintenance"),))
    sick = structs.replace(node("s"), devices=(structs.replace(node("s").devices[0], healthy=False),))
    ledger = stage(tainted, sick, node("c", cordoned=True), queue("a"), job("x", "a"))
    assert "may not use node t" in complaints(played(ledger, start("x", ("t", (0,)))), 2)
    assert "cannot be used" in complaints(played(ledger, start("x", ("s", (0,)))), 2)
    assert "may not use node c" in complaints(played(ledger, start("x", ("c", (0,)))), 2)
    assert "takes 500" in complaints(played(ledger, start("x", ("t", (0,)), milli=500)), 2)


def test_a_gang_that_goes_on_below_its_minimum_is_noticed() -> None:
    broken = job("x", "a", 2, on_loss=OnLoss.REPLACE, loss_grace_ms=5_000)
    ledger = stage(node("n"), queue("a"), runs(broken, ("n", (0,)), ("n", (1,))))
    ledger.observe(SlotGone("team/x", "main", 1), NOW_MS - 5_000)
    assert "goes on below its minimum" in complaints(played(ledger), 2)
    cause = reason(Code.BELOW_MINIMUM, running=1, minimum=2)
    assert complaints(played(ledger, evict("x", cause=cause)), 2) == ""


# -- 3, 4, 5 ----------------------------------------------------------------------------------------------------------


def test_fixed_work_outside_a_guarantee_is_noticed() -> None:
    ledger = stage(
        node("n"), queue("top", 1), queue("a", 2, parent="top"), job("x", "a", 2, preemptible=Preemptible.NO)
    )
    found = complaints(played(ledger, start("x", ("n", (0,)), ("n", (1,)))), 3)
    assert "outside the guarantee of top" in found and "of a:" not in found


def test_a_refusal_for_nothing_is_noticed() -> None:
    ledger = stage(node("n"), queue("a", limit=1), job("x", "a"), job("y", "a", 2))
    found = complaints(played(ledger, waiting=("x", "y")), 4)
    assert "team/x waits" in found and "team/y" not in found


def test_waiting_inside_a_guarantee_is_noticed() -> None:
    borrower = runs(job("x", "a", 1, 4), ("n", (0, 1, 2, 3)))
    ledger = stage(node("n"), queue("a", 2), queue("b", 2), borrower, job("y", "b", 1, 2), job("z", "b", 1, 3))
    found = complaints(played(ledger, waiting=("y", "z")), 5)
    assert "team/y waits" in found and "team/z" not in found


def test_minimum_run_times_protect() -> None:
    slow = structs.replace(queue("a", 2), policy=QueuePolicy(min_runtime_before_reclaim_ms=2 * NOW_MS))
    borrower = runs(job("x", "a", 1, 4), ("n", (0, 1, 2, 3)))
    ledger = stage(node("n"), slow, queue("b", 2), borrower, job("y", "b", 1, 2))
    assert complaints(played(ledger, waiting=("y",)), 5) == ""


# -- 6 ----------------------------------------------------------------------------------------------------------------


def crowded() -> tuple[object, ...]:
    one, two = runs(job("one", "a"), ("n", (0,))), runs(job("two", "a"), ("n", (1,)))
    return node("n", 2), queue("a"), queue("b", 2), one, two, job("y", "b")


def test_victims_for_nothing_are_noticed() -> None:
    ledger = stage(*crowded())  # type: ignore[arg-type]
    enough = played(ledger, evict("one", "y"), hold("y", "n", (0,)))
    assert complaints(enough, 6) == ""
    too_many = played(ledger, evict("one", "y"), evict("two", "y"), hold("y", "n", (0,)))
    assert "for nothing" in complaints(too_many, 6)
    assert "gets nothing for it" in complaints(played(ledger, evict("one", "y")), 6)


def test_victims_that_were_not_to_be_taken_are_noticed() -> None:
    never = runs(job("one", "a", preemptible=Preemptible.NO), ("n", (0,)))
    ledger = stage(node("n", 1), queue("a", 1), queue("b", 2), never, job("y", "b"))
    assert "may never be preempted" in complaints(played(ledger, evict("one", "y"), hold("y", "n", (0,))), 6)
    inside = runs(job("one", "a"), ("n", (0,)))
    ledger = stage(node("n", 1), queue("a", 1), queue("b", 2), inside, job("y", "b"))
    assert "inside the guarantee" in complaints(played(ledger, evict("one", "y"), hold("y", "n", (0,))), 6)
    ledger = stage(node("n", 1), queue("a"), queue("b", weight=0), inside, job("y", "b"))
    assert "not inside what it is due" in complaints(played(ledger, evict("one", "y"), hold("y", "n", (0,))), 6)
    ledger = stage(node("n", 1), queue("a"), inside, job("y", "a"))
    cause = reason(Code.PREEMPTED, beneficiary="team/y", priority=100)
    assert "not below" in complaints(played(ledger, evict("one", "y", cause), hold("y", "n", (0,))), 6)


def test_untrue_causes_are_noticed() -> None:
    ledger = stage(node("n"), queue("a", limit=1), runs(job("x", "a"), ("n", (0,))))
    lowered = reason(Code.LIMIT_LOWERED, queue="a", pool=DEFAULT_POOL, resource="gpu", limit="1")
    for cause in (lowered, reason(Code.SUSPENDED), reason(Code.BELOW_MINIMUM, running=0, minimum=1)):
        assert complaints(played(ledger, evict("x", cause=cause)), 6)
    ledger.observe(QueueSeen(queue("a", limit=0)), NOW_MS)
    assert complaints(played(ledger, evict("x", cause=lowered)), 6) == ""


# -- 7, 8, 9: an engine that misbehaves -------------------------------------------------------------------------------


def test_an_engine_that_never_starts_anything_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("optimus.engine.engine.decide", lambda snapshot, *_rest: Plan(version=snapshot.version))
    assert any("stands still" in str(v) for seed in range(5) for v in check_world(random_world(seed), (8,)))


def test_an_engine_without_rest_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def restless(snapshot: object, *_rest: object) -> Plan:
        cause = reason(Code.SUSPENDED)
        return Plan(version=0, actions=(evict("nobody", cause=cause),))

    monkeypatch.setattr("optimus.engine.engine.decide", restless)
    assert any("still busy" in str(v) for v in check_world(random_world(0), (7,)))


def test_an_engine_that_changes_its_mind_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = iter(range(1000))
    monkeypatch.setattr("optimus.engine.engine.decide", lambda *_rest: Plan(version=next(turns)))
    engine = CarefulEngine()
    for now_ms in range(2):
        engine.step([], now_ms)
        assert any("another plan" in what or "different plans" in what for what in engine.complaints)
    assert (
        any("order of the facts" in str(v) for v in check_world(random_world(0), (9,))) is False
    )  # versions may differ
