"""Documents that people submit, sent to the server with their own rights.

Why: the file that `kubectl apply` takes is the file that `optimus submit` takes.
Owns: which kinds are sent, that the server checks all of a file before any of it is done, and what is wrong where.
Must not: check what the server checks; take kinds that are no work: kubectl does that well.

Queues and pools are applied (a queue that is there is changed); work is created, since work of the same name is other
work. What fails between the check and the doing is told, with what was done.
"""

from __future__ import annotations

from typing import Any

import msgspec
import yaml
from msgspec import Struct

from optimus.drivers.kube.desk.commands import NO_IMAGE, job_of
from optimus.drivers.kube.desk.keeping import as_kept
from optimus.drivers.kube.desk.naming import Meant
from optimus.drivers.kube.desk.refusing import Refused, in_words, invalid
from optimus.drivers.kube.discovering import Discovery
from optimus.drivers.kube.grouping import Kinds
from optimus.drivers.kube.grouping.declared import declared_roles
from optimus.drivers.kube.grouping.kinds import kind_name, short_names
from optimus.drivers.kube.grouping.overrides import SCHEDULER, STOCK_SCHEDULER
from optimus.drivers.kube.grouping.podgroups import APIS
from optimus.drivers.kube.objects import Anything
from optimus.kube import Client, KubeError, Resource
from optimus.kube.client import APPLY
from optimus.kube.errors import Conflict, Forbidden, NotFound
from optimus.kube.resources import NAMESPACES, PODS

OURS = "optimus.dev/v1alpha1"
SETTINGS = {"optimus.dev/Queue": "queues", "optimus.dev/NodePool": "pools"}
UNIFIED = "optimus.dev/UnifiedJob"
MANAGER = "optimus-cli"
SERVER_FIELDS = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink")
Document = dict[str, Any]


class Sent(Struct, frozen=True, kw_only=True):
    where: str
    """`jobs.yaml:7`."""
    kind: str
    document: Document
    resource: Resource

    @property
    def name(self) -> str:
        meta = self.document["metadata"]
        return str(meta.get("name") or f"{meta.get('generateName', '')}…")

    @property
    def namespace(self) -> str:
        return str(self.document["metadata"].get("namespace", "")) if self.resource.namespaced else ""

    def __str__(self) -> str:
        return f"{self.where}: {self.kind.rpartition('/')[2]} {self.name}"


async def submit(
    client: Client, kinds: Kinds, text: str, source: str, namespace: str, scheduler: str
) -> dict[str, list[str]]:
    discovery = Discovery(client)
    await discovery.refresh()
    known = {kind.name for kind in kinds} | {api.kind for api in APIS}
    found, wrong = await _read(discovery, known, text, source, namespace, scheduler)
    checked: list[Document] = []
    for one in found:
        try:
            checked.append(await _send(client, one, dry=True))
        except KubeError as error:
            wrong.append(f"{one}: {_words(one, error)}")
    if wrong:
        raise invalid("\n".join(wrong))
    if not found:
        raise invalid(f"{source}: there is nothing in it; write kind: UnifiedJob, Queue or NodePool")
    short = short_names(kind.name for kind in kinds)
    told: dict[str, list[str]] = {"jobs": [], "queues": [], "pools": [], "warnings": []}
    for one, seen in zip(found, checked, strict=True):
        try:
            done = await _send(client, one, dry=False)
        except KubeError as error:
            before = ", ".join(name for names in list(told.values())[:3] for name in names)
            after = f" ({before} was done before)" if before else ""
            raise Refused(409, "conflict", f"{one}: {_words(one, error)}{after}") from error
        name = str(done["metadata"]["name"])
        if one.kind in SETTINGS:
            told[SETTINGS[one.kind]].append(name)
            continue
        told["jobs"].append(f"{one.namespace}/{short.get(one.kind, one.kind.rpartition('/')[2].lower())}/{name}")
        if warning := await _elsewhere(client, kinds, one, seen, scheduler):
            told["warnings"].append(warning)
    return told


async def run(
    client: Client, kinds: Kinds, told: Document, source: str, namespace: str, scheduler: str
) -> dict[str, list[str]]:
    """A command: as a UnifiedJob, or as a Job where the cluster has no such thing."""
    if not told["spec"].get("image"):  # true of every cluster: said before one is asked
        raise invalid(NO_IMAGE)
    discovery = Discovery(client)
    await discovery.refresh()
    if await discovery.resource(UNIFIED, OURS) is None:
        told = job_of(told, scheduler)
    return await submit(client, kinds, msgspec.json.encode(told).decode(), source, namespace, scheduler)


async def document(client: Client, meant: Meant) -> Document:
    """An object without what only a server says."""
    discovery = Discovery(client)
    await discovery.refresh()
    thing = meant.object
    if thing is None:
        name = meant.gangs[0].id.rpartition("/")[2]
        raw = await client.request("GET", PODS.path(meant.name.partition("/")[0], name), verb="get")
    else:
        resource = await discovery.resource(thing.kind, thing.api_version)
        if resource is None:
            raise invalid(f"the server does not serve {thing.kind} any more")
        raw = await client.request("GET", resource.path(thing.namespace, thing.name), verb="get")
    found: Document = msgspec.json.decode(raw)
    found.pop("status", None)
    for field in SERVER_FIELDS:
        found["metadata"].pop(field, None)
    return found


# -- reading --------------------------------------------------------------------------------------------------------


