"""Wrong calls of the HTTP API: each gets its status, a code and a sentence, and nobody sees a stack trace."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientError
from aiohttp.test_utils import TestClient, TestServer
from msgspec import Struct

from optimus.drivers.local.web.mirror import Mirror
from optimus.drivers.local.web.server import application
from tests.local.machines import Up

JOB = (
    "kind: UnifiedJob\nmetadata: {name: here}\nspec: {command: sleep 600, replicas: {min: 1, max: 2}, suspend: true}\n"
)
OVER = "kind: UnifiedJob\nmetadata: {name: over}\nspec: {command: 'true', suspend: true}\n"
HERE = "/v1/jobs/default/here"


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    machine = Up(tmp_path_factory.mktemp("store"))
    machine.api.post("/v1/submit", f"{JOB}---\n{OVER}".encode())
    machine.api.delete("/v1/jobs/default/over")
    yield machine
    machine.end()


def asked(address: str, request: bytes) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and content, from bytes as they are: clients would not send all of this."""
    host, _, port = address.removeprefix("http://").rpartition(":")
    with socket.create_connection((host, int(port)), 20) as line:
        line.sendall(request)
        answer = b""
        while piece := line.recv(1 << 16):
            answer += piece
    head, _, content = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (text.partition(":") for text in lines)}
    return int(first.split()[1]), headers, content


def request(method: str, target: str | bytes, body: bytes = b"", **headers: str) -> bytes:
    named = {"Host": "127.0.0.1", "Connection": "close", **{k.replace("_", "-"): v for k, v in headers.items()}}
    if body or method == "POST":
        named["Content-Length"] = named.get("Content-Length", str(len(body)))
    path = target.encode() if isinstance(target, str) else target
    lines = [method.encode() + b" " + path + b" HTTP/1.1", *(f"{k}: {v}".encode() for k, v in named.items())]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


class Case(Struct, frozen=True):
    name: str
    sent: bytes
    status: int
    code: str
    told: str


def doc(**spec: Any) -> bytes:
    return json.dumps({"kind": "UnifiedJob", "metadata": {"name": "x"}, "spec": {"command": "true", **spec}}).encode()


def submit(body: bytes, query: str = "") -> bytes:
    return request("POST", f"/v1/submit{query}", body)


