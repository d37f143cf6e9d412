"""Cycles: what time it is at each, and what has happened before it.

Why: the runner replays observations; people write events with names, patterns and offsets.
Owns: the clock of a story, the order of events in one cycle, and turning each into observations.
Must not: know what the scheduler did. An event about a replica that does not run is passed on as it is.
"""

from __future__ import annotations

from typing import TypeVar

from msgspec import structs
from pydantic import ValidationError

from optimus.api.building.expecting import resolve_expectations
from optimus.api.building.node_events import NodeEvents
from optimus.api.building.patching import lay_over
from optimus.api.building.report import Report
from optimus.api.building.world import World
from optimus.api.findings import explain
from optimus.api.marks import Loc, MarkedMap, find_mark, look_up
from optimus.api.scenario import Cycle, Expectations
from optimus.api.specs.clusters import POOL_LABEL, PoolSpec
from optimus.api.specs.cycles import MOST_CYCLES, CycleSpec
from optimus.api.specs.fields import Spec
from optimus.api.specs.queues import QueueSpec
from optimus.api.specs.workloads import ScenarioWorkloadSpec
from optimus.model import gangs
from optimus.model.observations import (
    ActivitySeen,
    Checkpointed,
    Observation,
    Outcome,
    PoolGone,
    PoolSeen,
    Predicted,
    QueueGone,
    QueueSeen,
    SlotGone,
    WorkloadEnded,
    WorkloadSeen,
)
from optimus.model.units import LARGEST, format_clock_ms

Kind = TypeVar("Kind", bound=Spec)


