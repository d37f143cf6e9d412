"""Assumptions: what stopping and starting costs the jobs of a study, in words.

Why: the less it costs to be stopped, the better a policy looks that stops; who reads a gain must see what it rests on.
Owns: the sentences.
Must not: judge them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from optimus.drivers.sim.jobs import Job
from optimus.model.units import format_duration_ms


def assumptions_of(jobs: Sequence[Job]) -> tuple[str, ...]:
    """One sentence each: starts, checkpoints, leaving, failures."""
    if not jobs:
        return ()
    failing = sum(bool(job.fails_at) for job in jobs)
    return (
        f"A first start takes {_range(job.start_ms for job in jobs)}.",
        f"A later start, or a change of size or place, takes {_range(job.restart_ms for job in jobs)}.",
        *_checkpoints(jobs),
        f"Leaving takes {_range(job.grace_ms for job in jobs)}.",
        f"{failing} of {len(jobs)} jobs fail by themselves." if failing else "No job fails by itself.",
    )


def _checkpoints(jobs: Sequence[Job]) -> Iterable[str]:
    saved = [job for job in jobs if job.checkpoint_ms is not None]
    if len(saved) < len(jobs):
        which = "Every job" if not saved else f"{len(jobs) - len(saved)} of {len(jobs)} jobs"
        yield f"{which} must begin again when stopped."
    now = [job for job in saved if not job.checkpoint_ms]
    if now:
        which = "Jobs go" if len(now) == len(jobs) else f"{len(now)} of {len(jobs)} jobs go"
        yield f"{which} on exactly where they were stopped."
    later = [job for job in saved if job.checkpoint_ms]
    if later:
        every = _range(job.checkpoint_ms or 0 for job in later)
        which = "Jobs save" if len(later) == len(jobs) else f"{len(later)} of {len(jobs)} jobs save"
        yield f"{which} their work every {every}, which takes {_range(job.checkpoint_cost_ms for job in later)}."


def _range(times_ms: Iterable[int]) -> str:
    found = sorted(set(times_ms))
    low, high = (_time(found[0]), _time(found[-1]))
    return low if low == high else f"{low} to {high}"


def _time(ms: int) -> str:
    return "no time" if ms == 0 else format_duration_ms(ms)
