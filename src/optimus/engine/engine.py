"""One step of the loop: facts in, plan out. Single-threaded; everything it needs is passed in.

The engine owns the state and is the only one to change it. It reads no clock and waits for nothing: a body calls
`step` when it has observations or when a tick is due, and carries out the plan it gets back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from optimus.decide.cycle import decide
from optimus.decide.packing import Room, idle_by_model, learn, usual_mix
from optimus.decide.policies import Policy
from optimus.engine.journal import Cycle, JournalError, JournalWriter
from optimus.engine.policy_loading import load
from optimus.model.observations import Observation, TablesRefreshed
from optimus.model.packing import PackingTables
from optimus.model.plans import Budget, Plan
from optimus.model.problems import Problem
from optimus.model.settings import Settings
from optimus.state import State
from optimus.state.keyframe import dump, restore

FIRST_TABLES_AFTER = 50
"""Replicas seen before tables are made from them; until then they come from the cluster itself."""
TRUSTED_AFTER = 500
"""Replicas seen before the usual mix is left out."""
TABLES_EVERY = 200
TABLES_EVERY_PERCENT = 5
TABLES_EVERY_AT_MOST = 500


class Engine:
    def __init__(
        self,
        *,
        policy: str | Policy = "default",
        settings: Settings | None = None,
        budget: Budget | None = None,
        seed: int = 0,
        learns: bool = True,
        on_notice: Callable[[str], None] = lambda _text: None,
    ) -> None:
        """`learns`: refresh the packing tables as the mix of requests changes (off while replaying)."""
        self.state = State(settings)
        self.policy = load(policy) if isinstance(policy, str) else policy
        self.policy_reference = policy if isinstance(policy, str) else policy.name
        self.budget = budget or Budget()
        self.seed = seed
        self.problems: list[Problem] = []
        """What could not be used of the last step's observations."""
        self._learns = learns
        self._journal: JournalWriter | None = None
        self._notice = on_notice

    def keep_journal(self, journal: JournalWriter, now_ms: int) -> None:
        """From now on every step is recorded. `journal` must dump this engine's state (`engine.dump`)."""
        self._journal = journal
        try:
            journal.start(now_ms)
        except JournalError as error:
            self._notice(str(error))

    def step(self, observations: Sequence[Observation], now_ms: int) -> Plan:
        """Apply what was seen, decide, and count the plan as done."""
        self.observe(observations, now_ms)
        taken = list(observations)
        if self._learns and self._tables_are_stale():
            refreshed = TablesRefreshed(self.learn(now_ms))
            self.state.apply(refreshed, now_ms)
            taken.append(refreshed)
        self.pass_time(now_ms)
        plan = self.decide(now_ms)
        self.state.assume(plan, now_ms)
        if self._journal is not None:
            self._record(tuple(taken), now_ms, plan)
        return plan

    def observe(self, observations: Sequence[Observation], now_ms: int) -> None:
        """Apply what was seen; `problems` tells what could not be used."""
        self.problems = []
        for observation in observations:
            self.problems.extend(self.state.apply(observation, now_ms))

    def decide(self, now_ms: int) -> Plan:
        """What would be done at that time if nothing happened before; changes nothing."""
        state, history = self.state, self.state.history
        clock, past_use, past_use_at = state.now_ms, history.past_use, history.past_use_at
        try:
            return decide(state.snapshot(now_ms), self.policy, now_ms, self.seed, self.budget)
        finally:  # a snapshot moves the clock and counts what was in use until then
            state.now_ms, history.past_use, history.past_use_at = clock, past_use, past_use_at

    def pass_time(self, now_ms: int) -> None:
        """Move the clock, and count what was in use until then as past use."""
        self.state.snapshot(now_ms)

    def dump(self) -> bytes:
        return dump(self.state)

    def restore(self, state: bytes) -> None:
        """Forget everything and be what the dump says."""
        self.state = restore(state)

    def learn(self, now_ms: int) -> PackingTables:
        """Packing tables for the mix of requests seen so far and the room there is now."""
        snapshot = self.state.snapshot(now_ms)
        usable = [view.rows[view.usable] for view in snapshot.pools]
        rows = np.concatenate(usable) if usable else np.zeros(0, dtype=np.int64)
        gpu_model = self.state.nodes.columns.gpu_model[rows]
        scalars = snapshot.now_scalars[rows]
        models = tuple(snapshot.resources.models)
        room = Room(snapshot.now_gpus[rows], gpu_model, scalars[:, 0], scalars[:, 1], models)
        mix = self.state.mix.entries()
        if self.state.mix.arrivals < TRUSTED_AFTER:
            mix += usual_mix(room)
        tables = learn(mix, idle_by_model(room), room)
        return PackingTables(
            tables.gap_value, tables.stranding, tables.model_price, tables.blocks, arrivals=self.state.mix.arrivals
        )

    def _tables_are_stale(self) -> bool:
        seen, learned = self.state.mix.arrivals, self.state.tables.arrivals
        if not self.state.tables.gap_value:
            return bool(self.state.resources.models)
        if learned < FIRST_TABLES_AFTER:
            return seen >= FIRST_TABLES_AFTER
        return seen - learned >= min(max(TABLES_EVERY, seen * TABLES_EVERY_PERCENT // 100), TABLES_EVERY_AT_MOST)

    def _record(self, observations: tuple[Observation, ...], now_ms: int, plan: Plan) -> None:
        assert self._journal is not None
        try:
            self._journal.record(
                now_ms=now_ms,
                observations=observations,
                budget=self.budget,
                policy=self.policy_reference,
                seed=self.seed,
                plan=plan,
            )
        except JournalError as error:
            self._notice(str(error))  # scheduling goes on without; the journal says that it has a gap


class ReplayEngine:
    """An engine that is told everything, tables included: what `journal.replay` drives."""

    def __init__(self, policy: str | Policy | None = None) -> None:
        """`policy`: decide under this one instead of the recorded one."""
        self._policy = policy
        self.engine = Engine(policy=policy or "default", learns=False)

    def restore(self, state: bytes) -> None:
        try:
            self.engine.restore(state)
        except (msgspec.MsgspecError, LookupError, ValueError) as error:
            message = f"the recorded state cannot be restored: {error}; replay it with the version that wrote it"
            raise JournalError(message) from error

    def judge(self, cycle: Cycle) -> Plan:
        """What would have been decided in the recorded situation; then go on from what was really done."""
        plan = self.look(cycle)
        self.engine.pass_time(cycle.now_ms)
        self.engine.state.assume(cycle.plan, cycle.now_ms)
        return plan

    def look(self, cycle: Cycle) -> Plan:
        """What would have been decided in the recorded situation, which is left as it was then."""
        self._take_over(cycle.budget, cycle.policy, cycle.seed)
        self.engine.observe(cycle.observations, cycle.now_ms)
        return self.engine.decide(cycle.now_ms)

    def follow(self, cycle: Cycle) -> None:
        """Go on as it was recorded, without deciding again."""
        self.engine.observe(cycle.observations, cycle.now_ms)
        self.engine.pass_time(cycle.now_ms)
        self.engine.state.assume(cycle.plan, cycle.now_ms)

    def step(
        self, observations: tuple[Observation, ...], now_ms: int, *, budget: Budget, policy: str, seed: int
    ) -> Plan:
        self._take_over(budget, policy, seed)
        return self.engine.step(observations, now_ms)

    def _take_over(self, budget: Budget, policy: str, seed: int) -> None:
        if self._policy is None and policy != self.engine.policy_reference:
            self.engine.policy = load(policy)
            self.engine.policy_reference = policy
        self.engine.budget, self.engine.seed = budget, seed
