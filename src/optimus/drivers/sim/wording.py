"""Short words for names, places, sizes and times: `a-0 … a-7`, `8 × 1 GPU`, `train`, `in 2h10m (14:20)`.

Why: a sentence about fifty replicas must not have fifty names in it.
Owns: how lists of names, nodes and devices are folded.
Must not: say what happened (`telling` does).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from optimus.model import gangs
from optimus.model.nodes import WHOLE_DEVICE_MILLI
from optimus.model.plans import Placement
from optimus.model.units import format_about_ms, format_cpu, format_gpu, format_memory, format_moment_ms
from optimus.model.workloads import Request, Workload

USUAL_NAMESPACE = "default/"
_NUMBERED = re.compile(r"(.*?)(\d{1,9})")
_USUAL_NAME = re.compile(r"(?<![\w./-])default/(?=[\w.-])")
SHORTEST_RUN = 3
MOST_PIECES = 6


def short(workload: str) -> str:
    """The name alone where the namespace goes without saying."""
    return workload.removeprefix(USUAL_NAMESPACE)


def shorten(text: str) -> str:
    """The same inside a sentence."""
    return _USUAL_NAME.sub("", text)


def fold(names: Iterable[str]) -> str:
    """`a-0, a-1, a-2, b` -> `a-0 … a-2, b`."""
    pieces: list[str] = []
    run: list[str] = []
    for name in [*names, ""]:
        if run and _follows(run[-1], name):
            run.append(name)
            continue
        pieces += [f"{run[0]} … {run[-1]}"] if len(run) >= SHORTEST_RUN else run
        run = [name]
    if len(pieces) > MOST_PIECES:
        pieces = [*pieces[: MOST_PIECES - 1], f"{len(pieces) - MOST_PIECES + 1} more"]
    return ", ".join(pieces)


def fold_counted(names: Sequence[str]) -> str:
    """Folded, and how many they are where one cannot see it."""
    folded = fold(names)
    return f"{folded} ({len(names)})" if "…" in folded or " more" in folded else folded


def _follows(first: str, second: str) -> bool:
    one, two = _NUMBERED.fullmatch(first), _NUMBERED.fullmatch(second)
    return bool(one and two and one[1] == two[1] and int(two[2]) == int(one[2]) + 1)


def natural(name: str) -> tuple[str, int]:
    """A key that sorts a-2 before a-10."""
    numbered = _NUMBERED.fullmatch(name)
    return (numbered[1], int(numbered[2])) if numbered else (name, -1)


def list_nodes(nodes: Iterable[str]) -> str:
    """Nodes with the number of replicas on each, where there are several: `4 on a-0, 2 on a-1`."""
    counts: dict[str, int] = {}
    for node in nodes:
        counts[node] = counts.get(node, 0) + 1
    by_number: dict[int, list[str]] = {}
    for node in sorted(counts, key=natural):
        by_number.setdefault(counts[node], []).append(node)
    if len(by_number) == 1:
        number, places = next(iter(by_number.items()))
        each = "each on" if len(places) > 1 else "on"
        return f"on {fold(places)}" if number == 1 and len(places) > 1 else f"{number} {each} {fold(places)}"
    return ", ".join(
        f"{number} {'each on' if len(places) > 1 else 'on'} {fold(places)}" for number, places in by_number.items()
    )


def list_devices(devices: Sequence[int]) -> str:
    """`0, 1, 2, 5` -> `0-2,5`."""
    pieces: list[list[int]] = []
    for device in sorted(devices):
        if pieces and device == pieces[-1][-1] + 1:
            pieces[-1].append(device)
        else:
            pieces.append([device])
    return ",".join(f"{piece[0]}-{piece[-1]}" if len(piece) > 1 else str(piece[0]) for piece in pieces)


def count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def describe_places(placements: Sequence[Placement]) -> str:
    """`8 replicas, 4 each on a-0, a-1`."""
    nodes = list_nodes(placement.node for placement in placements)
    if len({placement.node for placement in placements}) == 1:
        return f"{count(len(placements), 'replica')} on {placements[0].node}"
    return f"{count(len(placements), 'replica')}, {nodes}"


def describe_request(request: Request) -> str:
    """What one replica asks for, its main part only."""
    if request.gpu_count:
        if request.gpu_memory_mib:
            return f"{count(request.gpu_count, 'GPU')} ({format_memory(request.gpu_memory_mib)} each)"
        if request.gpu_milli == WHOLE_DEVICE_MILLI:
            return count(request.gpu_count, "GPU")
        share = f"{format_gpu(request.gpu_milli)} GPU"
        return share if request.gpu_count == 1 else f"{request.gpu_count} × {share}"
    if request.accelerators:
        return ", ".join(f"{amount} {name}" for name, amount in request.accelerators)
    if request.cpu_milli:
        return f"{format_cpu(request.cpu_milli)} CPU"
    return format_memory(request.memory_mib) if request.memory_mib else "nothing"


def describe_gang(workload: Workload) -> str:
    """`8 × 1 GPU`, `2 to 8 × 1 GPU`, or the roles one by one."""
    minimum = gangs.minimum_replicas(workload.gang)
    parts = []
    for index, chain in enumerate(gangs.chains(workload.gang)):
        least, most = len(minimum.get(index, ())), chain.capacity
        number = str(least) if least == most else f"{least} to {most}"
        role = f"{chain.role.name}: " if len(minimum) > 1 else ""
        parts.append(f"{role}{number} × {describe_request(chain.role.request)}")
    return "; ".join(parts)


def moment(at_ms: int, in_ms: int, now_ms: int) -> str:
    """`in 2h10m (14:20)`."""
    if in_ms <= 0:
        return "now"
    return f"in {format_about_ms(in_ms)} ({format_moment_ms(at_ms - at_ms % 60_000, now_ms)})"
