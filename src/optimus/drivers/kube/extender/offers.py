"""Places that wait to be taken: the brain has chosen them, kube-scheduler must come to the same pod and agree.

    bind (of the plan) ──► offered ── kube-scheduler binds ──► the server's answer, told to both
                              ├────── its own filters say no ──► Refused: the place goes back, the gang is thought over
                              └────── nobody came in time ─────► Refused, the same

Why: to the rest of the body an offer is a bind that takes long, so nothing else knows about extenders. A gang of which
one member is refused is a gang with a failed bind: the brain takes back what was bound of it.
Owns: offers that are open, and waking kube-scheduler up for a pod that it has given up for now.
Must not: choose.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from optimus.drivers.kube.grouping.overrides import PREFIX
from optimus.kube import Client, Outcome, Refused, Writer
from optimus.kube.line import Guard
from optimus.kube.resources import PODS
from optimus.kube.writing import TIMEOUT_S

HOLD_S = 30.0
"""A place that nobody took for so long goes back. kube-scheduler tries a pod again after ten seconds at the latest."""
OFFERED = PREFIX + "offered-node"
"""An annotation: kube-scheduler looks again at pods that change, and people see where it is to go."""
NOT_TAKEN, FILTERED = "NotTaken", "Filtered"


class Offer:
    def __init__(self, node: str) -> None:
        self.node = node
        self.taken: asyncio.Future[Refused | None] = asyncio.get_running_loop().create_future()
        """None: bind it now."""
        self.outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()


class Offers:
    """By uid of the pod."""

    def __init__(self) -> None:
        self._open: dict[str, Offer] = {}

    def node_for(self, uid: str) -> str:
        found = self._open.get(uid)
        return found.node if found is not None else ""

    def make(self, uid: str, node: str) -> Offer:
        made = self._open[uid] = Offer(node)
        return made

    def close(self, uid: str, offer: Offer, outcome: Outcome) -> None:
        if self._open.get(uid) is offer:
            del self._open[uid]
        if not offer.outcome.done():
            offer.outcome.set_result(outcome)

    def refuse(self, uid: str, why: str) -> None:
        """kube-scheduler does not want the place."""
        offer = self._open.get(uid)
        if offer is not None and not offer.taken.done():
            offer.taken.set_result(Refused(FILTERED, why))

    def withdraw(self) -> None:
        """All of them: who led does not any more."""
        for uid in [*self._open]:
            self.refuse(uid, "whoever offered it does not lead any more")

    async def take(self, uid: str, node: str) -> Outcome | None:
        """kube-scheduler wants it: what came of the bind. None if no such place is offered."""
        offer = self._open.get(uid)
        if offer is None or offer.node != node:
            return None
        if not offer.taken.done():
            offer.taken.set_result(None)
        return await asyncio.shield(offer.outcome)


class Offering(Writer):
    """Binds only what kube-scheduler takes; everything else as any writer."""

    def __init__(
        self,
        client: Client,
        offers: Offers,
        *,
        guard: Guard,
        in_flight: int,
        timeout_s: float = TIMEOUT_S,
        hold_s: float = HOLD_S,
    ) -> None:
        super().__init__(client, guard=guard, in_flight=in_flight, timeout_s=timeout_s)
        self._offers, self._hold_s = offers, hold_s

    async def bind(
        self,
        pod: str,
        node: str,
        *,
        namespace: str,
        uid: str = "",
        resource_version: str = "",
        annotations: Mapping[str, str] | None = None,
    ) -> Outcome:
        offer = self._offers.make(uid, node)
        outcome: Outcome = Refused(NOT_TAKEN, f"kube-scheduler did not take {node} within {self._hold_s:.0f} s")
        try:
            note: dict[str, Any] = {"metadata": {"uid": uid, "annotations": {OFFERED: node}}}
            await self.patch(PODS, pod, note, namespace=namespace, subresource="status")  # a right we have anyway
            async with asyncio.timeout(self._hold_s):
                refused = await offer.taken
            outcome = refused or await super().bind(
                pod, node, namespace=namespace, uid=uid, resource_version=resource_version, annotations=annotations
            )
        except TimeoutError:
            pass
        finally:
            self._offers.close(uid, offer, outcome)
        return outcome
