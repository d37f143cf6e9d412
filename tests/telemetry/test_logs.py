"""Logs for people and for machines."""

from __future__ import annotations

import json
import logging
import sys

from optimus.telemetry.logs import JsonLines, PlainLines


def _record(text: str, *, error: bool = False) -> logging.LogRecord:
    info = None
    if error:
        try:
            int("oh")
        except ValueError:
            info = sys.exc_info()
    made = logging.LogRecord("optimus.x", logging.WARNING, "x.py", 1, text + " %s", ("here",), info)
    made.created = 1_767_622_800.123
    return made


def test_a_line_for_people() -> None:
    assert PlainLines().format(_record("queue is gone")) == "2026-01-05T14:20:00.123Z WARNING queue is gone here"


def test_a_line_for_machines() -> None:
    told = json.loads(JsonLines().format(_record('two\nlines and "quotes"')))
    assert told == {
        "time": "2026-01-05T14:20:00.123Z",
        "level": "warning",
        "logger": "optimus.x",
        "message": 'two\nlines and "quotes" here',
    }


def test_an_error_is_one_line_for_machines() -> None:
    line = JsonLines().format(_record("broke", error=True))
    assert "\n" not in line and "ValueError" in json.loads(line)["error"]
