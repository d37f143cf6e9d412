"""The stage keeps its own book; after every cycle of every story it says the same as the engine's state.

Neither reads the other, so an error in one of them shows here.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from optimus.api.loading import load_files
from optimus.drivers.sim.playing import Play
from optimus.model.slots import Phase
from optimus.state import State

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
STORIES = sorted([*HERE.rglob("*.yaml"), *(ROOT / "examples").rglob("*.yaml"), *(ROOT / "src").rglob("stories/*.yaml")])

Slot = tuple[str, str, int, bool]
"""Workload, role, ordinal, leaving."""
Seat = tuple[str, tuple[int, ...], bool]
"""Node, devices, promised."""


def in_state(state: State) -> dict[Slot, Seat]:
    found = {}
    columns = state.slots.columns
    for name, row in state.workloads.row_of.items():
        roles = [chain.role.name for chain in state.workloads.signature(row).chains]
        for leaving, slots in ((False, state.workloads.slots[row]), (True, state.workloads.leaving[row])):
            for (role, ordinal), slot in slots.items():
                assert leaving == (columns.phase[slot] == Phase.RELEASING)
                seat = (
                    state.nodes.name(int(columns.node[slot])),
                    state.slots.devices[slot],
                    bool(columns.promised[slot]),
                )
                found[name, roles[role], ordinal, leaving] = seat
    return found


def in_book(play: Play) -> dict[Slot, Seat]:
    return {
        (name, role, ordinal, leaving): (replica.node, replica.devices, replica.promised)
        for name, entry in play.stage.book.entries.items()
        for leaving, replicas in ((False, entry.live), (True, entry.leaving))
        for (role, ordinal), replica in replicas.items()
    }


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_book_and_state_agree(path: Path) -> None:
    play = Play(load_files(path).scenario, folder=path.parent)
    for moment in play:
        book, state = in_book(play), in_state(play.engine.state)
        assert set(book) == set(state), f"after cycle {moment.cycle.number}"
        entries = play.stage.book.entries
        known = {name for name, entry in entries.items() if entry.over is None or entry.leaving}
        assert known == set(play.engine.state.workloads.row_of), f"after cycle {moment.cycle.number}"
        for slot, (node, devices, promised) in book.items():
            assert (node, len(devices), promised) == (state[slot][0], len(state[slot][1]), state[slot][2])
            if play.stage.book.nodes[node].assignable:
                assert devices == state[slot][1]
