"""Right calls of the HTTP API, as openapi.json says, of a machine that also serves others: only with its token."""

from __future__ import annotations

import http.client
import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import optimus
from optimus.client import ApiError, Connection
from optimus.drivers.local.up import UpError, _from_here, _token
from optimus.drivers.local.web import openapi
from optimus.drivers.local.web.mirror import Mirror
from optimus.drivers.local.web.server import application
from tests.local.machines import Up, until

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "http.md"
JOB = """
kind: NodePool
metadata: {name: own}
spec: {selector: {kind: own}}
---
kind: UnifiedJob
metadata: {name: shown}
spec: {command: [bash, -c, 'echo one; echo two; sleep 600'], gpu: 1, replicas: {min: 1, max: 2}}
"""
NO_TOKEN = {"": "", "wrong": "Bearer wrong", "another way": "Basic YTpi", "bytes": "Bearer \xff\xfe"}


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    machine = Up(tmp_path_factory.mktemp("store"), "--nodes", "1", "--gpus", "2", "--host", "0.0.0.0")
    machine.api.post("/v1/submit", JOB.encode())
    machine.reaches("shown", "Running")
    yield machine
    machine.end()


def ask(up: Up, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, bytes]:
    wire = http.client.HTTPConnection(up.api.address.removeprefix("http://"), timeout=20)
    wire.request(method, path, body or None, {"Authorization": f"Bearer {up.api.token}", **headers})
    answer = wire.getresponse()
    content = answer.read() if path != "/v1/watch" else b"".join(answer.readline() for _ in range(3))
    wire.close()
    return answer.status, content


# -- the token -------------------------------------------------------------------------------------------------------


def test_a_token_is_made_for_its_owner_alone(up: Up) -> None:
    file = up.folder / "token"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and len(file.read_text()) >= 32
    assert up.api.address.startswith("http://127.0.0.1:")


@pytest.mark.parametrize("path", ["/v1/jobs", "/healthz", "/openapi.json", "/v1/watch", "/v1/nothing"])
@pytest.mark.parametrize("given", NO_TOKEN.values(), ids=NO_TOKEN)
def test_without_it_nobody_gets_anything(up: Up, path: str, given: str) -> None:
    status, content = ask(up, "GET", path, Authorization=given)
    assert status == 401
    if path != "/v1/watch":
        told = json.loads(content)
        assert told["code"] == "forbidden" and told["error"].endswith(
            "set OPTIMUS_TOKEN to what the file token in its store says"
        )


def test_with_it_any_name_of_the_machine_will_do(up: Up) -> None:
    assert ask(up, "GET", "/v1/jobs", Host="gpu-box.example:80", Origin="http://page.example")[0] == 200


def test_whoever_has_started_it_needs_not_name_it(up: Up, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "shown" in up.cli("get", "jobs").stdout
    monkeypatch.setenv("OPTIMUS_STORE", str(up.folder))
    monkeypatch.delenv("OPTIMUS_ADDRESS", raising=False)
    assert optimus.job("shown").phase == "Running"
    with pytest.raises(optimus.JobError, match="this is not its token"):
        optimus.job("shown", token="wrong")
    assert Connection("http://other.example:6900").token == "", "it is not told to strangers"


def test_an_empty_token_is_none_and_a_new_one_is_made(tmp_path: Path) -> None:
    (tmp_path / "token").touch(0o644)
    made = _token(tmp_path)
    assert len(made) >= 32 and _token(tmp_path) == made
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["token"]
    (tmp_path / "file").touch()
    with pytest.raises(UpError, match="cannot be used"):
        _token(tmp_path / "file")


@pytest.mark.parametrize(
    ("host", "shown"),
    [("0.0.0.0", "127.0.0.1"), ("", "127.0.0.1"), ("::", "[::1]"), ("::1", "[::1]"), ("10.0.0.1", "10.0.0.1")],
)
def test_the_address_is_one_that_can_be_reached_from_here(host: str, shown: str) -> None:
    assert _from_here(host) == shown


# -- openapi.json ----------------------------------------------------------------------------------------------------


def test_every_route_is_described_here_and_on_the_page(tmp_path: Path) -> None:
    routes = {
        (route.method, route.resource.canonical)
        for route in application(Mirror(tmp_path / "none"), tmp_path).router.routes()
        if route.method != "HEAD" and route.resource is not None
    }
    assert routes == set(openapi.ROUTES)
    page = PAGE.read_text(encoding="utf-8")
    named = set(re.findall(r"^### `(GET|POST|DELETE) (\S+)`", page, re.MULTILINE))
    assert {(method, path) for method, path in named} == routes
    for (_, path), route in openapi.ROUTES.items():
        section = page.partition(f" {path}`\n")[2].partition("\n### ")[0]
        assert "curl" in section, path
        assert [name for name in route.query if f"`{name}" not in page] == []
    document = openapi.document()
    ids = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]
    assert len(ids) == len(set(ids)) == len(routes)
    for name in re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)):
        assert name in document["components"]["schemas"]