async def _read(
    discovery: Discovery, known: set[str], text: str, source: str, namespace: str, scheduler: str
) -> tuple[list[Sent], list[str]]:
    try:
        nodes = [node for node in yaml.compose_all(text, Loader=yaml.SafeLoader) if node is not None]
        documents = [one for one in yaml.safe_load_all(text) if one is not None]
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{source}:{mark.line + 1}:{mark.column + 1}" if mark else source
        return [], [f"{place}: it is no YAML: {getattr(error, 'problem', None) or error}"]
    found: list[Sent] = []
    wrong: list[str] = []
    for node, one in zip(nodes, documents, strict=False):
        where = f"{source}:{node.start_mark.line + 1}"
        try:
            found.append(await _sent(discovery, known, where, one, namespace, scheduler))
        except Refused as error:
            wrong.append(str(error))
    return found, wrong


async def _sent(discovery: Discovery, known: set[str], where: str, told: Any, namespace: str, scheduler: str) -> Sent:
    if not isinstance(told, dict) or not isinstance(told.get("kind"), str):
        raise invalid(f"{where}: this is no document: write apiVersion, kind, metadata and spec")
    meta = told.get("metadata")
    if not isinstance(meta, dict) or not (meta.get("name") or meta.get("generateName")):
        raise invalid(f"{where}: {told['kind']}: metadata.name is missing")
    kind = _kind(told)
    if kind not in known and kind not in SETTINGS and kind != UNIFIED:
        raise invalid(
            f"{where}: {told['kind']} {meta.get('name')}: it is no work, no Queue and no NodePool; use kubectl apply"
        )
    version = str(told.get("apiVersion") or OURS)
    resource = await discovery.resource(kind, version)
    if resource is None and kind == UNIFIED:
        raise invalid(
            f"{where}: UnifiedJob {meta.get('name')}: this cluster has no UnifiedJob yet; write a Job (batch/v1) with "
            "spec.template.spec.schedulerName: optimus and the label optimus.dev/queue"
        )
    if resource is None and kind in SETTINGS:
        raise invalid(f"{where}: the cluster has no {told['kind']} yet: `optimus crds | kubectl apply -f -`")
    if resource is None:
        raise invalid(f"{where}: the server does not serve {told['kind']} of {version}: install its operator")
    meta = {**meta, **({"namespace": meta.get("namespace") or namespace} if resource.namespaced else {})}
    document = {**told, "apiVersion": version, "metadata": meta}
    if kind == UNIFIED:
        document = as_kept(document, where, scheduler)
    return Sent(where=where, kind=kind, resource=resource, document=document)


def _kind(told: Document) -> str:
    """What is written without a group may be ours, as on one machine."""
    if not told.get("apiVersion"):
        return f"optimus.dev/{told['kind']}"
    return kind_name(str(told["apiVersion"]), told["kind"])


# -- sending --------------------------------------------------------------------------------------------------------


async def _send(client: Client, one: Sent, *, dry: bool) -> Document:
    query = {"fieldManager": MANAGER, "fieldValidation": "Strict", **({"dryRun": "All"} if dry else {})}
    body = msgspec.json.encode(one.document)
    if one.kind in SETTINGS:
        path = one.resource.path("", str(one.document["metadata"]["name"]))
        query["force"] = "true"
        raw = await client.request("PATCH", path, query=query, body=body, content_type=APPLY, verb="patch")
    else:
        raw = await client.request("POST", one.resource.path(one.namespace), query=query, body=body, verb="create")
    answered: Document = msgspec.json.decode(raw)
    return answered


def _words(one: Sent, error: KubeError) -> str:
    if isinstance(error, Conflict) and one.kind not in SETTINGS:
        return "it is there already: cancel it, or choose another name"
    if isinstance(error, NotFound):
        return f"there is no namespace {one.namespace}"
    if isinstance(error, Forbidden):
        verb = "change" if one.kind in SETTINGS else "create"
        space = f" in namespace {one.namespace}" if one.namespace else ""
        return f"you have no right to {verb} {one.resource.plural}{space} ({error.message})"
    return str(in_words(error))


async def _elsewhere(client: Client, kinds: Kinds, one: Sent, seen: Document, scheduler: str) -> str:
    """Work that names another scheduler would wait for us in vain, or not at all."""
    kind = kinds.get(one.kind)
    if kind is None or one.kind == UNIFIED:  # whose controller names the scheduler on its pods
        return ""
    thing = msgspec.convert({**seen, "metadata": {}}, Anything)
    named = {role.template.spec.scheduler_name or "" for role in declared_roles(kind, thing) if role.template}
    if not named or scheduler in named:
        return ""
    opted_in = await _opted_in(client, one.namespace) if named <= {"", STOCK_SCHEDULER} else False
    if opted_in:
        return ""
    unless = ", unless the namespace has opted in (you have no right to see that)" if opted_in is None else ""
    return (
        f"{one}: its pods name the scheduler {', '.join(sorted(named))}, so Optimus leaves them alone{unless}; "
        f"write schedulerName: {scheduler} in the template, or opt the namespace in"
    )


async def _opted_in(client: Client, namespace: str) -> bool | None:
    """None: nobody may tell us."""
    try:
        raw = await client.request("GET", NAMESPACES.path("", namespace), verb="get")
    except KubeError:
        return None
    meta = msgspec.json.decode(raw)["metadata"]
    return (meta.get("labels") or {}).get(SCHEDULER) == "enabled"
