"""A new user in a real terminal: the demo in one window, in the other one everything that a first hour brings."""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.screens import PROMPT, Screen
from tests.local.machines import until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed (apt install tmux)"),
]


@pytest.fixture(scope="module")
def screen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Screen]:
    folder = tmp_path_factory.mktemp("terminal")
    made = Screen(folder)
    try:
        made.start("optimus up --demo --port 0")
        told = made.shows("optimus logs -f train")
        assert re.search(r"optimus is up at http://127.0.0.1:\d+: 16 virtual GPUs", told)
        made.window()
        yield made
    finally:
        made.end()
        _end_all_of(folder)


def _end_all_of(folder: Path) -> None:
    """Whatever the scheduler of this story has started."""
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            mine = str(folder).encode() in environ.read_bytes() and int(environ.parent.name) != os.getpid()
            if mine:
                os.kill(int(environ.parent.name), signal.SIGKILL)
        except OSError:
            continue


def test_the_first_command(screen: Screen) -> None:
    text = screen.ran("optimus run -- python3 -c 'print(41 + 1)'")
    assert "\n42\n" in text and re.search(r"job default/\S+ Succeeded", text) and text.endswith("[0]")


def test_the_list_fits_eighty_columns_and_has_colours_on_a_terminal_only(screen: Screen) -> None:
    text = screen.ran("optimus get jobs")
    assert re.search(r"^job +queue +phase +replicas +GPUs +age +ran$", text, re.MULTILINE), text
    assert re.search(r"^too-large +vision +Pending +0 of 20 +20 +\d+s +–$", text, re.MULTILINE), text
    assert "\n    needs 20 replicas with 1 GPU; pool default can hold 16 even when empty\n" in text
    assert "\x1b[33mPending" in screen.text(colours=True)
    screen.ran("optimus get jobs | cat")
    assert "Pending" in screen.text() and "\x1b[33m" not in screen.text(colours=True)
    screen.ran("NO_COLOR=1 optimus get jobs")
    assert "Pending" in screen.text() and "\x1b[33m" not in screen.text(colours=True)


def test_on_a_wide_terminal_the_reason_is_beside_the_job(screen: Screen) -> None:
    screen.resize(160)
    try:
        text = screen.ran("optimus get jobs")
        assert re.search(r"^too-large .* –  needs 20 replicas with 1 GPU; pool default can hold", text, re.MULTILINE)
        assert re.search(r"ran +why$", text, re.MULTILINE)
    finally:
        screen.resize(80)


def test_looking_closer(screen: Screen) -> None:
    shown: list[str] = []

    def says_how_far() -> bool:
        shown.append(screen.ran("optimus describe job train"))
        far, fast = r"done +\d+% \(\d+ of 600\)", r"progress +[\d.]+ steps/s"
        return bool(re.search(far, shown[-1]) and re.search(fast, shown[-1]))

    until(says_how_far, "it has made some steps")
    assert "default/train" in shown[-1] and "  queue      speech, unattended" in shown[-1] and "worker-0" in shown[-1]
    text = screen.ran("optimus describe queue speech")
    assert re.search(r"^ +default +8 +– +1 ", text, re.MULTILINE) and re.search(r"^train +speech", text, re.MULTILINE)
    text = screen.ran("optimus explain too-large --no-forecast")
    assert "NeverFits" in text and "What would start it now" in text and text.endswith("[0]")


def test_output_of_several_replicas_has_a_colour_each(screen: Screen) -> None:
    screen.ran("optimus run --name pair --gpus 0.5 --replicas 2 --queue vision -- bash -c 'echo I am $OPTIMUS_RANK'")
    text = screen.ran("optimus logs pair")
    assert "worker-0 │ I am" in text and "worker-1 │ I am" in text
    coloured = screen.text(colours=True)
    assert "\x1b[36mworker-" in coloured and "\x1b[35mworker-" in coloured


def test_ctrl_c_leaves_a_log_and_the_job_goes_on(screen: Screen) -> None:
    screen.start("optimus logs -f --tail 2 train; echo [$?]")
    screen.shows("worker-. │ ")
    screen.resize(40)
    screen.resize(80)
    screen.press("C-c")
    screen.shows(r"\[130\]$")
    assert "Running" in screen.ran("optimus get job train")


