"""Sampling: one future, played until everybody who waits has started.

Why: a sample is what a forecast is made of, and needs nothing but the present, a seed and its number.
Owns: who is waited for, and when a sample may stop.
Must not: remember anything between samples.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, structs

from optimus.decide.policies import Policy
from optimus.drivers.sim.clockwork import Clockwork
from optimus.drivers.sim.forecasting.arrivals import Past, newcomers
from optimus.drivers.sim.forecasting.knowledge import Knowledge
from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.present import Present
from optimus.drivers.sim.resuming import Resumed
from optimus.drivers.sim.setup import Setup
from optimus.drivers.sim.standing import Standing, job_of, newcomer, read_state, setup_of, standings
from optimus.drivers.sim.traces.trace import ENDLESS_MS
from optimus.engine.engine import Engine
from optimus.engine.journal_past import Ran
from optimus.engine.policy_loading import load
from optimus.model.plans import Plan, Start
from optimus.model.reasons import NEVER_AS_IT_IS, Code, Reason

TICKS = 500
"""Decisions without news until the horizon, at most: rules about time are kept, and nothing is asked for ever."""
SHORTEST_TICK_MS = 300_000
COARSER_PERCENT = 5
"""Where newcomers are drawn: a start in an hour is told to the minutes, one tomorrow to the hour. Deciding about every
one of them at once would cost twenty times as much, and who comes is known less well by far."""
COARSEST_PERCENT = 10
"""Of a mean run time. Devices stand idle from an end to the next decision, half of that on average: without a bound
short work in a distant future would hardly run at all, and nobody would ever get through the line."""
HOPELESS = NEVER_AS_IT_IS | {Code.NO_USABLE_NODE, Code.NOT_READY, Code.QUEUE_STOPPED, Code.SUSPENDED}
"""Time alone does not help; somebody has to change something."""


class Waiter(Struct, frozen=True, kw_only=True):
    """One who waits, and what the engine says about it now."""

    standing: Standing
    reason: Reason | None
    """None: it starts in this very decision."""

    @property
    def hopeless(self) -> bool:
        return self.reason is not None and self.reason.code in HOPELESS


class Futures:
    """Everything that samples of one present have in common."""

    def __init__(self, present: Present, horizon_ms: int, past: Past, knowledge: Knowledge | None = None) -> None:
        """`knowledge`: of another present, so that the same workload draws the same run time in both."""
        self.present = present
        self.frame = read_state(present.state)
        self.people = standings(self.frame, present.now_ms, present.remaining)
        self.knowledge = knowledge or Knowledge(self.frame, self.people, past.errors, present.now_ms)
        self.until_ms = present.now_ms + horizon_ms
        self.policy: Policy = load(present.policy)
        self.setup = setup_of(
            self.frame,
            tick_ms=max(SHORTEST_TICK_MS, horizon_ms // TICKS),
            coarser_percent=COARSER_PERCENT if past.arrived else 0,
        )
        self._past = past

    def waiters(self) -> tuple[Waiter, ...]:
        """Those without a place, in the order of the dump; what the engine would do for them now."""
        plan = self.engine().decide(self.present.now_ms)
        reasons = {wait.workload: wait.reason for wait in plan.waiting}
        starts = {action.workload for action in plan.actions if isinstance(action, Start)}
        return tuple(
            Waiter(standing=standing, reason=reasons.get(standing.workload.id))
            for standing in self.people
            if not standing.runs
            and not standing.over
            and (standing.workload.id in reasons or standing.workload.id in starts)
        )

    def play(
        self, targets: frozenset[str], seed: int, sample: int, wanted: frozenset[str] | None = None
    ) -> dict[str, int | None]:
        """When each of them starts; None: not before the horizon, or not before all those `wanted` have."""
        left = set(targets if wanted is None else wanted)

        def look(clock: Clockwork, plan: Plan) -> None:
            left.difference_update(action.workload for action in plan.actions if isinstance(action, Start))
            if not left:
                clock.stop()

        jobs, people = self.cast(seed, sample)
        resumed = Resumed(self.engine(), people, after=look)
        Clockwork(self._paced(jobs), jobs).play(resumed, until_ms=self.until_ms)
        return {name: resumed.starts.get(name) for name in sorted(targets)}

    def _paced(self, jobs: Sequence[Job]) -> Setup:
        if not self.setup.coarser_percent:
            return self.setup
        runs = [job.work.ideal_ms() for job in jobs]
        usual = [run for run in runs if run < ENDLESS_MS] or [ENDLESS_MS]
        return structs.replace(self.setup, coarsest_ms=round(sum(usual) / len(usual) * COARSEST_PERCENT / 100))

    def cast(self, seed: int, sample: int) -> tuple[list[Job], dict[str, Standing]]:
        """Everybody who is there or comes, with the run time of this sample."""
        now_ms = self.present.now_ms
        drawn = newcomers(self._past, now_ms, self.until_ms, seed, sample)
        people = [(now_ms, standing) for standing in self.people]
        people += [(max(at, now_ms), newcomer(workload)) for at, workload in self.present.coming]
        jobs = [job_of(one, at, self.knowledge.draw_ms(one, seed, sample)) for at, one in people]
        for at, workload, ran in drawn:
            one = newcomer(workload)
            people.append((at, one))
            jobs.append(job_of(one, at, self._run_ms(one, ran, seed, sample)))
        return jobs, {one.workload.id: one for _, one in people}

    def _run_ms(self, one: Standing, ran: Ran | None, seed: int, sample: int) -> float:
        """Of a newcomer: as long as whom it copies; longer than that where the other still runs."""
        if ran is not None and ran.ended:
            return ran.ms
        so_far = structs.replace(one, elapsed_ms=round(ran.ms)) if ran is not None else one
        return self.knowledge.draw_ms(so_far, seed, sample)

    def engine(self) -> Engine:
        """A new one that stands where the present is."""
        engine = Engine(policy=self.policy, budget=self.present.budget, seed=self.present.seed)
        engine.restore(self.present.state)
        return engine
