"""The real engine as a scheduler of the clockwork: news become observations, plans come true.

Why: one brain, whatever the body. Nothing here decides, and the engine does not know that time is virtual.
Owns: the translation, and what was told to the engine but has not been confirmed yet.
Must not: look into the engine's state, or tell it the truth about jobs.
"""

from __future__ import annotations

from msgspec import structs

from optimus.drivers.sim.clockwork import Clockwork, News, Run, Seat, SimulationError
from optimus.drivers.sim.jobs import ROLE, workload_of
from optimus.engine.engine import Engine
from optimus.model import observations as seen
from optimus.model.observations import Observation
from optimus.model.plans import Drop, Evict, Grow, Hold, Placement, Plan, Reject, Shrink, Start
from optimus.model.workloads import Workload


class Brain:
    def __init__(self, engine: Engine, name: str = "") -> None:
        self.engine = engine
        self.name = name or engine.policy.name
        self.every_round = False
        self.plan: Plan | None = None
        """The last one."""
        self._facts: list[Observation] = []
        self._index: dict[str, int] = {}
        self._told: dict[int, Workload] = {}

    def open(self, clock: Clockwork) -> None:
        setup = clock.setup
        self._facts += [seen.PoolSeen(pool) for pool in setup.pools]
        self._facts += [seen.QueueSeen(queue) for queue in setup.queues]
        self._facts += [seen.NodeSeen(node) for node in setup.nodes]
        self._node = {name: index for index, name in enumerate(clock.node_names)}

    def decide(self, clock: Clockwork, news: News) -> None:
        self.plan = self._step(clock, news)
        for action in self.plan.actions:
            run = clock.runs[self._index[action.workload]]
            match action:
                case Start(_, _, placements) | Grow(_, placements):
                    self._place(clock, run, placements)
                case Evict():
                    clock.leave(run.index, list(run.seats))
                    if action.final:
                        clock.reject(run.index, action.cause.text())
                case Shrink(_, slots):
                    clock.leave(run.index, [ordinal for _, ordinal in slots])
                case Reject():
                    clock.reject(run.index, action.cause.text())
                case Hold() | Drop():
                    pass

    def see_the_end(self, clock: Clockwork) -> None:
        """After the last job has ended nobody is asked any more. Whoever keeps a journal wants that end in it: one more
        step, in which there is nothing left to decide about. Where jobs are left, nothing is added."""
        if not clock.active and clock.unseen:
            self._step(clock, clock.unseen)

    def _step(self, clock: Clockwork, news: News) -> Plan:
        facts, self._facts = self._facts, []
        facts += self._translate(clock, news)
        plan = self.engine.step(facts, clock.now_ms)
        if self.engine.problems:
            raise SimulationError("; ".join(str(problem) for problem in self.engine.problems[:3]))
        return plan

    def _place(self, clock: Clockwork, run: Run, placements: tuple[Placement, ...]) -> None:
        seats = dict(run.seats)
        for place in placements:
            seats[place.ordinal] = Seat(self._node[place.node], place.devices)
            running = seen.SlotRunning(run.job.id, place.role, place.ordinal, place.node, place.devices, clock.now_ms)
            self._facts.append(running)
        clock.place(run.index, seats)

    def _translate(self, clock: Clockwork, news: News) -> list[Observation]:
        facts: list[Observation] = [seen.NodeGone(clock.node_names[node]) for node in news.nodes_down]
        facts += [seen.NodeSeen(clock.setup.nodes[node]) for node in news.nodes_up]
        facts += [seen.SlotGone(clock.runs[index].job.id, ROLE, ordinal) for index, ordinal in news.gone]
        for index in news.ended:
            facts.append(seen.WorkloadEnded(clock.runs[index].job.id))
            run = clock.runs[index]
            facts += [seen.SlotGone(run.job.id, ROLE, ordinal) for ordinal in run.last_ordinals]
            self._told.pop(index, None)
        for index in news.arrived:
            workload = _as_submitted(clock.runs[index])
            self._index[workload.id] = index
            self._told[index] = workload
            facts.append(seen.WorkloadSeen(workload))
        facts += self._speeds(clock)
        return facts

    def _speeds(self, clock: Clockwork) -> list[Observation]:
        """What elastic jobs have learned about their own speed."""
        facts: list[Observation] = []
        for index, run in clock.running.items():
            if run.job.most > run.job.least and run.progress.rounds:
                measured = run.progress.speedup_percent()
                told = self._told[index]
                if measured is not None and measured != told.speedup_percent:
                    self._told[index] = told = structs.replace(told, speedup_percent=measured)
                    facts.append(seen.WorkloadSeen(told))
        return facts


def _as_submitted(run: Run) -> Workload:
    """What is told of a job at first. One that measures its own speed knows it for one replica."""
    workload = workload_of(run.job)
    if run.progress.measures and run.job.most > run.job.least and not workload.speedup_percent:
        return structs.replace(workload, speedup_percent=(100,))
    return workload
