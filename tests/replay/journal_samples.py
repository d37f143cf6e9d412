"""A brain small enough to see through, and the journals it writes.

`Counting` decides from what it has seen, the seed and the time, so a replay that drops, repeats or reorders anything
decides otherwise. `Recording` is what an engine does with a journal, in five lines.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path

import msgspec

from optimus.engine.journal import Cycle, Journal, JournalSettings, JournalWriter, Record
from optimus.model.nodes import Device, Node
from optimus.model.observations import NodeSeen, Observation, SlotGone, Tick, WorkloadSeen
from optimus.model.plans import Budget, Placement, Plan, Start, Wait
from optimus.model.reasons import Code, reason
from optimus.model.workloads import Group, Role, Workload

STEP_MS = 1000
SMALL = JournalSettings(rotate_cycles=5, keep_bytes=None)


class Counting:
    def __init__(self) -> None:
        self.cycles = 0
        self.mixed = 0

    def dump(self) -> bytes:
        return msgspec.msgpack.encode({"cycles": self.cycles, "mixed": self.mixed})

    def restore(self, state: bytes) -> None:
        values = msgspec.msgpack.decode(state)
        self.cycles, self.mixed = values["cycles"], values["mixed"]

    def step(
        self, observations: tuple[Observation, ...], now_ms: int, *, budget: Budget, policy: str, seed: int
    ) -> Plan:
        seen = repr((observations, now_ms, budget, policy, seed)).encode()
        self.mixed = zlib.crc32(seen, self.mixed)
        self.cycles += 1
        place = Placement("worker", 0, f"node-{self.mixed % 7}", (self.mixed % 8,), 1000)
        held_up = reason(Code.NO_ROOM, pool="a100", asked="8 GPUs", best=self.mixed % 8)
        return Plan(
            version=self.cycles,
            actions=(Start(f"ml/job-{self.cycles}", "a100", (place,)),),
            waiting=(Wait("ml/large", held_up),),
        )


class Recording:
    """An engine with a journal. `record` goes on without one when the journal cannot be written."""

    def __init__(
        self,
        folder: Path,
        *,
        settings: JournalSettings = SMALL,
        start_ms: int = 0,
        on_notice: Callable[[str], None] = lambda _message: None,
    ) -> None:
        self.brain = Counting()
        self.now_ms = start_ms
        self.writer = JournalWriter(folder, dump=self.brain.dump, settings=settings, on_notice=on_notice)

    def start(self) -> int:
        return self.writer.start(self.now_ms)

    def cycle(self, observations: tuple[Observation, ...] = (Tick(),)) -> Cycle:
        self.now_ms += STEP_MS
        budget, policy, seed = Budget(), "default", self.brain.cycles
        plan = self.brain.step(observations, self.now_ms, budget=budget, policy=policy, seed=seed)
        return self.writer.record(
            now_ms=self.now_ms, observations=observations, budget=budget, policy=policy, seed=seed, plan=plan
        )


def write_journal(folder: Path, cycles: int, settings: JournalSettings = SMALL) -> list[Cycle]:
    recording = Recording(folder, settings=settings)
    recording.start()
    with recording.writer:
        return [recording.cycle(observations_of(number)) for number in range(cycles)]


def observations_of(number: int) -> tuple[Observation, ...]:
    node = Node(name=f"node-{number}", devices=(Device(index=0, model="A100"),), labels={"rack": f"r{number % 3}"})
    workload = Workload(id=f"ml/job-{number}", queue="vision", gang=Group(roles=(Role(name="worker"),)))
    return (NodeSeen(node), WorkloadSeen(workload), SlotGone("ml/old", "worker", number))[: number % 4]


def read_all(folder: Path) -> list[Record | object]:
    return list(Journal(folder).read())


def cycles_in(folder: Path) -> list[Cycle]:
    return [record for record in Journal(folder).read() if isinstance(record, Cycle)]


def names_in(folder: Path) -> list[int]:
    return sorted(int(path.name.removesuffix(".journal")) for path in folder.glob("*.journal"))
