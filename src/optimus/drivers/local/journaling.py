"""The journal of a live machine: what the brain saw and decided, in a folder of the store.

Why: "why did it do that, an hour ago?", "what if?" and "when?" are asked of a machine that lives. The store knows what
is; the journal knows how it came to be.
Owns: where it is kept, how much of it, which policy it names, and what a restart recalls from it.
Must not: stop anything. What cannot be recorded is a gap and a word; what must not be lost is in the store.

Nothing is written through to the disk: a killed process loses nothing that was recorded, a pulled plug the last
seconds. A policy from a file is copied into the store and decides from there, so that the journal still names what
decided when somebody edits the file.
"""

from __future__ import annotations

import logging
import os
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from optimus.engine.engine import Engine, ReplayEngine
from optimus.engine.journal import Journal, JournalError, JournalSettings, JournalWriter
from optimus.engine.policy_loading import load, policy_file
from optimus.model.observations import ServiceRemembered, UseRemembered

LOG = logging.getLogger(__name__)
FOLDER = "journal"
POLICIES = "policies"
KEPT_MIB = 512
KEPT_MS = 7 * 86_400_000
"""As long as jobs that are over are remembered."""
SEGMENT_BYTES = 48 << 20
"""Of cycles before compression, which are decoded when a moment is sought: half a second. Where ten thousand wait, a
keyframe takes as long as three decisions and must be rare."""


def begin_journal(engine: Engine, store: Path, kept_mib: int, now_ms: int) -> JournalWriter | None:
    """From now on every decision is recorded; with 0 MiB, none is."""
    if not kept_mib:
        return None
    settings = JournalSettings(
        rotate_bytes=SEGMENT_BYTES, compress_keyframes=True, keep_bytes=kept_mib << 20, keep_ms=KEPT_MS
    )
    folder = store / FOLDER
    writer = JournalWriter(folder, dump=engine.dump, policy=engine.policy_reference, settings=settings)
    engine.keep_journal(writer, now_ms)
    return writer


class Recalled(Struct, frozen=True, kw_only=True):
    """What the store does not know and the journal does."""

    service: tuple[tuple[int, ServiceRemembered], ...] = ()
    """With the submission: another job may have the name by now."""
    uses: tuple[UseRemembered, ...] = ()


def recall(store: Path) -> Recalled:
    """Of the last moment of the journal that is there; nothing where it cannot be read. To be called before a new one
    is begun."""
    try:
        moment = Journal(store / FOLDER).end()
        replaying = ReplayEngine()
        replaying.restore(bytes(moment.keyframe.state))
        for cycle in moment.cycles:
            replaying.follow(cycle)
    except JournalError:
        return Recalled()
    except Exception as error:  # noqa: BLE001  (whatever another version has written, this one starts)
        LOG.warning("nothing is recalled from the journal in %s: %r", store / FOLDER, error)
        return Recalled()
    state = replaying.engine.state
    columns, past_use = state.workloads.columns, state.history.past_use
    return Recalled(
        service=tuple(
            (
                state.workloads.spec(row).submitted_ms,
                ServiceRemembered(
                    name,
                    int(columns.counted_at[row]),
                    int(columns.elapsed[row]),
                    int(columns.attained[row]),
                    int(columns.worked[row]),
                ),
            )
            for name, row in state.workloads.row_of.items()
            if columns.elapsed[row] or columns.running[row]
        ),
        uses=tuple(UseRemembered(*use, str(amount), state.history.past_use_at) for use, amount in past_use.items()),
    )


def kept_policy(reference: str, store: Path) -> str:
    """A policy from a file as a copy in the store; any other as it is. PolicyError where it cannot be used."""
    load(reference)
    path = policy_file(reference)
    if path is None:
        return reference
    name = reference.rpartition(":")[2]
    try:
        text = path.read_bytes()
        copied = store / POLICIES / f"{path.stem}-{sha256(text).hexdigest()[:8]}.py"
        if not copied.exists():
            copied.parent.mkdir(parents=True, exist_ok=True)
            part = copied.with_suffix(f".{os.getpid()}")
            part.write_bytes(text)
            part.replace(copied)
    except OSError as error:
        LOG.warning("the policy %s could not be copied into the store (%s): the journal names the file", path, error)
        return f"{path.absolute()}:{name}"
    return f"{copied}:{name}"
