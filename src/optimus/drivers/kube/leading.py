"""Leading: turn after turn, what is new goes to the brain, and what it decides is carried out.

    mirror.news + acting.facts ──► engine.step (in a thread) ──► acting.act, reporting.tell
              ▲                                                          │
              └────────────── watch, outcomes of writes ◄────────────────┘

Why: one place in which decisions are made; whoever leads runs it, whoever follows keeps its mirror warm.
Owns: when a turn is due, and the engine of this lead: a new one each time, told everything there is.
Must not: read or write itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable

from optimus.drivers.kube.acting import Acting
from optimus.drivers.kube.mirror import Mirror
from optimus.drivers.kube.reporting import Reporting
from optimus.engine.budgets import next_budget
from optimus.engine.engine import Engine
from optimus.model.observations import Observation
from optimus.model.plans import Plan

LOG = logging.getLogger(__name__)
GATHER_S = 0.02
"""After the first news, others that come with it are waited for."""
TICK_S = 10.0
UNSETTLED_S = 1.0
TARGET_STEP_MS = 1_000


class Leading:
    def __init__(self, mirror: Mirror, engine: Engine, acting: Acting, reporting: Reporting) -> None:
        self.engine = engine
        self.turns = 0
        self.plan: Plan | None = None
        self.step_ms = 0
        self._mirror, self._acting, self._reporting = mirror, acting, reporting
        self._wake = asyncio.Event()

    def wake(self) -> None:
        self._wake.set()

    async def run(
        self, still_leader: Callable[[], bool], alive: Callable[[], object], owners: Callable[[], None]
    ) -> None:
        """Until the lead is lost or it is cancelled. `owners`: begins to read those that are missed."""
        facts = self._mirror.everything()
        owners()
        while still_leader():
            alive()
            await self._turn(facts)
            facts = await self._next_facts(owners)
        await self._acting.close()

    async def _turn(self, facts: list[Observation]) -> None:
        begun = time.monotonic()
        plan = await asyncio.to_thread(self.engine.step, facts, time.time_ns() // 1_000_000)
        self.step_ms = int((time.monotonic() - begun) * 1000)
        self.engine.budget = next_budget(self.engine.budget, plan, self.step_ms, TARGET_STEP_MS)
        for problem in self.engine.problems:
            LOG.warning("%s", problem)
        self.plan = plan
        self.turns += 1
        self._acting.act(plan)
        self._reporting.tell(plan)

    async def _next_facts(self, owners: Callable[[], None]) -> list[Observation]:
        """As soon as there are any; an empty list when a tick is due."""
        until = time.monotonic() + TICK_S
        while True:
            facts = [*self._mirror.news(), *self._acting.facts()]
            owners()
            left = until - time.monotonic()
            if facts or left <= 0:
                return facts
            self._wake.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), min(left, UNSETTLED_S if self._acting.unsettled else left))
                await asyncio.sleep(GATHER_S)
