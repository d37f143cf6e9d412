"""What a policy sees: columns, one row per workload, step, victim or node.

Why: a policy is a plain function from one of these to one array. It never meets an object of the brain, so it
cannot change one, and it is fast for fifty thousand rows without trying.
Owns: the names, units and meaning of the columns. The arrays are read-only views of equal length.
Must not: know which policy reads it.

Times are milliseconds, GPUs thousandths of a device. -1 means "unknown" or "none" where a column says so.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
NumberArray = IntArray | FloatArray | BoolArray
"""What a policy's function may return."""

UNKNOWN = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadColumns:
    """For an order: the workloads that are to be put in a row."""

    now_ms: int
    seed: int
    """For an order that draws lots: the only chance there is, and it is in the journal."""
    priority: IntArray
    """Higher is more important. The brain always sorts by it first, then by the order's value."""
    submitted_ms: IntArray
    waiting_ms: IntArray
    """Since submission, without the time it ran."""
    size_milli: IntArray
    """GPUs of its minimum gang; an eighth of its CPU for work without GPUs, so that it has a size too."""
    attained_gpu_ms: IntArray
    """Service received over all attempts: one GPU for one millisecond is 1."""
    elapsed_ms: IntArray
    """Run time so far, over all attempts."""
    expected_ms: IntArray
    """Total run time as declared or predicted; -1 unknown."""
    family_mean_ms: IntArray
    """Mean total run time of ended work that outlived `elapsed_ms`, of the same family, or of its queue while
    the family has no history. Where the family has 128 runs: `elapsed_ms` plus the time until one like it ends, the
    chance of a quick end counted; the same of the queue where it names no family. 0 when it outlived them all, -1
    when there is no history."""
    queue_high_ms: IntArray
    """A high quantile of run times in its queue; -1 unknown."""
    deadline_ms: IntArray
    """The moment by which it is to be finished; -1 none."""
    entitled_milli: IntArray
    """GPUs that its queue is due now."""
    restarts: IntArray
    is_running: BoolArray

    def __post_init__(self) -> None:
        _protect(self)

    def __len__(self) -> int:
        return len(self.submitted_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticColumns:
    """For growth: possible steps up. One call may ask for several steps of the same workload, a row each."""

    replicas: IntArray
    next_replicas: IntArray
    step_milli: IntArray
    """GPUs that the step adds; an eighth of the CPU for work without GPUs."""
    speed_milli: IntArray
    """Speed now; 1000 is the speed of one replica."""
    next_speed_milli: IntArray
    attained_gpu_ms: IntArray
    remaining_ms: IntArray
    """Expected rest of the run at the present speed; -1 unknown."""
    is_new: BoolArray
    """It starts in this plan, so growing costs it no restart."""

    def __post_init__(self) -> None:
        _protect(self)

    def __len__(self) -> int:
        return len(self.replicas)


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeColumns:
    """For sizing: the sizes that elastic workloads of one queue could have, a row for each workload and size."""

    replicas: IntArray
    size_milli: IntArray
    """GPUs of so many replicas."""
    speed_milli: IntArray
    """With so many replicas; 1000 is the speed of one."""
    now_replicas: IntArray
    """Replicas that run now; 0: it waits, or starts in this plan."""
    now_speed_milli: IntArray
    worked_ms: IntArray
    """Work done so far: what one replica would have needed as long for."""
    left_ms: IntArray
    """Expected rest of its work with one replica, from what ended work of its family took; -1 unknown."""
    age_ms: IntArray
    """Since it was submitted."""
    restarts: IntArray
    """Changes of size count too."""
    restart_cost_ms: IntArray

    def __post_init__(self) -> None:
        _protect(self)

    def __len__(self) -> int:
        return len(self.replicas)


@dataclass(frozen=True, slots=True, kw_only=True)
class VictimColumns:
    """For the cost of a victim: running work that may be taken out or made smaller."""

    restart_cost_ms: IntArray
    lost_ms: IntArray
    """Run time since its last checkpoint, which it would have to repeat; 0 if it is known to save in time when told."""
    size_milli: IntArray
    """GPUs of all its replicas."""
    priority: IntArray
    running_ms: IntArray
    """Since this attempt started."""
    surplus: BoolArray
    """Only replicas above its minimum are taken; it keeps running."""

    def __post_init__(self) -> None:
        _protect(self)

    def __len__(self) -> int:
        return len(self.size_milli)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeColumns:
    """For an own placement layer: the nodes on which one replica would fit, and what it asks for."""

    asked_gpu_milli: int
    asked_cpu_milli: int
    asked_memory_mib: int
    free_gpu_milli: IntArray
    total_gpu_milli: IntArray
    free_cpu_milli: IntArray
    free_memory_mib: IntArray
    free_devices: IntArray
    """Devices of which nothing is taken."""

    def __post_init__(self) -> None:
        _protect(self)

    def __len__(self) -> int:
        return len(self.free_gpu_milli)


AnyColumns = WorkloadColumns | ElasticColumns | SizeColumns | VictimColumns | NodeColumns
_Columns = TypeVar("_Columns", bound=AnyColumns)

_UNKNOWN_BY_DEFAULT = {"expected_ms", "family_mean_ms", "queue_high_ms", "deadline_ms", "remaining_ms", "left_ms"}
_ONE_BY_DEFAULT = {"size_milli": 1000, "step_milli": 1000, "speed_milli": 1000, "next_speed_milli": 2000}


def fill(kind: type[_Columns], length: int, **given: Any) -> _Columns:
    """Columns of `length` rows from those given: the rest is unknown, one GPU or zero. To try a policy with."""
    values = dict(given)
    for field in fields(kind):
        if field.name not in values:
            value = UNKNOWN if field.name in _UNKNOWN_BY_DEFAULT else _ONE_BY_DEFAULT.get(field.name, 0)
            values[field.name] = value if field.type == "int" else np.full(length, value)
    return kind(**values)


def _protect(columns: AnyColumns) -> None:
    """Give the policy views that it cannot write to, and refuse rows that do not line up."""
    length = -1
    for field in fields(columns):
        if field.type == "int":
            continue
        dtype = np.bool_ if field.type == "BoolArray" else np.int64
        view: NDArray[Any] = np.asarray(getattr(columns, field.name), dtype=dtype).view()
        length = view.shape[0] if length < 0 and view.ndim == 1 else length
        if view.shape != (length,):
            raise ValueError(f"column {field.name} has shape {view.shape}, the others ({length},)")
        view.flags.writeable = False
        object.__setattr__(columns, field.name, view)
