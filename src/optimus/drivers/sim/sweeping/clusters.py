"""Clusters: the nodes to try a trace on, from a cluster spec or from a few words.

--cluster spec.yaml       the language of scenario files: cluster, pools, queues, settings
--nodes 60x8[:model]      so many nodes with so many GPUs each; several for mixed clusters
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from optimus.api.loading import load_files
from optimus.drivers.sim.setup import uniform_nodes
from optimus.drivers.sim.sweeping.complaints import Complaint, SweepError, misused, unusable
from optimus.drivers.sim.sweeping.digests import text_digest
from optimus.drivers.sim.traces.synthetic import MOST_GPUS
from optimus.model.nodes import Node
from optimus.model.pools import NodePool
from optimus.model.queues import Queue
from optimus.model.settings import Settings

_GROUP = re.compile(r"([1-9][0-9]{0,5})x([1-9][0-9]{0,2})(?::([A-Za-z0-9][A-Za-z0-9_.-]*))?", re.ASCII)
MODEL = "gpu"


class Cluster(Struct, frozen=True, kw_only=True):
    name: str
    """As it was typed."""
    nodes: tuple[Node, ...]
    pools: tuple[NodePool, ...] = ()
    queues: tuple[Queue, ...] = ()
    """Empty: those of the trace."""
    settings: Settings = Settings()
    notes: tuple[str, ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    """Name and digest of the file it came from."""

    @property
    def gpus(self) -> int:
        return sum(len(node.devices) for node in self.nodes)

    @property
    def largest_node(self) -> int:
        return max(len(node.devices) for node in self.nodes)

    @property
    def usual_node(self) -> int:
        """GPUs of most nodes that have some."""
        return Counter(len(node.devices) for node in self.nodes if node.devices).most_common(1)[0][0]

    @property
    def uniform(self) -> bool:
        return len({len(node.devices) for node in self.nodes}) == 1


def cluster_of_nodes(groups: Sequence[str]) -> Cluster:
    nodes: list[Node] = []
    models: set[str] = set()
    total = 0
    for group in groups:
        match = _GROUP.fullmatch(group)
        if match is None:
            raise misused("--nodes", f"{group}: write nodes x GPUs, such as 60x8 or 60x8:a100")
        count, gpus, model = int(match[1]), int(match[2]), match[3] or MODEL
        if model in models:
            raise misused("--nodes", f"{group}: model {model} is there twice; name another one, such as {group}:b")
        models.add(model)
        total += count * gpus
        if total > MOST_GPUS:
            raise misused("--nodes", f"{group}: that makes {total} GPUs; write at most {MOST_GPUS}")
        nodes += uniform_nodes(count, gpus, model=model)
    return Cluster(name=" ".join(groups), nodes=tuple(nodes))


def cluster_of_file(path: Path) -> Cluster:
    """Every error of the file at once."""
    if not path.is_file():
        what = "is a folder; name a file" if path.is_dir() else "there is no such file"
        raise misused("--cluster", f"{path}: {what}")
    loaded = load_files(path)
    if loaded.unexpected:
        raise SweepError(Complaint(message=str(error)) for error in loaded.unexpected)
    world = loaded.scenario
    if not any(node.devices for node in world.nodes):
        raise unusable(f"{path}: no node with GPUs in it; write cluster: [{{name: n, count: 16, gpus: 8}}]")
    notes = []
    if world.workloads:
        notes.append(f"{path.name}: its workloads are not used; the jobs are those of the trace")
    if world.policy:
        notes.append(f"{path.name}: its policy is not used; --policy names the schedulers")
    return Cluster(
        name=path.name,
        nodes=world.nodes,
        pools=world.pools,
        queues=world.queues,
        settings=world.settings,
        notes=tuple(notes),
        files=((path.name, text_digest(path)),),
    )
