"""A server that misbehaves on purpose (`rude_server`): what a real one cannot be made to do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from optimus.kube import Client, Reflector
from optimus.kube import reflecting as reflecting_module
from optimus.kube.backing_off import Backoff
from optimus.kube.decoding import Lines
from optimus.kube.errors import Expired, NoAnswer, ServerFault, TooMany
from optimus.kube.resources import CONFIG_MAPS
from tests.kube.client.world import ConfigMap, Copy, until
from tests.kube.rude_server import Answer, RudeServer, bookmark, event, json_line, page, status, thing

STAYS = Answer(then="stay")
SYNCED = bookmark(10, ends_the_beginning=True)


@asynccontextmanager
async def playing(
    script: Sequence[Answer], copy: Copy, **options: Any
) -> AsyncIterator[tuple[RudeServer, Reflector[ConfigMap]]]:
    async with RudeServer(script) as server, Client(server.cluster) as client:
        quick = Backoff(first_s=0.01, most_s=0.05)
        reflector = Reflector(client, CONFIG_MAPS, ConfigMap, copy.hear, backoff=quick, **options)
        running = asyncio.create_task(reflector.run())
        try:
            yield server, reflector
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


# -- beginning -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [400, 422])
async def test_a_server_that_refuses_to_stream_the_beginning_is_asked_for_pages(code: int) -> None:
    copy = Copy()
    script = [Answer(code, (json_line(status(code, "Invalid")),)), Answer(lines=(page(5, thing("a", 1)),)), STAYS]
    async with playing(script, copy) as (server, reflector):
        await reflector.synced.wait()
        await until(lambda: len(server.asked) == 3)
        assert copy.whats() == ["added"]
        assert server.asked[0]["sendInitialEvents"] == "true"
        assert server.asked[1]["limit"] == "500"
        assert server.asked[2]["resourceVersion"] == "5"


async def test_a_server_that_never_ends_the_beginning_is_asked_for_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Old servers do not know the question, and answer another one."""
    monkeypatch.setattr(reflecting_module, "FILLING_QUIET_S", 0.2)
    copy = Copy()
    script = [
        Answer(lines=(event("ADDED", thing("a", 1)),), then="stay"),
        Answer(lines=(page(5, thing("a", 1)),)),
        STAYS,
    ]
    async with playing(script, copy) as (_, reflector):
        await reflector.synced.wait()
        assert copy.whats() == ["added"], "told once"


async def test_a_beginning_that_breaks_off_begins_again_and_is_not_resumed() -> None:
    copy = Copy()
    first = (event("ADDED", thing("b", 9)), event("ADDED", thing("gone-meanwhile", 3)))
    again = (event("ADDED", thing("a", 1)), event("ADDED", thing("b", 9)), SYNCED)
    async with playing([Answer(lines=first, then="break"), Answer(lines=again, then="stay")], copy) as (
        server,
        reflector,
    ):
        await reflector.synced.wait()
        assert "resourceVersion" not in server.asked[1], "its order is not that of versions"
        assert sorted(copy.now) == ["n/a", "n/b"]
        assert copy.whats("n/b") == ["added"]
        assert copy.whats("n/gone-meanwhile") == ["added", "deleted"]


async def test_a_list_of_null_is_an_empty_list() -> None:
    copy = Copy()
    async with playing([Answer(lines=(page(5, null=True),)), STAYS], copy, watch_list=False) as (_, reflector):
        await reflector.synced.wait()
        assert copy.told == []


# -- history that is gone --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["status", "event"])
async def test_gone_history_is_understood_as_a_status_and_as_an_event(form: str) -> None:
    copy = Copy()
    began = Answer(lines=(event("ADDED", thing("a", 1)), event("ADDED", thing("b", 2)), SYNCED))
    gone = status(410, "Expired")
    told = Answer(410, (json_line(gone),)) if form == "status" else Answer(lines=(event("ERROR", gone),))
    again = Answer(lines=(event("ADDED", thing("b", 11)), bookmark(12, ends_the_beginning=True)), then="stay")
    async with playing([began, told, again], copy) as (server, reflector):
        await until(lambda: len(copy.told) == 4)
        assert server.asked[1]["resourceVersion"] == "10"
        assert copy.whats("n/a") == ["added", "deleted"]
        assert copy.told[-1].object is None, "nobody saw the last of it"
        assert copy.whats("n/b") == ["added", "changed"]
        assert (reflector.reflection.expired, reflector.reflection.fillings) == (1, 2)


