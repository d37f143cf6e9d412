"""A job that is doing what somebody wished, when the next wish comes: it is told what still can be had."""

from __future__ import annotations

from pathlib import Path

import pytest

from optimus.drivers.local import views
from optimus.drivers.local.desk import Desk
from optimus.drivers.local.line import RefusedError
from tests.local.test_a_turn_of_the_body import Machine, job

WHO = "default/train"


class Saving:
    """A job with a long save, which runs."""

    def __init__(self, folder: Path) -> None:
        self.machine = Machine(folder)
        self.machine.submit(job("train", gpus=2, saves=True))
        self.machine.runs()
        self.desk = Desk(self.machine.body)

    def phase(self) -> str:
        self.machine.turn()
        return views.job_view(self.machine.body, WHO).phase

    def why(self) -> str:
        self.machine.turn()
        reason = views.job_view(self.machine.body, WHO).reason
        return reason.text if reason is not None else ""


@pytest.fixture
def saving(tmp_path: Path) -> Saving:
    return Saving(tmp_path)


@pytest.mark.parametrize("wish", ["suspend", "resume", "scale"])
def test_who_is_being_cancelled_is_neither_suspended_nor_scaled(saving: Saving, wish: str) -> None:
    saving.desk.cancel(WHO, "ann")
    assert saving.phase() == "Stopping"
    with pytest.raises(RefusedError, match=f"{WHO} is being cancelled: its last replicas are leaving") as refused:
        saving.desk.answer(wish, {"job": WHO, "replicas": 1} if wish == "scale" else {"job": WHO})
    assert refused.value.code == "conflict"


def test_a_second_cancel_changes_nothing_and_says_so(saving: Saving) -> None:
    saving.desk.cancel(WHO, "ann")
    assert saving.phase() == "Stopping"
    assert saving.desk.cancel(WHO, "bob") == f"{WHO}: cancelled already (Stopping)"
    assert saving.why() == "cancelled by ann"
    saving.machine.ends("train", code=143)
    with pytest.raises(RefusedError, match="is over: Cancelled"):
        saving.desk.cancel(WHO)


def test_its_name_is_free_when_its_last_replica_has_left(saving: Saving) -> None:
    text = "{kind: UnifiedJob, metadata: {name: train}, spec: {command: [sleep, '1']}}"
    with pytest.raises(RefusedError, match="is there and Running: cancel it"):
        saving.desk.submit(text)
    saving.desk.cancel(WHO)
    saving.machine.turn()
    with pytest.raises(RefusedError, match="is over, but its last replicas are still leaving: try again soon"):
        saving.desk.submit(text)
    saving.machine.ends("train", code=143)
    assert saving.desk.submit(text)["jobs"] == [WHO]


def test_who_is_resumed_while_it_still_saves_is_not_paused_any_more(saving: Saving) -> None:
    saving.desk.suspend(WHO)
    assert (saving.phase(), saving.why()) == ("Checkpointing", "paused by its owner")
    saving.desk.resume(WHO)
    assert saving.phase() == "Checkpointing"
    assert saving.why() == "resumed by its owner while it was leaving: it waits for room as soon as it has left"
    saving.machine.ends("train", code=143)
    saving.machine.runs()
    assert (saving.phase(), saving.why()) == ("Running", "")
