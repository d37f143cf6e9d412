"""Resuming: the real engine goes on from a state, and the clockwork from who sits where.

Why: a question about the future is answered by the brain that will decide it, from the situation as it is.
Owns: taking everybody's place over once, and then the translation between plans and clockwork, for any gang.
Must not: decide, or tell the engine how long anything runs.

    first decision:  those who run sit down, those who are leaving leave; the engine knows all of that already
    from then on:    as `brain` does it, only that replicas are known by role and ordinal
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from optimus.drivers.sim.clockwork import Clockwork, News, Run, Seat
from optimus.drivers.sim.standing import Standing
from optimus.engine.engine import Engine
from optimus.model import observations as seen
from optimus.model.observations import Observation
from optimus.model.plans import Evict, Grow, Placement, Plan, Reject, Shrink, Start
from optimus.model.slots import Phase

Key = tuple[str, int]
"""Role and ordinal."""
_LEAVING = 1 << 32
"""Numbers of seats that are left are apart: a replica that moves is in both places."""


class Resumed:
    """A scheduler of the clockwork. `engine` holds the state; `people` are those of the state and those to come."""

    def __init__(
        self,
        engine: Engine,
        people: Mapping[str, Standing],
        *,
        after: Callable[[Clockwork, Plan], None] = lambda _clock, _plan: None,
        name: str = "",
    ) -> None:
        """`after` sees every plan once it has been taken up."""
        self.engine = engine
        self.name = name or engine.policy.name
        self.every_round = False
        self.plan: Plan | None = None
        self.starts: dict[str, int] = {}
        """Workload -> its first start from now on."""
        self._people = people
        self._after = after
        self._known = set(engine.state.workloads.row_of)
        self._facts: list[Observation] = []
        self._numbers: dict[tuple[int, Key], int] = {}
        self._keys: dict[tuple[int, int], Key] = {}
        self._began = False

    def open(self, clock: Clockwork) -> None:
        self._node = {name: index for index, name in enumerate(clock.node_names)}
        self._index = {run.job.name: run.index for run in clock.runs}

    def decide(self, clock: Clockwork, news: News) -> None:
        if not self._began:
            self._began = True
            for index in news.arrived:
                self._sit_down(clock, clock.runs[index])
        facts, self._facts = self._facts, []
        facts += self._translate(clock, news)
        self.plan = plan = self.engine.step(facts, clock.now_ms)
        for action in plan.actions:
            run = clock.runs[self._index[action.workload]]
            index = run.index
            if not run.active:
                continue
            match action:
                case Start(_, _, placements):
                    self.starts.setdefault(action.workload, clock.now_ms)
                    self._place(clock, run, placements)
                case Grow(_, placements):
                    self._place(clock, run, placements)
                case Evict():
                    clock.leave(index, list(run.seats))
                    if action.final:
                        clock.reject(index, action.cause.text())
                case Shrink(_, slots):
                    clock.leave(index, [self._number(index, slot) for slot in slots])
                case Reject():
                    clock.reject(index, action.cause.text())
                case _:
                    pass
        self._after(clock, plan)

    def _sit_down(self, clock: Clockwork, run: Run) -> None:
        standing = self._people[run.job.name]
        if standing.elapsed_ms:
            self._credit(run, standing)
        if not standing.places:
            return
        seats: dict[int, Seat] = {}
        leaving: list[int] = []
        for place in standing.places:
            key = (place.role, place.ordinal)
            number = self._number(run.index, key) + (_LEAVING if place.leaving else 0)
            self._keys[run.index, number] = key
            seats[number] = Seat(self._node[place.node], (), place.milli)
            if place.leaving:
                leaving.append(number)
            elif place.phase is not Phase.RUNNING:
                self._facts.append(seen.SlotRunning(run.job.name, *key, place.node, (), clock.now_ms))
        clock.place(run.index, seats)
        clock.leave(run.index, leaving)
        if standing.over:
            clock.reject(run.index, "it has ended")

    def _credit(self, run: Run, standing: Standing) -> None:
        """What it has done already; without checkpoints only what runs right now still has it."""
        keeps = standing.workload.checkpoint is not None
        done = min(standing.elapsed_ms / max(run.job.work.ideal_ms(), 1.0), 1.0 - 1e-9)
        if keeps or standing.runs:
            run.progress.back_to(done)
        run.saved = done if keeps else 0.0

    def _place(self, clock: Clockwork, run: Run, placements: tuple[Placement, ...]) -> None:
        seats = dict(run.seats)
        for place in placements:
            number = self._number(run.index, (place.role, place.ordinal))
            seats[number] = Seat(self._node[place.node], (), place.gpu_milli * len(place.devices))
            devices = place.devices if place.exact else ()
            self._facts.append(
                seen.SlotRunning(run.job.name, place.role, place.ordinal, place.node, devices, clock.now_ms)
            )
        clock.place(run.index, seats)

    def _translate(self, clock: Clockwork, news: News) -> list[Observation]:
        facts: list[Observation] = [
            seen.SlotGone(clock.runs[index].job.name, *self._keys[index, number]) for index, number in news.gone
        ]
        for index in news.ended:
            run = clock.runs[index]
            facts.append(seen.WorkloadEnded(run.job.name))
            facts += [seen.SlotGone(run.job.name, *self._keys[index, number]) for number in run.last_ordinals]
        for index in news.arrived:
            name = clock.runs[index].job.name
            if name not in self._known:
                facts.append(seen.WorkloadSeen(self._people[name].workload))
        return facts

    def _number(self, index: int, key: Key) -> int:
        number = self._numbers.setdefault((index, key), len(self._numbers))
        self._keys[index, number] = key
        return number
