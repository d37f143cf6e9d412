"""An array of thirty parts of which one fails: whoever looks at it is told which."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.local.machines import Up, until

SCRIPT = 'echo "I am $OPTIMUS_PART"; test "$OPTIMUS_PART" != 27'


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    up = Up(tmp_path_factory.mktemp("array") / "store", "--nodes", "2", "--gpus", "4")
    try:
        ran = up.cli("run", "-d", "--name", "sweep", "--array", "30", "--", "sh", "-c", SCRIPT)
        assert ran.returncode == 0, ran.stderr
        up.reaches("sweep", "Failed")
        yield up
    finally:
        up.end()


def _said(machine: Up, *words: str) -> str:
    ran = machine.cli(*words)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.mark.parametrize("words", [("get", "jobs"), ("describe", "sweep"), ("explain", "sweep")], ids=lambda w: w[0])
def test_the_part_that_failed_is_named(machine: Up, words: tuple[str, ...]) -> None:
    assert "part 27: replica worker-0 exited with code 1" in _said(machine, *words)


def test_what_happened_to_many_parts_is_one_line(machine: Up) -> None:
    said = _said(machine, "describe", "sweep").splitlines()
    assert [line for line in said if "29 Succeeded, 1 Failed (27)" in line]
    told = [line for line in said if " Admitted " in line or " Succeeded  " in line]
    assert len(told) == 2, "\n".join(said)
    assert "30 parts, the last of them part " in told[0] and told[0].endswith(": to pool default")
    assert "29 parts, the last of them part " in told[1]


def test_a_part_has_its_own_log(machine: Up) -> None:
    for words in (("--part", "27"), ("--replica", "27"), ("--replica", "27-worker-0")):
        assert _said(machine, "logs", "sweep", *words) == "27-worker-0 │ I am 27\n"


def test_logs_are_in_the_order_of_parts(machine: Up) -> None:
    said = [line.partition(" │ ")[2] for line in _said(machine, "logs", "sweep").splitlines()]
    assert said == [f"I am {part}" for part in range(30)]


def test_a_part_that_is_not_there(machine: Up) -> None:
    ran = machine.cli("logs", "sweep", "--part", "30")
    assert ran.returncode == 1
    assert ran.stderr == "Error: default/sweep has no part 30; its parts are 0 to 29\n"
    machine.cli("run", "--name", "alone", "--", "true")
    ran = machine.cli("logs", "alone", "--part", "0")
    assert ran.stderr == "Error: default/alone is no array: it has no parts\n"


def test_a_failure_is_told_while_the_others_run(machine: Up) -> None:
    wait = 'test "$OPTIMUS_PART" != 2 && exec sleep 60'
    machine.cli("run", "-d", "--name", "going", "--array", "4", "--", "sh", "-c", wait)
    machine.reaches("going", "Running")
    until(lambda: machine.job("going")["counts"] == {"Running": 3, "Failed": 1}, "part 2 fails")
    assert machine.phase("going") == "Running"
    assert machine.job("going")["reason"]["text"] == "part 2: replica worker-0 exited with code 1"
    machine.cli("cancel", "going")
