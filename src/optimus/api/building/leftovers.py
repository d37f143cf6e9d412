"""Names in records that were set aside: they are looked at too, so that nobody has to correct a file twice.

Why: a workload with a negative number never gets as far as having its queue looked up.
Owns: that one check, on the data as written.
Must not: report what the ordinary checks report; they never saw these records.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from optimus.api.findings import Finding
from optimus.api.marks import Loc, MarkedMap, find_mark
from optimus.api.scenario import Scenario
from optimus.api.setting_aside import Record, SetAsideNames
from optimus.api.specs.fields import nearest
from optimus.model.pools import DEFAULT_POOL
from optimus.model.workloads import ANY_POOL


def look_at(record: Record, raw: Any, scenario: Scenario, names: SetAsideNames) -> Iterator[Finding]:
    """Queues and pools that a record names and that are not there."""
    if not isinstance(raw, MarkedMap):
        return
    known = {
        "queue": [queue.name for queue in scenario.queues],
        "pool": sorted({ANY_POOL, DEFAULT_POOL, *(pool.name for pool in scenario.pools)}),
    }
    for kind, place, name in _names_in(record.kind, raw):
        if isinstance(name, str) and name not in known[kind] and not names.has(kind, name):
            mark = find_mark(raw, place)
            yield Finding((*record.loc, *place), f"there is no {kind} {name}", nearest(name, known[kind]), mark=mark)


def _names_in(kind: str, raw: MarkedMap) -> Iterator[tuple[str, Loc, Any]]:
    pools = raw.get("pools")
    if kind == "workload":
        yield "queue", ("queue",), raw.get("queue")
        listed = pools if isinstance(pools, list) else [pools]
        yield from (("pool", ("pools", i), name) for i, name in enumerate(listed))
    elif kind == "queue":
        yield "queue", ("parent",), raw.get("parent")
        for i, entry in enumerate(pools if isinstance(pools, list) else ()):
            if isinstance(entry, dict):
                yield "pool", ("pools", i, "name"), entry.get("name")
