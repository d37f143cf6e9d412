"""What running work says of how far it is.

Why: a job that counts its steps knows better when it ends than any history does.
Owns: the record. It is a word, not a fact: whoever uses it asks how long the pace was measured.
"""

from __future__ import annotations

from msgspec import Struct


class Remaining(Struct, frozen=True, kw_only=True):
    """The rest of one workload, in its own words."""

    at_ms: int
    """When it said so."""
    left_ms: int
    """From then on, at the pace so far."""
    measured_ms: int
    """The time over which the pace was measured."""
