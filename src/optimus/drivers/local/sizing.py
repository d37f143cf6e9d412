"""Sizes: how many replicas a job may have, when somebody wants another number of them.

Why: what a job said of its sizes holds for as long as it lives, also when it is scaled down and up again.
Owns: which sizes its document allows. A list is a list; powers of two are a rule, which goes on beyond the maximum.
Must not: change a job (`desk`).
"""

from __future__ import annotations

import msgspec

from optimus.api.specs.replicas import POWERS_OF_TWO
from optimus.drivers.local.store import Submitted
from optimus.model.units import parse_count
from optimus.model.workloads import Role


def allowed_sizes(one: Submitted, role: Role, most: int) -> tuple[int, ...]:
    """In order; of a rule, up to the first above `most`. Empty: any."""
    if not role.sizes:
        return ()
    spec = msgspec.json.decode(one.written or b"{}").get("spec") or {}
    parts = [part for part in (spec.get("replicaSpec"), spec.get("replicas")) if isinstance(part, dict)]
    written = next((part["sizes"] for part in parts if "sizes" in part), role.sizes)
    if written != POWERS_OF_TWO:
        return tuple(parse_count(size) for size in written)
    return tuple(1 << power for power in range(most.bit_length() + 1) if 1 << power >= role.min)
