"""What a body and a job have agreed on: names of variables, what an exit code means, the words for what goes wrong.

A body sets the variables and reads the exit code and the status file; nothing else passes between the two. All of them
may be missing: then the script runs on its own.
"""

from __future__ import annotations

import os

CHECKPOINT_DIR = "OPTIMUS_CHECKPOINT_DIR"
"""Folder that outlives attempts; in a job of several replicas, one folder that all of them see."""
ATTEMPT = "OPTIMUS_ATTEMPT"
"""1 for the first start."""
REASON = "OPTIMUS_REASON"
"""Why this attempt was started, in words."""
STATUS_FILE = "OPTIMUS_STATUS_FILE"
"""One file for each replica; it holds one line of JSON."""
CHECKPOINT_SIGNAL = "OPTIMUS_CHECKPOINT_SIGNAL"
"""By which signal the job is asked to save and leave."""
GRACE_SECONDS = "OPTIMUS_GRACE_SECONDS"
"""How long it then has."""
RANK = "OPTIMUS_RANK"
REPLICAS = "OPTIMUS_REPLICAS"
RUN_BY_TORCHRUN = "TORCHELASTIC_RUN_ID"
"""Set by torchrun, which starts several processes in a replica and numbers them by itself, over all replicas."""

LEFT_ON_REQUEST = 143
"""The job was asked to leave and left; it is not finished. The same number that a process without any handler ends
with in a shell (128 + SIGTERM), so that both are understood alike, whatever signal was used to ask."""


class AskedToLeave(SystemExit):
    """Ends the process with LEFT_ON_REQUEST, as `sys.exit` would: what is in `finally` still runs."""

    def __init__(self) -> None:
        super().__init__(LEFT_ON_REQUEST)


class CheckpointError(RuntimeError):
    """Saving or resuming cannot work as asked; the message says what to do."""


class CheckpointWarning(UserWarning):
    """Something about saving went wrong, and training goes on."""


def text(name: str, default: str = "") -> str:
    return os.environ.get(name, "").strip() or default


def torchrun() -> bool:
    return bool(text(RUN_BY_TORCHRUN))


def rank() -> int:
    return whole_number("RANK" if torchrun() else RANK, 0)


def replicas() -> int:
    """Processes that train one model."""
    return whole_number("WORLD_SIZE" if torchrun() else REPLICAS, 1)


def status_file() -> str:
    """Of several processes of one replica the first one speaks."""
    return text(STATUS_FILE) if not torchrun() or whole_number("LOCAL_RANK", 0) == 0 else ""


def together() -> str:
    """Who began at the same time has the same text: torchrun starts its processes anew within one attempt."""
    names = ("TORCHELASTIC_RESTART_COUNT", "MASTER_PORT", "WORLD_SIZE") if torchrun() else ()
    return "/".join([text(ATTEMPT, "1"), *map(text, names)])


def whole_number(name: str, default: int) -> int:
    value = text(name)
    if not value:
        return default
    try:
        return int(value)
    except ValueError:
        raise CheckpointError(f"the variable {name} should be a whole number, and is {value!r}") from None


def seconds(name: str, default: float) -> float:
    value = text(name)
    if not value:
        return default
    try:
        return float(value)
    except ValueError:
        raise CheckpointError(f"the variable {name} should be a number of seconds, and is {value!r}") from None
