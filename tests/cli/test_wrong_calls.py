"""Wrong calls of every command: each gets exactly the message and the exit code of the table, and never a traceback."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.wrong_calls import PAGE, Call, Place, calls, page, place, said

LEAST = 100


@pytest.fixture(scope="module")
def here() -> Iterator[Place]:
    with place() as made:
        yield made


@pytest.mark.parametrize("call", calls(), ids=lambda call: call.shown)
def test_a_wrong_call_is_told_what_is_wrong(here: Place, call: Call) -> None:
    answer = here.make(call)
    assert "Traceback" not in answer.whole and "fault of optimus" not in answer.whole
    assert {"code": answer.code, "says": answer.text} == said()[call.shown]


def test_after_all_of_that_nothing_has_changed(here: Place) -> None:
    assert [job["name"] for job in here.up.api.get("/v1/jobs")] == ["here", "over"]
    assert here.up.phase("here") == "Suspended" and here.up.job("here")["maxReplicas"] == 4
    assert [queue["name"] for queue in here.up.api.get("/v1/queues")] == ["child", "default", "parent"]


def test_the_table_is_large_and_every_call_in_it_is_wrong() -> None:
    answers = said()
    assert len(answers) == len(calls()) >= LEAST
    assert {answer["code"] for answer in answers.values()} == {1, 2}
    assert [shown for shown, answer in answers.items() if not answer["says"]] == []


def test_the_page_says_the_same() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m tests.cli.wrong_calls writes it"
