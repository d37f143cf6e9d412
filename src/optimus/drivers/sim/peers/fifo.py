"""First come, first served, but who does not fit is passed.

The plainest scheduler that keeps a cluster busy: arrival order, skip what does not fit, no preemption, each job on as
few nodes as possible. Large jobs may wait long, for nothing is kept for them.
"""

from __future__ import annotations

from optimus.drivers.sim.peers.lines import LineScheduler, together


def fifo() -> LineScheduler:
    return LineScheduler("fifo", lambda run: run.index, together)
