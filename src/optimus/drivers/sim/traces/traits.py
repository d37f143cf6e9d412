"""Traits: what some jobs of a mix are beside rigid: elastic, on part of a device, in a hurry, faster on some models.

Why: half of what others have published needs such jobs, and a fresh machine has no list of them.
Owns: the parts of the jobs that are so, how they scale, and how fast they are where; all of it drawn by the seed.
Must not: touch the draw of the mix itself. Without traits its jobs are the same, number for number.

    elastic     any power of two from one replica to twice what was asked for; speed n / (1 + a (n - 1)), a by family
    shared      a quarter or half of a device, for jobs of one GPU; activity as large as that
    deadlines   1.2 to 4 times the duration after submission
    models      nodes in equal parts; each model 0.6 times as fast as the one before it, more or less by family
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from optimus.drivers.sim.setup import uniform_nodes
from optimus.drivers.sim.traces.trace import TraceError
from optimus.model.nodes import WHOLE_DEVICE_MILLI, Node
from optimus.model.workloads import ModelSpeed

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_STREAM = 3
_SHARES_MILLI = (250, 500)
_LOSS = (0.01, 0.08)
"""Of each further replica, between families."""
_HURRY = (1.2, 4.0)
_NEXT_MODEL, _DIFFERENCE = 0.6, 0.25
_SLOWEST = 0.05
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*", re.ASCII)


class Traits(Struct, frozen=True):
    """Columns by job, and what is the same for a family."""

    models: tuple[str, ...]
    largest: int
    elastic: Bools
    milli: Ints
    hurry: Floats
    """Deadline in multiples of the duration; 0: none."""
    loss: Floats
    """By family."""
    speeds: Floats
    """By family and model."""

    @property
    def single_gpus(self) -> bool:
        """Replicas have one GPU each, as in the lists of those who scale jobs or mix models."""
        return bool(self.models or self.elastic.any())

    def of(self, row: int, family: int, submit_ms: int, duration_ms: int, replicas: int) -> dict[str, Any]:
        """Fields of its job and, under `work`, of its work."""
        fields: dict[str, Any] = {}
        work: dict[str, Any] = {}
        if self.elastic[row]:
            sizes = tuple(1 << i for i in range(min(2 * replicas, self.largest).bit_length()))
            curve = [n / (1 + float(self.loss[family]) * (n - 1)) for n in range(1, sizes[-1] + 1)]
            fields |= {"min_replicas": 1, "max_replicas": sizes[-1], "sizes": sizes}
            fields["speedup_percent"] = tuple(round(100 * speed) for speed in curve)
            work["scaling"] = tuple(curve)
        if self.milli[row] < WHOLE_DEVICE_MILLI:
            fields |= {"gpu_milli": int(self.milli[row]), "activity_milli": int(self.milli[row])}
        if self.hurry[row]:
            fields["deadline_ms"] = submit_ms + round(duration_ms * float(self.hurry[row]))
        if self.models:
            speeds = dict(zip(self.models, self.speeds[family].tolist(), strict=True))
            fields["models"] = tuple(ModelSpeed(name, max(round(100 * speed), 1)) for name, speed in speeds.items())
            work["speed_by_model"] = speeds
        return fields | {"work": work}

    def nodes(self, count: int, per_node: int) -> tuple[Node, ...]:
        if not self.models:
            return uniform_nodes(count, per_node)
        each, more = divmod(count, len(self.models))
        counts = [each + (i < more) for i in range(len(self.models))]
        return tuple(
            n for name, some in zip(self.models, counts, strict=True) for n in uniform_nodes(some, per_node, model=name)
        )


def draw_traits(
    *,
    seed: int,
    elastic: float,
    shared: float,
    deadlines: float,
    models: tuple[str, ...],
    gpus: Ints,
    attended: Bools,
    families: int,
    largest: int,
) -> Traits:
    """`attended` jobs stay rigid and have no deadline: somebody sits before them."""
    draw = np.random.default_rng([seed, _STREAM])
    count = len(gpus)
    chance = draw.random((3, count))
    is_elastic = (chance[0] < elastic) & ~attended
    is_shared = (chance[1] < shared) & (gpus == 1) & ~is_elastic
    parts = np.array(_SHARES_MILLI)[draw.integers(len(_SHARES_MILLI), size=count)]
    hurry = np.where((chance[2] < deadlines) & ~attended, draw.uniform(*_HURRY, size=count), 0.0)
    usual = _NEXT_MODEL ** np.arange(len(models))
    differs = np.exp(draw.normal(0.0, _DIFFERENCE, (families, len(models))))
    speeds = np.clip(usual * differs, _SLOWEST, 1.0)
    speeds[:, :1] = 1.0  # the first one is what durations are measured on
    return Traits(
        models=models,
        largest=largest,
        elastic=is_elastic,
        milli=np.where(is_shared, parts, WHOLE_DEVICE_MILLI),
        hurry=hurry,
        loss=draw.uniform(*_LOSS, size=families),
        speeds=speeds,
    )


def demand_sense(parts: dict[str, float], models: tuple[str, ...], nodes: int) -> None:
    for name, part in parts.items():
        if not 0 <= part <= 1:
            raise TraceError(f"{name} is {part:g}; write which part of the jobs, 0 to 1")
    if len(set(models)) != len(models) or not all(map(_MODEL.fullmatch, models)):
        raise TraceError(f"models is {'+'.join(models)}; write names, each once, such as a100+v100")
    if len(models) > nodes:
        raise TraceError(f"{len(models)} models for {nodes} node{'s' * (nodes != 1)}; write more gpus or fewer models")
