"""The door for what people submit: UnifiedJob, Queue and NodePool documents in, jobs, queues, pools and all errors out.

Why: `optimus submit`, the HTTP API and the Python API take the same documents and answer in the same words.
Owns: several files and documents as one submission, names that are there twice, and the report to the caller.
Must not: raise because of what a document says, or look up which queues a cluster has: whoever knows says so (`known`).

    submission = load_submission("queues.yaml", "train.yaml", now_ms=now)
    for error in submission.errors: print(error)     # train.yaml:7:12: job train: spec.gpu: must not be negative: -1
    submit(submission.jobs)                          # everything that is right
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from optimus.api.building.report import Report
from optimus.api.building.submitted import build_pool, build_queue, check_job
from optimus.api.documents import KINDS, WHOLE
from optimus.api.errors import FileError, LoadError
from optimus.api.findings import Finding
from optimus.api.marks import Fault, Loc, Mark, MarkedList, MarkedMap, dotted, faults_below, find_mark, look_up
from optimus.api.plain import to_marked, to_plain
from optimus.api.reading import read_documents, read_file
from optimus.api.setting_aside import SetAsideNames
from optimus.api.specs.fields import nearest, shown
from optimus.api.specs.jobs import API_VERSION, KIND
from optimus.model.jobs import Job
from optimus.model.pools import NodePool
from optimus.model.queues import Queue
from optimus.model.validation import queue_tree_problems

LIST = "List"
MOST_NAMED = 10
"""Of the queues that are known."""
_NAMING_A_QUEUE: dict[str, tuple[Loc, ...]] = {
    KIND: (("spec", "queue"),),
    "Queue": (("spec", "parent"), ("parent",)),
}
_NOUNS = {KIND: "job", "Queue": "queue", "NodePool": "pool"}


class Submission(Struct, frozen=True, kw_only=True):
    """What is right, beside all that is wrong."""

    jobs: tuple[Job, ...] = ()
    queues: tuple[Queue, ...] = ()
    pools: tuple[NodePool, ...] = ()
    errors: tuple[FileError, ...] = ()
    """In the order of the files."""
    warnings: tuple[FileError, ...] = ()
    """What is accepted, but has no effect or is likely not meant."""
    written: dict[str, dict[str, Any]] = {}
    """Job id -> its document as it came, for what is passed on untouched: labels, image, volumes."""

    def or_raise(self) -> Submission:
        """Itself, if there are no errors; else `LoadError`."""
        if self.errors:
            raise LoadError(self.errors)
        return self


def load_submission(*paths: str | Path, now_ms: int = 0, levels: tuple[str, ...] = ()) -> Submission:
    """Read files. `levels` are the topology levels of a pool that does not name its own."""
    desk = _Desk(now_ms, levels)
    for path in paths:
        desk.take_all(*read_file(path), Mark(str(path), 1, 1))
    return desk.finish()


def load_submission_text(
    text: str,
    name: str = "<text>",
    *,
    now_ms: int = 0,
    levels: tuple[str, ...] = (),
    known: Mapping[str, Queue] | None = None,
) -> Submission:
    """Read one text; `name` stands for the file in errors. `known`: the queues that are there already; then a queue or
    parent that is nowhere is an error as any other, with its line."""
    desk = _Desk(now_ms, levels, known)
    desk.take_all(*read_documents(text, name), Mark(name, 1, 1))
    return desk.finish()


def load_submission_data(data: object, name: str = "", *, now_ms: int = 0, levels: tuple[str, ...] = ()) -> Submission:
    """Read decoded JSON: one document, or a list of them. Errors carry the path of the field instead of a line."""
    desk = _Desk(now_ms, levels)
    if isinstance(data, dict) and data.get("kind") == LIST:
        data, name = data.get("items"), f"{name}items"
    several = isinstance(data, list | tuple)
    for i, value in enumerate(data if isinstance(data, list | tuple) else [data]):
        where = f"{name}[{i}]" if several else name
        document, faults = to_marked(value, where)
        desk.take_all([] if faults else [document], faults, Mark(where, 0, 0))
    return desk.finish()


class _Desk:
    def __init__(self, now_ms: int, levels: tuple[str, ...], known: Mapping[str, Queue] | None = None) -> None:
        self.known = known
        self.named: list[tuple[MarkedMap, str, str, Loc]] = []
        """Documents that name a queue, right or wrong in other things: (document, noun, name, where)."""
        self.now_ms = now_ms
        self.levels = levels
        self.jobs: list[Job] = []
        self.queues: dict[str, tuple[Queue, MarkedMap]] = {}
        self.circular: set[str] = set()
        self.nowhere: set[str] = set()
        """Queues that are named and not there."""
        self.pools: list[NodePool] = []
        self.seen: dict[tuple[str, str], Mark] = {}
        self.errors: dict[tuple[Mark, str, str], FileError] = {}
        self.warnings: dict[tuple[Mark, str, str], FileError] = {}
        self.written: dict[str, dict[str, Any]] = {}

    def take_all(self, documents: list[Any], faults: list[Fault], start: Mark) -> None:
        for fault in faults:
            self.write(self.errors, fault.mark, "", fault.message, fault.hint)
        for document in documents:
            self.take(document, document.mark if isinstance(document, MarkedMap | MarkedList) else start)

    def take(self, document: Any, mark: Mark) -> None:
        if document is None:
            return
        if not isinstance(document, MarkedMap):
            message = f"a document must be a mapping with kind, metadata and spec, not {shown(document)}"
            self.write(self.errors, mark, "", message, "")
            return
        kind = document.get("kind")
        items = document.get("items")
        if kind == LIST and isinstance(items, MarkedList):
            for item, place in zip(items, items.marks, strict=True):
                self.take(item, place)
        elif isinstance(kind, str) and kind in _NOUNS:
            self._take_record(document, kind)
        else:
            self._refuse_kind(document, kind)

    def _take_record(self, document: MarkedMap, kind: str) -> None:
        report = Report(document, SetAsideNames())
        noun, name = _NOUNS[kind], _name_of(document)
        for loc, fault in faults_below(document):
            report.findings.append(
                Finding((*loc, fault.key) if fault.key else loc, fault.message, fault.hint, mark=fault.mark)
            )
        if document.get("apiVersion") not in (None, API_VERSION):
            report.add(("apiVersion",), f"must be {API_VERSION}, not {shown(document['apiVersion'])}")
        self._refuse_twins(document, noun, name, report)
        self.named += [
            (document, noun, name, loc)
            for loc in _NAMING_A_QUEUE.get(kind, ())
            if isinstance(value := look_up(document, loc), str) and value
        ]
        if kind == KIND:
            job = check_job(document, report, self.now_ms)
            if self._settle(document, noun, name, report) and job is not None:
                self.jobs.append(job)
                self.written[job.id] = to_plain(document)
        elif kind == "Queue":
            queue = build_queue(document, report, self.now_ms)
            if self._settle(document, noun, name, report) and queue is not None:
                self.queues[queue.name] = queue, document
        else:
            pool = build_pool(document, report, self.levels)
            if self._settle(document, noun, name, report) and pool is not None:
                self.pools.append(pool)

    def _refuse_twins(self, document: MarkedMap, noun: str, name: str, report: Report) -> None:
        if not name:
            return
        loc: Loc = ("metadata", "name")
        full = name if noun != "job" or "/" in name else f"default/{name}"
        if (noun, full) not in self.seen:
            self.seen[noun, full] = find_mark(document, loc)
        else:
            first = self.seen[noun, full]
            where = f"line {first.line}" if first.file == document.mark.file else f"{first.file}:{first.line}"
            where = where if first.line else first.file or "the first document"
            hint = "give it another name, or leave one of them out"
            report.add(loc, f"{noun} {full} is there twice; first in {where}", hint)

    def _settle(self, document: MarkedMap, noun: str, name: str, report: Report) -> bool:
        """Write down what was found. Tells whether the record may stay."""
        stays = all(finding.keep for finding in report.findings)
        title = f"{noun} {name}".strip()
        for finding in report.findings:
            mark = finding.mark or find_mark(document, finding.loc, key=finding.at_key)
            place = f"{title}: {dotted(finding.loc)}" if finding.loc else title
            target = self.warnings if finding.keep else self.errors
            self.write(target, mark, place, finding.message, finding.hint, "" if stays else title)
        return stays

    def _refuse_kind(self, document: MarkedMap, kind: object) -> None:
        known = list(_NOUNS)
        if kind in (*KINDS, *WHOLE):
            message, hint = f"a {kind} belongs into a scenario file", "optimus scenario run FILE plays it"
        elif kind is None:
            message, hint = "kind is missing", f"known: {', '.join(known)}"
        else:
            message, hint = f"unknown kind {shown(kind)}", nearest(shown(kind), known)
        self.write(self.errors, find_mark(document, ("kind",)), "kind" if kind is not None else "", message, hint)

    def check_tree(self) -> None:
        """Queues below each other. A parent that is not here may be in the cluster already."""
        mine = {name: queue for name, (queue, _) in self.queues.items()}
        for problem in queue_tree_problems({**(self.known or {}), **mine}.values()):
            name = problem.subject.removeprefix("queue ")
            if name not in mine:  # known, and made wrong by one of these
                continue
            queue, document = self.queues[name]
            if queue.parent in mine or queue.parent in (self.known or ()):
                report = Report(document, SetAsideNames())
                report.add(("spec", "parent"), problem.message)
                self._settle(document, "queue", name, report)
                self.circular.add(name)

    def demand_queues(self) -> None:
        """That each queue that is named is known, or comes with this submission, even with errors of its own."""
        if self.known is None:
            return
        there = sorted({*self.known, *(name for noun, name in self.seen if noun == "queue")})
        for document, noun, name, loc in self.named:
            wanted = str(look_up(document, loc))
            if wanted not in there:
                report = Report(document, SetAsideNames())
                hint = nearest(wanted, there)
                close = hint if hint.startswith("did you mean") else ""
                report.add(loc, f"there is no queue {wanted}" + ("" if close else f"; known are {_few(there)}"), close)
                self._settle(document, noun, name, report)
                self.nowhere.add(wanted)

    def write(
        self,
        target: dict[tuple[Mark, str, str], FileError],
        mark: Mark,
        place: str,
        message: str,
        hint: str,
        aside: str = "",
    ) -> None:
        error = FileError(
            path=mark.file, line=mark.line, column=mark.column, place=place, message=message, hint=hint, set_aside=aside
        )
        target.setdefault((mark, place, message), error)

    def finish(self) -> Submission:
        self.check_tree()
        self.demand_queues()
        return Submission(
            jobs=tuple(job for job in self.jobs if job.workload.queue not in self.nowhere),
            queues=tuple(
                queue
                for name, (queue, _) in self.queues.items()
                if name not in self.circular and queue.parent not in self.nowhere
            ),
            pools=tuple(self.pools),
            errors=_by_place(self.errors.values()),
            warnings=_by_place(self.warnings.values()),
            written=self.written,
        )


def _name_of(document: MarkedMap) -> str:
    """`train`, or `ml/train` where a namespace is written; empty if there is no name."""
    name = look_up(document, ("metadata", "name")) or look_up(document, ("spec", "name")) or document.get("name")
    namespace = look_up(document, ("metadata", "namespace"))
    if not isinstance(name, str):
        return ""
    return f"{namespace}/{name}" if isinstance(namespace, str) else name


def _few(names: list[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "") or "none"


def _by_place(errors: Iterable[FileError]) -> tuple[FileError, ...]:
    """In the order of the files as they were given, line by line inside each."""
    found = list(errors)
    files = {path: i for i, path in enumerate(dict.fromkeys(error.path for error in found))}
    return tuple(sorted(found, key=lambda error: (files[error.path], error.line, error.column)))
