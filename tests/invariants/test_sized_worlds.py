"""Worlds full of elastic work whose sizes are chosen together: every invariant holds there as well."""

from __future__ import annotations

import pytest

from optimus.model.plans import Evict, Hold, Placement, Shrink
from optimus.model.reasons import Code, reason
from optimus.model.workloads import Checkpoint, Group, Preemptible, Request, Role, Workload, WorkloadClass
from optimus.testing import check_cycle, examine, live
from tests.invariants.staged import NOW_MS, node, played, queue, runs, stage

WORLDS = range(12)


@pytest.mark.parametrize("seed", WORLDS)
def test_every_invariant(seed: int) -> None:
    assert not examine(seed, "elastic")


def test_sizes_do_change_there() -> None:
    codes = {
        action.cause.code
        for seed in range(24)
        for cycle, _ in live(seed, "elastic")
        for action in cycle.plan.actions
        if isinstance(action, Evict | Shrink)
    }
    assert Code.RESIZED in codes


def elastic(name: str, **changes: object) -> Workload:
    role = Role(name="main", min=1, max=4, request=Request(gpu_count=1))
    usual: dict[str, object] = {"checkpoint": Checkpoint(), "submitted_ms": 0}
    return Workload(id=f"team/{name}", queue="a", gang=Group(roles=(role,)), **{**usual, **changes})  # type: ignore[arg-type]


def shrink(before: int, after: int) -> Shrink:
    slots = tuple(("main", i) for i in range(after, 4))
    return Shrink("team/x", slots, reason(Code.RESIZED, before=before, after=after, queue="a"))


@pytest.mark.parametrize(
    ("changes", "action", "gain", "what"),
    [
        ({}, shrink(4, 2), ("y",), ""),
        ({}, shrink(4, 2), (), "nobody of its queue has anything from it"),
        ({}, shrink(3, 2), ("y",), "it had 4 replicas and has 2"),
        ({}, shrink(4, 0), ("y",), "a size that it may not have"),
        ({"checkpoint": None}, shrink(4, 2), ("y",), "it could not continue"),
        ({"preemptible": Preemptible.NO}, shrink(4, 2), ("y",), "may not be stopped"),
        ({"workload_class": WorkloadClass.INTERACTIVE}, shrink(4, 2), ("y",), "may not be stopped"),
        ({"speedup_percent": (100, 190, 190, 180)}, shrink(4, 2), (), ""),
    ],
)
def test_a_resize_that_is_wrong_is_noticed(
    changes: dict[str, object], action: Shrink, gain: tuple[str, ...], what: str
) -> None:
    here = [("n", (i,)) for i in range(4)]
    ledger = stage(node("n"), queue("a"), runs(elastic("x", **changes), *here), elastic("y"))
    held = [Hold(f"team/{name}", "default", (Placement("main", 0, "n", (3,), 1000),), NOW_MS, ()) for name in gain]
    found = " | ".join(violation.what for violation in check_cycle(played(ledger, action, *held), (6,)))
    assert what in found and bool(what) == bool(found), found
