"""A copy of the engine: all that somebody else needs to decide as it would, in one message.

Why: whoever explains, forecasts or tries something must not do it where work is scheduled. The engine hands out what it
knows, and is not asked again.
Owns: the message.
Must not: contain what jobs run (commands, environments): the engine does not know it.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from optimus.engine.engine import Engine
from optimus.engine.policy_loading import load, policy_file
from optimus.model.plans import Budget
from optimus.model.progress import Remaining


class CopyError(ValueError):
    """It cannot be read here; the message says why."""


class EngineCopy(Struct, frozen=True, kw_only=True):
    state: bytes
    """`Engine.dump`, run times of ended work included."""
    now_ms: int
    policy: str
    """A policy from a file is named with its whole path."""
    seed: int
    budget: Budget
    remaining: dict[str, Remaining] = {}
    """By workload: what running work says of the rest of it."""

    @property
    def policy_file(self) -> bool:
        return policy_file(self.policy) is not None


def copy_of(engine: Engine, now_ms: int, remaining: dict[str, Remaining] | None = None) -> bytes:
    """All that the engine's process has to do."""
    reference = engine.policy_reference
    path = policy_file(reference)
    if path is not None:
        reference = f"{path.absolute()}:{reference.rpartition(':')[2]}"
    copied = EngineCopy(
        state=engine.dump(),
        now_ms=now_ms,
        policy=reference,
        seed=engine.seed,
        budget=engine.budget,
        remaining=remaining or {},
    )
    return msgspec.msgpack.encode(copied)


def read_copy(data: bytes) -> EngineCopy:
    try:
        return msgspec.msgpack.decode(data, type=EngineCopy)
    except msgspec.MsgspecError as error:
        raise CopyError(f"the state cannot be read: {error}; use the version that runs the scheduler") from error


def engine_of(copied: EngineCopy) -> Engine:
    """A new engine that stands where the copied one stood. PolicyError where its policy is not to be had here."""
    engine = Engine(policy=load(copied.policy), budget=copied.budget, seed=copied.seed, learns=False)
    try:
        engine.restore(copied.state)
    except (msgspec.MsgspecError, LookupError, ValueError) as error:
        raise CopyError(f"the state cannot be read: {error}; use the version that runs the scheduler") from error
    return engine
