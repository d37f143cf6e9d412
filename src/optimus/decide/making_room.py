"""Room for one asker at the least cost to others: find a set of victims, prove that it is enough, make it minimal.

Several sets are tried. *Across the pool*: ask in order of preference, or by what is given for the cost, until the asker
fits. *Node by node*: free the nodes where a replica can be had most cheaply (one large victim beats eight small ones).
*Domain by domain*, for an asker that must be in one. Each is minimised: every victim whose room turns out not to be
needed stays. The cheapest set wins. Victims that fit elsewhere are moved.

Everything happens in a copy of the coming room; only a complete, accepted statement reaches the plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from optimus.decide.asks import Ask
from optimus.decide.entitlements import Side
from optimus.decide.placement.rooms import Room
from optimus.decide.placement.seating import Seating
from optimus.decide.placement.shapes import count_fits
from optimus.decide.quotas import standing_refusal
from optimus.decide.victim_sets import (
    Bundle,
    Excess,
    Price,
    by_cost_for_what_they_give,
    by_node,
    most_precious_first,
    price,
)
from optimus.decide.victims import Unit, with_steps_before
from optimus.decide.world import World
from optimus.model.gangs import Part
from optimus.model.pools import HOST_LEVEL, NVLINK_LEVEL
from optimus.state.arrays import Bools, Ints

DOMAINS_TRIED = 8
"""How many domains are searched for victims in one search, the cheapest by estimate first."""


@dataclass(slots=True)
class Statement:
    """What has to happen so that the asker fits."""

    victims: list[Unit]
    seating: Seating
    moves: dict[int, Seating]
    """Victims (by workload row) that have a place elsewhere."""


class RoomSearch:
    """One search for one asker in one pool."""

    def __init__(
        self,
        world: World,
        row: int,
        ask: Ask,
        part: Part,
        amount: Ints,
        room: Room,
        sides: Sequence[Side],
        *,
        within: Bools | None = None,
        memory_mib: int = 0,
    ) -> None:
        self._world = world
        self._queue = int(world.columns.queue[row])
        self._part = part
        self._amount = amount
        self._room = room
        self._pool = room.view.index
        self._seater = ask.seater(room, memory_mib=memory_mib)
        self._ask = ask
        self._within = within
        self._sides = sides
        counts = len(part.cells) == 1 and not part.parts and not part.topology.required and within is None
        single = self._seater.shape_of(part.cells[0].role_index) if counts else None
        self._single = None if single is None or single.rules else single
        """The shape, where counting is enough to know whether the asker fits."""
        self._usable_nodes: Bools = np.zeros(room.view.size, dtype=np.bool_)
        for cell in part.all_cells():
            self._usable_nodes |= ask.shape(self._pool, cell.role_index).allowed
        if within is not None:
            self._usable_nodes &= within
        path = world.tree.paths[self._queue]
        self._path = {int(q) for q in path}
        self._over = world.used_coming[path, self._pool] + amount - world.tree.limit[path, self._pool]
        """[level, resource]: by how much limits would be broken."""
        self._free_of_limits = bool((self._over[:, amount > 0] <= 0).all())

    def find(self, units: list[Unit]) -> tuple[list[Unit], Seating] | None:
        """The victims and the asker's seats; no victims when room that is coming is enough."""
        if self._fits([]):
            seating = self._seat()
            if seating is not None:
                return [], seating
        units = [unit for unit in units if unit.places and self._useful(unit)]
        if not units or (self._single is not None and not self._enough(Bundle(units), len(units))):
            return None  # not even if all of them went, which is how most searches end
        sets = [self._across(order) for order in self._orders(units)]
        sets += [self._node_by_node(units), self._domain_by_domain(units)]
        found = [chosen for chosen in sets if chosen is not None]
        if not found:
            return None
        best = min(found, key=price)
        self._free(best, 1)
        seating = self._seat()
        if seating is None:
            self._free(best, -1)
            return None
        return best, seating

    def replace_victims(self, victims: list[Unit], seating: Seating) -> dict[int, Seating]:
        """Places elsewhere for whole victims, largest first, in the room that is left after the asker has its seats."""
        self._occupy(seating)
        moves: dict[int, Seating] = {}
        paths, limit = self._world.tree.paths, self._world.tree.limit[:, self._pool]
        used = self._world.used_coming[:, self._pool].copy()
        used[paths[self._queue]] += seating.amount()
        for unit in victims:
            if self._world.columns.queue[unit.row] >= 0:
                used[paths[int(self._world.columns.queue[unit.row])]] -= unit.amount
        for unit in sorted(victims, key=lambda u: (-int(u.amount[0]), -int(u.amount[1]), self._world.spec(u.row).id)):
            if not unit.whole or self._world.columns.started[unit.row] < 0:
                continue
            if standing_refusal(self._world, unit.row) is not None:
                continue  # it could not start again now, wherever
            ask = self._world.ask(unit.row)
            place = ask.seater(self._room).seat(ask.minimum)
            if place is None:
                continue
            path, amount = paths[int(self._world.columns.queue[unit.row])], place.amount()
            if ((used[path] + amount > limit[path]) & (amount > 0)).any():
                continue  # the asker took its place under a limit they share
            used[path] += amount
            self._occupy(place)
            moves[unit.row] = place
        return moves

    # -- the sets ---------------------------------------------------------------------------------------------

    def _orders(self, units: list[Unit]) -> list[list[Unit]]:
        orders = [units]
        others = [by_cost_for_what_they_give(units, self._amount)]
        if self._single is None:  # else nodes are looked at one by one, and better
            others.append(by_node(units))
        for order in others:
            if all([unit.row for unit in order] != [unit.row for unit in other] for other in orders):
                orders.append(order)
        return orders

    def _across(self, units: list[Unit]) -> list[Unit] | None:
        allowed = self._inside_excess(units)
        if not allowed:
            return None
        bundle = Bundle(allowed)
        if not self._enough(bundle, len(allowed)):
            return None
        low, high = 1, len(allowed)
        while low < high:
            middle = (low + high) // 2
            if self._enough(bundle, middle):
                high = middle
            else:
                low = middle + 1
        return self._minimal(allowed[:low])

    def _domain_by_domain(self, units: list[Unit]) -> list[Unit] | None:
        """The cheapest set inside one domain of the level the asker must not leave; the most promising are tried."""
        level = self._part.topology.required
        domains = self._room.view.levels.get(HOST_LEVEL if level == NVLINK_LEVEL else level)
        if domains is None or not units:
            return None
        within = self._within
        estimates: list[tuple[Price, int, list[Unit]]] = []
        members: dict[int, list[Unit]] = {}
        for unit in by_cost_for_what_they_give(units, self._amount):
            for domain in {int(domains[place.node]) for place in unit.places}:
                members.setdefault(domain, []).append(unit)
        for domain, inside in members.items():
            cheapest = self._least_to_ask(domains == domain, inside) if domain >= 0 else None
            if cheapest is not None:
                estimates.append((price(cheapest), domain, inside))
        best: list[Unit] | None = None
        for estimate, domain, inside in sorted(estimates, key=lambda each: each[:2])[:DOMAINS_TRIED]:
            if best is not None and price(best) <= estimate:
                break
            only = domains == domain
            self._within = only if within is None else only & within
            chosen = self._across(inside)
            if chosen is not None and (best is None or price(chosen) < price(best)):
                best = chosen
        self._within = within
        return best

    def _least_to_ask(self, inside: Bools, units: list[Unit]) -> list[Unit] | None:
        """The first units that give what lacks by count: no set in this domain is much cheaper. None: not enough."""
        nodes = inside & self._usable_nodes
        free = np.concatenate(
            [[np.maximum(self._room.gpus[nodes], 0).sum()], np.maximum(self._room.scalars[nodes], 0).sum(axis=0)]
        )
        lacks = np.where(self._amount > 0, self._amount - free, 0)
        chosen: list[Unit] = []
        for unit in units:
            if (lacks <= 0).all():
                break
            if ((unit.amount > 0) & (lacks > 0)).any():
                chosen.append(unit)
                lacks = lacks - unit.amount
        return chosen or units[:1] if (lacks <= 0).all() else None

    def _node_by_node(self, units: list[Unit]) -> list[Unit] | None:
        """Free the cheapest nodes first. Only where counting tells whether the asker fits."""
        if self._single is None or len(units) < 2:
            return None
        chosen: list[Unit] = []
        taken: set[int] = set()
        excess = Excess(self._world, self._pool, self._sides)
        ok = True
        while not self._fits(chosen):
            fresh = self._cheapest_nodes(units, taken, excess)
            before = len(taken)
            for group in fresh:
                new = [u for u in group if id(u) not in taken]
                if not excess.allows_all(new):
                    continue
                for unit in new:
                    excess.use(unit)
                    taken.add(id(unit))
                self._free(new, 1)
                chosen.extend(new)
                if self._fits(chosen):
                    break
            if len(taken) == before:
                ok = False
                break
        self._free(chosen, -1)
        return self._minimal(chosen) if ok else None

    def _cheapest_nodes(self, units: list[Unit], taken: set[int], excess: Excess) -> list[list[Unit]]:
        """For each node where one more replica can be had: the units to ask, cheapest node first."""
        assert self._single is not None
        on_node: dict[int, list[Unit]] = {}
        for unit in units:
            if id(unit) in taken or not excess.allows(unit):
                continue
            for node in {place.node for place in unit.places}:
                on_node.setdefault(node, []).append(unit)
        nodes = np.array(sorted(on_node), dtype=np.int64)
        if not len(nodes):
            return []
        position = {int(node): i for i, node in enumerate(nodes)}
        scalars, gpus = self._room.scalars[nodes], self._room.gpus[nodes]
        activity = self._room.activity[nodes]
        before = count_fits(self._single, scalars, gpus, activity, nodes)
        asked: list[list[Unit]] = [[] for _ in nodes]
        done = np.zeros(len(nodes), dtype=np.bool_)
        gained = np.ones(len(nodes), dtype=np.int64)
        for turn in range(max(len(members) for members in on_node.values())):
            changed = []
            for node, members in on_node.items():
                i = position[node]
                if done[i] or turn >= len(members):
                    continue
                unit = members[turn]
                asked[i].append(unit)
                for place in unit.places:
                    if place.node == node:
                        scalars[i] += place.scalars
                        for device in place.devices:
                            gpus[i, device] += place.milli
                            activity[i, device] -= place.activity_milli
                changed.append(i)
            if not changed:
                break
            at = np.array(changed, dtype=np.int64)
            fits = count_fits(self._single, scalars[at], gpus[at], activity[at], nodes[at])
            done[at] = fits > before[at]
            gained[at] = np.maximum(fits - before[at], 1)
        most = len(self._part.cells[0].ordinals)
        able = [(self._needed_here(int(nodes[i]), asked[i]), min(int(gained[i]), most)) for i in np.flatnonzero(done)]
        return [group for group, _ in sorted(able, key=lambda pair: price(pair[0], pair[1]))]

    def _needed_here(self, node: int, asked: list[Unit]) -> list[Unit]:
        """Without those on the node that are not needed for one more replica."""
        if len(asked) < 2:
            return asked
        assert self._single is not None
        at = np.array([node], dtype=np.int64)
        before = int(self._room.fits(self._single)[node])
        kept = list(asked)
        for unit in reversed(asked[:-1]):
            rest = [u for u in kept if u is not unit]
            scalars, gpus, activity = self._room.scalars[at], self._room.gpus[at], self._room.activity[at]
            for each in rest:
                for place in each.places:
                    if place.node == node:
                        scalars[0] += place.scalars
                        for device in place.devices:
                            gpus[0, device] += place.milli
                            activity[0, device] -= place.activity_milli
            if int(count_fits(self._single, scalars, gpus, activity, at)[0]) > before:
                kept = rest
        return kept

    def _inside_excess(self, units: list[Unit]) -> list[Unit]:
        """Units in order, as long as their side is above its bound before each step."""
        return Excess(self._world, self._pool, self._sides).allowed(units)

    def _minimal(self, chosen: list[Unit]) -> list[Unit] | None:
        """Drop every unit that is not needed, the most precious first. None if the set is not enough after all."""
        chosen = with_steps_before(chosen)
        bundle = Bundle(chosen)
        bundle.free(self._room, len(chosen), 1)
        if not self._fits(chosen):
            bundle.free(self._room, len(chosen), -1)
            return None
        kept = {id(unit): unit for unit in chosen}
        built_upon = Counter(id(step) for unit in chosen for step in unit.after)
        needed: set[int] = set()
        while True:  # a step can be put back only after the steps that build on it: look again as long as that helps
            before = len(kept)
            for unit in most_precious_first(list(kept.values())):
                if id(unit) in needed or built_upon[id(unit)]:
                    continue
                self._free([unit], -1)
                del kept[id(unit)]
                if self._fits(kept.values()):
                    built_upon.subtract(id(step) for step in unit.after)
                else:
                    self._free([unit], 1)
                    kept[id(unit)] = unit
                    needed.add(id(unit))
            if len(kept) == before:
                break
        remaining = [unit for unit in chosen if id(unit) in kept]
        self._free(remaining, -1)
        return remaining

    # -- does it fit ------------------------------------------------------------------------------------------

    def _enough(self, bundle: Bundle, count: int) -> bool:
        """Whether the first so many units are enough."""
        bundle.free(self._room, count, 1)
        fits = self._fits(bundle.units[:count])
        bundle.free(self._room, count, -1)
        return fits

    def _fits(self, freed: Iterable[Unit]) -> bool:
        """With the given units already freed in the room."""
        if not self.limits_hold(freed, self._amount):
            return False
        if self._single is not None:
            return int(self._room.fits(self._single).sum()) >= len(self._part.cells[0].ordinals)
        if not self._world.tries.use():
            return False
        return self._seat() is not None

    def _seat(self) -> Seating | None:
        return self._seater.seat(self._part, within=self._within)

    def limits_hold(self, freed: Iterable[Unit], amount: Ints) -> bool:
        if self._free_of_limits and amount is self._amount:
            return True
        over = np.where(amount > 0, self._over + amount - self._amount, -1)
        if (over <= 0).all():
            return True
        paths = self._world.tree.paths
        own = [int(q) for q in paths[self._queue]]
        for unit in freed:
            queue = int(self._world.columns.queue[unit.row])
            above = {int(q) for q in paths[queue]} if queue >= 0 else set()
            for level, q in enumerate(own):
                if q in above:
                    over[level] -= unit.amount
        return bool((over <= 0).all())

    def _useful(self, unit: Unit) -> bool:
        """Units on nodes the asker cannot use help only where a limit of a common queue is full."""
        if any(self._usable_nodes[place.node] for place in unit.places):
            return True
        queue = int(self._world.columns.queue[unit.row])
        return queue >= 0 and not self._path.isdisjoint(self._world.tree.paths[queue].tolist())

    def _free(self, units: list[Unit], sign: int) -> None:
        for unit in units:
            for place in unit.places:
                self._room.take(place.node, place.scalars, place.devices, place.milli, place.activity_milli, -sign)

    def _occupy(self, seating: Seating) -> None:
        for seats in seating.seats:
            for node, devices, milli in zip(seats.nodes, seats.devices, seats.milli, strict=True):
                self._room.take(node, seats.shape.scalars, devices, milli, seats.shape.activity_milli, 1)
