"""Batch sizes: which of Shockwave's kinds of jobs change theirs, and in which epochs.

Why: the lists say only "gns" or "accordion"; what that means for a model is in the artifact's tables.
Owns: these tables as facts. Source: Zheng et al., NSDI'23, and its artifact.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from optimus.drivers.sim.works.adapting import Change

ADAPTATIONS = GNS, ACCORDION, STATIC = "gns", "accordion", "static"
_KIND = re.compile(r"(?P<model>.+) \(batch size (?P<batch>\d+)\)")


class Family(NamedTuple):
    samples: int
    """Of an epoch."""
    most: int
    """The largest batch size that was measured."""


FAMILIES = {
    "ResNet-18": Family(50_000, 256),
    "ResNet-50": Family(100_000, 128),
    "Transformer": Family(10_000, 128),
    "LM": Family(59_675, 80),
    "Recommendation": Family(117_907, 8192),
}

_DOUBLINGS: dict[tuple[str, int], dict[int, tuple[int, ...]]] = {
    # (model, first batch): by GPUs, the epochs from which the batch is doubled
    ("ResNet-18", 16): {1: (31, 41, 51, 71), 2: (21, 31, 91, 111), 4: (11, 21, 81, 91)},
    ("ResNet-18", 32): {1: (21, 31, 51), 2: (11, 21, 41), 4: (21, 31, 61)},
    ("ResNet-18", 64): {1: (11, 31), 2: (21, 41), 4: (11, 61)},
    ("ResNet-18", 128): {1: (11,), 2: (41,), 4: (11,)},
    ("ResNet-50", 32): {2: (101, 111), 4: (131, 221)},
    ("ResNet-50", 64): {1: (101,), 2: (81,), 4: (191,)},
    ("LM", 5): {1: (31, 41, 61, 71), 2: (31, 51, 61, 71), 4: (11, 31, 71, 91)},
    ("LM", 10): {1: (11, 21, 41), 2: (11, 31, 41), 4: (11, 31, 61)},
    ("LM", 20): {1: (11, 41), 2: (31, 41), 4: (11, 61)},
    ("LM", 40): {1: (11,), 2: (11,), 4: (61,)},
    ("Recommendation", 512): {1: (21, 41, 71, 91)},
    ("Recommendation", 1024): {1: (21, 51, 91)},
    ("Recommendation", 2048): {1: (21, 41)},
    ("Recommendation", 4096): {1: (41,)},
}
_RECOMMENDATION = {512: 30, 1024: 30, 2048: 40, 4096: 10}
_FOR_EVER = 1_000


def model_and_batch(kind: str) -> tuple[str, int] | None:
    """Of a kind of job such as `LM (batch size 5)`; None where it says no batch size, or nothing is known of it."""
    found = _KIND.fullmatch(kind)
    if found is None or found["model"] not in FAMILIES:
        return None
    return found["model"], int(found["batch"])


def change_of(model: str, batch: int, gpus: int, adaptation: str) -> Change | None:
    """None: it keeps its batch size."""
    most = FAMILIES[model].most
    if batch == most or model == "Transformer":
        return None
    if adaptation == GNS:
        doublings = _DOUBLINGS.get((model, batch), {}).get(gpus)
        return Change(most=most, doublings=doublings) if doublings else None
    return Change(most=most, critical=_critical(model, batch)) if adaptation == ACCORDION else None


def _critical(model: str, batch: int) -> tuple[tuple[int, int], ...]:
    match model:
        case "ResNet-18":
            return ((0, 10), (150, 160), (250, 260))
        case "ResNet-50":
            return tuple((epoch, epoch + 10) for epoch in range(0, _FOR_EVER, 30))
        case "Recommendation":
            return ((0, _RECOMMENDATION[batch]),)
        case _:
            return ((0, 10),)
