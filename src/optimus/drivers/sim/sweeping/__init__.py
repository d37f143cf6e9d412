"""Sweeping: the same jobs under several schedulers, at several loads and seeds, on all cores.

Why: one run proves nothing; a comparison needs many that differ in one thing each, and nobody starts those by hand.
Owns: what `optimus simulate` understands by a trace, a cluster and a policy, the list of runs, and running them.
Must not: print, decide, or let the number of processes change a result.

    sources ─┐
    clusters ┼─► scenes ──► runs ──► spreading ──► running (one process each) ──► studying ──► Study per load
    contenders ────────────┘            └──► keeping: a run that is done is not done again
"""

from optimus.drivers.sim.sweeping.assuming import Assumptions, neighbours_of
from optimus.drivers.sim.sweeping.clusters import Cluster, cluster_of_file, cluster_of_nodes
from optimus.drivers.sim.sweeping.complaints import Complaint, SweepError
from optimus.drivers.sim.sweeping.contenders import Contender, contenders
from optimus.drivers.sim.sweeping.keeping import Shelf
from optimus.drivers.sim.sweeping.running import Failed, Finished, Run
from optimus.drivers.sim.sweeping.scenes import Scene, Wishes, scenes
from optimus.drivers.sim.sweeping.sources import Source, source_of
from optimus.drivers.sim.sweeping.spreading import Watcher, play_all
from optimus.drivers.sim.sweeping.studying import Told, studies
from optimus.drivers.sim.sweeping.sweep import runs_of, sweep

__all__ = [
    "Assumptions",
    "Cluster",
    "Complaint",
    "Contender",
    "Failed",
    "Finished",
    "Run",
    "Scene",
    "Shelf",
    "Source",
    "SweepError",
    "Told",
    "Watcher",
    "Wishes",
    "cluster_of_file",
    "cluster_of_nodes",
    "contenders",
    "neighbours_of",
    "play_all",
    "runs_of",
    "scenes",
    "source_of",
    "studies",
    "sweep",
]
