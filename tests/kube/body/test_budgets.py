"""Disruption budgets on a real server: who is kept by one stays, and nobody is promised its room."""

from __future__ import annotations

import subprocess

import pytest

from tests.kube.body.clusters import Stand, until


def budget(stand: Stand, name: str) -> None:
    """All pods of the guest have to be there."""
    stand.apply(
        f"""
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {{name: {name}, namespace: {stand.namespace}}}
spec: {{minAvailable: 100%, selector: {{matchLabels: {{optimus.dev/group: guest}}}}}}
"""
    )


def a_guest_in_the_way(stand: Stand, *budgets: str) -> None:
    stand.nodes(1, gpus=2)
    for name in budgets:
        budget(stand, name)
    stand.gang("guest", 2, notes=', optimus.dev/preemptible: "true", optimus.dev/priority: "0"')
    until(lambda: len(stand.bound("guest")) == 2, "the guest runs")
    stand.gang("urgent", 2, notes=', optimus.dev/priority: "100"')


def stays(stand: Stand) -> bool:
    return any(reason == "Stays" for _, reason, _ in stand.events())


def test_a_budget_that_is_respected_keeps_the_guest_and_promises_nothing(stand: Stand) -> None:
    stand.start("--respect-budgets")
    a_guest_in_the_way(stand, "one")
    until(lambda: stays(stand), "people are told that it stays")
    until(lambda: stand.condition("urgent-0") != "", "and the other one why it waits")
    assert "WaitingForRoom" not in stand.condition("urgent-0"), "no room is coming"
    assert len(stand.bound("guest")) == 2 and stand.bound("urgent") == []
    delete = stand.plane.kubectl("delete", "pdb", "one", "-n", stand.namespace)
    subprocess.run(delete, check=True, capture_output=True)
    until(lambda: len(stand.bound("urgent")) == 2, "without the budget it is asked again, after a while")


@pytest.mark.parametrize("respect", [False, True], ids=["not-respected", "respected"])
def test_two_budgets(stand: Stand, respect: bool) -> None:
    """They are budgets, too, though the server answers as if it had a fault of its own."""
    stand.start(*(["--respect-budgets"] if respect else []))
    a_guest_in_the_way(stand, "one", "two")
    if respect:
        until(lambda: stays(stand), "people are told that it stays")
        assert len(stand.bound("guest")) == 2 and stand.bound("urgent") == []
    else:
        until(lambda: len(stand.bound("urgent")) == 2, "they do not keep the guest")
