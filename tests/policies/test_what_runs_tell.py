"""What earlier runs tell about work that waits: few tell the mean, many how likely a quick end is."""

from __future__ import annotations

import pytest

from optimus.engine.engine import Engine
from optimus.model.nodes import Device, Node
from optimus.model.observations import NodeSeen, Observation, QueueSeen, RunRemembered, WorkloadSeen
from optimus.model.plans import Start
from optimus.model.queues import Queue
from optimus.model.workloads import Group, Request, Role, Workload
from optimus.state.history import WELL_KNOWN

MINUTE_MS, DAY_MS = 60_000, 86_400_000


def first_to_start(runs: dict[str, list[int]], *families: str) -> str:
    """One GPU, and one job of each family that waits for it, named like the family."""
    gang = Group(roles=(Role(name="worker", min=1, max=1, request=Request(gpu_count=1)),))
    facts: list[Observation] = [
        QueueSeen(Queue(name="team")),
        NodeSeen(Node(name="node", devices=(Device(index=0, model="a100"),))),
        *(RunRemembered("team", run_ms, family) for family, known in runs.items() for run_ms in known),
        *(
            WorkloadSeen(Workload(id=f"ns/{name or 'unnamed'}", queue="team", gang=gang, family=name))
            for name in families
        ),
    ]
    (start,) = (action for action in Engine().step(facts, 0).actions if isinstance(action, Start))
    return start.workload.removeprefix("ns/")


def mostly_short(count: int) -> list[int]:
    """Nine of ten take a minute, the others a day: hours on average."""
    return [DAY_MS if number % 10 == 0 else MINUTE_MS for number in range(count)]


@pytest.mark.parametrize(("count", "first"), [(WELL_KNOWN - 1, "steady"), (WELL_KNOWN, "mostly-short")])
def test_a_family_goes_by_its_mean_until_it_is_well_known(count: int, first: str) -> None:
    runs = {"mostly-short": mostly_short(count), "steady": [30 * MINUTE_MS] * 20}
    assert first_to_start(runs, "mostly-short", "steady") == first


def test_work_without_a_family_goes_by_what_its_queue_makes_likely_however_little_is_known() -> None:
    runs = {"": mostly_short(20), "steady": [30 * MINUTE_MS] * 20}
    assert first_to_start(runs, "", "steady") == "unnamed"


def test_a_new_family_goes_by_the_mean_of_its_queue() -> None:
    runs = {"": mostly_short(WELL_KNOWN), "steady": [30 * MINUTE_MS] * 20}
    assert first_to_start(runs, "new", "steady") == "steady"
