"""The scheduler that runs, as a world to ask about: a copy of its engine, and what its journal knows of the past.

Why: explain, forecast and what-if ask the same scheduler in the same words, from anywhere, and work on what it hands
out; it goes on meanwhile.
Owns: fetching both, and the refusals.
Must not: play, or ask it to.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from optimus.client import ApiError
from optimus.client.targets import Target, is_cluster

if TYPE_CHECKING:
    from optimus.drivers.sim.present import Present
    from optimus.engine.copying import EngineCopy
    from optimus.engine.journal_past import Past

NICENESS = 10
HERE = ("127.0.0.1", "::1", "localhost")


def fetch_copy(target: Target) -> EngineCopy:
    """A policy from a file is run here: only one of this machine is. A cluster names none: there, whoever asks has."""
    from optimus.engine.copying import CopyError, read_copy

    try:
        copied = read_copy(target.state())
    except CopyError as error:
        raise other_version(target, error) from error
    elsewhere = not is_cluster(target.address) and urlsplit(target.address).hostname not in HERE
    if copied.policy_file and elsewhere:
        path = copied.policy
        raise ApiError(0, "", f"the policy {path} is a file of another machine: ask there, where it can be read")
    return copied


def fetch_past(target: Target) -> Past:
    from optimus.engine.journal_past import Past, PastError, read_past

    try:
        told = target.past()
        return read_past(told) if told else Past()
    except PastError as error:
        raise other_version(target, error) from error


def fetch_world(target: Target) -> tuple[Present, Past]:
    """What is now, and what has been. From here on this process stands back behind all others."""
    import msgspec

    from optimus.drivers.sim.present import of_copy
    from optimus.drivers.sim.standing import read_state

    present, past = of_copy(fetch_copy(target), target.address), fetch_past(target)
    try:
        read_state(present.state)
    except msgspec.MsgspecError as error:
        raise other_version(target, error) from error
    os.nice(NICENESS)
    return present, past


def other_version(target: Target, error: Exception) -> ApiError:
    return ApiError(0, "", f"{target.address} tells something else than this version reads: {error}")