CASES = [
    Case("unknown route", request("GET", "/v1/nothing"), 404, "missing", "there is nothing at /v1/nothing"),
    Case("root", request("GET", "/"), 404, "missing", "/openapi.json lists what there is"),
    Case("another version", request("GET", "/v2/jobs"), 404, "missing", "there is nothing at /v2/jobs"),
    Case("half a job", request("GET", "/v1/jobs/default"), 404, "missing", "there is nothing at"),
    Case("wrong method", request("PUT", "/v1/jobs"), 405, "invalid", "/v1/jobs takes GET, HEAD, not PUT"),
    Case("reading what is for writing", request("GET", "/v1/submit"), 405, "invalid", "takes POST, not GET"),
    Case("deleting all", request("DELETE", "/v1/jobs"), 405, "invalid", "not DELETE"),
    Case("unknown job", request("GET", "/v1/jobs/default/no"), 404, "missing", "there is no job default/no"),
    Case("its logs", request("GET", "/v1/jobs/default/no/logs"), 404, "missing", "there is no job default/no"),
    Case("its events", request("GET", "/v1/jobs/default/no/events"), 404, "missing", "there is no job default/no"),
    Case("its document", request("GET", "/v1/jobs/a/no/document"), 404, "missing", "there is no job a/no"),
    Case("cancelling it", request("DELETE", "/v1/jobs/default/no"), 404, "missing", "there is no job default/no"),
    Case("suspending it", request("POST", "/v1/jobs/a/b/suspend"), 404, "missing", "there is no job a/b"),
    Case("a way out", request("GET", "/v1/jobs/..%2f..%2fetc/passwd/logs"), 404, "missing", "there is no"),
    Case("a name in bad escapes", request("GET", "/v1/jobs/default/%ff%ed%a0%80"), 404, "missing", "there is no job"),
    Case("cancelled twice", request("DELETE", "/v1/jobs/default/over"), 409, "conflict", "is over: Cancelled"),
    Case("resumed when over", request("POST", "/v1/jobs/default/over/resume"), 409, "conflict", "is over"),
    Case("scaled without a word", request("POST", f"{HERE}/scale"), 422, "invalid", 'say how many: {"replicas": 4}'),
    Case("bad JSON", request("POST", f"{HERE}/scale", b"{replicas"), 422, "invalid", "say how many"),
    Case("a list", request("POST", f"{HERE}/scale", b"[4]"), 422, "invalid", "say how many"),
    Case("text", request("POST", f"{HERE}/scale", b'{"replicas": "4"}'), 422, "invalid", "say how many"),
    Case("half", request("POST", f"{HERE}/scale", b'{"replicas": 1.5}'), 422, "invalid", "say how many"),
    Case("true", request("POST", f"{HERE}/scale", b'{"replicas": true}'), 422, "invalid", "say how many"),
    Case("none", request("POST", f"{HERE}/scale", b'{"replicas": 0}'), 422, "invalid", "needs at least 1"),
    Case("less", request("POST", f"{HERE}/scale", b'{"replicas": -3}'), 422, "invalid", "-3 is too few"),
    Case("many", request("POST", f"{HERE}/scale", b'{"replicas": 2000000}'), 422, "invalid", "more than 100,000"),
    Case("huge", request("POST", f"{HERE}/scale", b'{"replicas": %d}' % 10**40), 422, "invalid", "say how many"),
    Case("negative tail", request("GET", f"{HERE}/logs?tail=-1"), 422, "invalid", "tail is a number of lines"),
    Case("tail in words", request("GET", f"{HERE}/logs?tail=ten"), 422, "invalid", "not ten"),
    Case("a digit that is no number", request("GET", f"{HERE}/logs?tail=%C2%B2"), 422, "invalid", "not ²"),
    Case("a tail of all", request("GET", f"{HERE}/logs?tail={'9' * 5000}"), 422, "invalid", "at most 1,000,000"),
    Case("follow in words", request("GET", f"{HERE}/logs?follow=please"), 422, "invalid", "follow is 1 or 0"),
    Case("attempt in words", request("GET", f"{HERE}/logs?attempt=first"), 422, "invalid", "not first"),
    Case("no attempt", request("GET", f"{HERE}/logs?attempt=0"), 422, "invalid", "attempt is a number from 1"),
    Case("no such queue", request("DELETE", "/v1/queues/no"), 404, "missing", "there is no queue no; known are"),
    Case("a queue with a job", request("DELETE", "/v1/queues/default"), 409, "conflict", "has jobs: cancel them"),
    Case("no such pool", request("DELETE", "/v1/pools/no"), 404, "missing", "there is no pool no; known are"),
    Case("unknown parameter", request("GET", "/v1/jobs?pahse=Pending"), 422, "invalid", "unknown parameter pahse"),
    Case("unknown phase", request("GET", "/v1/jobs?phase=pending"), 422, "invalid", "there is no phase pending"),
    Case("watching by a wrong word", request("GET", "/v1/watch?name=x"), 422, "invalid", "unknown parameter name"),
    Case("nothing", submit(b""), 422, "invalid", "there is nothing in it"),
    Case("only a comment", submit(b"# later\n", "?source=x.yaml"), 422, "invalid", "x.yaml: there is nothing in it"),
    Case("no YAML", submit(b"{a: [b"), 422, "invalid", "is not YAML"),
    Case("no UTF-8", submit(b"kind: \xff\xfe"), 422, "invalid", "submitted is not UTF-8 text (byte 6)"),
    Case("no text", submit(b"kind: \x00\x01"), 422, "invalid", "submitted:1:"),
    Case("deep", submit(b"[" * 50_000), 422, "invalid", "nested more than 64"),
    Case("unknown kind", submit(b"kind: Pod"), 422, "invalid", "unknown kind Pod"),
    Case("unknown queue", submit(doc(queue="no")), 422, "invalid", "there is no queue no; known are default"),
    Case("unknown field", submit(doc(colour="red")), 422, "invalid", "colour"),
    Case("it is there", submit(JOB.encode()), 409, "conflict", "default/here is there and Suspended"),
    Case("a folder that is none", submit(doc(), "?where=there"), 422, "invalid", "its whole path"),
    Case("a folder with a hole", submit(doc(), "?where=/a%00b"), 422, "invalid", "its whole path"),
    Case("a way to replace", submit(doc(), "?replace=1"), 422, "invalid", "unknown parameter replace"),
    Case("17 MiB", request("POST", "/v1/submit", b"#" * (17 << 20)), 413, "invalid", "more than 16 MiB at once"),
    Case("another host", request("GET", "/v1/jobs", Host="evil.example"), 403, "forbidden", "not evil.example"),
    Case("looks like us", request("GET", "/v1/jobs", Host="127.0.0.1.evil.example:80"), 403, "forbidden", "not 127"),
    Case("its port too", request("GET", "/healthz", Host="evil.example:6900"), 403, "forbidden", "evil.example:6900"),
    Case("a page of a stranger", request("POST", HERE, Origin="http://evil.example"), 403, "forbidden", "not http://e"),
    Case("a page of nobody", request("DELETE", HERE, Origin="null"), 403, "forbidden", "not null"),
    Case("a page of a neighbour", request("DELETE", HERE, Origin="http://127.0.0.1:1"), 403, "forbidden", "not http"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_wrong_call_is_answered(up: Up, case: Case) -> None:
    status, headers, content = asked(up.api.address, case.sent)
    assert status == case.status, content[:500]
    assert headers["content-type"].startswith("application/json")
    answer = json.loads(content)
    assert set(answer) == {"error", "code"} and answer["code"] == case.code
    assert case.told in answer["error"], answer
    assert "Traceback" not in answer["error"]


@pytest.mark.parametrize("sent", [request("BREW", "/v1/jobs"), request("GET", b"/v1/\xff"), b"no HTTP\r\n\r\n"])
def test_what_is_no_http_gets_400(up: Up, sent: bytes) -> None:
    status, _, content = asked(up.api.address, sent)
    assert status == 400 and b"Traceback" not in content


def test_the_methods_that_are_taken_are_named(up: Up) -> None:
    _, headers, _ = asked(up.api.address, request("PATCH", HERE))
    assert headers["allow"] == "DELETE, GET, HEAD"


def test_on_loopback_no_token_is_made_and_a_wrong_one_is_no_matter(up: Up) -> None:
    assert not (up.folder / "token").exists()
    assert asked(up.api.address, request("GET", "/v1/jobs", Authorization="Bearer wrong"))[0] == 200


def test_after_all_of_that_nothing_has_changed(up: Up) -> None:
    assert [job["name"] for job in up.api.get("/v1/jobs")] == ["here", "over"]
    assert up.job("here")["maxReplicas"] == 2 and up.phase("here") == "Suspended"


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:99", "127.0.0.1:6900", "[::1]", "[::1]:6900"])
def test_this_machine_has_several_names(up: Up, host: str) -> None:
    assert asked(up.api.address, request("GET", "/v1/jobs", Host=host))[0] == 200
    assert asked(up.api.address, request("GET", "/v1/jobs", Host=host, Origin=f"http://{host}"))[0] == 200


class Broken(Mirror):
    """Whatever is asked of it goes wrong in a way that nobody has thought of."""

    async def run(self) -> None:
        self.audience.shown = {"jobs": {"default/x": {"uid": "u", "final": False}}, "version": {1, object()}}
        self.connected.set()

    async def call(self, verb: str, **arguments: Any) -> Any:
        raise ZeroDivisionError("a number")


def test_a_fault_of_ours_is_said_as_one_and_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> tuple[int, Any, Any]:
        async with TestClient(TestServer(application(Broken(tmp_path / "none"), tmp_path))) as client:
            answer = await client.post("/v1/jobs/default/x/suspend")
            status, told = answer.status, await answer.json()
            stream = await client.get("/v1/watch")
            try:
                rest: Any = await stream.read()
            except ClientError as error:
                rest = error
            return status, told, rest

    with caplog.at_level(logging.ERROR):
        status, told, rest = asyncio.run(story())
    assert status == 500 and told["code"] == "internal"
    assert told["error"] == "POST /v1/jobs/default/x/suspend failed inside: ZeroDivisionError('a number')"
    assert "POST /v1/jobs/default/x/suspend failed" in caplog.text
    assert isinstance(rest, ClientError), "a stream that fails is not taken for a whole one"
