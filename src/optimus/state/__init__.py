"""What is true now, including what was decided and is not confirmed yet.

Why: one owner of the facts, so that nothing is counted twice or forgotten.
Owns: the tables of nodes, queues, workloads and slots; two ledgers of room: *now* (what is free this moment)
and *coming* (what will be free when everything told to leave has left, minus what is promised).
Must not: decide, do I/O, read a clock (every call is given the time), or hand out anything writable.

A placement that starts now must fit both ledgers; a promise must fit the coming one. That single rule is why
nobody slips into room that was freed for somebody else.
"""

from optimus.state.state import State

__all__ = ["State"]
