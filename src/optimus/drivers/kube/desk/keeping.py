"""A UnifiedJob as a cluster keeps it, from whatever form people write it in.

Why: the same file and the same line serve a laptop and a cluster; a server knows one form of each field.
Owns: the way from short words (`command`, `gpu: 2`, `replicas: 1-4`) to the stored form (`api.specs.cluster_jobs`).
Must not: check what the server checks, or touch a document that is in the stored form already.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from optimus.api.submitting import load_submission_data
from optimus.api.writing import to_document
from optimus.drivers.kube.desk.refusing import invalid
from optimus.drivers.kube.mirror import SCHEDULER_NAME

SHORT = frozenset(
    {"command", "env", "workdir", "gpu", "cpu", "memory", "accelerators", "replicas", "image", "nodeSelector"}
    | {"tolerations", "restartCost", "lossGrace", "maxRuntime", "expectedDuration", "ttlAfterFinished"}
)
Document = dict[str, Any]


def as_kept(document: Mapping[str, Any], where: str = "", scheduler: str = SCHEDULER_NAME) -> Document:
    """For this one of several schedulers, unless it names another. Raises Refused with the errors of a document that
    cannot be read, as one machine tells them."""
    kept = _long_form(document, where)
    template = kept["spec"].get("template") if isinstance(kept.get("spec"), Mapping) else None
    if scheduler != SCHEDULER_NAME and isinstance(template, Mapping) and isinstance(template.get("spec"), Mapping):
        pod = {"schedulerName": scheduler, **template["spec"]}
        kept = {**kept, "spec": {**kept["spec"], "template": {**template, "spec": pod}}}
    return kept


def _long_form(document: Mapping[str, Any], where: str) -> Document:
    spec = document.get("spec")
    if not isinstance(spec, Mapping) or not (SHORT & spec.keys() or _is_short(spec)):
        return dict(document)
    image, at = spec.get("image"), f"{where}: " if where else ""
    plain = {**document, "spec": {key: value for key, value in spec.items() if key != "image"}}
    found = load_submission_data(plain)
    if found.errors or not found.jobs:
        raise invalid("\n".join(f"{at}{error}" for error in found.errors))
    (job,) = found.jobs
    kept = to_document(job, found.written[job.id])
    kept["metadata"] = dict(document.get("metadata") or {})
    for name in ("queue", "class", "pools"):  # what nobody has said, the cluster says
        if name not in spec:
            del kept["spec"][name]
    main = kept["spec"]["template"]["spec"]["containers"][0]
    if image:
        main["image"] = image
    if not main.get("image"):
        raise invalid(
            f"{at}UnifiedJob {kept['metadata'].get('name')}: on a cluster a command runs in a container: "
            "write image: python:3.12 beside command, or a template"
        )
    return kept


def _is_short(spec: Mapping[str, Any]) -> bool:
    """Fields that are there in both forms, in that of one machine."""
    replicas = spec.get("replicaSpec")
    gpu = replicas.get("gpu") if isinstance(replicas, Mapping) else None
    listed = gpu.get("models") if isinstance(gpu, Mapping) else None
    speeds = isinstance(listed, Mapping) or any(isinstance(one, Mapping) for one in listed or ())
    sizes = replicas.get("sizes") if isinstance(replicas, Mapping) else None
    return speeds or isinstance(sizes, str) or (gpu is not None and not isinstance(gpu, Mapping))
