"""Asked to leave: the step is finished, the work is saved, and the exit code says that it is not the end."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

import optimus
from optimus.inside.asking import REQUEST
from optimus.inside.contract import LEFT_ON_REQUEST
from tests.inside.jobs import Job

WAITS_IN_EACH_STEP = """
    import optimus

    state = {"sum": 0}
    for step in optimus.steps(6, state=state):
        print("step", step)
        input()
        state["sum"] += step
        print("done", step)
    print("sum", state["sum"])
"""


def test_it_leaves_after_the_step_it_is_in_and_resumes_with_the_next(tmp_path: Path) -> None:
    job = Job(tmp_path, WAITS_IN_EACH_STEP)
    first = job.start()
    first.line()
    first.tell()
    assert [first.line(), first.line()] == ["done 0", "step 1"]
    first.ask()
    first.tell()
    ended = first.end()
    assert (ended.code, ended.lines) == (LEFT_ON_REQUEST, ["done 1"]), ended.err
    status = job.status()
    assert (status["phase"], status["step"], status["checkpoint"]["step"]) == ("left", 2, 2)
    assert status["last_checkpoint_ms"] == status["checkpoint"]["at_ms"]

    second = job.start()
    assert second.line() == "step 2"
    for _ in range(4):
        second.tell()
    ended = second.end()
    assert (ended.code, ended.lines[-1]) == (0, f"sum {sum(range(6))}"), ended.err


def test_another_signal_may_be_agreed_on(tmp_path: Path) -> None:
    attempt = Job(tmp_path, WAITS_IN_EACH_STEP).start(OPTIMUS_CHECKPOINT_SIGNAL="SIGUSR1")
    attempt.line()
    attempt.ask(signal.SIGUSR1)
    attempt.tell()
    assert attempt.end().code == LEFT_ON_REQUEST


def test_a_signal_that_does_not_exist_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPTIMUS_CHECKPOINT_SIGNAL", "SIGSAVE")
    with pytest.raises(optimus.CheckpointError, match="'SIGSAVE', which is no signal"):
        next(iter(optimus.steps(3, folder=tmp_path)))


def test_a_second_request_does_not_wait_for_the_step(tmp_path: Path) -> None:
    job = Job(tmp_path, WAITS_IN_EACH_STEP.replace("import optimus", TWICE_IS_MEANT))
    attempt = job.start()
    attempt.line()
    while attempt.process.poll() is None:  # two that come close may arrive as one; nobody tells the step to go on
        attempt.ask()
        time.sleep(0.01)
    assert attempt.end().code == LEFT_ON_REQUEST
    assert job.saved() == []


TWICE_IS_MEANT = """import optimus
    from optimus.inside import asking
    asking.ONE_REQUEST_SECONDS = 0.0
"""


ASKED_AGAIN_DURING_THE_SAVE = """
    import os, signal, optimus
    from optimus.inside import asking
    asking.ONE_REQUEST_SECONDS = 0.0

    def save(path):
        os.kill(os.getpid(), signal.SIGTERM)
        path.write_text("all of it")

    for step in optimus.steps(6, save=save, load=print):
        os.kill(os.getpid(), signal.SIGTERM)