KINDS = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool, "null": type(None)}


def matches(value: Any, schema: dict[str, Any], records: dict[str, Any], at: str = "") -> list[str]:
    """What of a value is not as its schema says: the part of JSON Schema that msgspec writes."""
    if "$ref" in schema:
        return matches(value, records[schema["$ref"].rpartition("/")[2]], records, at)
    if "anyOf" in schema:
        found = [matches(value, one, records, at) for one in schema["anyOf"]]
        return [] if [] in found else min(found, key=len)
    kind = schema.get("type")
    if kind is not None and type(value) is not KINDS[kind]:
        return [f"{at} is {value!r}, not {kind}"]
    if isinstance(value, list):
        found = [matches(one, schema.get("items", {}), records, f"{at}[{i}]") for i, one in enumerate(value)]
        return [fault for faults in found for fault in faults]
    if not isinstance(value, dict):
        return []
    known, more = schema.get("properties", {}), schema.get("additionalProperties", {})
    faults = [f"{at} has no {name}" for name in schema.get("required", ()) if name not in value]
    if known:
        faults += [f"{at} has {name}, which is not described" for name in value if name not in known]
    for name, one in value.items():
        faults += matches(one, known.get(name, more if isinstance(more, dict) else {}), records, f"{at}.{name}")
    return faults


REAL = [
    ("GET", "/healthz", "", b""),
    ("GET", "/openapi.json", "", b""),
    ("GET", "/v1/info", "", b""),
    ("GET", "/v1/jobs", "?queue=default&phase=Running&namespace=default&jobClass=unattended", b""),
    ("GET", "/v1/queues", "", b""),
    ("GET", "/v1/nodes", "", b""),
    ("GET", "/v1/pools", "", b""),
    ("POST", "/v1/submit", "?source=a.yaml&where=/tmp", b"kind: Queue\nmetadata: {name: more}\n"),
    ("GET", openapi.JOB, "", b""),
    ("POST", f"{openapi.JOB}/scale", "", b'{"replicas": 1}'),
    ("GET", f"{openapi.JOB}/events", "", b""),
    ("GET", f"{openapi.JOB}/document", "", b""),
    ("GET", f"{openapi.JOB}/explain", "?samples=2&seconds=60&forecast=1", b""),
    ("GET", f"{openapi.JOB}/logs", "?tail=1&replica=worker-0&attempt=1", b""),
    ("POST", f"{openapi.JOB}/suspend", "", b""),
    ("POST", f"{openapi.JOB}/resume", "", b""),
    ("DELETE", openapi.JOB, "", b""),
    ("POST", "/v1/submit", "", b"kind: NodePool\nmetadata: {name: shown}\nspec: {selector: {rack: none}}\n"),
    ("DELETE", "/v1/pools/{name}", "", b""),
    ("POST", "/v1/submit", "", b"kind: Queue\nmetadata: {name: shown}\n"),
    ("DELETE", "/v1/queues/{name}", "", b""),
]


