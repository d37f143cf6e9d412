"""New nodes, like those that are there.

Why: nobody wants to write labels, memory and NVLink groups to ask about four more nodes.
Owns: which node is the pattern, and the names of the new ones.
Must not: invent anything the pattern does not say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import structs

from optimus.model.nodes import Device, ForeignUsage, Node


def added_nodes(nodes: Sequence[Node], count: int, gpus: int, model: str) -> tuple[tuple[Node, ...], str]:
    """So many with so many GPUs each (0: as many as the usual node has), and what was done in words."""
    pattern = _pattern(nodes, gpus, model)
    gpus = gpus or len(pattern.devices)
    kind = model or (pattern.devices[0].model if pattern.devices else "gpu")
    taken = {node.name for node in nodes}
    names = [name for i in range(count + len(taken)) if (name := f"added-{i}") not in taken][:count]
    made = tuple(_like(pattern, name, gpus, kind) for name in names)
    said = f"{count} more node{'s' * (count != 1)} with {gpus} {kind} each, like {pattern.name}"
    return made, said


def _pattern(nodes: Sequence[Node], gpus: int, model: str) -> Node:
    """Of the nodes of this model, of this size, the most usual one; as far as there are such nodes."""
    wanted = model or _usual_model(nodes)
    usable = [node for node in nodes if node.ready and not node.cordoned] or list(nodes)
    shapes = Counter(map(_shape, usable))
    return max(
        usable,
        key=lambda node: (
            _models(node) == {wanted},
            not gpus or len(node.devices) == gpus,
            bool(node.devices),
            shapes[_shape(node)],
        ),
    )


def _shape(node: Node) -> tuple[object, ...]:
    return len(node.devices), node.cpu_milli, node.memory_mib, tuple(sorted(node.labels))


def _models(node: Node) -> set[str]:
    return {device.model for device in node.devices}


def _usual_model(nodes: Sequence[Node]) -> str:
    models = Counter(device.model for node in nodes for device in node.devices)
    return models.most_common(1)[0][0] if models else ""


def _like(pattern: Node, name: str, gpus: int, model: str) -> Node:
    have = len(pattern.devices)
    return structs.replace(
        pattern,
        name=name,
        foreign=ForeignUsage(),
        devices=tuple(_device(pattern, index, model) for index in range(gpus)),
        cpu_milli=pattern.cpu_milli * gpus // have if have else pattern.cpu_milli,
        memory_mib=pattern.memory_mib * gpus // have if have else pattern.memory_mib,
    )


def _device(pattern: Node, index: int, model: str) -> Device:
    if not pattern.devices:
        return Device(index=index, model=model)
    like = pattern.devices[index % len(pattern.devices)]
    return structs.replace(like, index=index, model=model, uuid="", healthy=True)
