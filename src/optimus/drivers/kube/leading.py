"""Leading: turn after turn, what is new goes to the brain, and what it decides is carried out.

    mirror.news + acting.facts ──► engine.step (in a thread) ──► acting.act, reporting.tell
              ▲                                                          │
              └──── repairing.look ◄──── watch, outcomes of writes ◄─────┘

Why: one place in which decisions are made; whoever leads runs it, whoever follows keeps its mirror warm.
Owns: when a turn is due, and the engine of this lead: a new one each time, told everything there is.
Must not: read or write itself, or follow a clock that can be set: what the brain is told is the time at which the lead
began plus what has passed since on one that only goes forward.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping

from optimus.drivers.kube.acting import Acting
from optimus.drivers.kube.aside import put_aside
from optimus.drivers.kube.brain import Broken
from optimus.drivers.kube.mirror import Mirror
from optimus.drivers.kube.repairing import Repairing
from optimus.drivers.kube.reporting import Reporting
from optimus.drivers.kube.stranding import Stranding
from optimus.engine.budgets import next_budget
from optimus.engine.engine import Engine
from optimus.kube.election import now
from optimus.model.observations import Observation
from optimus.model.plans import Plan
from optimus.model.reasons import Reason

LOG = logging.getLogger(__name__)
GATHER_S = 0.02
"""After the first news, others that come with it are waited for."""
GATHER_PER_BIND_S, GATHER_AT_MOST_S = 0.000_25, 1.0
"""While binds are on their way most news are that one has arrived, which changes no decision; and what is decided now
is sent after those, each of which takes a server about a millisecond."""
TICK_S = 10.0
UNSETTLED_S = 1.0
TARGET_STEP_MS = 1_000
MOST_COLUMNS = 512
ANEW_S = 2.0
"""So long binds are waited for, before a new brain looks; what it does not see, `repairing` does."""


class Leading:
    def __init__(
        self, mirror: Mirror, engine: Engine, acting: Acting, reporting: Reporting, repairing: Repairing
    ) -> None:
        self.engine = engine
        self.repairing = repairing
        self.turns = 0
        self.plan: Plan | None = None
        self.step_ms = 0
        self._mirror, self._acting, self._reporting = mirror, acting, reporting
        self._stranding = Stranding(mirror, now)
        self._wake = asyncio.Event()
        self._most_columns = 0
        self._began_ms, self._began_s = time.time_ns() // 1_000_000, now()

    def wake(self) -> None:
        self._wake.set()

    @property
    def waiting(self) -> Mapping[str, Reason]:
        """By workload: why it waits, as people were told last."""
        return self._reporting.waiting

    async def run(
        self, still_leader: Callable[[], bool], alive: Callable[[], object], owners: Callable[[], None]
    ) -> None:
        """Until the lead is lost, it is cancelled, or the brain is broken: then the same lead begins anew with another,
        which is told everything but what broke it. `owners`: begins to read those that are missed."""
        facts = self._mirror.everything()
        owners()
        while still_leader():
            alive()
            try:
                await self._turn(facts)
            except Broken as broken:
                await self._begin_anew(broken)
                return
            if self._is_worn_out():
                LOG.info("decides anew: %d names of resources, most of them of the past", self._most_columns)
                await self._settle()
                return
            facts = await self._next_facts(owners)

    async def _begin_anew(self, broken: Broken) -> None:
        for fact, error in broken.facts:
            put_aside(self._mirror, fact, error)
        LOG.warning("decides anew, with a brain that knows nothing: %s", broken)
        await self._settle()

    def _is_worn_out(self) -> bool:
        """Names that nobody uses any more still have their columns in every table of this brain."""
        count = self.engine.state.resources.count
        self._most_columns = self._most_columns or max(2 * count, MOST_COLUMNS)
        return count > self._most_columns

    async def _settle(self) -> None:
        """Binds under way are known to nobody but this brain: the next one must see them in the watch."""
        until = time.monotonic() + ANEW_S
        while self._acting.unsettled and time.monotonic() < until:
            self._acting.facts()
            await asyncio.sleep(GATHER_S)

    def _now_ms(self) -> int:
        return self._began_ms + int((now() - self._began_s) * 1000)

    async def _turn(self, facts: list[Observation]) -> None:
        begun = time.monotonic()
        plan = await asyncio.to_thread(self.engine.step, facts, self._now_ms())
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
            self._stranding.look()
            facts = self._mirror.news()
            self.repairing.look()
            facts += self._acting.facts()
            owners()
            left = until - time.monotonic()
            if facts or left <= 0:
                return facts
            self._wake.clear()
            unsettled = self._acting.unsettled or self.repairing.on_trial or self._stranding.waits
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left, UNSETTLED_S if unsettled else left)):
                    await self._wake.wait()  # not `wait_for`: woken and cancelled at once, it would go on for ever
                await asyncio.sleep(min(max(GATHER_S, self._acting.unsettled * GATHER_PER_BIND_S), GATHER_AT_MOST_S))
