"""Bad input: every error at once, at its line, in words that help."""

from __future__ import annotations

import pytest

from optimus.api.loading import load_text
from tests.input.bad_inputs import SUBJECTS

CASES = [
    pytest.param(text, id=f"{subject}: {name}") for subject, cases in SUBJECTS.items() for name, text in cases.items()
]


def announced(text: str) -> list[tuple[int, str]]:
    """(line, part of the message) from the comments of a text."""
    return [
        (number, fragment.strip())
        for number, line in enumerate(text.splitlines(), start=1)
        for fragment in line.split("# <--")[1:]
    ]


@pytest.mark.parametrize("text", CASES)
def test_every_error_is_found_at_its_line_and_no_other(text: str) -> None:
    errors = list(load_text(text, "file.yaml").errors)
    for line, fragment in announced(text):
        match = next((error for error in errors if error.line == line and fragment.rstrip("# ") in str(error)), None)
        assert match is not None, f"line {line}: no error says {fragment!r}; found {[str(e) for e in errors]}"
        errors.remove(match)
    assert [str(error) for error in errors] == []


def test_the_table_is_large() -> None:
    assert sum(len(announced(text)) for cases in SUBJECTS.values() for text in cases.values()) >= 100


@pytest.mark.parametrize("text", CASES)
def test_columns_are_inside_their_lines(text: str) -> None:
    lines = text.splitlines()
    for error in load_text(text).errors:
        assert 1 <= error.line <= len(lines) + 1
        assert 1 <= error.column <= len([*lines, ""][error.line - 1]) + 1


def test_an_error_reads_like_a_compiler_message() -> None:
    (error,) = load_text("queues:\n  - {name: vision, gpu: {guarantee: -1}}\n", "queues.yaml").errors
    assert str(error) == "queues.yaml:2:37: queue vision: gpu.guarantee: must not be negative: -1"
    assert error.set_aside == "queue vision"
