"""Explaining: why one job waits, who is ahead of it, what would start it now, and when it starts.

Why: "no" is only fair with its reason, and only useful with what to do about it. Nobody guesses here: every suggestion
was tried on a copy of the live state by the engine that decides.
Owns: the things that are tried, the record of an explanation, and what is said where something is not known.
Must not: touch the live engine, or suggest what was not seen to work.

    copy of the engine ─┬─ decide ───────────────────► the reason, the queue's numbers, the line
                        ├─ decide, one thing changed ► suggestions
                        └─ forecast (a process apart) ► P50 to P90
"""

from optimus.explaining.explanation import Explanation, explain, needs_copy
from optimus.explaining.seen import JobSeen
from optimus.explaining.starts import Ask

__all__ = ["Ask", "Explanation", "JobSeen", "explain", "needs_copy"]