def test_real_answers_are_as_they_are_described(up: Up) -> None:
    document = json.loads(ask(up, "GET", "/openapi.json")[1])
    assert document == json.loads(json.dumps(openapi.document())) and document["openapi"] == "3.1.0"
    records = document["components"]["schemas"]
    until(lambda: ask(up, "GET", "/v1/jobs/default/shown/logs")[1].count(b"\n") >= 2, "it has written")
    for method, path, query, body in REAL:
        status, content = ask(up, method, path.format(namespace="default", name="shown") + query, body)
        assert status == openapi.ROUTES[method, path].status, content
        kind, answer = next(iter(document["paths"][path][method.lower()]["responses"][str(status)]["content"].items()))
        values = content.decode().splitlines() if kind.endswith("ndjson") else [content]
        assert values and values != [b"[]"], path
        for value in values:
            assert matches(json.loads(value), answer["schema"], records, path) == []
    assert {(method, path) for method, path, *_ in REAL} == {*openapi.ROUTES} - {
        ("GET", "/v1/watch"),
        ("GET", "/v1/state"),
        ("GET", "/v1/past"),
    }
    status, content = ask(up, "GET", "/v1/state")
    assert status == 200 and content


def test_a_schema_that_does_not_fit_would_be_noticed(up: Up) -> None:
    records = openapi.document()["components"]["schemas"]
    view = up.job("shown")
    schema = {"$ref": "#/components/schemas/JobView"}
    assert matches(view, schema, records) == []
    assert matches({**view, "colour": 1}, schema, records) == [" has colour, which is not described"]
    assert matches({**view, "attempt": "1"}, schema, records) == [".attempt is '1', not integer"]
    assert matches({name: value for name, value in view.items() if name != "uid"}, schema, records) == [" has no uid"]


# -- streams ---------------------------------------------------------------------------------------------------------


def test_one_job_is_watched_without_the_others(up: Up) -> None:
    watched = up.api.events(job="default/one")
    kind, shown = next(watched)
    assert kind == "everything" and shown["jobs"] == {} and set(shown) == {"version", "jobs", "trouble"}
    for name in ("another", "one"):
        text = f"kind: UnifiedJob\nmetadata: {{name: {name}}}\nspec: {{command: 'true', suspend: true}}\n"
        up.api.post("/v1/submit", text.encode())
    kind, news = next(watched)
    assert kind == "change" and list(news["jobs"]) == ["default/one"]
    assert set(news) == {"version", "jobs", "queues", "nodes", "pools", "trouble"} and news["nodes"] is None


def test_a_pool_that_comes_later_is_shown(up: Up) -> None:
    watched = up.api.events()
    next(watched)
    up.api.post("/v1/submit", b"kind: NodePool\nmetadata: {name: later}\nspec: {selector: {kind: later}}\n")
    assert "later" in [pool["name"] for pool in up.api.get("/v1/pools")]
    pools = next(news["pools"] for _, news in watched if news["pools"] is not None)
    assert [pool["name"] for pool in pools] == ["own", "later"]


def test_a_refused_job_leaves_no_queue_behind(up: Up) -> None:
    job = "kind: UnifiedJob\nmetadata: {name: lost}\nspec: {command: x, queue: no}\n"
    text = f"kind: Queue\nmetadata: {{name: behind}}\n---\n{job}"
    with pytest.raises(ApiError, match="there is no queue no; known are behind, default"):
        up.api.post("/v1/submit", text.encode())
    assert "behind" not in [queue["name"] for queue in up.api.get("/v1/queues")]


def test_an_emoji_on_the_command_line_arrives(up: Up) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "optimus", "run", "--gpus", "0", "--", "echo", "ä😀"],
        env=up.environment, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert ran.stdout == "ä😀\n", ran.stderr
