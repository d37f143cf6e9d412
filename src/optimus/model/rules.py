"""Where a replica may be, beyond what it needs: by labels and taints of nodes, and by who else is there.

A *counter* is a resource of which replicas take some only to be counted: `~pods` (as many as a node declares),
`~port/…` (one of each port on every node), `~attach/…` (volumes of a driver, no end of it where a node declares none),
`~device/class/…` (devices of a class, as many as a node has to spare),
`~near/…` (no end of it anywhere). Whoever matches a selector takes one of
its counter, so "how many such replicas are in this rack" is arithmetic on the same ledgers that know what is free: now,
when those who leave have left, and in every room in which something is only tried. Counters never count as use of a
queue.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct

from optimus.model.nodes import Node, Toleration

COUNTER = "~"
PODS = "~pods"
NEAR = "~near/"
PORT = "~port/"
ATTACH = "~attach/"
DEVICE = "~device/"
TOGETHER = "+"
"""The end of a counter of devices: not one by one, but as many times as all that somebody asks for is there."""
IN_BYTES = ("~ephemeral-storage", "~hugepages-")
"""Counters that begin like this are counted in bytes, all others in pieces."""
PLENTY = 1 << 30
"""How many of a counter a node has where nobody runs out of it."""
PORT_WHOLE = 1000
"""A port on all addresses takes all of it; on one address, one of it and the whole of that address."""
NAME_FIELD = "metadata.name"
"""The key of a requirement that is about the name of the node."""
EVERYWHERE = ""
"""The level of a rule whose one domain is all nodes."""
_LARGEST_NUMBER = (1 << 63) - 1
_LONGEST_NUMBER = 80
"""Digits, zeros in front included: longer text is not even read."""


def is_counter(resource: str) -> bool:
    return resource.startswith(COUNTER)


def implied_capacity(counter: str) -> int:
    """What every node has of it without saying so."""
    if counter.startswith((NEAR, ATTACH)):
        return PLENTY
    return PORT_WHOLE if counter.startswith(PORT) else 0


def measured(accelerators: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Without counters: what is really asked for."""
    return [(name, count) for name, count in accelerators if not is_counter(name)]


class Operator(StrEnum):
    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GREATER = "Gt"
    LESS = "Lt"


class NodeRequirement(Struct, frozen=True):
    """About one label of a node, or its name."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def accepts(self, node: Node) -> bool:
        found = node.name if self.key == NAME_FIELD else node.labels.get(self.key)
        match self.operator:
            case Operator.EXISTS:
                return found is not None
            case Operator.DOES_NOT_EXIST:
                return found is None
            case Operator.IN:
                return found in self.values
            case Operator.NOT_IN:
                return found not in self.values
        ours, theirs = _whole_number(found), _whole_number(self.values[0] if self.values else None)
        if ours is None or theirs is None:
            return False
        return ours > theirs if self.operator is Operator.GREATER else ours < theirs


class Bond(StrEnum):
    """What a replica wants of those that are counted."""

    NEAR = "near"  # at least one in its domain
    APART = "apart"  # none in its domain
    SPREAD = "spread"  # not many more in its domain than in any other


class NeighbourRule(Struct, frozen=True, kw_only=True):
    """A domain is all nodes with the same value of the label `level`; a node without it is in none. With the level
    EVERYWHERE all nodes are one domain."""

    bond: Bond
    counter: str
    level: str
    max_skew: int = 1
    """Spread: how many more than in the emptiest domain, itself included."""
    min_domains: int = 1
    """Spread: with fewer domains than this, the emptiest counts as having none."""
    counts_tainted: bool = True
    """Spread: whether domains are looked for also on nodes whose taints keep the replica away."""
    counts_all: bool = False
    """Spread: whether they are looked for also on nodes that its selector or affinity keeps it away from."""
    alone_is_fine: bool = False
    """Near: it is one of those that are counted, so the first of them may go anywhere."""
    told: str = ""
    """For people: whom it is about."""


class Where(Struct, frozen=True, kw_only=True):
    """For the replicas of one role. All of it must hold."""

    any_of: tuple[tuple[NodeRequirement, ...], ...] = ()
    """Node affinity: all requirements of at least one term; empty means any node."""
    all_of: tuple[tuple[tuple[NodeRequirement, ...], ...], ...] = ()
    """More of the same kind, each of which must hold as well: volumes that are bound to some nodes. They say where it
    can be, not which domains it spreads over."""
    tolerations: tuple[Toleration, ...] = ()
    neighbours: tuple[NeighbourRule, ...] = ()

    def accepts(self, node: Node) -> bool:
        """By labels and name; taints and neighbours are looked at elsewhere."""
        return (not self.any_of or _any(self.any_of, node)) and all(_any(terms, node) for terms in self.all_of)

    def tolerates(self, node: Node, more: tuple[Toleration, ...] = ()) -> bool:
        """Whether taints let it be there; `more`: tolerations that it has from elsewhere."""
        tolerations = (*more, *self.tolerations)
        return all(
            taint.effect == "PreferNoSchedule" or any(toleration.accepts(taint) for toleration in tolerations)
            for taint in node.taints
        )

    @property
    def about_nodes(self) -> bool:
        return bool(self.any_of or self.all_of)


def _any(terms: tuple[tuple[NodeRequirement, ...], ...], node: Node) -> bool:
    return any(all(one.accepts(node) for one in term) for term in terms)


def _whole_number(text: str | None) -> int | None:
    """A decimal of 64 bits; anything else is no number (`1_000` neither, unlike in Python)."""
    if text is None or len(text) > _LONGEST_NUMBER or not text.isascii():
        return None
    if not text.removeprefix("-").removeprefix("+").isdigit():
        return None
    number = int(text)
    return number if -_LARGEST_NUMBER - 1 <= number <= _LARGEST_NUMBER else None