def test_ctrl_c_cancels_what_was_run(screen: Screen) -> None:
    screen.start("optimus run --name mine --gpus 0.1 --queue vision -- sleep 500; echo [$?]")
    screen.shows("job default/mine Running")
    screen.press("C-c")
    assert "Traceback" not in screen.shows("job default/mine cancelled")
    screen.shows(r"^\[130\]$")
    assert "Cancelled" in screen.ran("optimus get job mine")


def test_suspend_resume_scale_cancel(screen: Screen) -> None:
    assert "[0]" in screen.ran("optimus run -d --name ours --queue vision --gpus 0.1 --replicas 1-3 -- sleep 500")
    assert "default/ours: suspended" in screen.ran("optimus suspend job ours")
    assert "default/ours: resumed" in screen.ran("optimus resume ours")
    assert "default/ours: at most 2 replicas from now on (3 before)" in screen.ran("optimus scale ours --replicas 2")
    assert "default/ours: cancelled" in screen.ran("optimus cancel job/ours")
    text = screen.ran("optimus cancel ours")
    assert "Error: default/ours is over: Cancelled" in text and text.endswith("[1]")


def test_watching(screen: Screen) -> None:
    screen.start("optimus get jobs --queue vision -w")
    screen.shows("^too-large")
    screen.window()
    screen.ran("optimus run -d --name seen --queue vision --gpus 0.1 -- true")
    screen.press("C-d")
    text = screen.shows(r"^seen +vision +Succeeded")
    assert "Traceback" not in text
    screen.press("C-c")
    screen.shows(f"{PROMPT.strip()}$")


def test_a_reader_that_hangs_up(screen: Screen) -> None:
    text = screen.ran("optimus get jobs | head -1; echo ${PIPESTATUS[*]}")
    assert "\n0 0\n" in text and "Broken" not in text and "Traceback" not in text
    assert "\n0 0\n" in screen.ran("optimus reasons -o json | head -1; echo ${PIPESTATUS[*]}")
    assert "\n0 0\n" in screen.ran("optimus logs train | head -1; echo ${PIPESTATUS[*]}")


def test_errors_break_between_words(screen: Screen) -> None:
    text = screen.ran("optimus get jobs --target http://127.0.0.1:1")
    assert "Error: nobody answers at http://127.0.0.1:1 (Connection refused): start it with\n`optimus up`" in text
    assert "\x1b[31mError" in screen.text(colours=True)


@pytest.mark.parametrize(
    ("typed", "becomes"),
    [
        ("optimus desc", "optimus describe"),
        ("optimus describe job tra", "optimus describe job train"),
        ("optimus describe queue spe", "optimus describe queue speech"),
        ("optimus logs tra", "optimus logs train"),
        ("optimus run --queue vis", "optimus run --queue vision"),
        ("optimus get jobs --phase Pen", "optimus get jobs --phase Pending"),
        ("optimus get que", "optimus get queues"),
        ("optimus simulate --policy short", "optimus simulate --policy shortest-first"),
        ("optimus get jobs --all-n", "optimus get jobs --all-namespaces"),
        ("OPTIMUS_TARGET=http://127.0.0.1:1 optimus logs tra", "OPTIMUS_TARGET=http://127.0.0.1:1 optimus logs tra"),
    ],
)
def test_tab_completes(screen: Screen, typed: str, becomes: str) -> None:
    screen.ran("true")
    screen.write(typed)
    screen.press("Tab")
    text = screen.shows(rf"^{re.escape(PROMPT + becomes)}$") if becomes != typed else screen.text()
    screen.press("C-u")
    screen.shows(f"^{PROMPT.strip()}$")
    assert "Traceback" not in text and "Error" not in text


def test_the_demo_is_left_in_order(screen: Screen) -> None:
    screen._tmux("select-window", "-t", "s:0")
    screen.press("C-c")
    screen.shows("go on running; `optimus up` on the same store takes over what runs")
    screen.shows(f"^{PROMPT.strip()}$")
