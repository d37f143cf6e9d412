"""A sight of the cluster: the controller's mirror and brain, fed by whoever looks.

Why: reasons, lines and forecasts come from the code that decides; a second way to compute them would be wrong one day.
Owns: the copy. A plan is made from it and never carried out, nor counted as done.
Must not: talk to a server.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from optimus.drivers.kube.desk.deciding import Choice
from optimus.drivers.kube.grouping import Kinds
from optimus.drivers.kube.mirror import Mirror
from optimus.drivers.kube.objects import Anything
from optimus.engine.copying import copy_of
from optimus.engine.engine import Engine
from optimus.engine.kept_room import Kept, held_by, reserved_by
from optimus.model.nodes import Node
from optimus.model.observations import NodeGone, NodeSeen, Observation, TablesRefreshed
from optimus.model.plans import Hold, Plan
from optimus.model.reasons import Reason


class Denied(Struct, frozen=True, kw_only=True):
    """Something that this user may not read."""

    what: str
    """`nodes`, `queues.optimus.dev`."""
    where: str
    """A namespace; empty: the whole cluster."""


def rights(denied: Iterable[Denied]) -> str:
    """`list nodes, queues.optimus.dev in the cluster; list jobs.batch in namespace team-a`."""
    by_place: dict[str, list[str]] = {}
    for one in denied:
        by_place.setdefault(f"namespace {one.where}" if one.where else "the cluster", []).append(one.what)
    return "; ".join(f"list {', '.join(sorted(whats))} in {place}" for place, whats in by_place.items())


class Keeping(Mirror):
    """A mirror that keeps owners as they are: people ask for more of them than the brain does."""

    def __init__(self, kinds: Kinds, scheduler_name: str) -> None:
        super().__init__(kinds, scheduler_name=scheduler_name)
        self.kinds = kinds
        self.scheduler_name = scheduler_name
        self.owners: dict[str, Anything] = {}
        """By uid."""

    def owner(self, thing: Anything) -> None:
        self.owners[thing.metadata.uid] = thing
        super().owner(thing)

    def owner_gone(self, uid: str) -> None:
        self.owners.pop(uid, None)
        super().owner_gone(uid)


class Sight:
    def __init__(self, kinds: Kinds, scheduler_name: str) -> None:
        self.mirror = Keeping(kinds, scheduler_name)
        self.namespace = ""
        """Where only one namespace can be seen: that one. Then nothing is decided, and `plan` is None."""
        self.denied: tuple[Denied, ...] = ()
        self.unusable: list[str] = []
        """Queues and pools that cannot be read, with why."""
        self.plan: Plan | None = None
        self.now_ms = 0
        self.nodes: dict[str, Node] = {}
        self.statuses: dict[str, dict[str, object]] = {}
        """Of queues, as the controller has written them."""
        self.waiting: dict[str, Reason] = {}
        self.promised: frozenset[str] = frozenset()
        self.holds: list[Kept] = []
        self.reserved: list[Kept] = []
        self.remark = ""
        """What is to be known of the policy."""
        self._engine = Engine()

    @property
    def whole(self) -> bool:
        return not self.namespace

    def pool_of(self) -> dict[str, str]:
        """By node; empty where only one namespace can be seen."""
        return {node.name: view.pool.name for view in self._engine.state.pool_views for node in view.nodes}

    def decide_as(self, choice: Choice) -> None:
        self.remark = choice.remark
        self._engine.policy, self._engine.policy_reference = choice.policy, choice.reference

    def take(self, facts: Sequence[Observation], now_ms: int) -> None:
        """What is new; then what would be decided now."""
        self.now_ms = now_ms
        for fact in facts:
            match fact:
                case NodeSeen(node):
                    self.nodes[node.name] = node
                case NodeGone(name):
                    self.nodes.pop(name, None)
        if not self.whole:
            return
        self._engine.observe(facts, now_ms)
        self._engine.observe([TablesRefreshed(self._engine.learn(now_ms))], now_ms)
        self.plan = self._engine.decide(now_ms)
        self.waiting = {wait.workload: wait.reason for wait in self.plan.waiting}
        self.promised = frozenset(one.workload for one in self.plan.actions if isinstance(one, Hold))
        self.holds = held_by(self.plan, self._queue_of, now_ms)
        self.reserved = reserved_by(self.plan, self._queue_of, now_ms)

    def _queue_of(self, workload: str) -> str:
        return self.mirror.workloads[workload].queue

    def copy(self) -> bytes:
        """For whoever explains or forecasts: as one machine hands it out (`Target.state`)."""
        return copy_of(self._engine, self.now_ms)
