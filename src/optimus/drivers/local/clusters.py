"""The cluster of a store: what it is now, what it was before, and what still runs on what is no longer part of it.

Why: work outlives its scheduler, and the next one may be started with another cluster. Nobody must lose work by that,
find it gone without a word, or get a device that somebody still has.
Owns: which cluster a store comes up with, the words for what has changed, and nodes that stay until they are empty.
Must not: stop anything. Whoever wants the work to end cancels it.

    the same cluster            not a word
    nothing is named            the one the store remembers; this machine is looked at anew if it was this machine. One
                                that was there for a visit (the demo) is not what it comes back with
    another one                 what is gone is said; where work runs on it, it stays, closed to all others, until that
                                work has ended

A GPU that has a UUID keeps its number for as long as the store lives, also when one before it falls out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, structs

from optimus.drivers.local.machine import VIRTUAL_MODEL, this_machine, virtual_nodes
from optimus.lives import Life
from optimus.model.nodes import WHOLE_DEVICE_MILLI, Device, ForeignUsage, Node
from optimus.model.pools import NodePool
from optimus.model.queues import Queue
from optimus.model.reasons import counted, named
from optimus.model.settings import Settings

DEFAULT_QUEUE = Queue(name="default")
VIRTUAL_GPUS = 8
"""Of a virtual node, where nobody says how many."""
Gone = dict[str, frozenset[int]]
"""By node: its devices that are no longer part of the cluster; of a node that is gone, all it has."""


class Cluster(Struct, frozen=True, kw_only=True):
    """What this machine shall be."""

    nodes: tuple[Node, ...]
    pools: tuple[NodePool, ...] = ()
    queues: tuple[Queue, ...] = (DEFAULT_QUEUE,)
    settings: Settings = Settings()
    told: str = ""
    """For people: what it is."""
    looked: bool = False
    """Nobody has named it: it was found by looking at this machine, which is looked at again at the next start."""
    passing: bool = False
    """For a visit: a start that names none comes up with what was before it."""
    virtual: bool = True
    """Its nodes are names; the machine that they are on has what it has."""
    opening: str = ""
    """Documents that are submitted where nothing has been yet."""
    where: str = ""
    """The folder of those jobs."""


class Known(Struct, frozen=True, kw_only=True):
    """What the store remembers of it."""

    nodes: tuple[Node, ...]
    settings: Settings = Settings()
    told: str = ""
    looked: bool = False
    left: tuple[Node, ...] = ()
    """Nodes with something that was gone already, as they are kept."""
    passing: bool = False
    usual: Known | None = None
    """Of one that is passing: what was before it."""

    @property
    def real(self) -> bool:
        """It was this machine as it is, with GPUs or without."""
        return self.looked and all(one.model != VIRTUAL_MODEL for node in self.nodes for one in node.devices)

    def former(self) -> dict[str, Node]:
        return {node.name: node for node in (*self.nodes, *self.left)}


def looked_at() -> Cluster:
    """This machine if it has GPUs, else virtual ones."""
    node, trouble = this_machine()
    if node.devices:
        return _real(node, trouble)
    none = f"no GPU found here ({trouble})" if trouble else "no GPU found here"
    told = f"{none}: 2 virtual nodes with 4 GPUs each (--nodes, --gpus; --real: this machine without GPUs)"
    return Cluster(nodes=virtual_nodes(2, 4), told=told, looked=True)


def real_machine() -> Cluster:
    return _real(*this_machine())


def _real(node: Node, trouble: str) -> Cluster:
    told = f"{node.name} with {counted(len(node.devices), 'GPU')}" + (f" ({trouble})" if trouble else "")
    return Cluster(nodes=(node,), told=told, looked=True, virtual=False)


def virtual(nodes: int, gpus: int) -> Cluster:
    told = f"{counted(nodes, 'virtual node')} with {counted(gpus, 'GPU')}" + (" each" if nodes > 1 else "")
    return Cluster(nodes=virtual_nodes(nodes, gpus), told=told)


def again(known: Known | None) -> Cluster:
    """Where nobody names one."""
    if known is not None and known.passing:
        return again(known.usual)
    if known is None or known.looked:
        return real_machine() if known is not None and known.real else looked_at()
    return Cluster(nodes=known.nodes, queues=(), settings=known.settings, told=f"{known.told}, as before")


def remembered(cluster: Cluster, known: Known | None, left: Iterable[Node]) -> Known:
    before = known.usual if known is not None and known.passing else known
    told = before.told if before is not None and cluster.told == f"{before.told}, as before" else cluster.told
    return Known(
        nodes=cluster.nodes,
        settings=cluster.settings,
        told=told,
        looked=cluster.looked,
        left=tuple(left),
        passing=cluster.passing,
        usual=structs.replace(before, left=()) if before is not None and cluster.passing else None,
    )


# -- what is gone, and what is still there ---------------------------------------------------------------------------


def with_old_numbers(nodes: Iterable[Node], former: Mapping[str, Node]) -> tuple[Node, ...]:
    """GPUs that were known by their UUID have the number they had; new ones take numbers that nobody has had."""
    return tuple(_numbered(node, former[node.name]) if node.name in former else node for node in nodes)


def _numbered(node: Node, before: Node) -> Node:
    known = {device.uuid: device.index for device in before.devices if device.uuid}
    if not known or not all(device.uuid for device in node.devices):
        return node
    taken = set(known.values())
    spare = (number for number in range(len(taken) + len(node.devices)) if number not in taken)
    numbered = [
        structs.replace(device, index=known[device.uuid] if device.uuid in known else next(spare))
        for device in node.devices
    ]
    return structs.replace(node, devices=tuple(sorted(numbered, key=lambda device: device.index)))


def with_what_is_left(
    nodes: Sequence[Node], former: Mapping[str, Node], lives: Iterable[Life]
) -> tuple[dict[str, Node], Gone]:
    """The cluster, and beside it what is gone and still in use. No room on it counts, so nobody else is put there."""
    busy: dict[str, set[int]] = {}
    for life in lives:
        for place in life.places if not life.over else ():
            busy.setdefault(place.node, set()).update(place.devices)
    found, gone = {node.name: node for node in nodes}, Gone()
    for name in sorted(found.keys() | busy.keys()):
        node = found.get(name) or _closed(former.get(name) or Node(name=name))
        there = {device.index for device in node.devices}
        last = max(there | busy.get(name, set()), default=-1)
        missing = sorted(set(range(last + 1)) - there)  # also those that nobody has: devices are shown by their place
        if name in found and not missing:
            continue
        before = {device.index: device for device in former[name].devices} if name in former else {}
        kept = [before.get(index) or Device(index=index, model=VIRTUAL_MODEL) for index in missing]
        whole = sorted((*node.devices, *kept), key=lambda device: device.index)
        taken = {**node.foreign.gpu_milli, **dict.fromkeys(missing, WHOLE_DEVICE_MILLI)}
        foreign: ForeignUsage = structs.replace(node.foreign, gpu_milli=taken)
        found[name] = structs.replace(node, devices=tuple(whole), foreign=foreign)
        gone[name] = frozenset(missing)
    return found, gone


def _closed(node: Node) -> Node:
    """Without devices, and nothing of the rest is to be had."""
    foreign = ForeignUsage(cpu_milli=node.cpu_milli, memory_mib=node.memory_mib, accelerators=dict(node.accelerators))
    return structs.replace(node, devices=(), cordoned=True, foreign=foreign)


def left_behind(life: Life, nodes: Mapping[str, Node], gone: Gone) -> list[str]:
    """Where it is on something that is gone: `node-2`, `GPU 5 of node-0`."""
    found: dict[str, None] = {}
    for place in life.places if not life.over else ():
        if place.node in gone and nodes[place.node].cordoned:
            found[place.node] = None
        elif lost := sorted(set(place.devices) & gone.get(place.node, frozenset())):
            found[f"GPU {', '.join(map(str, lost))} of {place.node}"] = None
    return list(found)


# -- words ------------------------------------------------------------------------------------------------------------


def differences(before: Iterable[Node], now: Iterable[Node]) -> list[str]:
    """What is gone, what is new, what is another: for people, empty if nothing is."""
    old, new = {node.name: node for node in before}, {node.name: node for node in now}
    lost, come = [name for name in old if name not in new], [name for name in new if name not in old]
    told = []
    if lost:
        told.append(f"{named(lost)} {'is' if len(lost) == 1 else 'are'} gone")
    if come:
        told.append(f"{named(come)} {'is' if len(come) == 1 else 'are'} new")
    alike: dict[str, list[str]] = {}
    for name in old.keys() & new.keys():
        for text in _otherwise(old[name], new[name]):
            alike.setdefault(text, []).append(name)
    for text, names in sorted(alike.items(), key=lambda pair: sorted(pair[1])):
        told.append(f"{named(sorted(names))} {'has' if len(names) == 1 else 'have'} {text}")
    return told


def _otherwise(old: Node, new: Node) -> list[str]:
    if old == new:
        return []
    pairs = (
        (counted(len(new.devices), "GPU"), len(old.devices), len(new.devices)),
        (_models(new), _models(old), _models(new)),
        (counted(f"{new.cpu_milli / 1000:g}", "core"), f"{old.cpu_milli / 1000:g}", f"{new.cpu_milli / 1000:g}"),
        (f"{new.memory_mib / 1024:.4g} GiB", f"{old.memory_mib / 1024:.4g}", f"{new.memory_mib / 1024:.4g}"),
    )
    told = [f"{text} instead of {was}" for text, was, is_ in pairs if was != is_]
    if old.labels != new.labels:
        told.append("other labels")
    lost = [f"GPU {device.index}" for device in old.devices if device.uuid and device not in new.devices]
    if not told and lost:
        told.append(f"another device for {named(lost)}")
    return told


def _models(node: Node) -> str:
    return ", ".join(sorted({device.model for device in node.devices})) or "no GPU"
