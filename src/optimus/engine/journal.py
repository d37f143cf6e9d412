"""The journal: what was observed and decided, in order; it replays to the same decisions bit by bit.

    engine ──record──► JournalWriter ──► <folder>/*.journal ──► Journal.read / Journal.seek ──► replay ──► differences

    segment:  Opened  Keyframe  Cycle  Cycle  Cycle …       one file; can be read alone
    cycle:    observations + budget + policy + seed ──► plan

Why: every "why did it do that?" has an answer, and every change of `decide` can be tried on last month.
Owns: nothing itself; this is the public face of the `journal_*` modules beside it.
Must not: be where code goes. Writing, reading, mending, retention and replay each have their module.
The format and its guarantees are in docs/reference/journal.md.
"""

from optimus.engine.journal_difference import difference
from optimus.engine.journal_reading import Journal, Moment
from optimus.engine.journal_records import (
    FORMAT_VERSION,
    Cycle,
    Flaw,
    FlawKind,
    JournalError,
    Keyframe,
    Opened,
    Record,
)
from optimus.engine.journal_replay import Replayable, Replayed, replay, stop_at_damage
from optimus.engine.journal_retention import JournalSettings
from optimus.engine.journal_writing import Gap, JournalWriter

__all__ = [
    "FORMAT_VERSION",
    "Cycle",
    "Flaw",
    "FlawKind",
    "Gap",
    "Journal",
    "JournalError",
    "JournalSettings",
    "JournalWriter",
    "Keyframe",
    "Moment",
    "Opened",
    "Record",
    "Replayable",
    "Replayed",
    "difference",
    "replay",
    "stop_at_damage",
]
