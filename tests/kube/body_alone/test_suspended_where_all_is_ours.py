"""Suspended work of a namespace that has opted in: no pod is there to name us, and no manifest does."""

from __future__ import annotations

from typing import Any

import msgspec

from optimus.drivers.kube.grouping import shipped_kinds
from optimus.drivers.kube.mirror import Mirror
from optimus.drivers.kube.objects import Anything, Namespace

GANG = "team-a/job/train"


def cluster(*, scheduler: str = "optimus", opted_in: bool = True) -> Mirror:
    """As a controller with this name sees it; with the namespace team-a."""
    made = Mirror(shipped_kinds(), scheduler_name=scheduler)
    see_namespace(made, opted_in=opted_in)
    return made


def see_namespace(mirror: Mirror, *, opted_in: bool) -> None:
    labels = {"optimus.dev/scheduler": "enabled"} if opted_in else {}
    mirror.tenants.namespace(msgspec.convert({"metadata": {"name": "team-a", "labels": labels}}, Namespace))


def job(*, suspend: bool = True, opted_out: bool = False, **spec: str) -> Anything:
    container = {"name": "m", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    meta = {"labels": {"optimus.dev/scheduler": "disabled"}} if opted_out else {}
    told: dict[str, Any] = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "team-a", "uid": "u", "labels": {"optimus.dev/queue": "default"}},
        "spec": {
            "parallelism": 4,
            "suspend": suspend,
            "template": {"metadata": meta, "spec": {"containers": [container], **spec}},
        },
    }
    return msgspec.convert(told, Anything)


def knows(mirror: Mirror, thing: Anything) -> bool:
    mirror.owner(thing)
    mirror.news()
    return GANG in mirror.workloads


def test_it_waits_with_us_and_is_not_lost_while_its_first_pod_is_on_its_way() -> None:
    mirror = cluster()
    assert knows(mirror, job(schedulerName="default-scheduler"))
    assert knows(mirror, job(suspend=False, schedulerName="default-scheduler"))


def test_the_namespace_may_opt_in_later_and_out_again() -> None:
    mirror = cluster(opted_in=False)
    assert not knows(mirror, job())
    for opted_in in (True, False):
        see_namespace(mirror, opted_in=opted_in)
        mirror.news()
        assert (GANG in mirror.workloads) == opted_in


def test_what_is_somebody_elses_is_left_alone() -> None:
    assert not knows(cluster(), job(schedulerName="theirs"))
    assert not knows(cluster(), job(opted_out=True))
    assert not knows(cluster(), job(suspend=False)), "it began without us"
    assert not knows(cluster(scheduler="other"), job()), "the policy names optimus, not the other one"
