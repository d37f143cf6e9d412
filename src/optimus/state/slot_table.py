"""Slots as rows: who holds what, where, in which phase (the state machine is drawn in `optimus.model.slots`)."""

from __future__ import annotations

from optimus.model.slots import Phase
from optimus.state.arrays import Columns


class SlotTable:
    def __init__(self, resources: int) -> None:
        self.columns = Columns(
            workload=-1,
            role=-1,
            ordinal=-1,
            node=-1,
            phase=int(Phase.WANTED),
            promised=0,
            done=0,  # it has ended well: it counts as there, and takes nothing
            known=0,  # the body has said which devices it got
            milli=0,
            until=-1,  # a held slot not taken by then is given up; a releasing one has to be gone
            sick_since=-1,  # a device of it has been unhealthy since then
            amount=(0, resources),
        )
        self.devices: list[tuple[int, ...]] = []

    def add(self) -> int:
        row = self.columns.add()
        if row == len(self.devices):
            self.devices.append(())
        return row

    def free(self, row: int) -> None:
        self.devices[row] = ()
        self.columns.free(row)
