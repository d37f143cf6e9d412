"""Work that is over and still there: a brain that begins anew, and a command line that just looks, learn from it."""

from __future__ import annotations

from typing import Any

import msgspec

from optimus.drivers.kube.describing import read_time
from optimus.drivers.kube.grouping import shipped_kinds
from optimus.drivers.kube.mirror import Mirror
from optimus.drivers.kube.objects import Anything, Pod
from optimus.drivers.kube.remembering import past
from optimus.engine.journal_past import read_past, write_past
from optimus.model.observations import RunRemembered

HOUR = "2026-01-01T{:02d}:00:00Z"
MINUTE = 60_000


def job(
    name: str, *, made: int, began: int = 0, ended: int = 0, resumed: bool = True, failed: bool = False, **notes: str
) -> Anything:
    """Times in hours; `resumed`: it was suspended until it began."""
    container = {"name": "m", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    conditions = [{"type": "Suspended", "status": "False"}] if resumed else []
    if ended:
        conditions.append({"type": "Failed" if failed else "Complete", "status": "True"})
    status: dict[str, Any] = {"conditions": conditions}
    if began:
        status["startTime"] = HOUR.format(began)
    if ended and not failed:
        status["completionTime"] = HOUR.format(ended)
    meta = {
        "name": name,
        "namespace": "team",
        "uid": f"uid-{name}",
        "creationTimestamp": HOUR.format(made),
        "labels": {"optimus.dev/queue": "vision"},
        "annotations": {f"optimus.dev/{key.replace('_', '-')}": value for key, value in notes.items()},
    }
    template = {"spec": {"schedulerName": "optimus", "containers": [container]}}
    told = {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "status": status}
    return msgspec.convert({**told, "spec": {"parallelism": 1, "template": template}}, Anything)


def pod_of(name: str, started: int) -> Pod:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": f"uid-{name}", "controller": True}
    meta = {"name": f"{name}-0", "namespace": "team", "uid": f"uid-{name}-0", "ownerReferences": [owner]}
    spec = {"schedulerName": "optimus", "nodeName": "n", "containers": [{"name": "m"}]}
    status = {"phase": "Succeeded", "startTime": HOUR.format(started)}
    return msgspec.convert({"metadata": meta, "spec": spec, "status": status}, Pod)


def cluster(*jobs: Anything) -> Mirror:
    mirror = Mirror(shipped_kinds())
    for one in jobs:
        mirror.owner(one)
    return mirror


def remembered(mirror: Mirror) -> list[RunRemembered]:
    return [fact for fact in mirror.everything() if isinstance(fact, RunRemembered)]


def test_run_times_by_queue_and_family_in_the_order_of_their_ends() -> None:
    mirror = cluster(
        job("late", made=1, began=2, ended=5, family="bert"), job("early", made=1, began=1, ended=2), job("now", made=1)
    )
    assert remembered(mirror) == [
        RunRemembered("vision", 60 * MINUTE),
        RunRemembered("vision", 180 * MINUTE, "bert"),
    ]
    assert [fact for fact in mirror.news() if isinstance(fact, RunRemembered)] == [], "once"


def test_the_time_in_which_pods_waited_is_not_counted() -> None:
    """A Job that was never suspended says that it began when it was made."""
    mirror = cluster(job("train", made=1, began=1, ended=5, resumed=False))
    assert remembered(mirror) == [], "nobody knows"
    mirror.pod(pod_of("train", 4))
    assert remembered(mirror) == [RunRemembered("vision", 60 * MINUTE)]


def test_what_failed_or_is_somebody_elses_teaches_nothing() -> None:
    other = msgspec.json.encode(job("other", made=1, began=1, ended=2)).replace(b'"optimus"', b'"default-scheduler"')
    mirror = cluster(
        job("broken", made=1, began=1, ended=2, failed=True), msgspec.json.decode(other, type=Anything, strict=False)
    )
    assert remembered(mirror) == []


def test_a_forecast_knows_who_came_and_how_wrong_people_are() -> None:
    mirror = cluster(
        job("old", made=1, began=2, ended=4, expected_duration="1h"), job("new", made=3), job("newest", made=9)
    )
    mirror.everything()
    found = read_past(write_past(past(mirror, read_time(HOUR.format(11)))))
    assert [one.submitted_ms for one in found.arrived] == [read_time(HOUR.format(hour)) for hour in (3, 9)]
    assert found.window_ms == 600 * MINUTE and found.errors == (2.0,)