class Timeline:
    def __init__(self, world: World, report: Report, start_ms: int, advance_ms: int) -> None:
        self.world = world
        self.report = report
        self.start_ms = start_ms
        self.advance_ms = advance_ms
        self.now_ms = start_ms
        self.cycles: list[Cycle] = []

    def tell(self, spec: CycleSpec, loc: Loc) -> None:
        """Add one entry of `cycles`, which may stand for several."""
        if len(self.cycles) + spec.repeat > MOST_CYCLES:
            self.report.add((*loc, "repeat"), f"more than {MOST_CYCLES} cycles in all")
            return
        step_ms = self.advance_ms if spec.advance is None else spec.advance
        self._move_clock(spec, loc, step_ms)
        events = self._events(spec, loc)
        failing = self._failing_starts(spec, loc)
        expect = resolve_expectations(self.world, self.report, spec.expect, (*loc, "expect"))
        for turn in range(spec.repeat):
            if turn:
                self.now_ms += step_ms
            first, last = turn == 0, turn == spec.repeat - 1
            self.cycles.append(
                Cycle(
                    number=len(self.cycles) + 1,
                    at_ms=self.now_ms,
                    note=spec.note if first else "",
                    events=tuple(events) if first else (),
                    failing_starts=failing if first else {},
                    expect=expect if last else Expectations(),
                )
            )

    def _move_clock(self, spec: CycleSpec, loc: Loc, step_ms: int) -> None:
        if spec.at is not None:
            base = self.now_ms if spec.at.clock_ms is not None else self.start_ms
            moment = spec.at.resolve(base)
            if moment < self.now_ms:
                clock = format_clock_ms(self.now_ms)
                self.report.add((*loc, "at"), f"goes back in time: it is {clock} already")
                return
        elif not self.cycles and spec.advance is None:
            moment = self.now_ms
        else:
            moment = self.now_ms + step_ms
        if moment > LARGEST:
            self.report.add((*loc, "at" if spec.at is not None else "advance"), "leads too far into the future")
            return
        self.now_ms = moment

    # -- events, in the order of the fields of CycleSpec --------------------------------------------------------

    def _events(self, spec: CycleSpec, loc: Loc) -> list[Observation]:
        nodes = NodeEvents(self.world)
        found: list[Observation] = self._reports(spec, loc)
        found += nodes.fail(spec.fail, (*loc, "fail"))
        found += self._lost_replicas(spec, loc)
        found += self._ended(spec.fail.workloads, Outcome.FAILED, (*loc, "fail", "workloads"))
        found += nodes.recover(spec.recover, (*loc, "recover"))
        found += nodes.cordon(spec.cordon, (*loc, "cordon"), cordoned=True)
        found += nodes.cordon(spec.uncordon, (*loc, "uncordon"), cordoned=False)
        found += nodes.remove(spec.remove.nodes, (*loc, "remove", "nodes"))
        found += self._removed(spec, loc)
        for i, group in enumerate(spec.add.nodes):
            found += nodes.seen(self.world.add_group(group, (*loc, "add", "nodes", i)))
        found += self._added(spec, loc)
        found += nodes.change(spec.change.nodes, (*loc, "change", "nodes"))
        found += self._changed(spec, loc)
        found += self._ended(spec.finish, Outcome.SUCCEEDED, (*loc, "finish"))
        found += self._ended(spec.cancel, Outcome.CANCELLED, (*loc, "cancel"))
        found += self._suspended(spec.suspend, (*loc, "suspend"), suspended=True)
        found += self._suspended(spec.resume, (*loc, "resume"), suspended=False)
        return found + self._submitted(spec, loc)

    def _reports(self, spec: CycleSpec, loc: Loc) -> list[Observation]:
        found: list[Observation] = []
        for name, offset in spec.report.checkpoint.items():
            ids = self.world.find_workloads(name, (*loc, "report", "checkpoint", name))
            found.extend(Checkpointed(workload, self.now_ms + offset) for workload in ids)
        for name, offset in spec.report.busy.items():
            ids = self.world.find_workloads(name, (*loc, "report", "busy", name))
            found.extend(ActivitySeen(workload, self.now_ms + offset) for workload in ids)
        for name, duration in spec.report.duration.items():
            ids = self.world.find_workloads(name, (*loc, "report", "duration", name))
            found.extend(Predicted(workload, duration) for workload in ids)
        return found

    def _lost_replicas(self, spec: CycleSpec, loc: Loc) -> list[Observation]:
        found: list[Observation] = []
        for name, by_role in spec.fail.replicas.items():
            place = (*loc, "fail", "replicas", name)
            for workload in self.world.find_workloads(name, place):
                chains = {chain.role.name: chain for chain in gangs.chains(self.world.workloads[workload].gang)}
                for role, ordinals in by_role.items():
                    chosen = role or (next(iter(chains)) if len(chains) == 1 else "")
                    if chosen not in chains:
                        message = f"there is no role {role}" if role else f"{name} has several roles; say which"
                        self.report.add(place, message, f"roles: {', '.join(chains)}")
                        continue
                    beyond = [ordinal for ordinal in ordinals if ordinal >= chains[chosen].capacity]
                    if beyond:
                        message = (
                            f"there is no replica {beyond[0]}: role {chosen} has at most {chains[chosen].capacity}"
                        )
                        self.report.add(place, message)
                    found.extend(SlotGone(workload, chosen, ordinal) for ordinal in ordinals)
        return found

    def _failing_starts(self, spec: CycleSpec, loc: Loc) -> dict[str, str]:
        return {
            workload: failure
            for name, failure in spec.fail.starts.items()
            for workload in self.world.find_workloads(name, (*loc, "fail", "starts", name))
        }

    def _ended(self, names: tuple[str, ...], outcome: Outcome, loc: Loc) -> list[Observation]:
        return [WorkloadEnded(workload, outcome) for name in names for workload in self.world.find_workloads(name, loc)]

    def _suspended(self, names: tuple[str, ...], loc: Loc, *, suspended: bool) -> list[Observation]:
        found: list[Observation] = []
        for name in names:
            for workload in self.world.find_workloads(name, loc):
                changed = structs.replace(self.world.workloads[workload], suspended=suspended)
                self.world.workloads[workload] = changed
                found.append(WorkloadSeen(changed))
        return found

    def _removed(self, spec: CycleSpec, loc: Loc) -> list[Observation]:
        found: list[Observation] = []
        for name in spec.remove.pools:
            if any(node.labels.get(POOL_LABEL) == name for node in self.world.nodes.values()):
                hint = "remove these nodes, or change their label"
                self.report.add((*loc, "remove", "pools"), f"pool {name} stays while nodes say pool: {name}", hint)
            elif self.world.pools.pop(name, None) is None:
                self.report.unknown((*loc, "remove", "pools"), "pool", name, self.world.pools)
            found.append(PoolGone(name))
        for name in spec.remove.queues:
            if self.world.queues.pop(name, None) is None:
                self.report.unknown((*loc, "remove", "queues"), "queue", name, self.world.queues)
            found.append(QueueGone(name))
        return found

    def _added(self, spec: CycleSpec, loc: Loc) -> list[Observation]:
        found: list[Observation] = []
        before = set(self.world.pools)
        for i, pool_spec in enumerate(spec.add.pools):
            place = (*loc, "add", "pools", i)
            self.world.add_pool(pool_spec, place, self._raw(place))
        self.world.add_implied_pools()
        found.extend(PoolSeen(pool) for name, pool in self.world.pools.items() if name not in before)
        for i, queue_spec in enumerate(spec.add.queues):
            place = (*loc, "add", "queues", i)
            now_ms = self.now_ms
            queue = self.world.add_queue(queue_spec, place, self._raw(place), now_ms=now_ms, created_ms=now_ms)
            found.extend([QueueSeen(queue)] if queue else [])
        if spec.add.queues:
            self.world.check_queue_tree()
        return found

    def _changed(self, spec: CycleSpec, loc: Loc) -> list[Observation]:
        found: list[Observation] = []
        for i in range(len(spec.change.pools)):
            place = (*loc, "change", "pools", i)
            merged = self._merged("pool", place)
            pool_spec = self._validated(PoolSpec, merged, place)
            if merged is not None and pool_spec is not None:
                pool = self.world.add_pool(pool_spec, place, merged, changed=True)
                found.extend([PoolSeen(pool)] if pool else [])
        for i in range(len(spec.change.queues)):
            place = (*loc, "change", "queues", i)
            merged = self._merged("queue", place)
            queue_spec = self._validated(QueueSpec, merged, place)
            if merged is not None and queue_spec is not None:
                created_ms = self.world.queues[queue_spec.name].created_ms
                queue = self.world.add_queue(
                    queue_spec, place, merged, now_ms=self.now_ms, created_ms=created_ms, changed=True
                )
                found.extend([QueueSeen(queue)] if queue else [])
        if spec.change.queues:
            self.world.check_queue_tree()
        for i in range(len(spec.change.workloads)):
            found += self._changed_workload((*loc, "change", "workloads", i))
        return found

    def _changed_workload(self, loc: Loc) -> list[Observation]:
        merged = self._merged("workload", loc)
        spec = self._validated(ScenarioWorkloadSpec, merged, loc)
        if merged is None or spec is None or spec.id not in self.world.workloads:
            return []
        workload = spec.to_workload(submitted_ms=self.world.workloads[spec.id].submitted_ms)
        if not self.world.check_workload(spec, workload, loc):
            return []
        self.world.put_workload(workload, loc, merged)
        self.world.check_references(spec, workload, loc)
        return [WorkloadSeen(workload)]

    def _submitted(self, spec: CycleSpec, loc: Loc) -> list[Observation]:
        found: list[Observation] = []
        for i, submitted in enumerate(spec.submit):
            place = (*loc, "submit", i)
            if submitted.running is not None:
                self.report.add((*place, "running"), "work that is submitted in a story starts out pending")
                continue
            workloads = self.world.unfold(submitted, place, self._raw(place), self.now_ms)
            found.extend(WorkloadSeen(workload) for workload in workloads)
            if submitted.predicted is not None:
                found.extend(Predicted(workload.id, submitted.predicted) for workload in workloads)
        return found

    # -- raw records ------------------------------------------------------------------------------------------

    def _raw(self, loc: Loc) -> MarkedMap:
        raw = look_up(self.report.root, loc)
        return raw if isinstance(raw, MarkedMap) else MarkedMap(self.report.mark(loc))

    def _merged(self, kind: str, loc: Loc) -> MarkedMap | None:
        """The record that a change names, with the change laid over it."""
        change = self._raw(loc)
        name = str(change.get("name"))
        if kind == "workload":
            ids = self.world.find_workloads(name, (*loc, "name"))
            if len(ids) != 1:
                return None
            merged = lay_over(self.world.written[kind, ids[0]].raw, change)
            namespace, _, short = ids[0].partition("/")
            at = merged.value_marks["name"]
            merged.put("name", short, merged.key_marks["name"], at)
            merged.put("namespace", namespace, merged.key_marks["name"], at)
            for key in ("count", "running", "submitted", "predicted"):
                merged.pop(key, None)
            return merged
        written = self.world.written.get((kind, name))
        if written is None or name not in (self.world.queues if kind == "queue" else self.world.pools):
            known = self.world.queues if kind == "queue" else self.world.pools
            self.report.unknown((*loc, "name"), kind, name, known)
            return None
        return lay_over(written.raw, change)

    def _validated(self, kind: type[Kind], merged: MarkedMap | None, loc: Loc) -> Kind | None:
        if merged is None:
            return None
        try:
            return kind.model_validate(merged)
        except ValidationError as error:
            for finding in explain(error, kind, loc):
                mark = find_mark(merged, finding.loc[len(loc) :], key=finding.at_key)
                self.report.findings.append(finding._replace(mark=mark))
            return None