async def test_pages_that_expire_halfway_begin_again_and_in_the_end_come_in_one_piece() -> None:
    copy = Copy()
    half = [Answer(lines=(page(5, thing("a", 1), more="next"),)), Answer(410, (json_line(status(410, "Expired")),))]
    whole = Answer(lines=(page(9, thing("a", 1), thing("b", 2)),))
    async with playing([*half, *half, *half, whole, STAYS], copy, watch_list=False) as (server, reflector):
        await reflector.synced.wait()
        assert [one.get("limit") for one in server.asked[:7]] == ["500"] * 6 + [None]
        assert copy.whats() == ["added", "added"], "what was told of the first pages is not told again"
    async with RudeServer([*half, *half, *half, whole]) as server, Client(server.cluster) as client:
        found = await client.listing(CONFIG_MAPS, ConfigMap)
        assert [one.metadata.name for one in found.items] == ["a", "b"], "once each"
    async with RudeServer([half[1]]) as server, Client(server.cluster) as client:
        with pytest.raises(Expired):
            await client.listing(CONFIG_MAPS, ConfigMap)


# -- trouble ---------------------------------------------------------------------------------------------------------


async def test_a_server_that_asks_for_patience_gets_it() -> None:
    copy = Copy()
    busy = Answer(429, (json_line(status(429, "TooManyRequests")),), {"Retry-After": "1"})
    async with playing([busy, Answer(lines=(SYNCED,), then="stay")], copy) as (server, reflector):
        begun = asyncio.get_running_loop().time()
        await until(lambda: bool(reflector.reflection.trouble))
        assert "TooManyRequests" in reflector.reflection.trouble
        await reflector.synced.wait()
        assert asyncio.get_running_loop().time() - begun > 0.9, "not sooner than it asked"
        assert len(server.asked) == 2
        assert reflector.reflection.trouble == ""


async def test_waits_grow_vary_end_somewhere_and_begin_anew_after_success() -> None:
    backoff = Backoff(first_s=1.0, most_s=8.0)
    waits = [backoff.next() for _ in range(200)]
    assert all(0.5 <= wait <= 1.5 for wait in waits[:1])
    assert all(4.0 <= wait <= 12.0 for wait in waits[3:])
    assert len(set(waits)) > 190
    assert backoff.next(60.0) == 60.0
    assert backoff.next(10**9) == 120.0, "nobody waits until next year"
    backoff.reset()
    assert backoff.next() <= 1.5


@pytest.mark.parametrize(
    "rubbish", [b"what?\n", b'{"type":"ADDED","object":\n', b'{"type":"ADDED","object":{\xff}}\n', b"[]\n"]
)
async def test_rubbish_in_a_watch_loses_nothing(rubbish: bytes) -> None:
    copy = Copy()
    began = Answer(lines=(SYNCED, event("ADDED", thing("a", 11)), rubbish, event("ADDED", thing("lost?", 12))))
    resumed = Answer(lines=(event("ADDED", thing("lost?", 12)),), then="stay")
    async with playing([began, resumed], copy) as (server, _):
        await until(lambda: "n/lost?" in copy.now)
        assert server.asked[1]["resourceVersion"] == "11"


async def test_rubbish_again_and_again_makes_it_begin_anew() -> None:
    copy = Copy()
    bad = Answer(lines=(b"what?\n",))
    began = Answer(lines=(event("ADDED", thing("a", 1)), SYNCED))
    again = Answer(lines=(event("ADDED", thing("b", 2)), bookmark(30, ends_the_beginning=True)), then="stay")
    async with playing([began, bad, bad, bad, again], copy) as (server, _):
        await until(lambda: sorted(copy.now) == ["n/b"])
        assert "sendInitialEvents" in server.asked[4]


async def test_kinds_of_events_nobody_knows_are_passed_over_and_order_of_fields_does_not_matter() -> None:
    copy = Copy()
    turned = json_line({"object": thing("a", 11), "type": "ADDED"})
    lines = (SYNCED, b"\n", event("NOVELTY", thing("x", 11)), turned, event("DELETED", thing("never-seen", 12)))
    async with playing([Answer(lines=lines, then="stay")], copy) as (_, reflector):
        await until(lambda: "n/a" in copy.now)
        assert copy.whats() == ["added"]
        assert reflector.reflection.failures == 0


