"""Complaints: what is wrong with what somebody asked for, all of it at once.

A wrong command line and a wrong file have different exit codes, so a complaint says which of the two it is.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct


class Complaint(Struct, frozen=True, kw_only=True):
    message: str
    """What is wrong, where, and what to do."""
    option: str = ""
    """The part of the command line that has to change; empty: what a file says has to."""


class SweepError(Exception):
    def __init__(self, complaints: Iterable[Complaint]) -> None:
        self.complaints = tuple(complaints)
        super().__init__("\n".join(complaint.message for complaint in self.complaints))


def misused(option: str, message: str) -> SweepError:
    return SweepError([Complaint(option=option, message=message)])


def unusable(message: str) -> SweepError:
    return SweepError([Complaint(message=message)])
