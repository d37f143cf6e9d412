"""Loops of all kinds: inside each other, one after the other, of unknown length, on a laptop, on several ranks."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import optimus
from optimus.inside.asking import REQUEST
from optimus.inside.contract import LEFT_ON_REQUEST
from optimus.inside.loops import FINISHED
from tests.inside.jobs import Attempt, Job


def test_without_optimus_and_without_a_folder_it_is_an_ordinary_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = signal.getsignal(signal.SIGTERM)
    for step in optimus.steps(range(5, 8), state={"sum": 0}):
        assert step in (5, 6, 7) and signal.getsignal(signal.SIGTERM) == before
    assert list(tmp_path.iterdir()) == []
    assert (optimus.attempt(), optimus.reason(), optimus.checkpoint_dir()) == (1, "", None)
    assert len(optimus.steps(range(5, 8))) == 3


def test_a_generator_of_unknown_length_goes_on_after_what_it_has_given(tmp_path: Path) -> None:
    def batches() -> Iterator[str]:
        yield from ("a", "b", "c", "d")

    seen = []
    for batch in optimus.steps(batches(), folder=tmp_path, every=1):
        seen.append(batch)
        if batch == "c":
            break  # the step was not finished
    seen += list(optimus.steps(batches(), folder=tmp_path))
    assert seen == ["a", "b", "c", "c", "d"]


def test_more_steps_may_be_asked_for_later(tmp_path: Path) -> None:
    assert list(optimus.steps(3, folder=tmp_path)) == [0, 1, 2]
    FINISHED.clear()
    assert list(optimus.steps(5, folder=tmp_path)) == [3, 4]


def test_two_loops_of_one_script_need_two_names(tmp_path: Path) -> None:
    list(optimus.steps(3, folder=tmp_path))
    with pytest.raises(optimus.CheckpointError, match="own name="):
        list(optimus.steps(3, folder=tmp_path))
    assert list(optimus.steps(2, folder=tmp_path, name="tuning")) == [0, 1]
    shutil.rmtree(tmp_path / "steps")
    assert list(optimus.steps(2, folder=tmp_path)) == [0, 1], "as the error says"


@pytest.mark.parametrize("stop_after", range(1, 22))
def test_loops_inside_each_other_resume_together(tmp_path: Path, stop_after: int) -> None:
    """Stopped after any number of steps, training and judging go on where they were, once each."""
    FINISHED.clear()
    story: list[str] = []

    def attempt(stop_after: int | None) -> None:
        state: dict[str, list[str]] = {"story": []}
        done = 0

        def step_done(what: str) -> None:
            nonlocal done
            state["story"].append(what)
            done += 1
            if done == stop_after:
                os.kill(os.getpid(), signal.SIGTERM)

        for epoch in optimus.steps(3, state=state, name="epochs", folder=tmp_path):
            for batch in optimus.steps(4, name="batches"):
                step_done(f"train {epoch}.{batch}")
            for batch in optimus.steps(2, name="judging"):
                step_done(f"judge {epoch}.{batch}")
        story.extend(state["story"])

    if stop_after <= 18:
        with pytest.raises(optimus.AskedToLeave):
            attempt(stop_after)
        REQUEST.forget()
    attempt(None)
    assert story == [
        f"{kind} {epoch}.{batch}"
        for epoch in range(3)
        for kind, n in (("train", 4), ("judge", 2))
        for batch in range(n)
    ]


def test_the_state_belongs_to_the_outermost_loop(tmp_path: Path) -> None:
    def train() -> None:
        for _ in optimus.steps(2, folder=tmp_path):
            list(optimus.steps(2, name="inner", state={}))

    with pytest.raises(optimus.CheckpointError, match="give state=, save= and load= to the outermost one"):
        train()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"every": 0}, "at least 1"),
        ({"every_seconds": 0}, "more than 0"),
        ({"keep": 0}, "keep= is at least 1"),
        ({"name": "../x"}, "becomes the name of a folder"),
        ({"save": print}, "belong together"),
    ],
)
def test_wrong_options_are_said_at_once(options: dict, words: str) -> None:
    with pytest.raises(optimus.CheckpointError, match=words):
        optimus.steps(3, **options)


def test_progress_and_numbers_are_one_line_of_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status = tmp_path / "status.json"
    monkeypatch.setenv("OPTIMUS_STATUS_FILE", str(status))
    monkeypatch.setenv("OPTIMUS_ATTEMPT", "4")
    for step in optimus.steps(8, folder=tmp_path):
        optimus.report(loss=float("nan"), lr=0.1, epoch=step // 4)
    text = status.read_text(encoding="utf-8")
    said = json.loads(text)
    assert text.count("\n") == 1 and sorted(os.listdir(tmp_path)) == ["status.json", "steps"]
    assert (said["attempt"], said["step"], said["total"], said["fraction"]) == (4, 8, 8, 1.0)
    assert (said["metrics"], said["epoch"], said["phase"]) == ({"loss": "nan", "lr": 0.1}, 1, "finished")
    assert said["checkpoint"]["step"] == 8 and said["steps_per_second"] > 0


def test_it_says_how_long_it_takes_to_leave_if_it_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status = tmp_path / "status.json"
    monkeypatch.setenv("OPTIMUS_STATUS_FILE", str(status))

    def said() -> float | None:
        return json.loads(status.read_text(encoding="utf-8"))["leaves_in_s"]

    for _ in optimus.steps(2, folder=tmp_path):
        assert said() is None, "no step is done yet"
    alone = said()
    assert alone is not None and alone > 0
    for _ in optimus.steps(2, name="without"):
        pass
    assert said() is None, "nothing is saved when it is asked"


RANKS = """
    import optimus

    state = {"sum": 0}
    for step in optimus.steps(50, state=state):
        print(step)
        input()
        state["sum"] += step
