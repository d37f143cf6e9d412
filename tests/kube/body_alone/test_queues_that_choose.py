"""Queues that choose their namespaces by labels: the brain is told names, and told again when labels change."""

from __future__ import annotations

import msgspec

from optimus.drivers.kube.grouping import shipped_kinds
from optimus.drivers.kube.mirror import Mirror
from optimus.drivers.kube.objects import Namespace
from optimus.drivers.kube.selectors import Requirement, Selector
from optimus.drivers.kube.whose import NO_NAMESPACE
from optimus.model.observations import QueueGone, QueueSeen
from optimus.model.queues import Queue
from optimus.model.rules import Operator

VISION = Selector((Requirement("team", Operator.IN, ("vision",)),))


def namespace(name: str, **labels: str) -> Namespace:
    return msgspec.convert({"metadata": {"name": name, "uid": name, "labels": labels}}, Namespace)


def told(mirror: Mirror) -> list[tuple[str, ...]]:
    return [fact.queue.namespaces for fact in mirror.news() if isinstance(fact, QueueSeen)]


def test_the_brain_knows_who_may_use_it_now() -> None:
    mirror = Mirror(shipped_kinds())
    mirror.tenants.queue(Queue(name="q"), VISION)
    assert told(mirror) == [NO_NAMESPACE], "nobody has the label: that is not everybody"
    mirror.tenants.namespace(namespace("a", team="vision"))
    mirror.tenants.namespace(namespace("b", team="speech"))
    assert told(mirror) == [("a",)]
    mirror.tenants.namespace(namespace("a", team="vision"))
    assert told(mirror) == [], "nothing is new"
    mirror.tenants.namespace(namespace("b", team="vision"))
    mirror.tenants.namespace_gone("a")
    assert told(mirror) == [("a", "b"), ("b",)]
    mirror.tenants.queue(Queue(name="q", namespaces=("z",)), VISION)
    assert told(mirror) == [("b", "z")], "those it lists, and those it chooses"


def test_a_queue_that_chooses_no_more_is_as_it_is_written() -> None:
    mirror = Mirror(shipped_kinds())
    mirror.tenants.namespace(namespace("a", team="vision"))
    mirror.tenants.queue(Queue(name="q"), VISION)
    mirror.tenants.queue(Queue(name="q"))
    assert told(mirror) == [("a",), ()]
    mirror.tenants.namespace(namespace("c", team="vision"))
    assert told(mirror) == []
    mirror.tenants.queue(Queue(name="q"), VISION)
    mirror.tenants.queue_gone("q")
    mirror.tenants.namespace(namespace("d", team="vision"))
    assert [fact for fact in mirror.news() if isinstance(fact, QueueSeen | QueueGone)][-1] == QueueGone("q")
