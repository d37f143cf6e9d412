"""The HTTP API for programs: OpenAPI 3.1, from the routes and from the records that are shown.

Why: clients in other languages are generated, and nobody writes a field down twice.
Owns: what each route takes and answers. The prose is docs/reference/http.md.
Must not: describe a field: the records of `views` do.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
from msgspec import Struct

from optimus import __version__
from optimus.drivers.local import views
from optimus.drivers.local.web.explanations import MOST_SAMPLES, MOST_SECONDS
from optimus.drivers.local.web.logs import Line
from optimus.lives import JobPhase


class Error(Struct, frozen=True):
    error: str
    code: str
    """invalid, conflict, missing, forbidden, unavailable, internal."""


class Health(Struct, frozen=True):
    ok: bool
    trouble: str
    """Why nothing can be written down now."""


class Info(Struct, frozen=True):
    version: str
    turn: int | None
    """Counts turns in which something changed."""
    jobs: dict[str, int]
    """Phase -> how many."""
    trouble: str


class SubmitAnswer(Struct, frozen=True):
    jobs: list[str]
    """namespace/name"""
    queues: list[str]
    pools: list[str]
    warnings: list[str]
    replaced: dict[str, str]
    """Jobs that were over and had one of these names, with how they ended. They are forgotten."""


class Size(Struct, frozen=True):
    replicas: int


class Route(Struct, frozen=True, kw_only=True):
    says: str
    answers: Any
    query: dict[str, Any] = {}
    """Name -> its schema, with a description."""
    takes: Any = None
    """A record, or the types of content that are taken as text."""
    status: int = 200
    kind: str = "application/json"
    errors: tuple[int, ...] = ()


JOB = "/v1/jobs/{namespace}/{name}"
_TEXT = {"type": "string"}


def _text(says: str, **more: Any) -> dict[str, Any]:
    return {**_TEXT, **more, "description": says}


ROUTES: dict[tuple[str, str], Route] = {
    ("GET", "/healthz"): Route(says="Whether the scheduler is well.", answers=Health, errors=(503,)),
    ("GET", "/openapi.json"): Route(says="This document.", answers=dict[str, Any]),
    ("GET", "/v1/info"): Route(says="The version, and how many jobs there are in each phase.", answers=Info),
    ("GET", "/v1/jobs"): Route(
        says="Jobs, the oldest first.",
        answers=list[views.JobView],
        query={
            "namespace": _text("Of this namespace only."),
            "queue": _text("Of this queue only."),
            "phase": _text("In this phase only.", enum=[phase.value for phase in JobPhase]),
            "jobClass": _text("Of this class only: interactive, unattended, inference."),
        },
        errors=(422, 503),
    ),
    ("GET", "/v1/queues"): Route(says="Queues.", answers=list[views.QueueView], errors=(503,)),
    ("GET", "/v1/nodes"): Route(says="Nodes, and who is on which device.", answers=list[views.NodeView], errors=(503,)),
    ("GET", "/v1/pools"): Route(says="Node pools.", answers=list[views.PoolView], errors=(503,)),
    ("DELETE", "/v1/queues/{name}"): Route(
        says="Delete a queue that nothing needs.", answers=str, errors=(404, 409, 503)
    ),
    ("DELETE", "/v1/pools/{name}"): Route(
        says="Delete a pool that nothing needs.", answers=str, errors=(404, 409, 503)
    ),
    ("GET", "/v1/watch"): Route(
        says="First everything, then every change, as server-sent events.",
        answers=str,
        query={"job": _text("namespace/name: of this job only.")},
        kind="text/event-stream",
        errors=(422, 503),
    ),
    ("GET", "/v1/state"): Route(
        says="A copy of the engine's state, for explanations; its format is that of this version.",
        answers=str,
        kind="application/vnd.msgpack",
        errors=(503,),
    ),
    ("GET", "/v1/past"): Route(
        says="Who came lately, by the journal, for forecasts; its format is that of this version.",
        answers=str,
        kind="application/vnd.msgpack",
        errors=(422,),
    ),
    ("POST", "/v1/submit"): Route(
        says="Submit UnifiedJob, Queue and NodePool documents: all of them or none.",
        answers=SubmitAnswer,
        query={
            "where": _text("The folder that jobs start in if they name none: its whole path."),
            "source": _text("Stands for the file in errors."),
            "fresh": _text("1: refuse names that a job has which is over, instead of replacing it.", enum=["0", "1"]),
        },
        takes=("application/yaml", "application/json"),
        status=201,
        errors=(409, 413, 422, 503),
    ),
    ("GET", JOB): Route(says="One job.", answers=views.JobView, errors=(404, 503)),
    ("DELETE", JOB): Route(says="Cancel it.", answers=str, errors=(404, 409, 503)),
    ("POST", f"{JOB}/suspend"): Route(says="Stop it until it is resumed.", answers=str, errors=(404, 409, 503)),
    ("POST", f"{JOB}/resume"): Route(says="Let it wait for room again.", answers=str, errors=(404, 409, 503)),
    ("POST", f"{JOB}/scale"): Route(
        says="Change how many replicas it has at most.", answers=str, takes=Size, errors=(404, 409, 413, 422, 503)
    ),
    ("GET", f"{JOB}/events"): Route(says="What has happened to it.", answers=list[views.EventView], errors=(404, 503)),
    ("GET", f"{JOB}/document"): Route(
        says="The UnifiedJob that says it, to be submitted again.", answers=dict[str, Any], errors=(404, 503)
    ),
    ("GET", f"{JOB}/explain"): Route(
        says="Why it waits, who is ahead, what would start it, and when it starts: the record of `optimus explain`.",
        answers=dict[str, Any],
        query={
            "samples": {"type": "integer", "minimum": 1, "maximum": MOST_SAMPLES, "description": "Futures played."},
            "seconds": {
                "type": "integer",
                "minimum": 1,
                "maximum": MOST_SECONDS,
                "description": "Then the futures that are done have to do.",
            },
            "forecast": _text("0: without when it starts.", enum=["0", "1"]),
            "page": _text("1: with the page that people read, as text in `page`.", enum=["0", "1"]),
        },
        errors=(404, 422, 500, 503),
    ),
    ("GET", f"{JOB}/logs"): Route(
        says="What its replicas have written: one JSON record in every line.",
        answers=Line,
        query={
            "follow": _text("1: until it is over.", enum=["0", "1"]),
            "tail": {
                "type": "integer",
                "minimum": 0,
                "description": "The last lines of each replica only, over all its starts.",
            },
            "replica": _text(
                "Of this replica only, such as worker-0; of an array 3-worker-0, or the number of a part."
            ),
            "part": {"type": "integer", "minimum": 0, "description": "Of this part of an array only."},
            "attempt": {"type": "integer", "minimum": 1, "description": "Of this attempt only."},
            "together": _text("1: lines of a start that are there at a time are one record.", enum=["0", "1"]),
        },
        kind="application/x-ndjson",
        errors=(404, 422, 503),
    ),
}
"""By method and path: every route of the application."""
_ERRORS = {
    401: "A token is needed (only where one was made).",
    403: "Another host or origin than this machine.",
    404: "It is not there.",
    409: "Its state does not allow it.",
    413: "More than 16 MiB.",
    422: "Something is wrong with what was asked; the text says what.",
    500: "A fault of the server.",
    503: "The scheduler is not there, or cannot write.",
}


@cache
def document() -> dict[str, Any]:
    records = [Error, *(route.answers for route in ROUTES.values()), Size]
    shapes, components = msgspec.json.schema_components(records, ref_template="#/components/schemas/{name}")
    error, *answers = shapes[: len(ROUTES) + 1]
    paths: dict[str, dict[str, Any]] = {}
    for ((method, path), route), shape in zip(ROUTES.items(), answers, strict=True):
        paths.setdefault(path, {})[method.lower()] = _operation(method, path, route, shape, error)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Optimus", "version": __version__, "license": {"name": "Apache-2.0"}},
        "paths": paths,
        "components": {
            "schemas": {name: _as_shown(schema) for name, schema in components.items()},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _operation(method: str, path: str, route: Route, shape: dict[str, Any], error: dict[str, Any]) -> dict[str, Any]:
    words = [word for word in path.removeprefix("/v1").replace(".", "/").split("/") if word and "{" not in word]
    named = [{"name": name, "in": "path", "required": True, "schema": _TEXT} for name in _names(path)]
    asked = [
        {"name": name, "in": "query", "schema": {k: v for k, v in schema.items() if k != "description"}}
        | {"description": schema["description"]}
        for name, schema in route.query.items()
    ]
    found: dict[str, Any] = {
        "summary": route.says,
        "operationId": "-".join([method.lower(), *words, *(["one"] if path.endswith("}") else [])]),
        "parameters": [*named, *asked],
        "responses": {
            str(route.status): {"description": "Done.", "content": {route.kind: {"schema": shape}}},
            **{
                str(status): {"description": _ERRORS[status], "content": {"application/json": {"schema": error}}}
                for status in sorted({401, 403, 500, *route.errors})
            },
        },
    }
    if isinstance(route.takes, tuple):
        found["requestBody"] = {"required": True, "content": {kind: {} for kind in route.takes}}
    elif route.takes is not None:
        schema = {"$ref": f"#/components/schemas/{route.takes.__name__}"}
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return found


def _names(path: str) -> list[str]:
    return [word[1:-1] for word in path.split("/") if word.startswith("{")]


def _as_shown(schema: dict[str, Any]) -> dict[str, Any]:
    """What is shown always has all its fields, also those with a default."""
    if schema.get("type") != "object" or "properties" not in schema:
        return schema
    return {**schema, "required": list(schema["properties"])}
