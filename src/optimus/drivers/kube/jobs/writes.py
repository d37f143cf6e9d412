"""Writes: what a look asks of the server, in the order in which it has to be asked.

    finalizer of the job  │  status ──► service, pods made, deleted, cleared, released ──► let go, or forget

Why: whoever dies between two of them leaves something that the next look understands; that holds for this order only.
Owns: the bodies of requests, and the order.
Must not: send them.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from optimus.drivers.kube.jobs import words
from optimus.drivers.kube.jobs.keeping import merge_patch, status_of
from optimus.drivers.kube.jobs.making import Start, pod_of, service_of
from optimus.drivers.kube.jobs.reading import Written
from optimus.drivers.kube.jobs.records import Look
from optimus.drivers.kube.objects import Anything, Pod
from optimus.kube.client import MERGE, STRATEGIC
from optimus.kube.resources import PODS, Resource

Document = dict[str, Any]


class Create(Struct, frozen=True, kw_only=True):
    resource: Resource
    namespace: str
    body: Document

    @property
    def name(self) -> str:
        return str(self.body["metadata"]["name"])


class Patch(Struct, frozen=True, kw_only=True):
    resource: Resource
    namespace: str
    name: str
    body: Document
    subresource: str = ""
    form: str = MERGE
    version: str = ""
    """Only this version of it; empty: any, of the same uid."""


class Delete(Struct, frozen=True, kw_only=True):
    resource: Resource
    namespace: str
    name: str
    uid: str
    grace_s: int | None = None
    """None: as it says itself."""


Write = Create | Patch | Delete
Stage = list[Write]
"""Writes that do not depend on each other."""


def stages(thing: Anything, written: Written | None, look: Look, scheduler: str) -> list[Stage]:
    """One after the other; a stage that was not done whole ends the round."""
    if look.adopt:
        return [[_finalizers(thing, [*(thing.metadata.finalizers or ()), words.KEPT])]]
    found: list[Stage] = []
    if look.status is not None:
        found.append([status_patch(thing, look.status)])
    found.append([*_services(thing, written, look), *_pods(thing, written, look, scheduler), *leaving(look)])
    if look.let_go:
        found.append([_finalizers(thing, [one for one in thing.metadata.finalizers or () if one != words.KEPT])])
    if look.forget:
        meta = thing.metadata
        gone = Delete(resource=words.UNIFIED_JOBS, namespace=meta.namespace, name=meta.name, uid=meta.uid)
        found.append([gone])
    return [stage for stage in found if stage]


def status_patch(thing: Anything, status: Document) -> Patch:
    meta = thing.metadata
    return Patch(
        resource=words.UNIFIED_JOBS,
        namespace=meta.namespace,
        name=meta.name,
        body={"metadata": {"uid": meta.uid}, "status": merge_patch(status_of(thing), status)},
        subresource="status",
        version=meta.resource_version,
    )


def leaving(look: Look) -> Stage:
    """Pods that go."""
    away: Stage = [_delete(pod, None) for pod in look.delete]
    away += [_delete(pod, 0) for pod in look.clear]
    return away + [_release(pod) for pod in look.release]


def _delete(pod: Pod, grace_s: int | None) -> Delete:
    meta = pod.metadata
    return Delete(resource=PODS, namespace=meta.namespace, name=meta.name, uid=meta.uid, grace_s=grace_s)


def _release(pod: Pod) -> Patch:
    meta = pod.metadata
    body = {"metadata": {"uid": meta.uid, "$deleteFromPrimitiveList/finalizers": [words.ENDED]}}
    return Patch(resource=PODS, namespace=meta.namespace, name=meta.name, body=body, form=STRATEGIC)


def _finalizers(thing: Anything, wanted: list[str]) -> Patch:
    meta = thing.metadata
    return Patch(
        resource=words.UNIFIED_JOBS,
        namespace=meta.namespace,
        name=meta.name,
        body={"metadata": {"uid": meta.uid, "finalizers": wanted}},
        version=meta.resource_version,
    )


def _services(thing: Anything, written: Written | None, look: Look) -> Stage:
    body = service_of(thing, written) if written is not None and look.make else None
    return [Create(resource=words.SERVICES, namespace=thing.metadata.namespace, body=body)] if body else []


def _pods(thing: Anything, written: Written | None, look: Look, scheduler: str) -> Stage:
    if written is None or look.kept is None:
        return []
    made: Stage = []
    for one in look.make:
        start = Start(
            role=one.role,
            ordinal=one.ordinal,
            life=look.kept.life,
            revision=look.kept.revision,
            part=one.part,
            starts=look.kept.parts.starts.get(one.part, 1) if one.part is not None else 0,
        )
        body = pod_of(thing, written, start, scheduler)
        made.append(Create(resource=PODS, namespace=thing.metadata.namespace, body=body))
    return made
