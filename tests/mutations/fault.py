"""A deliberate fault: a few characters of the decision core replaced, and who should notice."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    name: str
    file: str
    """Below src/optimus."""
    old: str
    """Occurs exactly once in the file."""
    new: str
    breaks: str
    """Which rule, in words."""
    caught_by: str
    """`invariant 3`, a scenario file below tests/scenarios, or a test file."""

    def applied(self, text: str) -> str:
        count = text.count(self.old)
        if count != 1:
            raise ValueError(f"fault {self.name}: its text occurs {count} times in {self.file}, not once: {self.old!r}")
        return text.replace(self.old, self.new)
