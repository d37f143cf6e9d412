"""Property: whatever is cut off the end, what is read is a prefix of what was written, and writing goes on after it."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from optimus.engine.journal import Cycle, Flaw, FlawKind, Journal, JournalSettings, JournalWriter
from optimus.model.nodes import Device, Node
from optimus.model.observations import (
    ActivitySeen,
    NodeGone,
    NodeSeen,
    Observation,
    Outcome,
    SlotFailed,
    SlotRunning,
    Tick,
    WorkloadEnded,
    WorkloadSeen,
)
from optimus.model.plans import Action, Budget, Drop, Evict, Grow, Hold, Placement, Plan, Reject, Start, Wait
from optimus.model.reasons import Code, Reason
from optimus.model.workloads import Group, Role, Workload

names = st.text(max_size=6)
whole = st.integers(-(2**66), 2**66)
small = st.integers(0, 9)
devices = st.lists(small, max_size=3).map(tuple)
reasons = st.builds(Reason, st.sampled_from(Code), st.dictionaries(names, whole | names, max_size=3))
placements = st.lists(st.builds(Placement, names, small, names, devices, whole), max_size=3).map(tuple)
slots = st.lists(st.tuples(names, small), max_size=3).map(tuple)
observations: st.SearchStrategy[Observation] = st.one_of(
    st.builds(NodeSeen, st.builds(Node, name=names, memory_mib=whole, devices=st.just((Device(index=0, model="A"),)))),
    st.builds(NodeGone, names),
    st.builds(WorkloadSeen, st.builds(Workload, id=names, queue=names, gang=st.just(Group(roles=(Role(name="w"),))))),
    st.builds(WorkloadEnded, names, st.sampled_from(Outcome)),
    st.builds(SlotRunning, names, names, small, names, devices, st.none() | whole),
    st.builds(SlotFailed, names, names, small, names, whole),
    st.builds(ActivitySeen, names, whole),
    st.just(Tick()),
)
actions: st.SearchStrategy[Action] = st.one_of(
    st.builds(Start, names, names, placements),
    st.builds(Grow, names, placements),
    st.builds(Hold, names, names, placements, whole, st.lists(names, max_size=2).map(tuple)),
    st.builds(Evict, names, reasons, whole, names, st.booleans(), st.booleans()),
    st.builds(Drop, names, slots, reasons),
    st.builds(Reject, names, reasons),
)
plans = st.builds(
    Plan,
    version=small,
    actions=st.lists(actions, max_size=3).map(tuple),
    waiting=st.lists(st.builds(Wait, names, reasons), max_size=3).map(tuple),
    complete=st.booleans(),
)
steps = st.lists(st.tuples(st.lists(observations, max_size=3).map(tuple), plans, whole), min_size=1, max_size=12)
state = st.binary(max_size=300).map(lambda content: b"\xc6" + len(content).to_bytes(4, "big") + content)


def write(
    folder: Path, sequence: list[tuple[tuple[Observation, ...], Plan, int]], dump: bytes, rotate: int
) -> list[Cycle]:
    settings = JournalSettings(rotate_cycles=rotate, keep_bytes=None)
    with JournalWriter(folder, dump=lambda: dump, settings=settings, on_notice=lambda _message: None) as writer:
        writer.start(0)
        return [
            writer.record(now_ms=index, observations=seen, budget=Budget(), policy="default", seed=seed, plan=plan)
            for index, (seen, plan, seed) in enumerate(sequence)
        ]


def read(folder: Path) -> tuple[list[Cycle], list[Flaw]]:
    items = list(Journal(folder).read())
    return [item for item in items if isinstance(item, Cycle)], [item for item in items if isinstance(item, Flaw)]


@given(sequence=steps, dump=state, rotate=st.integers(1, 6), more=steps, data=st.data())
def test_what_is_read_is_always_a_prefix(
    sequence: list[tuple[tuple[Observation, ...], Plan, int]],
    dump: bytes,
    rotate: int,
    more: list[tuple[tuple[Observation, ...], Plan, int]],
    data: st.DataObject,
) -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        written = write(folder, sequence, dump, rotate)
        assert read(folder) == (written, [])

        segments = sorted(folder.glob("*.journal"))
        cut = data.draw(st.integers(0, len(segments) - 1), label="segment in which it ends")
        for path in segments[cut + 1 :]:
            path.unlink()
        content = segments[cut].read_bytes()
        segments[cut].write_bytes(content[: data.draw(st.integers(0, len(content)), label="bytes left")])
        garbage = data.draw(st.binary(max_size=20), label="garbage after it")
        with segments[cut].open("ab") as file:
            file.write(garbage)

        kept, flaws = read(folder)
        assert kept == written[: len(kept)]
        assert len(flaws) <= 1
        assert all(flaw.kind in (FlawKind.TORN, FlawKind.DAMAGED) for flaw in flaws)

        added = write(folder, more, dump, rotate)
        again, flaws = read(folder)
        assert again == kept + added
        assert flaws == []
        assert [cycle.sequence for cycle in again] == list(range(len(again)))
    finally:
        shutil.rmtree(folder)


@given(sequence=steps, dump=state, rotate=st.integers(1, 6), data=st.data())
def test_any_change_of_a_byte_is_noticed(
    sequence: list[tuple[tuple[Observation, ...], Plan, int]], dump: bytes, rotate: int, data: st.DataObject
) -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        written = write(folder, sequence, dump, rotate)
        path = data.draw(st.sampled_from(sorted(folder.glob("*.journal"))), label="segment")
        content = bytearray(path.read_bytes())
        content[data.draw(st.integers(0, len(content) - 1), label="place")] ^= data.draw(
            st.integers(1, 255), label="bits"
        )
        path.write_bytes(content)
        kept, flaws = read(folder)
        assert [flaw.segment for flaw in flaws] == [path.name]
        assert all(cycle == written[cycle.sequence] for cycle in kept)
    finally:
        shutil.rmtree(folder)
