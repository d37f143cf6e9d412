"""Connections, by bytes: a server of a few lines (`scripted_server`) says what the story needs, when it needs it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from optimus.kube import Client, Cluster
from optimus.kube import line as line_module
from optimus.kube import switchboard as switchboard_module
from optimus.kube.counting import STOPPED, TIMED_OUT, UNREACHABLE
from optimus.kube.credentials import Fixed, Identity
from optimus.kube.errors import ConfigError, NoAnswer, NotSent

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Scripted:
    def __init__(self) -> None:
        self.connections = 0
        self.requests: list[bytes] = []
        self.port = 0

    def client(self, path: str = "") -> Client:
        return Client(Cluster(server=f"http://127.0.0.1:{self.port}{path}", credentials=Fixed(Identity())))

    async def heard(self, reader: asyncio.StreamReader) -> bytes:
        """One whole request."""
        head = await reader.readuntil(b"\r\n\r\n")
        length = next((line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), b": 0")
        self.requests.append(head + await reader.readexactly(int(length.partition(b":")[2])))
        return self.requests[-1]


@asynccontextmanager
async def scripted_server(talk: Callable[[Scripted], Talk]) -> AsyncIterator[Scripted]:
    scripted = Scripted()
    play = talk(scripted)

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        scripted.connections += 1
        try:
            await play(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    scripted.port = server.sockets[0].getsockname()[1]
    async with server:
        yield scripted


def answering(*answers: bytes) -> Callable[[Scripted], Talk]:
    """Each request on any connection gets the next; after the last, the connection is closed."""
    left = list(answers)

    def talk(scripted: Scripted) -> Talk:
        async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while left:
                await scripted.heard(reader)
                writer.write(left.pop(0))

        return play

    return talk


@pytest.mark.parametrize(
    "answer",
    [
        OK,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" + OK,
        b"HTTP/1.1 200 OK\r\ncontent-LENGTH: 2\r\nX-Long: " + b"x" * 50_000 + b"\r\n\r\nok",
    ],
)
async def test_answers_of_every_form_are_read_and_the_connection_serves_again(answer: bytes) -> None:
    async with scripted_server(answering(answer, answer, answer)) as server, server.client() as client:
        assert [await client.request("GET", "/x") for _ in range(3)] == [b"ok"] * 3
        assert server.connections == 1


async def test_an_answer_in_single_bytes() -> None:
    def talk(scripted: Scripted) -> Talk:
        async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await scripted.heard(reader)
            for byte in OK:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(0.001)

        return play

    async with scripted_server(talk) as server, server.client() as client:
        assert await client.request("GET", "/x") == b"ok"


async def test_answers_that_end_with_their_connection() -> None:
    until_the_end = b"HTTP/1.1 200 OK\r\n\r\nok"
    closing = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"
    for answer in (until_the_end, closing):

        def talk(scripted: Scripted, answer: bytes = answer) -> Talk:
            async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                await scripted.heard(reader)
                writer.write(answer)

            return play

        async with scripted_server(talk) as server, server.client() as client:
            assert [await client.request("POST", "/x", body=b"{}") for _ in range(2)] == [b"ok"] * 2
            assert server.connections == 2


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"what?\r\n\r\n", "is no HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nok", "broke off"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", "broke off"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "no HTTP"),
        (b"", "no answer of"),
    ],
)
async def test_half_an_answer_and_what_is_none_are_told_as_no_answer(answer: bytes, words: str) -> None:
    async with scripted_server(answering(answer)) as server, server.client() as client:
        with pytest.raises(NoAnswer, match=words):
            await client.request("POST", "/x", body=b"{}")
        assert client.counters.requests == {("post", TIMED_OUT): 1}


async def test_an_answer_too_many_is_never_taken_for_that_to_the_next_question() -> None:
    stray = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstray"
    async with scripted_server(answering(OK + stray, OK, OK)) as server, server.client() as client:
        assert [await client.request("POST", "/x", body=b"{}") for _ in range(2)] == [b"ok"] * 2
        assert server.connections == 2


async def test_a_request_that_was_given_up_leaves_no_answer_for_the_next() -> None:
    def talk(scripted: Scripted) -> Talk:
        async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while True:
                late = b"/late" in await scripted.heard(reader)
                await asyncio.sleep(0.3 if late else 0)
                writer.write(OK.replace(b"ok", b"no") if late else OK)

        return play

    async with scripted_server(talk) as server, server.client() as client:
        await client.request("GET", "/x")
        with pytest.raises(NoAnswer, match="time was up"):
            await client.request("GET", "/late", timeout_s=0.1)
        cancelled = asyncio.create_task(client.request("GET", "/late"))
        await asyncio.sleep(0.05)
        cancelled.cancel()
        await asyncio.gather(cancelled, return_exceptions=True)
        await asyncio.sleep(0.5)
        assert await client.request("GET", "/x") == b"ok"


# -- connections that idle --------------------------------------------------------------------------------------------


def hanging_up(scripted: Scripted) -> Talk:
    """After the first answer it reads the next request, and goes without a word."""

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await scripted.heard(reader)
        writer.write(OK)
        await scripted.heard(reader)

    return play


async def test_a_question_is_asked_again_where_the_server_has_just_hung_up_and_a_change_is_not() -> None:
    async with scripted_server(hanging_up) as server, server.client() as client:
        await client.request("GET", "/first")
        assert await client.request("GET", "/second") == b"ok"
        assert server.connections == 2
    async with scripted_server(hanging_up) as server, server.client() as client:
        await client.request("GET", "/first")
        with pytest.raises(NoAnswer, match=r"broke off|reset"):
            await client.request("POST", "/second", body=b"{}")
        assert [b"/second" in one for one in server.requests] == [False, True], "it may have been done: asked once"


async def test_a_connection_that_was_closed_or_forgotten_meanwhile_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_answer(scripted: Scripted) -> Talk:
        async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await scripted.heard(reader)
            writer.write(OK)

        return play

    async with scripted_server(one_answer) as server, server.client() as client:
        for _ in range(3):
            assert await client.request("POST", "/x", body=b"{}") == b"ok"
            await asyncio.sleep(0.05)
        assert server.connections == 3
    async with scripted_server(answering(OK, OK)) as server, server.client() as client:
        await client.request("GET", "/x")
        monkeypatch.setattr(switchboard_module, "IDLE_S", 0.0)
        await client.request("GET", "/x")
        assert server.connections == 2


async def test_as_many_connections_as_are_asked_at_once_and_no_more() -> None:
    def slowly(scripted: Scripted) -> Talk:
        async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while True:
                await scripted.heard(reader)
                await asyncio.sleep(0.01)
                writer.write(OK)

        return play

    async with scripted_server(slowly) as server:
        cluster = Cluster(server=f"http://127.0.0.1:{server.port}", credentials=Fixed(Identity()))
        async with Client(cluster, in_flight=4) as client:
            await asyncio.gather(*(client.request("GET", "/x") for _ in range(40)))
        assert server.connections == 4 and len(server.requests) == 40


# -- guards -----------------------------------------------------------------------------------------------------------


async def test_a_guard_is_asked_before_anything_leaves() -> None:
    async with scripted_server(answering(OK, OK)) as server, server.client() as client:
        await client.request("GET", "/x")
        with pytest.raises(NotSent, match="guard"):
            await client.request("POST", "/x", body=b"{}", guard=lambda: False)
        assert await client.request("POST", "/x", body=b"{}", guard=lambda: True) == b"ok"
        assert len(server.requests) == 2
        assert client.counters.requests["post", STOPPED] == 1


async def test_a_guard_is_asked_again_before_the_rest_of_a_request_that_does_not_fit() -> None:
    """The server reads nothing, so most of a large body waits here; then the lead is lost."""
    held = asyncio.Event()
    got = bytearray()

    def reluctant(scripted: Scripted) -> Talk:
        async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await held.wait()
            while piece := await reader.read(1 << 20):
                got.extend(piece)

        return play

    leading = True
    body = b"x" * (32 << 20)
    async with scripted_server(reluctant) as server, server.client() as client:
        asking = asyncio.create_task(client.request("POST", "/x", body=body, guard=lambda: leading))
        await asyncio.sleep(0.2)
        leading = False
        held.set()
        with pytest.raises(NotSent, match="guard"):
            await asking
        await asyncio.sleep(0.1)
    assert len(got) < len(body), "a server does not act on half a request"


# -- streams ----------------------------------------------------------------------------------------------------------


async def test_a_stream_that_nobody_takes_from_waits_at_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_module, "_UNREAD_AT_MOST", 1 << 16)
    line, count, sent = b"y" * 1023 + b"\n", 50_000, 0

    def pouring(scripted: Scripted) -> Talk:
        async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal sent
            await scripted.heard(reader)
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            for _ in range(count):
                writer.write(b"400\r\n" + line + b"\r\n")
                await writer.drain()
                sent += 1
            writer.write(b"0\r\n\r\n")

        return play

    async with (
        scripted_server(pouring) as server,
        server.client() as client,
        client.watch("/x", {}, quiet_s=20.0) as lines,
    ):
        await asyncio.sleep(0.5)
        assert sent < count, "it was left waiting"
        assert sum([len(some) async for some in lines]) == count, "and nothing is lost"


# -- addresses --------------------------------------------------------------------------------------------------------


async def test_a_server_behind_a_path_and_headers_of_every_request() -> None:
    async with scripted_server(answering(OK)) as server, server.client("/k8s/clusters/c-1") as client:
        await client.request("PATCH", "/api/v1/x", query={"fieldManager": "a b&c"}, body=b"{}", content_type="a/b")
        head = server.requests[0].decode()
        assert head.startswith("PATCH /k8s/clusters/c-1/api/v1/x?fieldManager=a+b%26c HTTP/1.1\r\n")
        assert f"\r\nHost: 127.0.0.1:{server.port}\r\n" in head
        assert "\r\nContent-Type: a/b\r\nContent-Length: 2\r\n\r\n{}" in head


async def test_where_nobody_is_and_what_is_no_address() -> None:
    for server in ("http://127.0.0.1:1", "https://no-such-host.invalid"):
        async with Client(Cluster(server=server, credentials=Fixed(Identity()))) as client:
            with pytest.raises(NotSent, match=f"nobody answers at {server}: "):
                await client.request("GET", "/x")
            assert client.counters.requests == {("get", UNREACHABLE): 1}
    for server in ("", "localhost:6443", "ftp://x", "https://"):
        with pytest.raises(ConfigError, match="no address of a server"):
            Client(Cluster(server=server, credentials=Fixed(Identity()), source="here"))


async def test_a_token_with_a_line_break_ends_no_header() -> None:
    bad = Cluster(server="http://127.0.0.1:1", credentials=Fixed(Identity(token="a\r\nX-Other: b")), source="here")
    async with Client(bad) as client:
        with pytest.raises(ConfigError, match="Authorization has characters") as told:
            await client.request("GET", "/x")
        assert "X-Other" not in str(told.value)
