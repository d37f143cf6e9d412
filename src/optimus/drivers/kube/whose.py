"""Whose a queue is: namespaces that it lists, and those that it chooses by their labels.

Why: a cluster with a thousand namespaces lists none of them; whoever makes one gives it a label. The brain knows names
only, so it is told those that have the labels now, and told again when that changes.
Owns: queues as they are written, where they choose.
Must not: decide who may do what; the brain does (`NamespaceNotAllowed`), and the server (`policies`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import structs

from optimus.drivers.kube.selectors import Selector
from optimus.model.queues import Queue

NO_NAMESPACE = ("",)
"""Of a queue that none may use now: with nothing here, all might."""


class Whose:
    def __init__(self, namespaces_with: Callable[[Selector], Iterable[str]]) -> None:
        self._namespaces_with = namespaces_with
        self._written: dict[str, tuple[Queue, Selector]] = {}

    def take(self, queue: Queue, among: Selector | None) -> Queue:
        """As the brain is to know it."""
        if among is None:
            self._written.pop(queue.name, None)
            return queue
        self._written[queue.name] = (queue, among)
        return self._told(queue, among)

    def forget(self, name: str) -> None:
        self._written.pop(name, None)

    def again(self) -> list[Queue]:
        """All that choose, as they are to be known now."""
        return [self._told(queue, among) for queue, among in self._written.values()]

    def _told(self, queue: Queue, among: Selector) -> Queue:
        found = {*queue.namespaces, *self._namespaces_with(among)}
        return structs.replace(queue, namespaces=tuple(sorted(found)) or NO_NAMESPACE)