"""


def test_ranks_leave_after_the_same_step_and_only_the_first_saves(tmp_path: Path) -> None:
    job = Job(tmp_path, RANKS)
    together = {"OPTIMUS_REPLICAS": "2", "OPTIMUS_GRACE_SECONDS": "3600"}
    first, second = job.start(rank=0, **together), job.start(rank=1, OPTIMUS_ATTEMPT="1", **together)
    assert (first.line(), second.line()) == ("0", "0")
    second.ask()  # the request comes to rank 1 a step earlier than to rank 0
    for rank in (first, second):
        rank.tell()
        assert rank.line() == "1"
    first.ask()
    first.tell()
    assert first.line() == "2", "one more step, after having said so"
    second.tell()
    assert second.line() == "2"
    first.tell()
    second.tell()
    assert [first.end().code, second.end().code] == [LEFT_ON_REQUEST, LEFT_ON_REQUEST]
    assert [name for name in job.saved() if not name.startswith(".")] == ["00000001-step-3"]
    assert (job.status(0)["step"], job.status(1)["step"]) == (3, 3)
    assert job.status(0)["last_checkpoint_ms"] > 0 and job.status(1)["last_checkpoint_ms"] is None
    assert job.status(0)["leaves_in_s"] > 0 and job.status(1)["leaves_in_s"] is None, "the first saves for all"


def test_a_rank_that_leaves_alone_waits_for_nobody(tmp_path: Path) -> None:
    """An elastic job gives a replica back: the first one stays, and says so."""
    job = Job(
        tmp_path,
        """
        import time
        import optimus
        for step in optimus.steps(1_000_000, state={}):
            if step == 0:
                print("begun", flush=True)
            time.sleep(0.01)
        """,
    )
    together = {"OPTIMUS_REPLICAS": "2", "OPTIMUS_GRACE_SECONDS": "3600"}
    first, other = job.start(rank=0, **together), job.start(rank=1, OPTIMUS_ATTEMPT="1", **together)
    assert first.line() == other.line() == "begun"
    other.ask()
    assert other.end().code == 143, "half of an hour is not waited for"
    assert first.process.poll() is None
    assert not [name for name in job.saved() if name.startswith(".leaving")]
    first.ask()
    assert first.end().code == 143


def test_under_torchrun_all_leave_when_one_is_asked_and_the_first_of_all_saves(tmp_path: Path) -> None:
    """It starts all of them again, however many there are then; ranks are its own, over all replicas."""
    job = Job(
        tmp_path,
        """
        import time
        import optimus
        for step in optimus.steps(1_000_000, state={}):
            if step == 0:
                print("begun", flush=True)
            time.sleep(0.01)
        """,
    )

    def started(rank: int) -> Attempt:
        told = {"RANK": str(rank), "LOCAL_RANK": "0", "WORLD_SIZE": "2", "MASTER_PORT": "4711"}
        return job.start(rank=rank, OPTIMUS_ATTEMPT="1", TORCHELASTIC_RUN_ID="train", **told)

    first, other = started(0), started(1)
    assert first.line() == other.line() == "begun"
    other.ask()
    assert (first.end().code, other.end().code) == (143, 143)
    assert [name for name in job.saved() if not name.startswith(".")], "the first one has saved"
    steps = {job.status(rank)["step"] for rank in (0, 1)}
    assert len(steps) == 1, "all of them after the same step"


def test_replicas_that_work_alone_save_each_for_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPTIMUS_RANK", "3")
    monkeypatch.setenv("OPTIMUS_REPLICAS", "8")
    list(optimus.steps(2, folder=tmp_path, every_rank=True))
    assert [path.name for path in (tmp_path / "steps").iterdir()] == ["rank-3"]
