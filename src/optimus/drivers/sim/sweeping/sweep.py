"""The sweep: scenes times contenders, each run once.

Results come back by the number of their run, so that nothing after this depends on which process was faster.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from optimus.drivers.sim.sweeping.contenders import Contender
from optimus.drivers.sim.sweeping.keeping import Shelf
from optimus.drivers.sim.sweeping.running import Failed, Finished, Run
from optimus.drivers.sim.sweeping.scenes import Scene
from optimus.drivers.sim.sweeping.spreading import Watcher, play_all

_NO_FILE_NAME = re.compile(r"[^A-Za-z0-9.]+")


def runs_of(
    scenes: Sequence[Scene], people: Sequence[Contender], *, timed: bool = False, journal: Path | None = None
) -> tuple[Run, ...]:
    """Scene by scene: a process keeps the jobs it has."""
    pairs = [(number, contender) for number in range(len(scenes)) for contender in people]
    return tuple(
        Run(
            number=number,
            scene=scene,
            contender=contender,
            timed=timed,
            journal=journal / _folder(scenes[scene], contender) if journal and not contender.peer else None,
        )
        for number, (scene, contender) in enumerate(pairs)
    )


def _folder(scene: Scene, contender: Contender) -> str:
    load = "" if scene.load is None else f"-load-{scene.load:g}"
    return _NO_FILE_NAME.sub("-", f"{scene.name}{load}-{contender.label}").strip("-")


def sweep(
    scenes: Sequence[Scene],
    runs: Sequence[Run],
    *,
    processes: int,
    watcher: Watcher,
    shelf: Shelf | None = None,
    results: dict[int, Finished | Failed],
) -> None:
    """Fills `results`, so that whoever interrupts knows what is done. What is on the shelf is not played again, except
    where a journal is to be written."""
    todo = []
    for run in runs:
        kept = shelf.find(scenes[run.scene], run) if shelf is not None and run.journal is None else None
        if kept is None:
            todo.append(run)
        else:
            results[run.number] = kept
            watcher.ended(run)
    for run, result in play_all(scenes, todo, processes, watcher):
        if shelf is not None and isinstance(result, Finished):
            shelf.put(scenes[run.scene], run, result)
        results[run.number] = result
        watcher.ended(run)
