"""What the story expects, compared with what is in the book.

Why: an expectation that fails must say what is the case instead, and where in the file it stands.
Owns: the comparison and its sentences.
Must not: change anything, or know how the state came about.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from optimus.api.marks import Mark
from optimus.api.scenario import (
    Expectations,
    ExpectedState,
    NodeExpected,
    PlanExpected,
    QueueExpected,
    Range,
    WorkloadExpected,
)
from optimus.drivers.sim.book import Book, Entry
from optimus.drivers.sim.outcome import Failure
from optimus.drivers.sim.wording import list_nodes, short
from optimus.model.nodes import WHOLE_DEVICE_MILLI
from optimus.model.plans import Evict, Plan
from optimus.model.pools import HOST_LEVEL, NVLINK_LEVEL
from optimus.model.units import format_gpu, format_resource

TIMES = ("started", "grown", "shrunk", "moved", "evicted")
MOST_EXAMPLES = 3


class Checker:
    def __init__(self, book: Book) -> None:
        self.book = book
        self.checked = 0
        self.failures: list[Failure] = []

    def check(self, expect: Expectations, plan: Plan, cycle: int) -> list[Failure]:
        """Returns the new failures; all of them are kept."""
        before = len(self.failures)
        for workload in expect.workloads:
            self._judge(workload.mark, cycle, f"workload {workload.written}", self._workload(workload))
        for queue in expect.queues:
            self._judge(queue.mark, cycle, f"queue {queue.queue}", self._queue(queue, plan))
        for node in expect.nodes:
            for name in node.nodes:
                self._judge(node.mark, cycle, f"node {name}", self._node(node, name))
        if expect.plan is not None:
            self._judge(expect.plan.mark, cycle, f"plan of cycle {cycle}", _plan(expect.plan, plan))
        return self.failures[before:]

    def _judge(self, mark: Mark, cycle: int, subject: str, complaints: Iterator[str]) -> None:
        self.checked += 1
        for message in complaints:
            place = (mark.file, mark.line, mark.column)
            self.failures.append(
                Failure(path=place[0], line=place[1], column=place[2], cycle=cycle, subject=subject, message=message)
            )

    # -- workloads --------------------------------------------------------------------------------------------

    def _workload(self, expected: WorkloadExpected) -> Iterator[str]:
        several = len(expected.workloads) > 1 or expected.count is not None
        wrong: dict[str, list[str]] = {}
        for name in expected.workloads:
            complaints = list(self._compare(expected, name))
            if complaints:
                wrong[name] = complaints
        if expected.count is not None:
            matching = len(expected.workloads) - len(wrong)
            if not expected.count.holds(matching):
                whom = f"{expected.count} of {len(expected.workloads)}"
                yield f"expected {whom} to match, {matching} do{_examples(wrong)}"
            return
        for name, complaints in wrong.items():
            for complaint in complaints:
                yield f"{short(name)}: {complaint}" if several else complaint

    def _compare(self, expected: WorkloadExpected, name: str) -> Iterator[str]:
        entry = self.book.entries.get(name)
        if entry is None:
            if expected.state is not ExpectedState.INVALID:
                yield f"expected {expected.state or 'something'}, but it has not been submitted"
            return
        if expected.state is not None and entry.state is not expected.state:
            yield f"expected {_wanted_state(expected)}, is {describe_state(entry)}"
        elif expected.reason is not None and (entry.reason is None or entry.reason.code is not expected.reason):
            yield f"expected the reason {expected.reason}, is {describe_state(entry)}"
        if expected.says is not None and (entry.reason is None or expected.says not in entry.reason.text()):
            yield f"expected a reason that says '{expected.says}', is {describe_state(entry)}"
        if expected.cause is not None and (entry.cause is None or entry.cause.code is not expected.cause):
            found = f"was {entry.cause.code}: {entry.cause.text()}" if entry.cause else "nothing was done to it"
            yield f"expected the cause {expected.cause}, {found}"
        if expected.reserved is not None and expected.reserved is not (entry.reservation is not None):
            yield f"expected {'a' if expected.reserved else 'no'} reservation, is {describe_state(entry)}"
        yield from _compare_times(expected, entry)
        yield from self._compare_places(expected, entry)

    def _compare_places(self, expected: WorkloadExpected, entry: Entry) -> Iterator[str]:
        placed = entry.placed()
        found = f"is {describe_state(entry)}" if not placed else f"has {list_nodes(r.node for r in placed)}"
        if expected.replicas is not None and not expected.replicas.holds(len(placed)):
            yield f"expected {_replicas(expected.replicas)}, has {len(placed)}"
        for role, wanted in expected.replicas_by_role.items():
            number = sum(replica.role == role for replica in placed)
            if not wanted.holds(number):
                yield f"expected {_replicas(wanted)} of role {role}, has {number}"
        nodes = {replica.node for replica in placed}
        if expected.nodes is not None and nodes != set(expected.nodes):
            yield f"expected on {', '.join(expected.nodes) or 'no node'}, {found}"
        if expected.within is not None and not nodes <= set(expected.within):
            yield f"expected only on {', '.join(expected.within)}, {found}"
        if expected.devices is not None:
            yield from _compare_devices(expected.devices, entry)
        if expected.pool is not None and (pools := {self.book.pool_of(node) for node in nodes}) != {expected.pool}:
            yield f"expected in pool {expected.pool}, is in {', '.join(sorted(pools)) or 'none'}"
        for level, wanted in expected.domains.items():
            number = self._count_domains(level, entry)
            if not wanted.holds(number):
                yield f"expected in {wanted} {level} domains, is in {number}: {found}"

    def _count_domains(self, level: str, entry: Entry) -> int:
        placed = entry.placed()
        if level == HOST_LEVEL:
            return len({replica.node for replica in placed})
        if level == NVLINK_LEVEL:
            groups = {
                (name, device.nvlink_group)
                for name, node in self.book.nodes.items()
                for device in node.devices
                if any(replica.node == name and device.index in replica.devices for replica in placed)
            }
            return len(groups)
        return len({self.book.domain(level, replica.node) for replica in placed})

    # -- queues, nodes ----------------------------------------------------------------------------------------

    def _queue(self, expected: QueueExpected, plan: Plan) -> Iterator[str]:
        found = {s.resource: s for s in plan.shares if s.queue == expected.queue and s.pool == expected.pool}
        for field in ("share", "allocated", "demand"):
            for resource, amount in getattr(expected, field).items():
                actual = getattr(found[resource], field) if resource in found else 0
                if actual != amount:
                    wanted, has = format_resource(resource, amount), format_resource(resource, actual)
                    yield f"expected {field} {resource} {wanted}, is {has}"
        for field, state in (("running", ExpectedState.RUNNING), ("pending", ExpectedState.PENDING)):
            wanted_range = getattr(expected, field)
            mine = [e for e in self.book.entries.values() if e.spec.queue == expected.queue and e.state is state]
            if wanted_range is not None and not wanted_range.holds(len(mine)):
                names = ", ".join(short(entry.spec.id) for entry in mine)
                yield f"expected {wanted_range} {field}, has {len(mine)}{f': {names}' if names else ''}"

    def _node(self, expected: NodeExpected, name: str) -> Iterator[str]:
        there = sorted({entry.spec.id for entry, _ in self.book.on_node(name)})
        if expected.workloads is not None and there != list(expected.workloads):
            wanted = ", ".join(map(short, expected.workloads)) or "nothing"
            yield f"expected {wanted} there, has {', '.join(map(short, there)) or 'nothing'}"
        if expected.free_gpu_milli is not None:
            free = self._free_gpu_milli(name)
            if not expected.free_gpu_milli.holds(free):
                yield f"expected {_gpus(expected.free_gpu_milli)} free GPUs, has {format_gpu(free)}"

    def _free_gpu_milli(self, name: str) -> int:
        """By device, so that one that broke under its work does not hide the room of another."""
        node = self.book.nodes.get(name)
        if node is None:
            return 0
        room = {
            device.index: WHOLE_DEVICE_MILLI - node.foreign.gpu_milli.get(device.index, 0)
            for device in node.devices
            if device.healthy and not device.mig
        }
        uncertain = 0
        for _, replica in self.book.on_node(name):
            if not replica.exact:
                uncertain += len(replica.devices) * replica.gpu_milli
                continue
            for device in replica.devices:
                room[device] = room.get(device, 0) - replica.gpu_milli
        return max(0, sum(max(0, milli) for milli in room.values()) - uncertain)


def describe_state(entry: Entry) -> str:
    reason = entry.reason
    return f"{entry.state}: {reason.code}: {reason.text()}" if reason is not None else str(entry.state)


def _wanted_state(expected: WorkloadExpected) -> str:
    return f"{expected.state}: {expected.reason}" if expected.reason is not None else str(expected.state)


def _compare_times(expected: WorkloadExpected, entry: Entry) -> Iterator[str]:
    for kind in TIMES:
        times = getattr(expected, kind)
        happened = entry.cycles(kind)
        if times is not None and not times.holds(happened):
            found = f"in cycle {', '.join(map(str, happened))}" if happened else "never"
            yield f"expected {kind} {times}, was {found}"


def _compare_devices(expected: dict[str, tuple[int, ...]], entry: Entry) -> Iterator[str]:
    used: dict[str, set[int]] = {}
    for replica in entry.placed():
        used.setdefault(replica.node, set()).update(replica.devices)
    for node, devices in expected.items():
        found = tuple(sorted(used.get(node, ())))
        if found != devices:
            wanted = ", ".join(map(str, devices)) or "none"
            yield f"expected devices {wanted} of {node}, has {', '.join(map(str, found)) or 'none'}"


def _plan(expected: PlanExpected, plan: Plan) -> Iterator[str]:
    kinds = count_actions(plan)
    shown = ", ".join(f"{number} {kind}" for kind, number in kinds.items()) or "nothing"
    if expected.empty is not None and expected.empty is bool(plan.actions):
        yield f"expected {'an empty plan' if expected.empty else 'a plan that does something'}, it does {shown}"
    if expected.complete is not None and expected.complete is not plan.complete:
        cut = f"it was cut short: {', '.join(plan.unreached)}" if not plan.complete else "it is complete"
        yield f"expected {'a complete' if expected.complete else 'an incomplete'} plan, {cut}"
    for kind, wanted in expected.actions.items():
        if not wanted.holds(kinds.get(kind, 0)):
            yield f"expected {wanted} {kind}, it does {shown}"
    codes = [condition.code for condition in plan.conditions]
    for code in expected.conditions:
        if code not in codes:
            yield f"expected the condition {code}, has {', '.join(codes) or 'none'}"


def count_actions(plan: Plan) -> dict[str, int]:
    """Kind -> number; an eviction with a new place is a `Move`, not an `Evict`."""
    kinds: dict[str, int] = {}
    for action in plan.actions:
        kind = "Move" if isinstance(action, Evict) and action.moved else type(action).__name__
        kinds[kind] = kinds.get(kind, 0) + 1
    return kinds


def _examples(wrong: dict[str, list[str]]) -> str:
    shown: Sequence[str] = [f"{short(name)}: {wrong[name][0]}" for name in list(wrong)[:MOST_EXAMPLES]]
    return f" ({'; '.join(shown)}{'; …' if len(wrong) > MOST_EXAMPLES else ''})" if shown else ""


def _replicas(wanted: Range) -> str:
    return f"{wanted} replica{'' if wanted.most == 1 == wanted.least else 's'}"


def _gpus(wanted: Range) -> str:
    if wanted.most == wanted.least:
        return format_gpu(wanted.least)
    least = format_gpu(wanted.least)
    return f"at least {least}" if wanted.most is None else f"{least} to {format_gpu(wanted.most)}"