"""


def test_a_second_request_waits_for_a_save_that_has_begun(tmp_path: Path) -> None:
    job = Job(tmp_path, ASKED_AGAIN_DURING_THE_SAVE)
    ended = job.run()
    assert ended.code == LEFT_ON_REQUEST, ended.err
    assert (job.checkpoints / "steps" / "00000001-step-1" / "saved").read_text() == "all of it"
    assert (job.status()["phase"], job.status()["checkpoint"]["step"]) == ("left", 1)


def test_the_same_request_twice_is_one_request(tmp_path: Path) -> None:
    attempt = Job(tmp_path, WAITS_IN_EACH_STEP.replace("import optimus", LONG_ECHO)).start()
    attempt.line()
    attempt.ask()
    attempt.ask()
    attempt.tell()
    ended = attempt.end()
    assert (ended.code, ended.lines) == (LEFT_ON_REQUEST, ["done 0"])


LONG_ECHO = TWICE_IS_MEANT.replace("0.0", "3600.0")


def test_asked_during_the_last_step_it_ends_as_if_it_were_not(tmp_path: Path) -> None:
    state = {"sum": 0}
    for step in optimus.steps(3, state=state, folder=tmp_path):
        if step == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        state["sum"] += 1
    assert state == {"sum": 3} and optimus.asked_to_leave()


def test_whoever_had_a_handler_gets_the_signal_after_the_save_and_the_handler_back(tmp_path: Path) -> None:
    heard: list[list[str]] = []

    def mine(number: int, frame: object) -> None:
        heard.append(sorted(path.name for path in (tmp_path / "steps").iterdir()))
        raise SystemExit(0)  # what the process ends with is not said here

    def train() -> None:
        for _ in optimus.steps(3, folder=tmp_path):
            assert signal.getsignal(signal.SIGTERM) != mine
            os.kill(os.getpid(), signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, mine)
    try:
        with pytest.raises(optimus.AskedToLeave) as left:
            train()
        assert left.value.code == LEFT_ON_REQUEST
        assert heard == [["00000001-step-1"]]
        assert signal.getsignal(signal.SIGTERM) == mine
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_forked_child_still_ends_when_it_is_terminated(tmp_path: Path) -> None:
    hears, says = os.pipe()
    for _ in optimus.steps(1, folder=tmp_path):
        child = os.fork()
        if child == 0:
            os.write(says, b"!")
            while True:
                signal.pause()
        os.read(hears, 1)
        os.kill(child, signal.SIGTERM)
        _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGTERM
    assert not REQUEST.asked


def test_outside_of_the_main_thread_it_says_once_that_it_hears_nothing(tmp_path: Path) -> None:
    said: list[str] = []
    seen: list[int] = []

    def train() -> None:
        with pytest.warns(optimus.CheckpointWarning, match="not in the main thread") as warned:
            seen.extend([step for name in ("first", "second") for step in optimus.steps(3, folder=tmp_path, name=name)])
        said.extend(str(warning.message) for warning in warned)

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    assert (seen, len(said)) == ([0, 1, 2, 0, 1, 2], 1)
    assert signal.getsignal(signal.SIGTERM) == before


OWN_LOOP = """
    import json, optimus

    place = optimus.checkpoint_dir() / "mine.json"
    done = json.loads(place.read_text()) if place.exists() else 0
    optimus.asked_to_leave()
    while done < 5:
        print("step", done, optimus.reason())
        input()
        done += 1
        optimus.report(step=done, total=5, loss=1 / done)
        if optimus.asked_to_leave():
            place.write_text(json.dumps(done))
            optimus.checkpointed(done)
            raise optimus.AskedToLeave
"""


def test_a_script_with_its_own_loop_asks_and_says_what_it_saved(tmp_path: Path) -> None:
    job = Job(tmp_path, OWN_LOOP)
    first = job.start(OPTIMUS_REASON="first start")
    assert first.line() == "step 0 first start"
    first.ask()
    first.tell()
    assert first.end().code == LEFT_ON_REQUEST
    assert job.status()["checkpoint"]["step"] == 1
    second = job.start(OPTIMUS_REASON="resumed after preemption")
    assert second.line() == "step 1 resumed after preemption"
    for _ in range(4):
        second.tell()
    assert second.end().code == 0


SAVES_ON_REQUEST = """
    import optimus

    @optimus.save_on_request
    def save():
        (optimus.checkpoint_dir() / "mine").write_text("saved")

    print("ready")
    input()
    print("never reached")
"""


def test_what_saves_on_request_is_called_in_the_middle_of_things(tmp_path: Path) -> None:
    job = Job(tmp_path, SAVES_ON_REQUEST)
    attempt = job.start()
    attempt.line()
    attempt.ask()
    ended = attempt.end()
    assert (ended.code, ended.out) == (LEFT_ON_REQUEST, ""), ended.err
    assert (job.checkpoints / "mine").read_text() == "saved"
    assert job.status()["phase"] == "left" and job.status()["checkpoint"]["at_ms"] > 0


def test_inside_steps_it_is_called_between_two_of_them(tmp_path: Path) -> None:
    called: list[str] = []
    optimus.save_on_request(lambda: called.append("saved"))

    def train() -> None:
        for step in optimus.steps(3, folder=tmp_path):
            os.kill(os.getpid(), signal.SIGTERM)
            called.append(f"step {step}")

    with pytest.raises(optimus.AskedToLeave):
        train()
    assert called == ["step 0", "saved"]
