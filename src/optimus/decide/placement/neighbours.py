"""Rules about neighbours: which nodes are left for one more replica, by who is in their domains.

Why: near, apart and spread follow from counters (`model/rules.py`), which are resources like others; so whatever is
tried in a room — a gang half placed, victims that have left — is seen here without being told.
Owns: the meaning of each bond.
Must not: choose. It says how many fit; with rules, replicas are placed one by one (`seating`), since each changes what
is left for the next.

Domains are the same in all pools: a rack in which two pools have nodes is one rack. What is elsewhere is looked up in
the room in which work of other pools starts now.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from optimus.model.nodes import Node
from optimus.model.rules import EVERYWHERE, PLENTY, Bond, NeighbourRule, Where
from optimus.state.arrays import Bools, Ints
from optimus.state.snapshot import PoolView, Snapshot


class Place(Protocol):
    """A room, as far as it matters here."""

    @property
    def view(self) -> PoolView: ...
    @property
    def scalars(self) -> Ints: ...


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """A rule for the nodes of one pool."""

    rule: NeighbourRule
    column: int
    """Of its counter, among the scalars."""
    is_one: bool
    """Whether the replica itself is counted."""
    domain: list[Ints]
    """[pool][node] the number of its domain, -1 for none."""
    counts: list[Bools]
    """[pool][node] whether those on it are counted."""
    known: Bools
    """[domain] whether it is one that the replica could be in."""


def compiled(where: Where, column_of: dict[str, int], takes: Ints, snapshot: Snapshot, reach: Reach) -> list[Rule]:
    """`takes`: what one replica takes, by scalar column."""
    found = []
    in_all = _in_all_domains(where, snapshot)
    for rule in where.neighbours:
        domain, number = _domains(rule.level, snapshot)
        column = column_of[rule.counter] - 1
        counts = [np.ones(view.size, dtype=np.bool_) for view in snapshot.pools]
        if rule.bond is Bond.SPREAD:
            counts = [reach.of(view, rule) & in_all[view.index] for view in snapshot.pools]
        known = np.zeros(number, dtype=np.bool_)
        for numbers, counted in zip(domain, counts, strict=True):
            known[numbers[counted & (numbers >= 0)]] = True
        found.append(Rule(rule, column, bool(takes[column]), domain, counts, known))
    return found


class Reach:
    """Which nodes a replica could be on by selector, affinity and taints, in any pool."""

    def __init__(self, by_labels: list[Bools], by_taints: list[Bools]) -> None:
        self._by_labels, self._by_taints = by_labels, by_taints

    def of(self, view: PoolView, rule: NeighbourRule) -> Bools:
        everywhere = np.ones(view.size, dtype=np.bool_)
        labels = everywhere if rule.counts_all else self._by_labels[view.index]
        return labels & (everywhere if rule.counts_tainted else self._by_taints[view.index])


def obeying(rules: Sequence[Rule], room: Place, elsewhere: Sequence[Place], fits: Ints) -> Ints:
    """How many more fit on each node if the rules are kept for the first of them."""
    counted = [_by_domain(rule, room, elsewhere) for rule in rules]
    near = [counts for rule, counts in zip(rules, counted, strict=True) if rule.rule.bond is Bond.NEAR]
    nobody = not any(counts.any() for counts in near)
    for rule, counts in zip(rules, counted, strict=True):
        domain = rule.domain[room.view.index]
        there = np.where(domain >= 0, counts[domain] if len(counts) else 0, 0)
        match rule.rule.bond:
            case Bond.APART:
                ok = there == 0
                if rule.is_one:
                    fits = np.minimum(fits, np.where(domain >= 0, 1, fits))
            case Bond.NEAR:
                first = nobody and rule.rule.alone_is_fine
                ok = (domain >= 0) & ((there > 0) | first)
            case _:
                ok = (domain >= 0) & (there + rule.is_one - _least(rule, counts) <= rule.rule.max_skew)
        fits = np.where(ok, fits, 0)
    return fits


def _by_domain(rule: Rule, room: Place, elsewhere: Sequence[Place]) -> Ints:
    """[domain] how many are counted there."""
    total = np.zeros(len(rule.known), dtype=np.int64)
    for place in (room, *(other for other in elsewhere if other.view.index != room.view.index)):
        domain, counts = rule.domain[place.view.index], rule.counts[place.view.index]
        inside = counts & (domain >= 0)
        np.add.at(total, domain[inside], PLENTY - place.scalars[inside, rule.column])
    return total


def _least(rule: Rule, counts: Ints) -> int:
    """How many are in the emptiest domain that the replica could be in."""
    if int(rule.known.sum()) < rule.rule.min_domains:
        return 0
    return int(counts[rule.known].min(initial=PLENTY))


def _domains(level: str, snapshot: Snapshot) -> tuple[list[Ints], int]:
    def number_all() -> tuple[list[Ints], int]:
        if level == EVERYWHERE:
            return [np.zeros(view.size, dtype=np.int64) for view in snapshot.pools], 1
        numbers: dict[str, int] = {}
        found = []
        for view in snapshot.pools:
            values = [node.labels.get(level) for node in view.nodes]
            numbered = [-1 if value is None else numbers.setdefault(value, len(numbers)) for value in values]
            found.append(np.array(numbered, dtype=np.int64))
        return found, len(numbers)

    return snapshot.worked_out.once(("domains", level), number_all)


def _in_all_domains(where: Where, snapshot: Snapshot) -> list[Bools]:
    """[pool][node] whether it has the labels of all spread rules; one that lacks any counts for none of them."""
    levels = [rule.level for rule in where.neighbours if rule.bond is Bond.SPREAD]

    def inside(node: Node) -> bool:
        return all(level in node.labels for level in levels)

    return [np.array([inside(node) for node in view.nodes], dtype=np.bool_) for view in snapshot.pools]
