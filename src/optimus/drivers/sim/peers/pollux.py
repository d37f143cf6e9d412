"""Pollux: sizes that make the power mean of the speed-ups largest.

Source: Qiao et al., OSDI'21, and its artifact: speed-up is goodput over the goodput of an equal share, a change of
place is discounted by max(age - 30 s x restarts, 0) / (age + 30 s), the power is -1, at most one distributed job on a
node, a job may at most double the largest size it has measured.
Differences: the artifact searches with a genetic algorithm (100 generations of 100); here the sizes come from an exact
dynamic programme over 1, 2, 4, 8, 12 … GPUs and are placed in whole nodes. That is its objective with another solver.
Elastic jobs that are not measured training have the speeds that they tell instead of a goodput that they fit. Rigid
jobs, which Pollux does not have, are one size: as asked for or nothing; replicas may have several GPUs, on one node.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from optimus.drivers.sim.clockwork import Clockwork, Run, SimulationError
from optimus.drivers.sim.peers.knapsack import Floats, choose
from optimus.drivers.sim.peers.rounds import Nodes, RoundScheduler
from optimus.drivers.sim.peers.whole_nodes import gpu_sizes, place_gpus
from optimus.drivers.sim.works.training import TrainingProgress

RESTART_S = 30
_LEAST = 1e-3


def _allocate(jobs: Mapping[int, Run], held: Mapping[int, Nodes], clock: Clockwork) -> Mapping[int, Nodes]:
    nodes = [n for n in range(len(clock.capacity)) if clock.up[n]]
    per_node = clock.capacity[nodes[0]] // 1000
    if any(clock.capacity[n] != clock.capacity[nodes[0]] for n in nodes):
        raise SimulationError("pollux takes clusters of equal nodes; on others sia is the peer that chooses sizes")
    total = per_node * len(nodes)
    fair = -(-total // len(jobs))
    options = []
    allowed: dict[int, list[int]] = {}
    for index, run in jobs.items():
        sizes = allowed[index] = gpu_sizes(run, per_node, total, most_replicas(run))
        speed = fair_speedups(run, sizes, per_node, fair) * len(nodes) / total
        factor = restart_factor(run, clock.now_ms)
        now = len(held.get(index, ())) * run.job.gpus
        values = [(k, -1.0 / (s * (1.0 if k == now else factor) + _LEAST)) for k, s in zip(sizes, speed, strict=True)]
        options.append([(0, -1.0 / _LEAST), *values])
    chosen = dict(zip(jobs, choose(options, total), strict=True))
    others = {index: sizes for index, sizes in allowed.items() if not chosen[index]}
    return place_gpus(chosen, jobs, held, nodes, per_node, clock, others)


def most_replicas(run: Run) -> int:
    progress = run.progress
    if not isinstance(progress, TrainingProgress):
        return run.job.most
    return min(max(2 * progress.most_measured, 1), run.job.most)


def fair_speedups(run: Run, sizes: list[int], per_node: int, fair: int) -> Floats:
    """Goodput by size, relative to an equal share of the cluster; in proportion until the job has run."""
    progress = run.progress
    model = progress.model() if isinstance(progress, TrainingProgress) else None
    k = np.array([*sizes, fair])
    nodes = np.array([*(-(-size // per_node) for size in sizes), 1])  # the artifact takes the equal share on one node
    if model is not None:
        goodput = model.best(nodes, k)[0]
    else:
        told, gpus = run.job.speedup_percent, max(run.job.gpus, 1)
        goodput = np.array([told[min(-(-size // gpus), len(told)) - 1] / 100 if told else float(size) for size in k])
    speedups: Floats = goodput[:-1] / goodput[-1]
    return speedups


def restart_factor(run: Run, now_ms: int) -> float:
    age = (now_ms - run.job.submit_ms) / 1000
    restarts = run.record.restarts + run.record.resizes
    return max(age - RESTART_S * restarts, 0.0) / (age + RESTART_S)


def pollux() -> RoundScheduler:
    return RoundScheduler("pollux", _allocate)
