"""What is wrong with a description, where, and what to do about it."""

from __future__ import annotations

from msgspec import Struct


class Problem(Struct, frozen=True):
    subject: str
    """For example `queue vision` or `workload ml/train-7`."""
    path: str
    """Field inside it, dotted: `quotas.0.resources.gpu.guarantee`; empty for the whole."""
    message: str

    def __str__(self) -> str:
        place = f"{self.subject}: {self.path}" if self.path else self.subject
        return f"{place}: {self.message}"
