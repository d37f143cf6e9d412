"""Several documents, one world: sections of the same name add up.

Why: a cluster file, a queue file and a story can be given together, and `kubectl`-shaped documents among them.
Owns: where each document's content belongs, and the error for what cannot be given twice.
Must not: look inside a record.

    nodes: …                    is cluster.nodes; pools and queues inside `cluster` are moved beside it
    kind: Queue | NodePool | Workload, metadata: {name}, spec: {…}     is one more record of its section
"""

from __future__ import annotations

from typing import Any

from optimus.api.marks import Fault, Mark, MarkedList, MarkedMap
from optimus.api.specs.fields import nearest, shown

LISTS = ("pools", "queues", "workloads")
KINDS = {"Queue": "queues", "NodePool": "pools", "Workload": "workloads"}
WHOLE = ("Scenario", "Cluster")
_ENVELOPE = ("apiVersion", "kind", "metadata")


def gather(documents: list[Any], file: str) -> tuple[MarkedMap, list[Fault]]:
    """One mapping with everything that the documents say."""
    root = MarkedMap(Mark(file, 1, 1))
    faults: list[Fault] = []
    for document in documents:
        if isinstance(document, MarkedMap):
            if not root:
                root.mark = document.mark
            root.faults.extend(document.faults)
            _add_document(root, document, faults)
        elif document is not None:
            mark = document.mark if isinstance(document, MarkedList) else root.mark
            message = f"a document must be a mapping with sections such as cluster and queues, not {shown(document)}"
            faults.append(Fault(mark, "", message, ""))
    return root, faults


def _add_document(root: MarkedMap, document: MarkedMap, faults: list[Fault]) -> None:
    kind = document.get("kind")
    if kind is None or kind in WHOLE:
        _add_sections(root, document, faults)
    elif isinstance(kind, str) and kind in KINDS:
        section = KINDS[kind]
        records = MarkedList(document.mark)
        records.put(flat_record(document, faults), document.mark)
        _add_list(root, section, records, document.mark, faults)
    else:
        known = [*KINDS, *WHOLE]
        hint = nearest(shown(kind), known)
        faults.append(Fault(document.value_marks["kind"], "kind", f"unknown kind {shown(kind)}", hint))


def flat_record(document: MarkedMap, faults: list[Fault]) -> MarkedMap:
    """`metadata` and `spec` of a Kubernetes object as one flat record."""
    record = MarkedMap(document.mark)
    metadata = document.get("metadata")
    if isinstance(metadata, MarkedMap):
        for key in ("name", "namespace"):
            if key in metadata:
                record.take_from(metadata, key)
    spec = document.get("spec")
    if isinstance(spec, MarkedMap):
        record.faults.extend(spec.faults)
        for key in spec:
            if key in record:
                message = f"{key} is given by metadata and by spec"
                faults.append(Fault(spec.key_marks[key], key, message, "keep it in metadata"))
            else:
                record.take_from(spec, key)
    for key in document:
        if key not in (*_ENVELOPE, "spec", "status"):
            record.take_from(document, key)
    return record


def _add_sections(root: MarkedMap, document: MarkedMap, faults: list[Fault]) -> None:
    for key, value in document.items():
        mark = document.key_marks[key]
        if key in _ENVELOPE and "kind" in document:
            continue
        if key == "cluster" and isinstance(value, MarkedMap):
            _add_cluster(root, value, faults)
        elif key in ("cluster", "nodes") and isinstance(value, MarkedList):
            _add_list(_cluster_of(root, mark, faults), "nodes", value, mark, faults)
        elif key in LISTS and isinstance(value, MarkedList):
            _add_list(root, key, value, mark, faults)
        elif key in LISTS and key in root:
            faults.append(Fault(mark, key, f"must be a list, not {shown(value)}", ""))
        elif key in root:
            message = f"{key} is given twice; first in line {root.key_marks[key].line}"
            faults.append(Fault(mark, key, message, "only pools, queues, workloads and nodes add up"))
        elif key == "nodes":
            _cluster_of(root, mark, faults).take_from(document, key)
        else:
            root.take_from(document, key)


def _add_cluster(root: MarkedMap, cluster: MarkedMap, faults: list[Fault]) -> None:
    home = _cluster_of(root, cluster.mark, faults)
    home.faults.extend(cluster.faults)
    for key, value in cluster.items():
        target = root if key in ("pools", "queues") else home
        if isinstance(value, MarkedList) and key in ("pools", "queues", "nodes"):
            _add_list(target, key, value, cluster.key_marks[key], faults)
        elif key in target:
            faults.append(Fault(cluster.key_marks[key], key, f"{key} is given twice", ""))
        else:
            target.take_from(cluster, key)


def _cluster_of(root: MarkedMap, mark: Mark, faults: list[Fault]) -> MarkedMap:
    home = root.get("cluster")
    if not isinstance(home, MarkedMap):
        _refuse(root, "cluster", "a mapping or a list of node groups", faults)
        home = MarkedMap(mark)
        root.put("cluster", home, mark, mark)
    return home


def _add_list(target: MarkedMap, key: str, records: MarkedList, mark: Mark, faults: list[Fault]) -> None:
    section = target.get(key)
    if not isinstance(section, MarkedList):
        _refuse(target, key, "a list", faults)
        section = MarkedList(records.mark)
        target.put(key, section, mark, records.mark)
    section.take_all_from(records)


def _refuse(target: MarkedMap, key: str, what: str, faults: list[Fault]) -> None:
    """An earlier document said something else here, which gives way."""
    if target.get(key) is not None:
        faults.append(Fault(target.value_marks[key], key, f"must be {what}, not {shown(target[key])}", ""))
