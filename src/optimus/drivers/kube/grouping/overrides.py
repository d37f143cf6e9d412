"""What people say about their work with labels and annotations: queue, class, priority and the rest.

The workload's own object speaks first, then its template, then its pods; on each, annotations before labels (a label
cannot hold a comma). What cannot be read is told and left out.

Why: everything the table guesses can be said otherwise, without another kind of object.
Owns: the words `optimus.dev/…` and how their values are read.
Must not: read queues of others (Kueue, Volcano): they name other things.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

from msgspec import Struct

from optimus.api.specs.fields import nearest
from optimus.drivers.kube.objects import Meta
from optimus.model import units
from optimus.model.workloads import Preemptible, Topology, WorkloadClass

PREFIX = "optimus.dev/"
QUEUE = PREFIX + "queue"
SCHEDULER = PREFIX + "scheduler"
"""On a namespace `enabled`, on a pod `disabled`: see `opting_in`."""
STOCK_SCHEDULER = "default-scheduler"
GROUP = PREFIX + "group"
ROLE = PREFIX + "role"
SLOT = PREFIX + "slot"
"""Written by us when a pod is bound, so that a restart knows which replica it is."""
TERM = PREFIX + "term"
"""Written by us when a pod is bound: the term of the leader that sent the bind."""
SUSPENDED = PREFIX + "suspended"
"""Written by us on work that we have suspended, so that it is not taken for the user's wish."""
HOLD = PREFIX + "hold"
"""On suspended work that is to stay suspended: written by people, and by us on work that is stopped for good."""
HELD_WHY = PREFIX + "held-because"
"""Written by us beside it: the reason."""
BECAUSE = PREFIX + "target-because"
"""Written by us beside the number of replicas of a UnifiedJob: why it is this one."""
KUEUE = "kueue.x-k8s.io/queue-name"


LARGEST_NUMBER = 2**31 - 1
"""As large as a priority of Kubernetes; whatever is beyond it is no number."""
_WHOLE_NUMBER, _ORDINAL, _TERM = (re.compile(one, re.ASCII) for one in (r"-?[0-9]+", r"[0-9]{1,9}", r"[0-9]{1,18}"))
_LONGEST_NUMBER = 20
_LONGEST_SHOWN = 40


class Overrides(Struct, frozen=True, kw_only=True):
    queue: str = ""
    min_members: int | None = None
    workload_class: WorkloadClass | None = None
    priority: int | None = None
    preemptible: Preemptible | None = None
    pools: tuple[str, ...] = ()
    topology: Topology = Topology()
    checkpoint_grace_ms: int | None = None
    expected_duration_ms: int | None = None
    family: str = ""
    problems: tuple[str, ...] = ()


_PREEMPTIBLE = {"true": Preemptible.YES, "false": Preemptible.NO, **{str(word): word for word in Preemptible}}


class _Wrong(Exception):  # noqa: N818 - nobody outside sees it
    pass


def word_on(meta: Meta, key: str) -> str | None:
    found = (meta.annotations or {}).get(key)
    return found if found is not None else (meta.labels or {}).get(key)


def read_overrides(places: Iterable[Meta]) -> Overrides:
    """`places`: those who speak first come first."""
    metas = list(places)
    problems: list[str] = []

    def asked(word: str, reader: Callable[[str], _Read]) -> _Read | None:
        key = PREFIX + word
        text = next((found for meta in metas if (found := word_on(meta, key)) is not None), None)
        if text is None:
            return None
        try:
            return reader(text)
        except _Wrong as error:
            problems.append(f"{key}: {error}")
            return None

    return Overrides(
        queue=asked("queue", str) or "",
        min_members=asked("min-members", _whole),
        workload_class=asked("class", _choice({str(one): one for one in WorkloadClass})),
        priority=asked("priority", _number),
        preemptible=asked("preemptible", _choice(_PREEMPTIBLE)),
        pools=asked("pools", _list) or (),
        topology=Topology(required=asked("topology", str) or "", preferred=asked("preferred-topology", str) or ""),
        checkpoint_grace_ms=asked("checkpoint-grace", _duration),
        expected_duration_ms=asked("expected-duration", _some_time),
        family=asked("family", str) or "",
        problems=tuple(problems),
    )


_Read = TypeVar("_Read")


def _number(text: str) -> int:
    if not _WHOLE_NUMBER.fullmatch(text):
        raise _Wrong(f"must be a whole number, not {_shown(text)}")
    if len(text) > _LONGEST_NUMBER or abs(int(text)) > LARGEST_NUMBER:
        raise _Wrong(f"must be between -{LARGEST_NUMBER} and {LARGEST_NUMBER}, not {_shown(text)}")
    return int(text)


def _whole(text: str) -> int:
    if (number := _number(text)) < 1:
        raise _Wrong(f"must be at least 1, not {_shown(text)}")
    return number


def _shown(text: str) -> str:
    """An annotation may have 256 KiB; nobody reads so much of it."""
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def _list(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def _some_time(text: str) -> int:
    if (milliseconds := _duration(text)) < 1:
        raise _Wrong("must be more than 0")
    return milliseconds


def _duration(text: str) -> int:
    try:
        return units.parse_duration(text)
    except units.UnitError as error:
        raise _Wrong(f"{error.message} ({error.hint})" if error.hint else error.message) from None


def _choice(known: dict[str, _Read]) -> Callable[[str], _Read]:
    def read(text: str) -> _Read:
        if text in known:
            return known[text]
        meant = nearest(text[:_LONGEST_SHOWN], list(known))
        raise _Wrong(f"{_shown(text)} is none of {', '.join(known)} ({meant})".replace(" ()", ""))

    return read


def kept_slot(meta: Meta) -> tuple[str, int] | None:
    """(role, ordinal) that a pod was bound as."""
    role, _, ordinal = (word_on(meta, SLOT) or "").rpartition("-")
    return (role, int(ordinal)) if role and _ORDINAL.fullmatch(ordinal) else None


def kept_term(meta: Meta) -> int | None:
    """The term of the leader that bound it."""
    written = word_on(meta, TERM) or ""
    return int(written) if _TERM.fullmatch(written) else None


def slot_text(role: str, ordinal: int) -> str:
    return f"{role}-{ordinal}"
