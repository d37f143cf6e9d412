"""What is wrong with a change, and with which option; all of it at once."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct


class Wrong(Struct, frozen=True):
    option: str
    message: str


class ChangeError(Exception):
    def __init__(self, wrong: Iterable[Wrong]) -> None:
        self.wrong = tuple(wrong)
        super().__init__("\n".join(one.message for one in self.wrong))
