"""Names of resources and counters that the brain is told: those that some node has, and that somebody of ours asks for.

Why: every name that the brain is told becomes a column of all its tables. Anybody may ask for `x.io/a1`, `x.io/a2` …,
or for every host port there is, and ten thousand of them would make a large cluster's tables larger than its memory.
Owns: which names some node has, who waits for one that none has; which counters work asks for, how many there may be,
and who waits because they are too many. What pods of others take of a counter that nobody asks for is not told.
Must not: know amounts: whether there is enough of something is the brain's business. Bound rules about neighbours:
`counting` does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from optimus.drivers.kube.first_consumers import SPARE
from optimus.model.nodes import Node
from optimus.model.reasons import Code, Reason, named, reason
from optimus.model.rules import COUNTER, DEVICE, PORT, is_counter
from optimus.model.workloads import Workload

MOST_PORTS = 128
"""Host ports of one pod, and addresses of them."""
MOST_NAMES, MOST_NAMES_OF_ONE = 1024, 256
"""Host ports, kinds of devices and of volumes: in all, and of those that work of one namespace was the first to ask
for. Twice as many for work that runs already."""
_BOUNDED = (PORT, DEVICE, SPARE)
_OF_NODES = (COUNTER + "hugepages-", COUNTER + "attachable-volumes-")
"""Counters that exist where a node says so; all others are our own."""


class Columns:
    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        """By counter: how many gangs ask for it, or have a rule about it."""
        self._of: dict[str, frozenset[str]] = {}
        """By gang."""
        self._first: dict[str, str] = {}
        """By counter, of those that are bounded: the namespace that was the first to ask."""
        self._refused: set[str] = set()
        """Gangs that ask for more than is counted."""
        self._freed = False
        self._lacking: set[str] = set()
        """Gangs that ask for what no node has."""
        self._offered: Counter[str] = Counter()

    def begin_anew(self) -> None:
        """For a brain that knows nothing."""
        for known in (self.asked, self._of, self._first, self._refused, self._lacking, self._offered):
            known.clear()

    def node(self, old: Node | None, new: Node | None) -> list[str]:
        """It has changed, come or gone. Gangs to look at, if it has something that no other had."""
        before = {name for name in (new.accelerators if new is not None else ()) if name in self._offered}
        self._offered.update(new.accelerators.keys() if new is not None else ())
        for name in old.accelerators if old is not None else ():
            _less(self._offered, name)
        return sorted(self._lacking) if new is not None and len(before) < len(new.accelerators) else []

    # -- what is asked for --------------------------------------------------------------------------------------------

    def ask(self, workload: Workload) -> frozenset[str]:
        """The brain is told of it. Counters that nobody has asked for before."""
        names = frozenset(_counters(workload))
        fresh = names - self.asked.keys()
        self.asked.update(names)
        for name in fresh:
            if name.startswith(_BOUNDED):
                self._first[name] = _namespace(workload.id)
        self._leave(workload.id)
        self._of[workload.id] = names
        return fresh

    def forget(self, gang: str) -> None:
        self._lacking.discard(gang)
        self._refused.discard(gang)
        self._leave(gang)

    def _leave(self, gang: str) -> None:
        for name in self._of.pop(gang, ()):
            _less(self.asked, name)
            if name not in self.asked:
                self._freed |= self._first.pop(name, None) is not None

    def take_refused(self) -> set[str]:
        """Gangs that were too much, to be looked at again: others have gone."""
        freed, self._freed = self._freed, False
        return set(self._refused) if freed else set()

    # -- what is not told ---------------------------------------------------------------------------------------------

    def missing(self, workload: Workload) -> Reason | None:
        """What it asks for and no node has."""
        lacks = sorted({name for name in _names(workload) if name not in self._offered})
        (self._lacking.add if lacks else self._lacking.discard)(workload.id)
        return reason(Code.NO_SUCH_DEVICE, pool=named(workload.pools), asked=named(lacks)) if lacks else None

    def too_many(self, workload: Workload, *, runs: bool) -> Reason | None:
        """Why it cannot be counted. Those of its pods that run then count as those of somebody else."""
        self._refused.discard(workload.id)
        for role in workload.gang.roles:
            names = [name for name, _ in role.request.accelerators if name.startswith(PORT)]
            if len(names) > MOST_PORTS:
                told = f"{len(names)} host ports (and addresses of them) in one pod; at most {MOST_PORTS} are counted"
                return reason(Code.MALFORMED, problem=f"{told}: publish fewer, or use a Service")
        fresh = {one for one in _counters(workload) if one.startswith(_BOUNDED) and one not in self._first}
        if not fresh:
            return None
        namespace, grace = _namespace(workload.id), 2 if runs else 1
        own = sum(1 for one in self._first.values() if one == namespace)
        if own + len(fresh) <= grace * MOST_NAMES_OF_ONE and len(self._first) + len(fresh) <= grace * MOST_NAMES:
            return None
        self._refused.add(workload.id)
        told = (
            f"it asks for {len(fresh)} host ports, kinds of devices or of volumes that nobody else does; namespace "
            f"{namespace} has {own} of at most {MOST_NAMES_OF_ONE}, all have {len(self._first)} of {MOST_NAMES}"
        )
        return reason(Code.NOT_READY, missing=f"{told}; ask for fewer or the same as others, or wait until others end")


def _counters(workload: Workload) -> Iterator[str]:
    for role in workload.gang.roles:
        yield from (name for name, _ in role.request.accelerators if is_counter(name))
        yield from (rule.counter for rule in role.where.neighbours)


def _names(workload: Workload) -> Iterator[str]:
    for role in workload.gang.roles:
        for name, _ in role.request.accelerators:
            if not is_counter(name) or name.startswith(_OF_NODES):
                yield name


def _namespace(gang: str) -> str:
    return gang.partition("/")[0]


def _less(counted: Counter[str], name: str) -> None:
    counted[name] -= 1
    if not counted[name]:
        del counted[name]
