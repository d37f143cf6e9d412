"""`optimus run` in the foreground: what goes in, what still comes out after Ctrl-C, and when it does not wait."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.local.machines import Up, until

UNREAD = "what is piped in is not read: a job has no input. Let its command read a file\n"


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    machine = Up(tmp_path_factory.mktemp("store"), "--nodes", "1", "--gpus", "8")
    yield machine
    machine.end()


@contextlib.contextmanager
def running(up: Up, *words: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "optimus", "run", *words],
        env=up.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_the_last_words_of_a_job_that_is_interrupted_are_shown(up: Up) -> None:
    script = "trap 'echo saving; sleep 0.5; echo bye; exit 3' TERM; echo ready; while :; do sleep 0.1; done"
    with running(up, "--name", "traps", "--", "bash", "-c", script) as job:
        assert job.stdout is not None and job.stdout.readline() == "ready\n"
        job.send_signal(signal.SIGINT)
        out, err = job.communicate(timeout=30)
    assert out.endswith("saving\nbye\n") and "job default/traps cancelled" in err and job.returncode == 130
    assert "Traceback" not in err and up.phase("traps") == "Cancelled"


def test_a_second_ctrl_c_does_not_wait(up: Up) -> None:
    script = "trap '' TERM; echo ready; while :; do sleep 0.1; done"
    with running(up, "--name", "deaf", "--checkpoint", "40", "--", "bash", "-c", script) as job:
        assert job.stdout is not None and job.stdout.readline() == "ready\n"
        job.send_signal(signal.SIGINT)
        until(lambda: up.phase("deaf") == "Stopping", "it is cancelled")
        time.sleep(1.5)
        begun = time.monotonic()
        job.send_signal(signal.SIGINT)
        _, err = job.communicate(timeout=30)
        assert time.monotonic() - begun < 10 and job.returncode == 130
    assert "it is still leaving" in err and "Traceback" not in err
    assert up.phase("deaf") == "Stopping"


def test_two_keys_pressed_at_once_leave_no_job_behind(up: Up) -> None:
    with running(up, "--name", "twice", "--", "bash", "-c", "echo ready; sleep 600") as job:
        assert job.stdout is not None and job.stdout.readline() == "ready\n"
        job.send_signal(signal.SIGINT)
        job.send_signal(signal.SIGINT)
        assert "Traceback" not in job.communicate(timeout=30)[1] and job.returncode == 130
    up.reaches("twice", "Cancelled")


def test_who_pipes_something_in_is_told_that_nobody_reads_it(up: Up) -> None:
    ran = up.cli("run", "--name", "cat", "--", "cat", stdin="hello\n")
    assert (ran.returncode, ran.stdout, ran.stderr.count(UNREAD)) == (0, "", 1)


def test_also_of_a_file_and_of_what_comes_late(up: Up, tmp_path: Path) -> None:
    (tmp_path / "words").write_text("hello\n")
    with (tmp_path / "words").open() as words, running(up, "--name", "file", "--", "cat", stdin=words) as job:
        assert job.communicate(timeout=30)[1].count(UNREAD) == 1
    theirs, ours = os.pipe()
    with running(up, "--name", "late", "--", "bash", "-c", "echo ready; sleep 1", stdin=theirs) as job:
        assert job.stdout is not None and job.stdout.readline() == "ready\n"
        os.write(ours, b"late\n")
        assert job.communicate(timeout=30)[1].count(UNREAD) == 1
    os.close(theirs)
    os.close(ours)


def test_where_nothing_is_piped_in_nothing_is_said(up: Up, tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("")
    open_pipe, writer = os.pipe()
    closed = {"stdin": subprocess.DEVNULL, "preexec_fn": lambda: os.close(0)}
    with (tmp_path / "empty").open() as empty:
        quiet: list[dict[str, Any]] = [{"stdin": one} for one in (subprocess.DEVNULL, empty, open_pipe)]
        for number, options in enumerate([*quiet, closed]):
            with running(up, "--name", f"quiet-{number}", "--", "cat", **options) as job:
                _, err = job.communicate(timeout=30)
                assert job.returncode == 0 and "piped in" not in err, (options, err)
    os.close(open_pipe)
    os.close(writer)
    assert "piped in" not in up.cli("run", "-d", "--name", "detached", "--", "cat", stdin="x" * 10).stderr
