"""What storage drivers say they can still make, and where (CSIStorageCapacity).

    driver says `storageCapacity`? ── no ──► a volume can be made wherever its class allows it
          └─ yes ──► where a capacity of the class is large enough for the claim, by the labels of its topology

Why: a driver of local disks can make a volume only where there is disk; without this, work is sent to a full node, the
volume cannot be made, and the place is given back, again and again.
Owns: the answer for one class and size, in the sense of kube-scheduler, and whose answer a change of these objects can
have changed.
Must not: add claims up. A driver publishes anew what is left after each volume, late; whoever subtracted would count
twice (`docs/reference/kubernetes-scheduling.md` says what follows).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from optimus.drivers.kube.objects import Quantity, StorageCapacity, StorageClass, StorageDriver
from optimus.drivers.kube.quantities import QuantityError, whole
from optimus.drivers.kube.requests import MalformedError
from optimus.drivers.kube.rules import NO_NODE, NodeTerms
from optimus.drivers.kube.selectors import Selector, read_selector
from optimus.model.rules import NodeRequirement, Operator
from optimus.model.units import LARGEST

_MOST_ANSWERS = 4096
"""So many are remembered. Beyond, changes are told to all claims of a class, whether they matter to them or not."""


class Capacities:
    def __init__(self) -> None:
        self._drivers: dict[str, StorageDriver] = {}
        self._published: dict[str, StorageCapacity] = {}
        """By `namespace/name`."""
        self._answers: dict[tuple[str, int], NodeTerms] = {}
        """By class and size."""
        self._forgot = False

    # -- what changes -------------------------------------------------------------------------------------------------

    def driver(self, name: str, driver: StorageDriver | None) -> bool:
        """It is there, or has gone (None); whether it says something else of capacities than before."""
        before = self.follows(name)
        self._drivers.pop(name, None)
        if driver is not None:
            self._drivers[name] = driver
        return before != self.follows(name)

    def capacity(self, key: str, capacity: StorageCapacity | None) -> set[str]:
        """It is there, or has gone (None). The classes of which a claim that has been looked at may now be told
        something else: drivers publish all the time, and most of it changes nothing for anybody."""
        before = self._published.pop(key, None)
        if capacity is not None:
            self._published[key] = capacity
        return {one for one in (_class(before), _class(capacity)) if one and self._changes(one, before, capacity)}

    def _changes(self, kind: str, *versions: StorageCapacity | None) -> bool:
        """Claims between the two limits; if it is somewhere else now, all that are not larger than both."""
        counted = [one if _class(one) == kind else None for one in versions]
        low, high = sorted(-1 if one is None else _limit(one) for one in counted)
        places = {_selector(one) for one in counted if one is not None}
        concerned = [
            key for key in self._answers if key[0] == kind and key[1] <= high and (key[1] > low or len(places) > 1)
        ]
        for key in concerned:
            del self._answers[key]
        return bool(concerned) or self._forgot

    # -- questions ----------------------------------------------------------------------------------------------------

    def follows(self, driver: str) -> bool:
        """Whether its volumes are made only where it has published room for them."""
        found = self._drivers.get(driver)
        return found is not None and bool(found.spec.storage_capacity)

    def room(self, kind: StorageClass, size: int) -> NodeTerms:
        """Where a volume of this size can be made; empty: everywhere, or nobody says. `NO_NODE`: nowhere."""
        if size <= 0 or not self.follows(kind.provisioner):
            return ()
        key = (kind.metadata.name, size)
        if key not in self._answers:
            if len(self._answers) >= _MOST_ANSWERS:
                self._answers.clear()
                self._forgot = True
            self._answers[key] = self._find(*key)
        return self._answers[key]

    def _find(self, kind: str, size: int) -> NodeTerms:
        enough = (one for one in self._published.values() if _class(one) == kind and _limit(one) >= size)
        found = {selector for one in enough if (selector := _selector(one)) is not None}
        if Selector() in found:
            return ()
        return _joined(found) or NO_NODE


def _class(capacity: StorageCapacity | None) -> str:
    return capacity.storage_class_name if capacity is not None else ""


def _limit(capacity: StorageCapacity) -> int:
    """The largest volume that can be made of it."""
    said = capacity.maximum_volume_size if capacity.maximum_volume_size is not None else capacity.capacity
    return -1 if said is None else _bytes(said)


def _bytes(said: Quantity) -> int:
    try:
        return whole(said)
    except QuantityError as error:
        return LARGEST if error.too_large else -1


def _selector(capacity: StorageCapacity) -> Selector | None:
    """None: no node reaches it."""
    try:
        return read_selector(capacity.node_topology)
    except MalformedError:
        return None


def _joined(selectors: Iterable[Selector]) -> NodeTerms:
    """One term for all that differ only in the last of their labels: a driver of local disks publishes a capacity for
    each node, and each term is asked of each node."""
    terms = []
    plain = sorted(one for one in selectors if all(part.operator == Operator.IN for part in one.requirements))
    for first, alike in groupby(plain, key=lambda one: (one.requirements[:-1], one.requirements[-1].key)):
        values = tuple(sorted({value for one in alike for value in one.requirements[-1].values}))
        written = [(part.key, part.values) for part in first[0]]
        terms.append(tuple(NodeRequirement(key, Operator.IN, some) for key, some in (*written, (first[1], values))))
    others = sorted(set(selectors).difference(plain))
    terms += [
        tuple(NodeRequirement(part.key, Operator(part.operator), part.values) for part in one.requirements)
        for one in others
    ]
    return tuple(terms)
