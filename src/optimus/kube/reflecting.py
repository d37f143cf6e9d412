"""A live copy of one kind of objects, told as changes: what is there now, and everything that happens to it.

Why: a scheduler must see every pod and node exactly as the server does, through restarts, cuts and forgotten history.
Owns: listing, watching and beginning again; which objects were told and in which version, so that after a gap only what
      differs is told, deletions that were missed included.
Must not: keep the objects: they go to the caller, in order, none twice and none lost. Interpret resource versions.

                       ┌──────────── 410, or nothing to resume from ────────────┐
                       ▼                                                         │
    begin ──► filling (WatchList; where refused, pages of 500) ──► synced ──► watching ◄─► pause (back-off, Retry-After)

`tell` is a plain function, called in the event loop; `queue.put_nowait` of an unbounded `asyncio.Queue` is one. What it
raises ends `run`: an error of the caller is not the server's.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from enum import StrEnum
from typing import Generic, NoReturn

import msgspec

from optimus.kube.backing_off import Backoff
from optimus.kube.client import PAGE, WHOLE_AFTER, Client, selecting
from optimus.kube.decoding import (
    AnyObject,
    Bookmark,
    Identified,
    T,
    Unreadable,
    WatchEvent,
    decode,
    decode_object,
    decode_outline,
    decoder,
)
from optimus.kube.errors import (
    ApiError,
    ConfigError,
    Expired,
    Forbidden,
    Garbled,
    NoAnswer,
    NotSent,
    Status,
    from_status,
)
from optimus.kube.resources import Resource

TIMEOUT_S = (300, 600)
"""After how long the server ends a watch: between these, so that watches of many clients do not end together."""
QUIET_S = 200.0
"""A server says something every one or two minutes (bookmarks); one that is quiet for longer may hang. One that is gone
is noticed sooner, by its connection."""
GATHER_S = 0.005
"""Between two looks at a stream: to wake up for each of many thousand lines costs as much as reading it."""
FILLING_QUIET_S = 10.0
"""Servers that do not know WatchList send no end of the beginning; then pages are asked for."""
SHORT_S = 1.0
"""A watch that ends sooner and brought nothing is a failure, however politely it ended."""
GIVE_UP_RESUMING = 3
"""So often the same place in the history cannot be read, and the copy is filled anew."""
REFUSES_WATCH_LIST = (400, 422)
_CHANGES = (b'{"type":"ADDED"', b'{"type":"MODIFIED"', b'{"type":"DELETED"')


class What(StrEnum):
    ADDED = "added"
    CHANGED = "changed"
    DELETED = "deleted"
    UNREADABLE = "unreadable"
    """It is there and does not fit the struct; `why` names the field. What was told before of it is out of date."""


class Change(msgspec.Struct, Generic[T], frozen=True, gc=False):
    what: What
    key: str
    """`namespace/name`, or the name of what has no namespace."""
    uid: str
    object: T | None = None
    """None for what was deleted while nobody watched, and for what is unreadable."""
    why: str = ""


class Reflection:
    """How it goes, as plain numbers."""

    def __init__(self) -> None:
        self.fillings = 0
        """The first, and one for each time that history was lost."""
        self.watches = 0
        self.expired = 0
        self.failures = 0
        self.changes = 0
        self.unreadable = 0
        self.trouble = ""
        """Why it does not go on right now, in words; empty while it does."""
        self.forbidden = False
        """That is the trouble: a matter of rights, which waiting does not mend."""
        self._heard = time.monotonic()

    def heard(self) -> None:
        self._heard = time.monotonic()

    def quiet_s(self) -> float:
        """Since the server said anything: the most by which the copy may lag behind. Up to two minutes are usual."""
        return time.monotonic() - self._heard


class Reflector(Generic[T]):
    def __init__(
        self,
        client: Client,
        resource: Resource,
        kind: type[T],
        tell: Callable[[Change[T]], object],
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        watch_list: bool = True,
        quiet_s: float = QUIET_S,
        backoff: Backoff | None = None,
    ) -> None:
        self.synced = asyncio.Event()
        """Set once everything that was there at the beginning has been told; it stays set."""
        self.reflection = Reflection()
        self._client = client
        self._resource = resource
        self._path = resource.path(namespace)
        self._kind = kind
        self._tell = tell
        self._namespace, self._labels, self._fields = namespace, labels, fields
        self._watch_list = watch_list
        self._quiet_s = quiet_s
        self._pause = backoff or Backoff()
        self._decode = decoder(WatchEvent[kind]).decode  # type: ignore[valid-type]
        self._known: dict[str, tuple[str, str]] = {}
        self._filling: set[str] | None = None
        """Keys seen since filling began; None while watching."""
        self._version = ""
        """To resume from; empty: begin again."""
        self._moved = False
        self._garbled = 0
        self._expired_in_a_row = 0

    async def run(self) -> NoReturn:
        """Until it is cancelled."""
        while True:
            try:
                await self._go_on()
            except Expired as error:
                self.reflection.expired += 1
                self._expired_in_a_row += 1
                self._version = ""
                await self._rest(error)
            except (ApiError, NoAnswer, NotSent, ConfigError) as error:
                self.reflection.failures += 1
                self._garbled += isinstance(error, Garbled)
                if self._garbled >= GIVE_UP_RESUMING:
                    self._version, self._garbled = "", 0
                await self._rest(error)

    def move(self, resource: Resource) -> None:
        """It is served elsewhere, in another version perhaps: everything is read from there, and told again."""
        self._resource, self._path, self._moved = resource, resource.path(self._namespace), True

    def give_up(self) -> None:
        """It has been cancelled, since nobody serves it any more: what was known is gone."""
        for key, (uid, _) in list(self._known.items()):
            self._tell(Change(What.DELETED, key, uid))
        self._known.clear()

    @property
    def resource(self) -> Resource:
        return self._resource

    async def _rest(self, error: ApiError | NoAnswer | NotSent | ConfigError) -> None:
        self.reflection.trouble, self.reflection.forbidden = str(error), isinstance(error, Forbidden)
        after = error.retry_after_s if isinstance(error, ApiError) else None
        await asyncio.sleep(self._pause.next(after))

    async def _go_on(self) -> None:
        if self._moved:
            self._moved, self._version = False, ""
            self._known = {key: (uid, "") for key, (uid, _) in self._known.items()}
        if self._version:
            await self._follow({"resourceVersion": self._version})
        elif self._watch_list:
            await self._fill_by_watching()
        else:
            await self._fill_by_pages()

    # -- filling --------------------------------------------------------------------------------------------------

    async def _fill_by_watching(self) -> None:
        self._filling = set()
        query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        try:
            await self._follow(query)
        except ApiError as error:
            if error.status not in REFUSES_WATCH_LIST:
                raise
            self._watch_list = False
        except _Quiet:  # the beginning did not end: this server does not know how to end it
            self._watch_list = False

    async def _fill_by_pages(self) -> None:
        self._filling = set()
        limit = PAGE if self._expired_in_a_row < WHOLE_AFTER else 0
        version = ""
        async for page in self._client.pages(
            self._resource,
            self._kind,
            namespace=self._namespace,
            labels=self._labels,
            fields=self._fields,
            limit=limit,
        ):
            self.reflection.heard()
            for found in page.items:
                self._saw(found.metadata, found)
            for bad in page.unreadable:
                self._saw(bad.meta, None, bad.why)
            version = page.resource_version
            await asyncio.sleep(0)  # others have their turn between pages
        self._filled(version)

    def _filled(self, version: str) -> None:
        """Everything that is there has been told; what is not among it is gone."""
        assert self._filling is not None
        for key in [key for key in self._known if key not in self._filling]:
            self._lost(key)
        self._filling = None
        self._version = version
        self._expired_in_a_row = 0
        self.reflection.fillings += 1
        self._well()
        self.synced.set()

    # -- watching -------------------------------------------------------------------------------------------------

    async def _follow(self, query: dict[str, str]) -> None:
        timeout_s = random.randint(*TIMEOUT_S)  # noqa: S311 - spreads load, keeps no secret
        wanted = {**query, **selecting(self._labels, self._fields), "allowWatchBookmarks": "true"}
        self.reflection.watches += 1
        begun, before = time.monotonic(), self.reflection.changes
        asked = {**wanted, "timeoutSeconds": str(timeout_s)}
        async with self._client.watch(self._path, asked, quiet_s=self._quiet_s) as stream:
            while lines := await self._hear(stream):
                self.reflection.heard()
                for line in lines:
                    self._take(line)
                await asyncio.sleep(GATHER_S)
        if self._filling is not None:
            raise NoAnswer("the watch ended before all that is there was told")
        if time.monotonic() - begun < SHORT_S and self.reflection.changes == before:
            raise NoAnswer("the watch ended at once")
        self._well()

    async def _hear(self, stream: AsyncIterator[list[bytes]]) -> list[bytes] | None:
        """While filling, with less patience: a server that does not end the beginning is not waited for."""
        if self._filling is None:
            return await anext(stream, None)
        try:
            async with asyncio.timeout(FILLING_QUIET_S):
                return await anext(stream, None)
        except TimeoutError:
            raise _Quiet(f"nothing was heard for {FILLING_QUIET_S:.0f} s") from None

    def _take(self, line: bytes) -> None:
        if not line.startswith(_CHANGES):  # the server writes the type first; if one day it does not, this still works
            self._take_other(line)
            return
        try:
            event: WatchEvent[T] = self._decode(line)
        except (msgspec.ValidationError, RecursionError):
            self._take_other(line)
            return
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise Garbled(f"a line of the watch is not JSON: {error}") from None
        self._happened(event.type, event.object.metadata, event.object)

    def _take_other(self, line: bytes) -> None:
        """Bookmarks, errors, and objects that do not fit."""
        event = decode_outline(line, WatchEvent[msgspec.Raw])
        if event.type == "BOOKMARK":
            mark = decode(event.object, Bookmark)
            if self._filling is not None and mark.ends_the_beginning:
                self._filled(mark.metadata.resource_version)
            elif self._filling is None and mark.metadata.resource_version:
                self._version = mark.metadata.resource_version
                self._well()
        elif event.type == "ERROR":
            raise from_status(decode(event.object, Status))
        elif event.type == "DELETED":
            self._happened(event.type, decode_outline(event.object, AnyObject).metadata, None)
        elif event.type in ("ADDED", "MODIFIED"):
            found = decode_object(event.object, self._kind)
            if isinstance(found, Unreadable):
                self._happened(event.type, found.meta, None, found.why)
            else:
                self._happened(event.type, found.metadata, found)

    def _happened(self, kind: str, meta: Identified, found: T | None, why: str = "") -> None:
        if kind == "DELETED":
            key = key_of(meta)
            if self._filling is not None:
                self._filling.discard(key)
            if key in self._known:
                self._lost(key, found)
        else:
            self._saw(meta, found, why)
        if self._filling is None:
            # Only now: the order of what comes first is not that of versions, and cannot be resumed from.
            self._version = meta.resource_version
            self._well()

    # -- telling --------------------------------------------------------------------------------------------------

    def _saw(self, meta: Identified, found: T | None, why: str = "") -> None:
        key = key_of(meta)
        if self._filling is not None:
            self._filling.add(key)
        what = What.ADDED
        if (known := self._known.get(key)) is not None:
            uid, version = known
            if uid != meta.uid:
                self._lost(key)  # deleted and made anew while nobody watched
            elif version == meta.resource_version:
                return
            else:
                what = What.CHANGED
        if found is None:
            what = What.UNREADABLE
            self.reflection.unreadable += 1
        self.reflection.changes += 1
        self._tell(Change(what, key, meta.uid, found, why))
        self._known[key] = (meta.uid, meta.resource_version)

    def _lost(self, key: str, found: T | None = None) -> None:
        uid = self._known[key][0]
        self.reflection.changes += 1
        self._tell(Change(What.DELETED, key, uid, found))
        del self._known[key]

    def _well(self) -> None:
        self._pause.reset()
        self._garbled = 0
        self.reflection.trouble, self.reflection.forbidden = "", False


class _Quiet(NoAnswer):
    pass


def key_of(meta: Identified) -> str:
    return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
