"""Quotas in words: `vision.guarantee=16`, `vision.limit@a100=none`, `vision.weight=3`. GPUs.

Why: a quota stands for a queue, a pool and a resource; most clusters have one pool, and most questions are about GPUs.
Owns: reading the words, and the queue as it is afterwards.
Must not: guess between pools.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from msgspec import Struct, structs

from optimus.drivers.sim.setup import Setup
from optimus.drivers.sim.whatif.wrong import Wrong
from optimus.model.pools import DEFAULT_POOL
from optimus.model.queues import GPU, PoolQuota, Queue, Quota
from optimus.model.reasons import named
from optimus.model.units import UnitError, format_gpu, parse_count, parse_gpu
from optimus.model.validation import queue_problems, queue_tree_problems

FIELDS = ("guarantee", "limit", "weight")
OPTION = "--queue"
MOST_NAMED = 10
_HOW = "write QUEUE.guarantee=16, QUEUE.limit=32 or QUEUE.weight=2"


class QuotaWish(Struct, frozen=True, kw_only=True):
    queue: str
    pool: str
    field: str
    value: int | None
    """None: without a limit."""
    words: str


def read_quota(text: str, setup: Setup) -> QuotaWish | Wrong:
    left, equals, written = text.partition("=")
    left, _, pool = left.partition("@")
    name, dot, field = left.rpartition(".")
    if not (equals and dot and name and written):
        return Wrong(OPTION, f"{text}: {_HOW}")
    if field not in FIELDS:
        near = get_close_matches(field, FIELDS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(FIELDS)}"
        return Wrong(OPTION, f"{text}: a quota has no {field}; {hint}")
    queue = next((queue for queue in setup.queues if queue.name == name), None)
    if queue is None:
        names = [queue.name for queue in setup.queues]
        near = get_close_matches(name, names, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {named(names, MOST_NAMED) if names else 'none'}"
        return Wrong(OPTION, f"{text}: there is no queue {name}; {hint}")
    chosen = _pool(text, queue, pool, setup)
    if isinstance(chosen, Wrong):
        return chosen
    try:
        value = None if field == "limit" and written == "none" else _amount(field, written)
    except UnitError as error:
        return Wrong(OPTION, f"{text}: {error}")
    before = _told(field, getattr(_quota(queue, chosen), field))
    where = f" in pool {chosen}" if chosen != DEFAULT_POOL else ""
    said = f"{field} of queue {name}{where}: {_told(field, value)} instead of {before}"
    return QuotaWish(queue=name, pool=chosen, field=field, value=value, words=said)


def _amount(field: str, written: str) -> int:
    return parse_count(written) if field == "weight" else parse_gpu(written)


def _told(field: str, value: int | None) -> str:
    if value is None:
        return "none"
    return str(value) if field == "weight" else f"{format_gpu(value)} GPUs"


def _pool(text: str, queue: Queue, pool: str, setup: Setup) -> str | Wrong:
    known = {DEFAULT_POOL, *(one.name for one in setup.pools)}
    if pool:
        if pool in known:
            return pool
        return Wrong(OPTION, f"{text}: there is no pool {pool}; there are {named(sorted(known), MOST_NAMED)}")
    mentioned = [quota.pool for quota in queue.quotas if GPU in quota.resources]
    candidates = mentioned or sorted(one.name for one in setup.pools) or [DEFAULT_POOL]
    if len(candidates) == 1:
        return candidates[0]
    which = named([f"{text.partition('=')[0]}@{name}" for name in candidates], MOST_NAMED)
    return Wrong(OPTION, f"{text}: there are several pools; say which: {which}")


def _quota(queue: Queue, pool: str) -> Quota:
    return next((quota.resources.get(GPU, Quota()) for quota in queue.quotas if quota.pool == pool), Quota())


def changed_queues(queues: Sequence[Queue], wishes: Iterable[QuotaWish], wrong: list[Wrong]) -> tuple[Queue, ...]:
    """Only those that change; what cannot be is told."""
    now = {queue.name: queue for queue in queues}
    touched: dict[str, None] = {}
    for wish in wishes:
        now[wish.queue] = _with(now[wish.queue], wish)
        touched[wish.queue] = None
    for name in touched:
        wrong += [Wrong(OPTION, str(problem)) for problem in queue_problems(now[name])]
    if touched:
        before = {str(problem) for problem in queue_tree_problems(queues)}
        after = [str(problem) for problem in queue_tree_problems(now.values())]
        wrong += [Wrong(OPTION, text) for text in after if text not in before]
    return tuple(now[name] for name in touched)


def _with(queue: Queue, wish: QuotaWish) -> Queue:
    quota = structs.replace(_quota(queue, wish.pool), **{wish.field: wish.value})
    others = [one for one in queue.quotas if one.pool != wish.pool]
    mine = next((one for one in queue.quotas if one.pool == wish.pool), PoolQuota(pool=wish.pool))
    return structs.replace(queue, quotas=(*others, structs.replace(mine, resources={**mine.resources, GPU: quota})))
