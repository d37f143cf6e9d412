"""From bytes to narrow structs that the caller brings, and to nothing else.

Why: a pod is 6.5 KB of which a scheduler needs 300 bytes. Fields that a struct does not name are skipped, never built.
Owns: the envelopes (pages, watch events, lines) and what is said of an object that does not fit its struct.
Must not: know any kind of object.

    class Pod(msgspec.Struct, gc=False):
        metadata: Meta

`gc=False` keeps the cycle collector away from what cannot have cycles; with it, listing is twice as fast. A field that
the server may send as null is declared `| None`.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from optimus.kube.errors import Garbled

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
LONGEST_LINE = 32 << 20
"""An object has 1.5 MB at most. A line beyond this is not an object, and must not fill the memory."""
DEEPEST = 11_000
"""A server takes no more than 10,000 levels."""
TOO_DEEP = "it is nested too deeply"


class Meta(msgspec.Struct, rename="camel", gc=False):
    """Tells an object from others, and one version of it from the next. Versions are opaque: only equality counts."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class Identified(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def resource_version(self) -> str: ...


class Object(Protocol):
    """Any struct with the metadata of an object; `Meta`, or a struct of the caller with more fields."""

    @property
    def metadata(self) -> Identified: ...


T = TypeVar("T", bound=Object)
S = TypeVar("S")


class AnyObject(msgspec.Struct, gc=False):
    """An object of which only the name matters."""

    metadata: Meta


class ListMeta(msgspec.Struct, rename="camel", gc=False):
    resource_version: str = ""
    continue_: str | None = msgspec.field(name="continue", default=None)


class Page(msgspec.Struct, Generic[S], gc=False):
    metadata: ListMeta
    items: list[S] | None = None
    """Some servers say null for none."""


class WatchEvent(msgspec.Struct, Generic[S], gc=False):
    type: str
    object: S


class _BookmarkMeta(Meta):
    annotations: dict[str, str] | None = None


class Bookmark(msgspec.Struct, gc=False):
    metadata: _BookmarkMeta

    @property
    def ends_the_beginning(self) -> bool:
        return (self.metadata.annotations or {}).get(INITIAL_EVENTS_END) == "true"


class Unreadable(msgspec.Struct, frozen=True):
    """An object that does not fit the struct; `why` names the field."""

    meta: Meta
    why: str


def decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return _decoder(kind)


@functools.cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def decode(raw: bytes | msgspec.Raw, kind: type[S]) -> S:
    try:
        found: S = decoder(kind).decode(raw)
    except RecursionError:
        raise Garbled(TOO_DEEP) from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Garbled(f"the answer is not what was asked for: {error}") from None
    return found


def decode_outline(raw: bytes | msgspec.Raw, kind: type[S]) -> S:
    """The envelope of what may be nested to any depth: whoever may write such an object must not stop a watch."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit + DEEPEST)
    try:
        return decode(raw, kind)
    finally:
        sys.setrecursionlimit(limit)


def decode_page(raw: bytes, kind: type[T]) -> tuple[ListMeta, list[T], list[Unreadable]]:
    """One bad object does not spoil a page: it is told by itself."""
    try:
        page: Page[T] = decoder(Page[kind]).decode(raw)  # type: ignore[valid-type]
    except (msgspec.ValidationError, RecursionError):
        pass
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Garbled(f"the answer is not what was asked for: {error}") from None
    else:
        return page.metadata, page.items or [], []
    raws = decode_outline(raw, Page[msgspec.Raw])
    good: list[T] = []
    bad: list[Unreadable] = []
    for item in raws.items or []:
        found = decode_object(item, kind)
        if isinstance(found, Unreadable):
            bad.append(found)
        else:
            good.append(found)
    return raws.metadata, good, bad


def decode_object(raw: bytes | msgspec.Raw, kind: type[T]) -> T | Unreadable:
    try:
        found: T = decoder(kind).decode(raw)
    except (msgspec.ValidationError, RecursionError) as error:
        why = TOO_DEEP if isinstance(error, RecursionError) else str(error)
        return Unreadable(decode_outline(raw, AnyObject).metadata, why)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Garbled(f"the answer is not what was asked for: {error}") from None
    return found


class Lines:
    """Lines out of pieces of any size; each byte is looked at once, however long a line is."""

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._begun: list[bytes] = []
        self._size = 0
        self._longest = longest

    def feed(self, piece: bytes) -> list[bytes]:
        """Those that are complete now, without those that are empty."""
        last = piece.rfind(b"\n")
        if last < 0:
            self._keep(piece)
            return []
        whole = piece[:last] if not self._begun else b"".join((*self._begun, piece[:last]))
        self._begun, self._size = [], 0
        self._keep(piece[last + 1 :])
        return [line for line in whole.split(b"\n") if line]

    def _keep(self, piece: bytes) -> None:
        if not piece:
            return
        self._begun.append(piece)
        self._size += len(piece)
        if self._size > self._longest:
            raise Garbled(f"a line of more than {self._longest >> 20} MiB is not an object")
