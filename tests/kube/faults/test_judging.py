"""Binds on trial, one rule at a time, without a server: what is undone, what is accepted, and who is left alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from optimus.drivers.kube.grouping import shipped_kinds
from optimus.drivers.kube.grouping.overrides import TERM
from optimus.drivers.kube.mirror import Mirror
from optimus.drivers.kube.objects import Node, Pod
from optimus.drivers.kube.repairing import TRIAL_S, Repairing
from optimus.model.reasons import Reason
from tests.kube.grouping.making import a_pod, a_thing

OURS = 7
FORMER = OURS - 1


class Asked:
    """What a real `Acting` would be asked to do."""

    def __init__(self) -> None:
        self.stopped: list[str] = []
        self.sent_away: list[str] = []
        self.places: dict[str, str] = {}
        self.coming: list[str] = []

    def stop(self, workload: str, why: Reason) -> None:
        self.stopped.append(workload)

    def send_away(self, pods: Iterable[Pod]) -> None:
        self.sent_away += [pod.metadata.name for pod in pods]

    def place_of(self, uid: str) -> str | None:
        return self.places.get(uid)

    def roles_coming(self, _workload: str) -> list[str]:
        return self.coming


class Court:
    def __init__(self, gpus: int = 4) -> None:
        self.mirror, self.asked, self.now = Mirror(shipped_kinds()), Asked(), 0.0
        self.said: list[tuple[str, str]] = []
        self.repairing = Repairing(self.mirror, self.asked, self._tell, lambda: self.now, OURS)  # type: ignore[arg-type]
        self.node("n", gpus)
        self.mirror.everything()

    def _tell(self, workload: str, why: Reason) -> None:
        self.said.append((workload, str(why.code)))

    def node(self, name: str, gpus: int) -> None:
        has = {"cpu": "64", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
        ready = [{"type": "Ready", "status": "True"}]
        said = {"metadata": {"name": name}, "status": {"allocatable": has, "conditions": ready}}
        self.mirror.node(msgspec.convert(said, Node))

    def job(self, name: str, pods: int, **more: Any) -> None:
        spec = {"parallelism": pods, "completions": pods, "completionMode": "Indexed", "backoffLimit": 6, **more}
        notes = {"optimus.dev/topology": "rack"} if more.pop("closely", False) else {}
        self.owner = a_thing("batch/v1 Job", name, spec, annotations=notes)
        self.mirror.owner(self.owner)
        for number in range(pods):
            self.pod(name, number)
        self.look()

    def pod(self, job: str, number: int, node: str = "", term: int | None = None) -> None:
        notes = {"batch.kubernetes.io/job-completion-index": str(number)}
        notes |= {} if term is None else {TERM: str(term)}
        spec: dict[str, Any] = {"schedulerName": "optimus", "containers": [_container(1)]}
        spec |= {"nodeName": node} if node else {}
        self.mirror.pod(a_pod(f"{job}-{number}", self.owner, spec=spec, annotations=notes))

    def foreign(self, gpus: int) -> None:
        spec = {"schedulerName": "another", "nodeName": "n", "containers": [_container(gpus)]}
        self.mirror.pod(a_pod("theirs", spec=spec))

    def look(self, after_s: float = 0.0) -> None:
        self.now += after_s
        self.mirror.news()
        self.repairing.look()


def _container(gpus: int) -> dict[str, Any]:
    return {"name": "main", "image": "none", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}


def test_what_fits_is_accepted_and_never_looked_at_again() -> None:
    court = Court()
    court.job("train", 4)
    for number in range(4):
        court.pod("train", number, "n", OURS)
    court.look()
    assert court.repairing.on_trial == 4
    court.look(TRIAL_S)
    assert court.repairing.on_trial == 0
    court.node("n", 3)  # a device falls sick, later: not a bind that went wrong
    court.look()
    assert (court.asked.stopped, court.asked.sent_away) == ([], [])


def test_a_gang_that_has_only_just_begun_gives_way_as_a_whole() -> None:
    court = Court()
    court.job("train", 4)
    for number in range(4):
        court.pod("train", number, "n", OURS)
    court.foreign(1)
    court.look()
    assert court.asked.stopped == ["a/job/train"]
    assert court.said == [("a/job/train", "Overbooked")]
    court.look()
    assert court.asked.stopped == ["a/job/train"], "once"


def test_of_a_gang_that_runs_only_the_newcomer_gives_way() -> None:
    court = Court()
    court.job("train", 4)
    for number in range(3):
        court.pod("train", number, "n", OURS)
    court.look()
    court.look(TRIAL_S)
    court.foreign(1)
    court.pod("train", 3, "n", OURS)
    court.look()
    assert (court.asked.stopped, court.asked.sent_away) == ([], ["train-3"])


def test_the_late_one_gives_way_and_not_who_was_given_the_room() -> None:
    court = Court(gpus=2)
    court.job("late", 2)
    late = court.owner
    court.job("ours", 2)
    for number in range(2):
        court.pod("ours", number, "n", OURS)
    court.look()
    court.owner = late
    for number in range(2):
        court.pod("late", number, "n", FORMER)
    court.look()
    assert court.asked.stopped == ["a/job/late"]
    assert court.repairing.late == 2


def test_a_part_of_a_gang_is_given_the_time_of_its_trial() -> None:
    court = Court()
    court.job("late", 4)
    court.pod("late", 0, "n", FORMER)
    court.look()
    court.look(TRIAL_S / 2)
    assert court.asked.stopped == []
    court.look(TRIAL_S / 2)
    assert court.asked.stopped == ["a/job/late"]
    assert court.said == [("a/job/late", "BoundLate")]


def test_a_part_of_a_gang_of_which_the_rest_is_coming_stays() -> None:
    court = Court()
    court.job("late", 4)
    court.asked.coming = ["worker"] * 3
    court.pod("late", 0, "n", FORMER)
    court.look()
    court.look(TRIAL_S)
    assert (court.asked.stopped, court.repairing.on_trial) == ([], 0)


def test_a_request_to_leave_that_was_lost_is_made_again() -> None:
    court = Court(gpus=1)
    court.job("train", 1)
    court.pod("train", 0, "n", OURS)
    court.foreign(1)
    court.look()
    assert court.asked.stopped == ["a/job/train"]
    court.look(TRIAL_S * 1.5)
    assert court.asked.stopped == ["a/job/train"] * 2


def test_a_gang_that_must_be_close_together_is_not_torn_apart_by_a_late_bind() -> None:
    court = Court()
    court.node("m", 4)
    court.job("late", 2, closely=True)
    court.asked.places = {"pod-a-late-0": "m"}
    court.asked.coming = ["worker"]
    court.pod("late", 0, "n", FORMER)
    court.look()
    assert court.said == [("a/job/late", "BoundLate")]
