"""Sia-style: one configuration (GPU model and number) for each job, by an integer programme in every round.

    minimise  sum over jobs i and configurations j of A[i, j] (R[i, j] G[i, j])^p  +  LAMBDA (1 - sum over j of A[i, j])

G is the goodput relative to the job's smallest and slowest configuration, p = -0.5, LAMBDA = 1.1 the price of waiting.
R = max(age - restarts x 30 s, 0) / (age + 30 s) where the job runs and j is not what it has; else 1. Configurations:
1, 2, 4 … GPUs of one node, then whole nodes, of one model; an adaptive job at most doubles what it has measured.
Source: Jayaram Subramanya et al., SOSP'23, 60 s rounds (solver: HiGHS through scipy, an exact knapsack where there is
one model only). Rigid jobs have one size, whatever it is, and choose only the model.
Differences: goodput on a model is the job's goodput times the model's speed for it; there is no fit for each model, so
the paper's bootstrapping of one model's fit from another's is not needed. Replicas may have several GPUs, which lie on
one node. Placement: see `whole_nodes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from optimus.drivers.sim.clockwork import Clockwork, Run
from optimus.drivers.sim.peers.gavel import Models
from optimus.drivers.sim.peers.gavel_shares import Floats
from optimus.drivers.sim.peers.knapsack import choose
from optimus.drivers.sim.peers.pollux import most_replicas, restart_factor
from optimus.drivers.sim.peers.rounds import Nodes, RoundScheduler
from optimus.drivers.sim.peers.scaling import Speeds
from optimus.drivers.sim.peers.whole_nodes import gpu_sizes, place_gpus
from optimus.drivers.sim.works.training import TrainingProgress

POWER, LAMBDA = -0.5, 1.1
_GAP = 1e-3
"""The solver may stop this close to the best: further digits cost seconds and change nothing."""


class Sia:
    def __init__(self, power: float = POWER) -> None:
        self._power = power
        self._speeds = Speeds()
        self._models: Models | None = None

    def __call__(self, jobs: Mapping[int, Run], held: Mapping[int, Nodes], clock: Clockwork) -> Mapping[int, Nodes]:
        models = self._models = self._models or Models(clock)
        self._speeds.look(jobs)
        nodes_of = [
            [n for n in range(len(clock.capacity)) if clock.up[n] and models.of_node[n] == name]
            for name in models.names
        ]
        per_node = [clock.capacity[nodes[0]] // 1000 if nodes else 1 for nodes in nodes_of]
        options: list[Option] = []
        for index, run in jobs.items():
            options += self._options(run, held.get(index, ()), models, nodes_of, per_node, clock)
        chosen = solve(options, [len(n) * g for n, g in zip(nodes_of, per_node, strict=True)])
        placed: dict[int, Nodes] = {}
        for model, nodes in enumerate(nodes_of):
            gpus = {index: size for index, (where, size) in chosen.items() if where == model}
            here = {i: held[i] for i in gpus if i in held and set(held[i]) <= set(nodes)}
            others: dict[int, list[int]] = {}
            for index, where, size, _ in options:
                if where == model and index not in chosen and index not in placed:
                    others.setdefault(index, []).append(size)
            placed |= place_gpus(gpus, jobs, here, nodes, per_node[model], clock, others)
        return placed

    def _options(
        self,
        run: Run,
        now: Nodes,
        models: Models,
        nodes_of: list[list[int]],
        per_node: list[int],
        clock: Clockwork,
    ) -> list[Option]:
        speeds = models.speeds(run)
        factor = restart_factor(run, clock.now_ms)
        found = []
        for model, nodes in enumerate(nodes_of):
            sizes = _sizes(run, per_node[model], len(nodes) * per_node[model])
            if not sizes or not speeds[model]:
                continue
            for size, goodput in zip(sizes, self._goodput(run, sizes, per_node[model]), strict=True):
                same = not now or (len(now) * run.job.gpus == size and models.of_node[now[0]] == models.names[model])
                found.append((model, size, float(goodput) * speeds[model], 1.0 if same else max(factor, 1e-2)))
        if not found:
            return []
        least = min(goodput for _, _, goodput, _ in found)
        return [(run.index, m, k, (kept * goodput / least) ** self._power) for m, k, goodput, kept in found]

    def _goodput(self, run: Run, sizes: list[int], per_node: int) -> Floats:
        progress = run.progress
        model = progress.model() if isinstance(progress, TrainingProgress) else None
        if model is not None:
            k = np.array(sizes)
            return np.maximum(model.best(-(-k // per_node), k)[0], 1e-9)
        return np.array([self._speeds.of(run, size // max(run.job.gpus, 1)) for size in sizes])


def _sizes(run: Run, per_node: int, total: int) -> list[int]:
    adaptive = isinstance(run.progress, TrainingProgress) and run.progress.work.batch is None
    return gpu_sizes(run, per_node, total, most_replicas(run) if adaptive else run.job.most)


Option = tuple[int, int, int, float]
"""Job, model, GPUs, cost."""


def solve(options: list[Option], capacity: list[int]) -> dict[int, tuple[int, int]]:
    """Model and GPUs by job. With one model the programme is a knapsack, which has an exact and faster answer."""
    if len(capacity) > 1:
        return solve_integer(options, capacity)
    by_job: dict[int, list[tuple[int, float]]] = {}
    for index, _, size, cost in options:
        by_job.setdefault(index, []).append((size, LAMBDA - cost))
    chosen = choose(list(by_job.values()), capacity[0])
    return {index: (0, size) for index, size in zip(by_job, chosen, strict=True) if size}


def solve_integer(options: list[Option], capacity: list[int]) -> dict[int, tuple[int, int]]:
    from scipy.optimize import Bounds, LinearConstraint, milp  # noqa: PLC0415  (an extra)
    from scipy.sparse import coo_array  # noqa: PLC0415

    if not options:
        return {}
    rows = {index: row for row, index in enumerate(dict.fromkeys(option[0] for option in options))}
    at = np.arange(len(options))
    row = np.concatenate([[rows[o[0]] for o in options], [len(rows) + o[1] for o in options]])
    value = np.concatenate([np.ones(len(options)), [float(o[2]) for o in options]])
    matrix = coo_array((value, (row, np.concatenate([at, at]))), shape=(len(rows) + len(capacity), len(options)))
    limit = np.concatenate([np.ones(len(rows)), np.array(capacity, dtype=float)])
    cost = np.array([o[3] - LAMBDA for o in options])
    result: Any = milp(
        cost,
        constraints=LinearConstraint(matrix.tocsr(), -np.inf, limit),
        integrality=np.ones(len(options)),
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": _GAP, "time_limit": 10.0},
    )
    if result.x is None:
        return {}
    return {options[i][0]: options[i][1:3] for i in np.flatnonzero(result.x > 0.5)}


def sia() -> RoundScheduler:
    return RoundScheduler("sia", Sia())
