"""Sweeps that take a moment: a handful of jobs, and peers that decide quickly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from optimus.drivers.sim.sweeping import (
    Failed,
    Finished,
    Run,
    Scene,
    Shelf,
    Wishes,
    contenders,
    runs_of,
    scenes,
    source_of,
    sweep,
)

TINY = "synthetic:jobs=20,gpus=8,tenants=2"


class Counting:
    """A watcher that remembers which runs were really played."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.over: list[int] = []
        self.told = 0

    def began(self, run: Run) -> None:
        self.begun.append(run.number)

    def went_on(self, run: Run, jobs_over: int) -> None:
        self.told += 1

    def ended(self, run: Run) -> None:
        self.over.append(run.number)


def tiny(*names: str, text: str = TINY, **wishes: object) -> tuple[tuple[Scene, ...], tuple[Run, ...]]:
    found = scenes([source_of(text)], Wishes(**wishes))  # type: ignore[arg-type]
    return found, runs_of(found, contenders(names))


def swept(
    found: tuple[Scene, ...], runs: tuple[Run, ...], *, processes: int = 1, shelf: Shelf | None = None
) -> tuple[dict[int, Finished | Failed], Counting]:
    results: dict[int, Finished | Failed] = {}
    watcher = Counting()
    sweep(found, runs, processes=processes, watcher=watcher, shelf=shelf, results=results)
    return results, watcher


def listed(folder: Path, *rows: str) -> Path:
    """A list in the format of Philly."""
    path = folder / "jobs.csv"
    path.write_text("\n".join(["job_id,submit_time,duration_s,num_gpus,vc", *rows]) + "\n", encoding="utf-8")
    return path


def rows(count: int, gpus: int = 1, queue: str = "x") -> Iterator[str]:
    for i in range(count):
        yield f"job-{i},2017-09-04 10:{i:02d}:00,600,{gpus},{queue}"
