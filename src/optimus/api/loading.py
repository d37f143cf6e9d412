"""The door to everything that people write: files in, a scenario and all errors out.

Why: whoever reads a file wants the same: every error at once with its place, and the rest of the world.
Owns: the loop "check, set aside what is wrong, check again", and the report to the caller.
Must not: raise because of what a file says; only `Loaded.or_raise` does, when it is asked to.

    loaded = load_files("cluster.yaml", "story.yaml")
    for error in loaded.errors: print(error)        # story.yaml:12:9: workload train: gpu: must not be negative: -1
    run(loaded.scenario)                            # everything that is right
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct, structs
from pydantic import ValidationError

from optimus.api.building.leftovers import look_at
from optimus.api.building.report import Report
from optimus.api.building.scenario import build
from optimus.api.documents import gather
from optimus.api.errors import FileError, LoadError, SetAside
from optimus.api.findings import Finding, explain
from optimus.api.marks import Fault, Loc, Mark, MarkedMap, dotted, faults_below, find_mark, look_up
from optimus.api.reading import read_documents, read_file
from optimus.api.scenario import Scenario
from optimus.api.setting_aside import Record, SetAsideNames, record_at, remove
from optimus.api.specs.scenarios import ScenarioSpec

MOST_ROUNDS = 100
"""Each round removes what it found wrong; nothing that people write needs more than a handful."""


class Loaded(Struct, frozen=True, kw_only=True):
    scenario: Scenario
    """Everything that is right; an empty world if nothing is."""
    errors: tuple[FileError, ...] = ()
    """In the order of the files."""
    set_aside: tuple[SetAside, ...] = ()

    @property
    def unexpected(self) -> tuple[FileError, ...]:
        """Errors that the file does not announce under `expect.errors`."""
        return tuple(error for error in self.errors if not error.expected)

    def or_raise(self) -> Scenario:
        """The scenario, if there are no errors but announced ones; else `LoadError`."""
        if self.unexpected:
            raise LoadError(self.unexpected)
        return self.scenario


PolicyCheck = Callable[[str], str]
"""What is wrong with a policy that a file names; empty if nothing is."""


def load_files(*paths: str | Path, check_policy: PolicyCheck | None = None) -> Loaded:
    """Read files as one world: cluster specs, pools, queues, workloads and stories, in any mixture.

    Policies live above this package, so the caller brings the check; without one every name is taken."""
    documents: list[Any] = []
    faults: list[Fault] = []
    for path in paths:
        found, wrong = read_file(path)
        documents.extend(found)
        faults.extend(wrong)
    loaded = _load(documents, faults, str(paths[-1]) if paths else "", check_policy)
    if paths and not loaded.scenario.name:
        named = structs.replace(loaded.scenario, name=Path(paths[-1]).stem)
        return structs.replace(loaded, scenario=named)
    return loaded


def load_text(text: str, name: str = "<text>") -> Loaded:
    """Read one text; `name` stands for the file in errors."""
    documents, faults = read_documents(text, name)
    return _load(documents, faults, name, None)


def _load(documents: list[Any], faults: list[Fault], file: str, check_policy: PolicyCheck | None) -> Loaded:
    root, misplaced = gather(documents, file)
    desk = _Desk(root, check_policy)
    for fault in (*faults, *misplaced):
        desk.report_fault(fault)
    scenario = desk.check()
    desk.look_at_leftovers(scenario)
    return desk.finish(scenario)


class _Desk:
    """One file on the desk: what was found in it so far, and what is left of it."""

    def __init__(self, root: MarkedMap, check_policy: PolicyCheck | None) -> None:
        self.root = root
        self.check_policy = check_policy
        self.names = SetAsideNames()
        self.errors: dict[tuple[Mark, str], FileError] = {}
        self.set_aside: list[SetAside] = []
        self.removed: list[tuple[Record, Any]] = []
        self.announced: tuple[tuple[str, Mark], ...] = ()

    def check(self) -> Scenario:
        """Validate and build until nothing has to be removed any more."""
        in_text = [_of_text(loc, fault) for loc, fault in faults_below(self.root)]
        for _ in range(MOST_ROUNDS):
            spec, in_fields = self._validate()
            if self.take([*in_text, *in_fields]):
                in_text = []
                continue
            if spec is None:
                break
            report = Report(self.root, self.names)
            scenario = build(spec, report)
            if spec.policy and self.check_policy and (problem := self.check_policy(spec.policy)):
                report.add(("policy",), problem)
            kept = [finding for finding in report.findings if finding.keep]
            if len(kept) == len(report.findings):
                self.take(kept)
                self.announced = tuple(
                    (fragment, self._place_of_announcement(i)) for i, fragment in enumerate(spec.expect.errors)
                )
                return scenario
            if not self.take(_with_companions(report.findings, self.root)):
                break
        message = "has errors that leave nothing to go on with"
        self.report_fault(Fault(self.root.mark, "", message, "correct the errors above first"))
        return Scenario()

    def _validate(self) -> tuple[ScenarioSpec | None, list[Finding]]:
        try:
            return ScenarioSpec.model_validate(self.root), []
        except ValidationError as error:
            return None, list(explain(error, ScenarioSpec))

    def take(self, findings: list[Finding]) -> bool:
        """Write down what was found and remove the records it is about. Tells whether any was removed."""
        placed = [(finding, record_at(self.root, finding.loc)) for finding in findings]
        doomed = {record.loc: record for finding, record in placed if record is not None and not finding.keep}
        for finding, record in placed:
            mark = finding.mark or find_mark(self.root, finding.loc, key=finding.at_key)
            goes = record if record is not None and record.loc in doomed else None
            self._write(mark, self._place(finding.loc, record), finding.message, finding.hint, goes)
        for loc in sorted(doomed, key=_from_the_end, reverse=True):
            record = doomed[loc]
            if look_up(self.root, loc[:-1]) is None:  # went with something around it
                continue
            mark = find_mark(self.root, loc)
            self.names.add(record)
            self.removed.append((record, look_up(self.root, loc)))
            self.set_aside.append(SetAside(kind=record.kind, name=record.name, path=mark.file, line=mark.line))
            remove(self.root, record)
        return bool(doomed)

    def look_at_leftovers(self, scenario: Scenario) -> None:
        for record, raw in self.removed:
            for finding in look_at(record, raw, scenario, self.names):
                place = f"{record}: {dotted(finding.loc[len(record.loc) :])}"
                self._write(finding.mark or self.root.mark, place, finding.message, finding.hint, record)

    def report_fault(self, fault: Fault) -> None:
        self._write(fault.mark, "", fault.message, fault.hint, None)

    def finish(self, scenario: Scenario) -> Loaded:
        errors = sorted(self.errors.values(), key=lambda error: (error.path, error.line, error.column))
        announced = [fragment for fragment, _ in self.announced]
        marked = [
            structs.replace(error, expected=any(fragment in str(error) for fragment in announced)) for error in errors
        ]
        for fragment, mark in self.announced:
            if not any(fragment in str(error) for error in errors):
                message = f"this file should have an error that says: {fragment}"
                marked.append(
                    FileError(
                        path=mark.file, line=mark.line, column=mark.column, place="expect.errors", message=message
                    )
                )
        return Loaded(scenario=scenario, errors=tuple(marked), set_aside=tuple(sorted(self.set_aside, key=_by_line)))

    def _write(self, mark: Mark, place: str, message: str, hint: str, record: Record | None) -> None:
        self.errors.setdefault(
            (mark, message),
            FileError(
                path=mark.file,
                line=mark.line,
                column=mark.column,
                place=place,
                message=message,
                hint=hint,
                set_aside=str(record) if record is not None else "",
            ),
        )

    def _place(self, loc: Loc, record: Record | None) -> str:
        """`workload train: gpu.count`, or the path where there is no record."""
        if record is None or record.kind in ("section", "setting", "event", "cycle"):
            return self._path(loc)
        inside = dotted(loc[len(record.loc) :])
        return f"{record}: {inside}" if inside else str(record)

    def _path(self, loc: Loc) -> str:
        """`between.advance`; inside a cycle `cycle 3: fail.nodes`, counted as they are played."""
        if len(loc) < 2 or loc[0] != "cycles" or not isinstance(loc[1], int):
            return dotted(loc)
        number = 1 + sum(_turns(look_up(self.root, ("cycles", i, "repeat"))) for i in range(loc[1]))
        return f"cycle {number}: {dotted(loc[2:])}".removesuffix(": ")

    def _place_of_announcement(self, position: int) -> Mark:
        return find_mark(self.root, ("expect", "errors", position))


def _of_text(loc: Loc, fault: Fault) -> Finding:
    """A fault of the text dooms the record it is in; between sections the first one stays."""
    place = (*loc, fault.key) if fault.key else loc
    return Finding(place, fault.message, fault.hint, keep=not loc, mark=fault.mark)


def _with_companions(findings: list[Finding], root: MarkedMap) -> list[Finding]:
    """What dooms a record, with whatever else was found in the same records: they will not be seen again."""
    doomed = {record.loc for finding in findings if not finding.keep and (record := record_at(root, finding.loc))}
    return [
        finding
        for finding in findings
        if not finding.keep or ((record := record_at(root, finding.loc)) and record.loc in doomed)
    ]


def _turns(repeat: Any) -> int:
    return repeat if isinstance(repeat, int) and repeat > 1 else 1


def _from_the_end(loc: Loc) -> tuple[tuple[bool, int, str], ...]:
    """List positions in numeric order, so that removing from the end leaves the others valid."""
    return tuple((isinstance(part, int), part, "") if isinstance(part, int) else (False, 0, part) for part in loc)


def _by_line(piece: SetAside) -> tuple[str, int]:
    return piece.path, piece.line
