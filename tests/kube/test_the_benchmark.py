"""The benchmark on Kubernetes can fail: unfinished work, a criterion that is missed, a run that is missing."""

from __future__ import annotations

from typing import Any

import msgspec

from benchmarks import kube
from benchmarks.kube_runs import BoundPod, Run, unfinished
from benchmarks.kube_world import Gangs, Shape, pods

TWO_OF_FIVE = Shape(2, 5)
FAST = {"rates": [800], "first_after_s": 2.0}
DONE: dict[str, dict[str, dict[str, Any]]] = {
    "drain": {"raw": {"rates": [1_000]}, "optimus": FAST, "kube-scheduler": {"rates": [150]}},
    "restart": {"optimus": FAST},
}


def bound(places: list[str]) -> list[BoundPod]:
    """The pods of two gangs of five, at these places; of those without one nothing is there."""
    made = pods(TWO_OF_FIVE, "any", Gangs.NONE)
    for pod, place in zip(made, places, strict=False):
        pod["spec"]["nodeName"] = place
    return msgspec.convert(made, list[BoundPod])


def test_all_is_bound_and_nothing_twice() -> None:
    assert unfinished(bound(["n0"] * 8 + ["n1"] * 2), TWO_OF_FIVE) == []


def test_a_gang_that_is_bound_in_part_is_not_finished() -> None:
    assert unfinished(bound(["n0"] * 5 + ["n1"] * 2), TWO_OF_FIVE) == ["2 of 5 pods of g001 are bound"]


def test_a_node_that_has_too_much_is_no_success() -> None:
    assert unfinished(bound(["n0"] * 10), TWO_OF_FIVE) == ["10 GPUs of n0 are given away, and it has 8"]


def test_a_run_that_is_not_finished_has_no_rate() -> None:
    run = Run([1.0, 2.0], [], 8, 0.0, {})
    assert run.rates(2, "")["draining"] == 1
    for told in (run.rates(10, ""), run.rates(2, "a gang is in part")):
        assert told["wrong"] and "draining" not in told


def test_a_success_has_every_criterion() -> None:
    assert kube.missed(DONE, kube.judged(DONE)) == []


def test_a_criterion_that_is_missed_is_said() -> None:
    slow = {**DONE, "drain": {**DONE["drain"], "kube-scheduler": {"rates": [700]}}}
    assert kube.missed(slow, kube.judged(slow)) == ["drain: optimus / kube-scheduler is 1.14: missed"]


def test_a_criterion_that_was_not_run_is_not_met() -> None:
    some = {"drain": DONE["drain"]}
    assert kube.missed(some, kube.judged(some)) == ["restart: first bind after s: not known, its runs are missing"]


def test_whoever_has_not_finished_is_named() -> None:
    half = {**DONE, "restart": {"optimus": {"bound": 3, "wrong": "3 of 100 pods were seen bound"}}}
    told = kube.missed(half, kube.judged(half))
    assert told[0] == "restart: optimus: 3 of 100 pods were seen bound" and len(told) == 2


def test_what_is_judged_is_the_middle_of_the_rounds() -> None:
    """Each against the other of the same round: a bad minute is bad for both."""
    rounds = {"optimus": [100, 1_000, 800], "kube-scheduler": [25, 200, 190]}
    found = kube.judged({"drain": {name: {"rates": rates} for name, rates in rounds.items()}})
    assert found == {"drain: optimus / kube-scheduler": 4.21}


def test_a_round_that_went_wrong_speaks_for_all() -> None:
    wrong = {"bound": 3, "wrong": "3 of 100 pods were seen bound"}
    assert kube.of_rounds([FAST, wrong, FAST])["wrong"] == wrong["wrong"]
    middle = kube.of_rounds([{"draining": 3, "who": "c"}, {"draining": 1, "who": "a"}, {"draining": 2, "who": "b"}])
    assert middle == {"draining": 2, "who": "b", "rates": [3, 1, 2]}
