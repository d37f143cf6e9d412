"""Studying: results of runs become one study per load.

Why: averages over loads would hide what a sweep is made to show.
Owns: which results belong in one table, and what is told about where they come from.
Must not: leave a scheduler out silently. One that failed anywhere is in no average, and that is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, structs

from optimus.drivers.sim.measuring import Measured, Provenance, Study, ask, provenance_of, study
from optimus.drivers.sim.sweeping.contenders import Contender
from optimus.drivers.sim.sweeping.running import Failed, Finished, Run, measured
from optimus.drivers.sim.sweeping.scenes import Scene


class Told(Struct, frozen=True, kw_only=True, eq=False):
    """What is told of one load."""

    load: float | None
    scenes: tuple[Scene, ...]
    study: Study | None
    """None: nobody came to an end on every trace."""
    failures: tuple[str, ...]
    notes: tuple[str, ...]


def studies(
    scenes: Sequence[Scene],
    runs: Sequence[Run],
    results: Mapping[int, Finished | Failed],
    *,
    reference: str,
    command: str,
    notes: tuple[str, ...] = (),
) -> tuple[Told, ...]:
    """`reference` is a label; `results` are by the number of the run."""
    loads = dict.fromkeys(scene.load for scene in scenes)
    return tuple(_told(load, scenes, runs, results, reference, command, notes) for load in loads)


def _told(
    load: float | None,
    scenes: Sequence[Scene],
    runs: Sequence[Run],
    results: Mapping[int, Finished | Failed],
    reference: str,
    command: str,
    notes: tuple[str, ...],
) -> Told:
    here = {number: scene for number, scene in enumerate(scenes) if scene.load == load}
    ours = [run for run in runs if run.scene in here]
    failures, said, failed = [], list(notes), set()
    for run in ours:
        result, name = results[run.number], here[run.scene].name
        if isinstance(result, Failed):
            failed.add(run.contender.label)
            failures.append(f"{run.contender.label} on {name}{_at(load)}: {result.why}")
        else:
            said += [f"{name}: {note}" for note in result.notes]
    failures += [f"{label} failed on a trace and is in no table{_at(load)}" for label in sorted(failed)]
    rows: list[list[Measured]] = []
    for number, scene in here.items():
        asked = ask(scene.trace.jobs)
        row = []
        for run in ours:
            result = results[run.number]
            if run.scene == number and run.contender.label not in failed and isinstance(result, Finished):
                row.append(measured(result, scene, run.contender, asked))
        rows.append(row)
    found = tuple(here.values())
    told = Told(load=load, scenes=found, study=None, failures=tuple(failures), notes=tuple(said))
    if not rows[0]:
        return told
    if reference in failed:
        failures.append(f"the reference {reference} failed; {rows[0][0].name} takes its place")
    people = list(dict.fromkeys(run.contender for run in ours if run.contender.label not in failed))
    made = study(
        rows,
        found[0].setup,
        _provenance(found, people, load, command, (*failures, *said)),
        reference="" if reference in failed else reference,
    )
    return structs.replace(told, study=made, failures=tuple(failures))


def _provenance(
    scenes: Sequence[Scene], people: Sequence[Contender], load: float | None, command: str, notes: tuple[str, ...]
) -> Provenance:
    policies = tuple((one.label, one.about) for one in people)
    first = scenes[0]
    told = provenance_of(first.trace, policies=policies, command=command, notes=notes)
    files = [one for scene in scenes for one in scene.files]
    files += [(one.file, one.code) for one in people if one.code]
    told = structs.replace(
        told,
        trace=f"{told.trace}{_at(load)}",
        assumptions=first.assumptions,
        files=tuple(dict.fromkeys(files)),
        played=tuple((scene.name, scene.digest) for scene in scenes),
    )
    if len(scenes) == 1:
        return told
    each = [provenance_of(scene.trace) for scene in scenes]
    if any(scene.setup.nodes != first.setup.nodes for scene in scenes):
        told = structs.replace(
            told, notes=(*notes, "The traces have clusters of their own; the one shown is the first.")
        )
    return structs.replace(
        told,
        trace=f"{len(scenes)} traces{_at(load)}",
        traces=tuple(scene.name for scene in scenes),
        source="; ".join(f"{scene.name}: {one.source}" for scene, one in zip(scenes, each, strict=True)),
        problems=tuple(dict.fromkeys(problem for one in each for problem in one.problems)),
    )


def _at(load: float | None) -> str:
    return "" if load is None else f" at load {load:g}"
