"""Keeping: what the next leader has to know of a job, as a part of its status.

    status.life = {revision, life, counted, known, parts}

Why: whoever leads next finds the life of the job where everybody can see it, and nowhere else.
Owns: the record, and the patch that makes one status of another.
Must not: be trusted further than it can be read: people with the right to may write there.

The *revision* counts writes of the life. Pods carry the one that asked for them; so a status that is older than one of
the pods is known to be old, and nothing is done by it. A pod whose uid is *counted* has ended, whatever a late watch
says of it. A pod that is *known* and not there any more, without having been counted, was taken away by force.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from optimus.drivers.kube.objects import Anything
from optimus.lives import Life

REMEMBERED = 64
"""Uids of ends that are kept although their pods are gone: a watch may be late."""


class Parts(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Of an array: what has become of each."""

    done: str = ""
    """Numbers, as `0-41,43`."""
    failed: str = ""
    failures: dict[int, int] = {}
    """Of those that are not over: how often they have failed."""
    retry_at_ms: dict[int, int] = {}
    starts: dict[int, int] = {}
    """Of those that are not over: how often they have been started."""
    at: dict[int, int] = {}
    """By ordinal: the part that it works on."""


class Kept(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    life: Life
    revision: int = 0
    counted: tuple[str, ...] = ()
    """Uids of pods whose end is in the life, the oldest first."""
    known: dict[str, str] = {}
    """By pod: its uid, as long as its end is not counted."""
    parts: Parts = Parts()


def kept_in(thing: Anything, workload: str) -> tuple[Kept, str]:
    """And what is wrong with it: then a new life begins, which goes on counting attempts."""
    status = status_of(thing)
    written = status.get("life")
    if written is None:
        return Kept(life=Life(workload=workload)), ""
    try:
        kept = msgspec.convert(written, Kept, strict=False)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        attempt = status.get("attempt")
        life = Life(workload=workload, attempt=attempt if isinstance(attempt, int) and attempt > 0 else 0)
        return Kept(life=life), f"status.life cannot be read, and the life of the job begins anew: {error}"
    return kept, ""


def revision_of(thing: Anything) -> int:
    written = status_of(thing).get("life")
    revision = written.get("revision") if isinstance(written, dict) else None
    return revision if isinstance(revision, int) else 0


def as_status(kept: Kept) -> dict[str, Any]:
    """Without what is nothing: most of a life is, and a merge patch cannot say null."""
    written: dict[str, Any] = _without_null(msgspec.to_builtins(kept, str_keys=True))
    nothing: tuple[Any, ...] = (0, "", [])
    life = {name: value for name, value in written["life"].items() if value not in nothing or name == "workload"}
    return {**written, "life": life}


def _without_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_null(one) for name, one in value.items() if one is not None}
    return [_without_null(one) for one in value] if isinstance(value, list | tuple) else value


def status_of(thing: Anything) -> dict[str, Any]:
    return thing.status if isinstance(thing.status, dict) else {}


def merge_patch(before: Any, after: dict[str, Any]) -> dict[str, Any]:
    """What a merge patch has to say so that one becomes the other: what is gone is null."""
    old: dict[str, Any] = before if isinstance(before, dict) else {}
    patch: dict[str, Any] = {name: None for name in old if name not in after}
    for name, value in after.items():
        was = old.get(name)
        if isinstance(value, dict) and isinstance(was, dict):
            if inner := merge_patch(was, value):
                patch[name] = inner
        elif name not in old or was != value:
            patch[name] = value
    return patch


def remembered(counted: tuple[str, ...], there: set[str]) -> tuple[str, ...]:
    """Those whose pods are there, and the newest of the others."""
    gone = [uid for uid in counted if uid not in there][-REMEMBERED:]
    keep = set(gone) | there
    return tuple(uid for uid in counted if uid in keep)


def numbers(text: str) -> set[int]:
    """`0-3,7` as numbers; what is none is left out."""
    found: set[int] = set()
    for piece in filter(None, text.split(",")):
        first, _, last = piece.partition("-")
        if first.isdigit() and (last.isdigit() or not last):
            found.update(range(int(first), int(last or first) + 1))
    return found


def as_text(found: set[int]) -> str:
    pieces: list[list[int]] = []
    for number in sorted(found):
        if pieces and pieces[-1][1] == number - 1:
            pieces[-1][1] = number
        else:
            pieces.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in pieces)
