"""One submitted document, checked to its end: a job, a queue or a pool.

Why: an error in one field must not hide what is wrong with the others.
Owns: the second look at a job without its bad fields, and paths from a flat record back into the document.
Must not: compare documents with each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from optimus.api.building.jobs import build_job
from optimus.api.building.report import Report
from optimus.api.documents import flat_record
from optimus.api.findings import Finding, explain
from optimus.api.locating import locate_pool, locate_queue
from optimus.api.marks import Fault, Loc, MarkedMap, dotted
from optimus.api.plain import to_marked
from optimus.api.setting_aside import SetAsideNames
from optimus.api.specs.clusters import PoolSpec
from optimus.api.specs.jobs import JobDocument
from optimus.api.specs.queues import QueueSpec
from optimus.model import validation
from optimus.model.jobs import Job
from optimus.model.pools import NodePool
from optimus.model.queues import Queue

_READ = ("name", "namespace", "labels", "annotations")
"""Of the metadata that a server has of an object."""


def check_job(document: MarkedMap, report: Report, now_ms: int) -> Job | None:
    """The job if it is right; all that is wrong is in the report."""
    try:
        return build_job(JobDocument.model_validate(document), report, now_ms)
    except ValidationError as error:
        found = [finding for finding in explain(error, JobDocument) if finding.loc != ("apiVersion",)]
    known = {finding.loc for finding in report.findings}
    report.findings.extend(finding for finding in found if finding.loc not in known)
    if not isinstance(document.get("spec"), MarkedMap):
        return None
    try:
        rest = JobDocument.model_validate(_without(document, found))
    except ValidationError:
        return None
    second = Report(document, SetAsideNames())
    build_job(rest, second, now_ms)
    report.findings.extend(finding for finding in second.findings if not _touches(finding.loc, found))
    return None


def read_cluster_job(stored: Mapping[str, Any], *, submitted_ms: int) -> tuple[Job | None, list[str]]:
    """A UnifiedJob as a server has it, and what is wrong with it in words. What its rules let through is right, but for
    what they cannot compare: amounts that stand in the template as well."""
    read = {"metadata": {key: stored["metadata"].get(key) for key in _READ}, "spec": stored.get("spec")}
    document, faults = to_marked(read, "")
    if faults:
        return None, [fault.message for fault in faults]
    report = Report(document, SetAsideNames())
    try:
        job = build_job(JobDocument.model_validate(document), report, submitted_ms, in_cluster=True)
    except ValidationError as error:
        job, report.findings = None, list(explain(error, JobDocument))
    wrong = [finding for finding in report.findings if not finding.keep]
    return job, [f"{dotted(finding.loc)}: {finding.message}" for finding in wrong]


def _without(document: MarkedMap, found: Iterable[Finding]) -> dict[str, object]:
    """The document without the fields that cannot be read, so that the others can be compared."""
    spec = document.get("spec")
    bad = {finding.loc[1] for finding in found if len(finding.loc) > 1 and finding.loc[0] == "spec"}
    kept = {key: value for key, value in spec.items() if key not in bad} if isinstance(spec, dict) else {}
    if bad & {"command", "template"}:
        kept.setdefault("command", "unreadable")
    return {"metadata": {"name": "unnamed"}, "spec": kept}


def _touches(loc: Loc, found: Iterable[Finding]) -> bool:
    """Whether a finding may be there only because a bad field was left out."""
    return any(loc == other.loc[: len(loc)] or other.loc[:2] == loc[:2] for other in found)


def build_queue(document: MarkedMap, report: Report, now_ms: int) -> Queue | None:
    record = _record(document, report)
    try:
        spec = QueueSpec.model_validate(record)
    except ValidationError as error:
        report.findings.extend(_in_document(finding, document) for finding in explain(error, QueueSpec))
        return None
    queue = spec.to_queue(now_ms=now_ms, created_ms=now_ms)
    problems = validation.queue_problems(queue)
    report.problems((), problems, lambda path: _written_at(locate_queue(spec, path), document))
    return queue


def build_pool(document: MarkedMap, report: Report, levels: tuple[str, ...]) -> NodePool | None:
    record = _record(document, report)
    try:
        spec = PoolSpec.model_validate(record)
    except ValidationError as error:
        report.findings.extend(_in_document(finding, document) for finding in explain(error, PoolSpec))
        return None
    pool = spec.to_pool(levels)
    report.problems((), validation.pool_problems(pool), lambda path: _written_at(locate_pool(path), document))
    return pool


def _record(document: MarkedMap, report: Report) -> MarkedMap:
    faults: list[Fault] = []
    record = flat_record(document, faults)
    report.findings.extend(Finding(("spec", fault.key), fault.message, fault.hint, mark=fault.mark) for fault in faults)
    return record


def _in_document(finding: Finding, document: MarkedMap) -> Finding:
    return finding._replace(loc=_written_at(finding.loc, document))


def _written_at(loc: Loc, document: MarkedMap) -> Loc:
    """A path of the flat record, as a path of the document."""
    for home in ("metadata", "spec"):
        inside = document.get(home)
        if loc and isinstance(inside, dict) and loc[0] in inside:
            return (home, *loc)
    if loc and loc[0] in document:
        return loc
    return ("metadata", *loc) if loc[:1] == ("name",) else ("spec", *loc)
