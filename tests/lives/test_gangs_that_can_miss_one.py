"""PyTorchElastic: those that stay go on when one is lost, unless it is the one where all meet."""

from __future__ import annotations

import pytest
from msgspec import structs

from optimus.lives import JobPhase, LeavingCause
from optimus.lives.kinds import KINDS, Peers
from optimus.lives.reconciling import take_away
from optimus.model.jobs import JobType
from optimus.model.observations import SlotGone
from optimus.model.workloads import Request
from tests.lives.worlds import Body, job

WHO = "default/train"


def training(*, least: int = 1, limit: int = 3) -> Body:
    body = Body(job(least=least, most=4, saves=True, limit=limit, kind=JobType.PYTORCH_ELASTIC))
    body.grant(0, 1, 2)
    body.runs()
    return body


def test_one_that_dies_is_missed_by_nobody() -> None:
    body = training()
    body.ends(1, code=None, signal=9)
    assert body.asked == [] and body.phase() is JobPhase.RUNNING
    assert (body.life.attempt, body.life.failures) == (1, 1)
    assert body.facts == [SlotGone(WHO, "worker", 1)], "the brain may grant its place again"
    body.grant(1)
    body.runs()
    assert (body.life.attempt, len(body.life.places)) == (1, 3)


def test_one_that_was_lost_is_no_failure() -> None:
    body = training()
    body.ends(2, code=None, lost=True)
    assert body.asked == [] and body.life.failures == 0


def test_below_the_minimum_all_start_again() -> None:
    body = training(least=3)
    body.ends(1, code=None, lost=True)
    assert body.asked == [0, 2] and body.phase() is JobPhase.STOPPING


def test_failures_are_counted_all_the_same() -> None:
    body = training(limit=1)
    body.ends(1, code=1)
    assert body.asked == []
    body.ends(2, code=1)
    assert body.asked == [0]
    body.ends(0, code=143)
    assert body.phase() is JobPhase.FAILED


def test_without_the_first_all_start_again() -> None:
    body = training()
    body.ends(0, code=None, signal=9)
    assert body.asked == [1, 2]
    body.ends(1, code=143)
    body.ends(2, code=143)
    body.look(11)
    body.grant(0, 1)
    assert body.life.attempt == 2


def test_where_the_place_of_the_first_is_taken_back_all_save_and_come_again() -> None:
    body = training()
    body.life = take_away(body.life, [("worker", 0)])
    body.look()
    assert sorted(body.asked) == [0, 1, 2]
    assert body.life.leaving is not None and body.life.leaving.cause is LeavingCause.RESIZED
    for ordinal in range(3):
        body.ends(ordinal, code=143)
    assert body.phase() is JobPhase.PENDING and (body.life.failures, body.life.preemptions) == (0, 0)


def test_the_last_one_may_be_taken_back() -> None:
    body = training()
    body.life = take_away(body.life, [("worker", 2)])
    body.look()
    assert body.asked == [2] and body.phase() is not JobPhase.STOPPING


@pytest.mark.parametrize(("ordinal", "is_host"), [(0, "1"), (2, "0")])
def test_each_is_told_where_they_meet(ordinal: int, is_host: str) -> None:
    told = dressed(ordinal, Peers(namespace="", service="", replicas={}))
    assert told["PET_NNODES"] == "1:4"
    assert told["PET_RDZV_CONF"].startswith(f"is_host={is_host},")
    assert told["PET_RDZV_ENDPOINT"].startswith("127.0.0.1:")


def test_an_attempt_does_not_meet_those_of_another() -> None:
    one, next_one = (dressed(0, Peers(namespace="", service="", replicas={}, attempt=n)) for n in (1, 2))
    assert one["PET_RDZV_ID"] != next_one["PET_RDZV_ID"] and one["PET_RDZV_ENDPOINT"] != next_one["PET_RDZV_ENDPOINT"]


def test_on_a_cluster_they_meet_by_name_and_use_each_of_their_gpus() -> None:
    peers = Peers(namespace="team", service="train", replicas={}, job="train")
    told = dressed(1, peers, request=Request(gpu_count=8))
    assert told["PET_RDZV_ENDPOINT"].startswith("train-worker-0.train:")
    assert told["PET_NPROC_PER_NODE"] == "8"


def dressed(ordinal: int, peers: Peers, request: Request = Request()) -> dict[str, str]:  # noqa: B008 - frozen
    asked = job(least=1, most=4, kind=JobType.PYTORCH_ELASTIC)
    (role,) = asked.workload.gang.roles
    gang = structs.replace(asked.workload.gang, roles=(structs.replace(role, request=request),))
    asked = structs.replace(asked, workload=structs.replace(asked.workload, gang=gang))
    return dict(KINDS[JobType.PYTORCH_ELASTIC].dress(asked, ("worker", ordinal), peers).env)
