"""A book that shows what a state knows: to tell a recorded cycle in the words of a story.

Only for telling. Whoever checks the brain keeps a book of its own and does not ask the brain.
"""

from __future__ import annotations

from optimus.drivers.sim.book import Book, Entry, Replica
from optimus.model.slots import Phase
from optimus.state import State


def book_of(state: State) -> Book:
    book = Book()
    book.nodes = {node.name: node for node in state.nodes.nodes if node is not None}
    book.pools = dict(state.pools)
    book.queues = dict(state.queues)
    table = state.workloads
    for name, row in table.row_of.items():
        entry = book.entries[name] = Entry(table.spec(row))
        for slots, replicas in ((table.slots[row], entry.live), (table.leaving[row], entry.leaving)):
            for (role, ordinal), slot in sorted(slots.items()):
                replica = _replica(state, table.signature(row).chains[role].role.name, ordinal, slot)
                replicas[(replica.role, ordinal)] = replica
    return book


def _replica(state: State, role: str, ordinal: int, slot: int) -> Replica:
    columns = state.slots.columns
    node = state.nodes.nodes[int(columns.node[slot])]
    return Replica(
        role=role,
        ordinal=ordinal,
        node=node.name if node is not None else "",
        devices=state.slots.devices[slot],
        gpu_milli=int(columns.milli[slot]),
        phase=Phase(int(columns.phase[slot])),
        told_ms=0,
        promised=bool(columns.promised[slot]),
        exact=node is not None and node.assignable,
    )
