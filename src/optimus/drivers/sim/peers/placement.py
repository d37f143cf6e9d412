"""Placement rules for a stream of pods with GPU fractions: each pod is put somewhere at once, or nowhere.

    random      any node that has room, any device of it that has room
    best-fit    the node with least left afterwards (half CPU, half GPU), the fullest device of it
    fgd         fragmentation gradient descent: the node and device where expected fragmentation grows least

    F_n(m) = all free GPU of n if pods of class m cannot run there, else its free parts that are smaller than they need
    F_n = sum over classes m of frequency f_m x F_n(m)

Source: Weng et al., ATC'23, and its artifact: scores are whole numbers from 0 to 100 (a sigmoid of the change in F for
fgd), the frequencies are those of the whole list, pods without GPU count as classes that cannot use any, memory is
looked at only for room, and equal nodes are taken in the order of their names.
Differences: none known; the artifact's figures are met within half a point on all ten lists tried. Equal nodes can be
taken at random instead; on three lists that changed fgd by -0.4 to +0.5 points.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

WHOLE = 1000
NO_ROOM = -1
MOST_CPU_MILLI, MOST_GPU_MILLI = 128_000, 8_000
"""What best-fit measures remainders by, unless a node has more."""
CLOSED_MILLI = 1 << 40
"""More CPU than any node has: one that lacks it has room for nobody."""


class Pod(NamedTuple):
    """What pods that are alike ask for."""

    cpu_milli: int
    memory_mib: int
    gpu_count: int
    gpu_milli: int
    """Of each device; below 1000 it is one shared device."""
    models: tuple[str, ...] = ()


class Spot(NamedTuple):
    """Where a pod is."""

    node: int
    devices: tuple[int, ...] = ()


class Cluster:
    """Free room on nodes, in the order of their names."""

    def __init__(self, gpus: Ints, cpu: Ints, memory: Ints, models: Iterable[str]) -> None:
        """`gpus`: free thousandths by node and device, 0 where there is none."""
        self.gpus, self.cpu, self.memory = gpus.copy(), cpu.copy(), memory.copy()
        self.models = tuple(models)
        self.names = sorted(set(self.models))
        self.model = np.array([self.names.index(m) for m in self.models])
        self.most_cpu = max(MOST_CPU_MILLI, int(cpu.max(initial=0)))
        self.most_gpu = max(MOST_GPU_MILLI, int(gpus.sum(axis=1).max(initial=0)))
        self.changed: list[int] = []
        """Nodes, one entry for each pod that was put there."""

    def room(self, pod: Pod, nodes: Ints) -> NDArray[np.bool_]:
        fits = (self.cpu[nodes] >= pod.cpu_milli) & (self.memory[nodes] >= pod.memory_mib)
        if pod.gpu_count:
            fits &= (self.gpus[nodes] >= pod.gpu_milli).sum(axis=1) >= pod.gpu_count
            if pod.models:
                fits &= np.isin(self.model[nodes], [i for i, m in enumerate(self.names) if m in pod.models])
        return fits

    def put(self, pod: Pod, node: int, device: int) -> Spot:
        """`device` matters for a part of one; whole devices are the first that are free."""
        gpus = self.gpus[node]
        chosen: list[int] = []
        if pod.gpu_count:
            chosen = [device] if pod.gpu_milli < WHOLE else np.flatnonzero(gpus == WHOLE)[: pod.gpu_count].tolist()
            gpus[chosen] -= pod.gpu_milli
        self.cpu[node] -= pod.cpu_milli
        self.memory[node] -= pod.memory_mib
        if min(gpus.min(), self.cpu[node], self.memory[node]) < 0:
            raise ValueError(f"{pod} does not fit on node {node}")
        self.changed.append(node)
        return Spot(node, tuple(chosen))

    def take_back(self, pod: Pod, spot: Spot) -> None:
        """The pod is gone."""
        self.gpus[spot.node, list(spot.devices)] += pod.gpu_milli
        self.cpu[spot.node] += pod.cpu_milli
        self.memory[spot.node] += pod.memory_mib
        self.changed.append(spot.node)

    def close(self, node: int, sign: int = 1) -> None:
        """Nothing fits there any more, until it is opened again (-1)."""
        self.cpu[node] -= sign * CLOSED_MILLI
        self.changed.append(node)


class Rule(Protocol):
    name: str

    def score(self, cluster: Cluster, pod: Pod, nodes: Ints) -> tuple[Ints, Ints]:
        """0 to 100 for nodes that have room, and the device for a part of one."""


class Placer:
    """Puts one pod after the other; scores are worked out anew only for nodes that have changed."""

    def __init__(self, cluster: Cluster, rule: Rule, *, random_ties: np.random.Generator | None = None) -> None:
        self.cluster, self.rule = cluster, rule
        self._random = random_ties
        self._all = np.arange(len(cluster.cpu))
        self._rows: dict[Pod, tuple[Ints, Ints, int]] = {}

    def place(self, pod: Pod) -> Spot | None:
        """None: there is no room."""
        scores, devices = self._row(pod)
        best = scores.max()
        if best == NO_ROOM:
            return None
        node = int(np.argmax(scores))
        if self._random is not None:
            equal = np.flatnonzero(scores == best)
            node = int(equal[self._random.integers(len(equal))])
        return self.cluster.put(pod, node, int(devices[node]))

    def _row(self, pod: Pod) -> tuple[Ints, Ints]:
        known = self._rows.get(pod)
        changed = self.cluster.changed
        if known is None:
            scores, devices = np.full(len(self._all), NO_ROOM), np.zeros(len(self._all), dtype=np.int64)
            nodes = self._all
        else:
            scores, devices, seen = known
            nodes = np.array(sorted(set(changed[seen:])), dtype=np.int64)
        if len(nodes):
            room = self.cluster.room(pod, nodes)
            scores[nodes[~room]] = NO_ROOM
            scores[nodes[room]], devices[nodes[room]] = self.rule.score(self.cluster, pod, nodes[room])
        self._rows[pod] = scores, devices, len(changed)
        return scores, devices


class RandomFit:
    """Use it with random ties: every node is as good as any other."""

    name = "random"

    def __init__(self, random: np.random.Generator) -> None:
        self._random = random

    def score(self, cluster: Cluster, pod: Pod, nodes: Ints) -> tuple[Ints, Ints]:
        fits = cluster.gpus[nodes] >= max(pod.gpu_milli, 1)
        lots = self._random.random(fits.shape) * fits
        return np.zeros(len(nodes), dtype=np.int64), np.argmax(lots, axis=1)


class BestFit:
    name = "best-fit"

    def score(self, cluster: Cluster, pod: Pod, nodes: Ints) -> tuple[Ints, Ints]:
        gpus = cluster.gpus[nodes]
        cpu_left = (cluster.cpu[nodes] - pod.cpu_milli) / cluster.most_cpu
        gpu_left = (gpus.sum(axis=1) - pod.gpu_count * pod.gpu_milli) / cluster.most_gpu
        score = ((1.0 - 0.5 * cpu_left - 0.5 * gpu_left) * 100).astype(np.int64)
        tight = np.where(gpus >= max(pod.gpu_milli, 1), gpus, 2 * WHOLE)
        return score, np.argmin(tight, axis=1)


class Fgd:
    name = "fgd"

    def __init__(self, cluster: Cluster, mix: Mapping[Pod, int]) -> None:
        """`mix`: how many pods of each kind are expected, in proportion."""
        total = sum(mix.values())
        kinds = sorted({(p.gpu_count, p.gpu_milli, p.models) for p in mix if p.gpu_count})
        self._cpu = np.array(sorted({p.cpu_milli for p in mix}))
        weight = np.zeros((len(kinds), len(self._cpu) + 1))
        for pod, count in mix.items():
            if pod.gpu_count:
                at = int(np.searchsorted(self._cpu, pod.cpu_milli)) + 1
                weight[kinds.index((pod.gpu_count, pod.gpu_milli, pod.models)), at] += count / total
        self._weight = weight.cumsum(axis=1)
        """By kind and by how many of the CPU sizes a node can still serve: the part of all pods that is served."""
        self._milli = np.array(sorted({milli for _, milli, _ in kinds}))
        self._size = np.searchsorted(self._milli, [milli for _, milli, _ in kinds])
        self._count = np.array([count for count, _, _ in kinds])
        self._allowed = np.array([[not m or name in m for _, _, m in kinds] for name in cluster.names])

    def fragmentation(self, gpus: Ints, cpu: Ints, model: Ints) -> Floats:
        """Expected fragmented GPU of nodes in these states."""
        free = gpus.sum(axis=1)
        enough = gpus[:, :, None] >= self._milli
        usable = (gpus[:, :, None] * enough).sum(axis=1)[:, self._size]
        fits = (enough.sum(axis=1)[:, self._size] >= self._count) & self._allowed[model]
        served = self._weight[:, np.searchsorted(self._cpu, cpu, side="right")].T
        result: Floats = free - (fits * served * usable).sum(axis=1)
        return result

    def score(self, cluster: Cluster, pod: Pod, nodes: Ints) -> tuple[Ints, Ints]:
        gpus, cpu, model = cluster.gpus[nodes], cluster.cpu[nodes], cluster.model[nodes]
        before = self.fragmentation(gpus, cpu, model)
        devices = np.zeros(len(nodes), dtype=np.int64)
        if 0 < pod.gpu_milli < WHOLE:
            return self._score_shared(pod, gpus, cpu, model, before)
        after = gpus.copy()
        if pod.gpu_count:
            whole = gpus == WHOLE
            after[whole & (whole.cumsum(axis=1) <= pod.gpu_count)] = 0
        return _gain(before - self.fragmentation(after, cpu - pod.cpu_milli, model)), devices

    def _score_shared(self, pod: Pod, gpus: Ints, cpu: Ints, model: Ints, before: Floats) -> tuple[Ints, Ints]:
        """Each device that has room, the first of those that are equally full."""
        fits = gpus >= pod.gpu_milli
        for later in range(1, gpus.shape[1]):
            fits[:, later] &= ~(gpus[:, :later] == gpus[:, later : later + 1]).any(axis=1)
        at, device = np.nonzero(fits)
        after = gpus[at]
        after[np.arange(len(at)), device] -= pod.gpu_milli
        gains = _gain(before[at] - self.fragmentation(after, cpu[at] - pod.cpu_milli, model[at]))
        score, devices = np.full(len(gpus), NO_ROOM), np.zeros(len(gpus), dtype=np.int64)
        np.maximum.at(score, at, gains)
        best = (gains == score[at])[::-1]
        devices[at[::-1][best]] = device[::-1][best]  # the lowest is written last
        return score, devices


def _gain(less: Floats) -> Ints:
    score: Ints = (100.0 / (1.0 + np.exp(-less / 1000.0))).astype(np.int64)
    return score