async def test_an_object_that_does_not_fit_is_told_as_such_and_its_deletion_too() -> None:
    told: list[Any] = []
    bad = {**thing("bad", 11), "data": 5}
    lines = (SYNCED, event("ADDED", bad), event("DELETED", {**bad, "data": 6}))
    async with RudeServer([Answer(lines=lines, then="stay")]) as server, Client(server.cluster) as client:
        reflector = Reflector(client, CONFIG_MAPS, ConfigMap, told.append)
        running = asyncio.create_task(reflector.run())
        await until(lambda: len(told) == 2)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert [(one.what.value, one.key, one.object) for one in told] == [
        ("unreadable", "n/bad", None),
        ("deleted", "n/bad", None),
    ]
    assert "$.data" in told[0].why
    assert reflector.reflection.unreadable == 1


async def test_a_watch_that_ends_at_once_again_and_again_does_not_become_a_storm() -> None:
    copy = Copy()
    async with playing([Answer(lines=(SYNCED,)), Answer()], copy) as (server, reflector):
        await reflector.synced.wait()
        before = len(server.asked)
        await asyncio.sleep(0.5)
        assert len(server.asked) - before < 40, "with waits of 10 to 50 ms"
        assert "ended at once" in reflector.reflection.trouble


# -- answers ---------------------------------------------------------------------------------------------------------


async def test_what_is_no_status_is_still_an_error_with_words() -> None:
    script = [
        Answer(502, (b"<html>Bad Gateway</html>",)),
        Answer(429, (b"",), {"Retry-After": "7"}),
        Answer(lines=(b"{",)),
    ]
    async with RudeServer(script) as server, Client(server.cluster) as client:
        with pytest.raises(ServerFault, match="502: <html>Bad Gateway"):
            await client.listing(CONFIG_MAPS, ConfigMap)
        with pytest.raises(TooMany) as told:
            await client.listing(CONFIG_MAPS, ConfigMap)
        assert told.value.retry_after_s == 7.0
        with pytest.raises(NoAnswer, match="not what was asked for"):
            await client.listing(CONFIG_MAPS, ConfigMap)


async def test_an_answer_that_takes_too_long_or_breaks_off_is_told_as_unknown() -> None:
    broken = Answer(lines=(b'{"metadata":',), headers={"Content-Length": "1000"}, then="break")
    async with RudeServer([broken, STAYS]) as server, Client(server.cluster) as client:
        with pytest.raises(NoAnswer):
            await client.request("POST", "/x", body=b"{}")
        with pytest.raises(NoAnswer, match="time was up"):
            await client.request("POST", "/x", body=b"{}", timeout_s=0.1)


def test_lines_come_out_of_pieces_of_any_size_and_none_may_fill_the_memory() -> None:
    text = b"one\n\ntwo\n" + b"x" * 1000 + b"\nunfinished"
    for size in range(1, 50):
        lines = Lines()
        found = [line for at in range(0, len(text), size) for line in lines.feed(text[at : at + size])]
        assert found == [b"one", b"two", b"x" * 1000]
    endless = Lines(longest=100)
    assert endless.feed(b"x" * 100) == []
    with pytest.raises(NoAnswer, match="is not an object"):
        endless.feed(b"x")


DEPTH = 5_000
DEEP = (
    json_line(thing("deep", 2)).strip().removesuffix(b"}") + b',"spec":' + b'{"x":' * DEPTH + b"{}" + b"}" * (DEPTH + 1)
)


async def test_an_object_that_is_nested_too_deeply_is_told_by_itself() -> None:
    """Whoever may create objects of some kind may nest them as deeply as the server allows."""
    came, went = (b'{"type":"%s","object":%s}\n' % (what, DEEP) for what in (b"MODIFIED", b"DELETED"))
    copy = Copy()
    told = (event("ADDED", thing("deep", 1)), SYNCED, came, event("ADDED", thing("b", 3)), went)
    async with playing([Answer(lines=told, then="stay")], copy):
        await until(lambda: len(copy.whats()) == 4)
    assert copy.whats() == ["added", "unreadable", "added", "deleted"]


async def test_a_page_with_an_object_that_is_nested_too_deeply_is_read() -> None:
    copy = Copy()
    several = page(5, thing("a", 1), thing("b", 3)).replace(b'"items":[', b'"items":[' + DEEP + b",")
    script = [Answer(400, (json_line(status(400, "Invalid")),)), Answer(lines=(several,)), STAYS]
    async with playing(script, copy):
        await until(lambda: len(copy.whats()) == 3)
    assert sorted(copy.whats()) == ["added", "added", "unreadable"]
