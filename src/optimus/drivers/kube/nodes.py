"""Nodes as the brain sees them: what they have, what others take of it, and whether they take work.

Why: a node of Kubernetes says what it has in a map of quantities and hides the model of its GPUs in labels.
Owns: allocatable resources as capacity and counters; GPU models from labels of discovery and from slices; use by pods
that are not ours.
Must not: know our own pods, but for counters that the brain cannot know of (`taken_beside`).

GPUs are only counted: the device plugin on the node picks them. A node that is not ready takes no new work, whatever a
pod tolerates; so does one of which nobody has said that it is ready.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from optimus.drivers.kube.devices import Offered
from optimus.drivers.kube.objects import Node as KubeNode
from optimus.drivers.kube.quantities import QuantityError, mib_down, whole
from optimus.drivers.kube.requests import GPU_NAMES, read_amounts, sort_out
from optimus.drivers.kube.selecting import qualified
from optimus.model.nodes import WHOLE_DEVICE_MILLI, Device, ForeignUsage, Node, Taint
from optimus.model.rules import COUNTER, NEAR, PODS
from optimus.model.units import LARGEST
from optimus.model.workloads import Request

_PRODUCT = {
    "nvidia.com/gpu": ("nvidia.com/gpu.product",),
    "amd.com/gpu": ("amd.com/gpu.product-name", "beta.amd.com/gpu.product-name"),
}
_MEMORY = {
    "nvidia.com/gpu": ("nvidia.com/gpu.memory",),
    "amd.com/gpu": ("amd.com/gpu.vram", "beta.amd.com/gpu.vram"),
}
_VENDOR_WORDS = frozenset({"nvidia", "tesla", "amd", "instinct", "radeon", "geforce", "quadro", "pro", "graphics"})
_SERIES = frozenset({"rtx", "gtx", "titan"})
"""First words that name a model only together with the next one."""
_MIG_SLICE = re.compile(r"-mig-(\d+g\.\d+gb\S*)")
_MOST_DEVICES = 1024


def read_node(
    node: KubeNode,
    others: Iterable[Request] = (),
    *,
    beside: Mapping[str, int] | None = None,
    attach_limits: Mapping[str, int] | None = None,
    gpu_names: tuple[str, ...] = GPU_NAMES,
    claimed: Sequence[Offered] = (),
    claimed_by_others: int = 0,
) -> Node:
    """`others`: what pods that are not ours take there, counters included. `beside`: counters that our own pods take
    and the brain does not know of (`taken_beside`). `claimed`: GPUs that are handed out by claims, and how many of them
    are not for us."""
    labels = node.metadata.labels or {}
    try:
        found = sort_out(read_amounts(node.status.allocatable), gpu_names)
        pods = whole((node.status.allocatable or {}).get("pods", 0))
    except QuantityError:  # a node that cannot be read has nothing
        found, pods = sort_out({}, gpu_names), 0
    have = {**found.accelerators, **(attach_limits or {}), PODS: pods}
    models = [name for name, count in found.gpus.items() for _ in range(min(count, _MOST_DEVICES))][:_MOST_DEVICES]
    kinds = {name: (model_of(name, labels), memory_of(name, labels)) for name in found.gpus}
    each = [*(kinds[name] for name in models), *(_by_slice(one) for one in claimed)][:_MOST_DEVICES]
    foreign = foreign_usage(others, beside or {}, models, gpu_names)
    if claimed_by_others:  # ours fill up from the first, so theirs are taken from the last
        last = range(len(each) - 1, len(each) - 1 - claimed_by_others, -1)
        foreign.gpu_milli.update(dict.fromkeys(last, WHOLE_DEVICE_MILLI))
    return Node(
        name=node.metadata.name,
        labels=labels,
        taints=tuple(Taint(one.key, one.value or "", one.effect) for one in node.spec.taints or ()),
        cpu_milli=max(found.cpu_milli, 0),
        memory_mib=max(mib_down(found.memory_bytes), 0),
        accelerators={name: max(amount, 0) for name, amount in have.items()},
        devices=tuple(Device(index=i, model=model, memory_mib=memory) for i, (model, memory) in enumerate(each)),
        assignable=False,
        ready=is_ready(node),
        cordoned=bool(node.spec.unschedulable),
        foreign=foreign,
    )


def foreign_usage(
    others: Iterable[Request], beside: Mapping[str, int], devices: list[str], gpu_names: tuple[str, ...]
) -> ForeignUsage:
    """`devices`: the resource of each device of the node. Which of them others have is not known; ours fill up from the
    first, so theirs are taken from the last. The counter of the resource tells how many are left in any case."""
    cpu = memory = 0
    taken: Counter[str] = Counter()
    for one in others:
        cpu += one.cpu_milli
        memory += one.memory_mib
        taken.update(dict(one.accelerators))
    left = {name: taken[COUNTER + name] for name in gpu_names}
    milli = {}
    for index in reversed(range(len(devices))):
        if left.get(devices[index], 0) > 0:
            left[devices[index]] -= 1
            milli[index] = WHOLE_DEVICE_MILLI
    for name, amount in beside.items():
        taken[name] = max(taken[name] + amount, 0)
    # Whoever puts a pod on a node by its name may ask for anything: what is beyond counting is all there is.
    return ForeignUsage(
        cpu_milli=min(cpu, LARGEST),
        memory_mib=min(memory, LARGEST),
        accelerators={name: min(amount, LARGEST) for name, amount in taken.items() if amount},
        gpu_milli=milli,
    )


def taken_beside(pods: Iterable[tuple[Request, Iterable[str]]]) -> dict[str, int]:
    """For our own pods on a node, each with the request the brain knows and the counters it takes now: what the brain
    does not count. Selectors appear after pods have started; labels change."""
    beside: Counter[str] = Counter()
    for known, takes in pods:
        counted = {name for name, _ in known.accelerators if name.startswith(NEAR)}
        now = set(takes)
        beside.update(now - counted)
        beside.subtract(counted - now)
    return {name: amount for name, amount in beside.items() if amount}


def model_of(resource: str, labels: Mapping[str, str]) -> str:
    """`NVIDIA-A100-SXM4-80GB` is an a100, `NVIDIA-GeForce-RTX-4090` an rtx-4090, `…-MIG-1g.5gb` an a100-mig-1g.5gb;
    without a label, the name of the vendor."""
    product = next((labels[key] for key in _PRODUCT.get(resource, ()) if labels.get(key)), "")
    return _named(product, resource.partition("/")[0].removesuffix(".com"))


def _named(product: str, vendor: str) -> str:
    product = product.lower()
    slices = _MIG_SLICE.search(product)
    words = [word for word in re.split(r"[-_\s]+", product) if word and word not in _VENDOR_WORDS]
    if not words:
        return vendor
    name = "-".join(words[:2]) if words[0] in _SERIES else words[0]
    if slices:
        name += f"-mig-{slices[1]}"
    return f"{name}-shared" if words[-1] == "shared" else name


def memory_of(resource: str, labels: Mapping[str, str]) -> int:
    """MiB of one device; 0 if no label says it. NVIDIA writes MiB, AMD a quantity."""
    for key in _MEMORY.get(resource, ()):
        written = labels.get(key, "")
        try:
            return whole(written) if written.isdigit() else mib_down(whole(written))
        except QuantityError:
            continue
    return 0


def _by_slice(one: Offered) -> tuple[str, int]:
    """Model and MiB, as its driver says it."""
    said = {qualified(name, one.driver)[1]: value for name, value in (one.device.attributes or {}).items()}
    sizes = {qualified(name, one.driver)[1]: size.value for name, size in (one.device.capacity or {}).items()}
    product = said["productName"].text if "productName" in said else None
    try:
        memory = mib_down(whole(sizes.get("memory", 0)))
    except QuantityError:
        memory = 0
    return _named(product or "", one.driver.removeprefix("gpu.").removesuffix(".com")), memory


def is_ready(node: KubeNode) -> bool:
    return any(one.type == "Ready" and one.status == "True" for one in node.status.conditions or ())


def amounts_of(request: Request) -> dict[str, int]:
    core = {"GPUs": request.gpu_count * request.gpu_milli, "CPU": request.cpu_milli, "memory": request.memory_mib}
    return {**core, **dict(request.accelerators)}


def beyond(node: Node, given: Iterable[Request]) -> dict[str, int]:
    """What is given away of it beyond what it has."""
    core = {"GPUs": WHOLE_DEVICE_MILLI * len(node.devices), "CPU": node.cpu_milli, "memory": node.memory_mib}
    has: dict[str, int] = {**core, **node.accelerators}
    total: dict[str, int] = {}
    for one in given:
        for name, amount in amounts_of(one).items():
            total[name] = total.get(name, 0) + amount
    return {name: amount - has[name] for name, amount in total.items() if name in has and amount > has[name]}
