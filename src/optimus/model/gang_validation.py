"""What makes a gang impossible: counts that contradict each other, names that are there twice, odd requests.

Why: gangs nest, so their checks are a walk of their own; `optimus.model.validation` is the door.
Owns: the rules for groups, roles and the request of one replica.
Must not: look at nodes or pools. Whether a gang fits anywhere is decided, not validated.
"""

from __future__ import annotations

from functools import lru_cache

from optimus.model.findings import Findings
from optimus.model.nodes import WHOLE_DEVICE_MILLI
from optimus.model.problems import Problem
from optimus.model.rules import is_counter
from optimus.model.units import LARGEST, format_gpu, format_ratio
from optimus.model.workloads import Group, Request, Role

MOST_REPLICAS = 100_000
"""Of one gang, all copies of all groups at their maximum."""
MOST_DEVICES = 1024
"""Of one replica."""
MOST_ASKED = 2**40
"""Of CPU, memory or an accelerator, by one replica: an exbibyte. What millions ask for is added up in 64 bits, and a
few absurd requests must not make the sum of all others overflow."""


def gang_problems(subject: str, gang: Group) -> list[Problem]:
    return [Problem(subject, place, message) for place, message in _faults(gang)]


@lru_cache(maxsize=1024)
def _faults(gang: Group) -> tuple[tuple[str, str], ...]:
    """Place and message of everything that is wrong; most gangs look like one that was seen before."""
    walk = _Walk("")
    if (gang.min, gang.max) != (1, 1):
        walk.add("gang", "the whole gang exists once; give copies to a group inside it")
    least, most = walk.group(gang, "gang", is_root=True)
    if not walk.problems and most > MOST_REPLICAS:
        walk.add("gang", f"may grow to {most} replicas; at most {MOST_REPLICAS}")
    elif not walk.problems and least < 1:
        walk.add("gang", "needs no replica at all: at least one role must have a minimum of one or more")
    return tuple((problem.path, problem.message) for problem in walk.problems)


def size_problems(least: int, most: int, sizes: tuple[int, ...]) -> list[tuple[str, str]]:
    """(`min`, `max` or `sizes`, what is wrong with it) for the counts of a role or group."""
    found = []
    if least < 0:
        found.append(("min", f"must not be negative: {least}"))
    if most < 1:
        found.append(("max", f"must be at least 1: {most}"))
    elif most > MOST_REPLICAS:
        found.append(("max", f"is too large: {most}; at most {MOST_REPLICAS}"))
    elif least > most:
        found.append(("min", f"the minimum {least} is above the maximum {most}"))
    elif list(sizes) != sorted(set(sizes)):
        found.append(("sizes", f"sizes must ascend, each once: {', '.join(map(str, sizes))}"))
    elif any(not least <= size <= most for size in sizes):
        outside = ", ".join(str(size) for size in sizes if not least <= size <= most)
        found.append(("sizes", f"sizes outside {least} to {most}: {outside}"))
    elif sizes and sizes[0] != least:
        found.append(("sizes", f"the minimum {least} is not an allowed size; the smallest is {sizes[0]}"))
    return found


class _Walk(Findings):
    def __init__(self, subject: str) -> None:
        super().__init__(subject)
        self.roles: set[str] = set()
        self.groups: set[str] = set()

    def group(self, group: Group, path: str, *, is_root: bool = False) -> tuple[int, int]:
        """The fewest and most replicas that may be in all copies of the group."""
        if not is_root:
            self.name(group.name, path, self.groups, "group")
            self.sizes(path, group.min, group.max, group.sizes)
        if not group.roles and not group.groups:
            self.add(path, "has neither roles nor groups: nothing would run")
        least = most = 0
        for i, role in enumerate(group.roles):
            self.role(role, f"{path}.roles.{i}")
            least += max(0, role.min)
            most += max(0, role.max)
        for i, child in enumerate(group.groups):
            inner_least, inner_most = self.group(child, f"{path}.groups.{i}")
            least += inner_least
            most += inner_most
        return least * max(0, group.min), most * max(0, group.max)

    def role(self, role: Role, path: str) -> None:
        self.name(role.name, path, self.roles, "role")
        self.sizes(path, role.min, role.max, role.sizes)
        self.request(role.request, f"{path}.request")

    def name(self, name: str, path: str, taken: set[str], what: str) -> None:
        if not name:
            self.add(f"{path}.name", f"a {what} needs a name")
        elif name in taken:
            self.add(f"{path}.name", f"{what} {name} is there twice")
        taken.add(name)

    def sizes(self, path: str, least: int, most: int, sizes: tuple[int, ...]) -> None:
        for field, message in size_problems(least, most, sizes):
            self.add(f"{path}.{field}", message)

    def request(self, request: Request, path: str) -> None:
        self.amount(f"{path}.gpu_count", request.gpu_count, most=MOST_DEVICES)
        self.amount(f"{path}.gpu_milli", request.gpu_milli, least=1, most=WHOLE_DEVICE_MILLI, show=format_gpu)
        self.amount(f"{path}.gpu_memory_mib", request.gpu_memory_mib)
        if request.gpu_memory_mib and request.gpu_milli != WHOLE_DEVICE_MILLI:
            self.add(f"{path}.gpu_memory_mib", "ask for a fraction of a GPU or for GPU memory, not for both")
        if request.gpu_limit_milli:
            self.amount(f"{path}.gpu_limit_milli", request.gpu_limit_milli, most=WHOLE_DEVICE_MILLI, show=format_gpu)
            if 0 < request.gpu_limit_milli < request.gpu_milli and not request.gpu_memory_mib:
                limit, asked = format_gpu(request.gpu_limit_milli), format_gpu(request.gpu_milli)
                self.add(f"{path}.gpu_limit_milli", f"the limit {limit} is below the request {asked}")
        seen: set[str] = set()
        for i, entry in enumerate(request.models):
            if not entry.model or entry.model in seen:
                message = f"model {entry.model} is there twice" if entry.model else "a model needs a name"
                self.add(f"{path}.models.{i}", message)
            seen.add(entry.model)
            self.amount(f"{path}.models.{i}.speed_percent", entry.speed_percent, least=1, show=format_ratio)
        self.amount(f"{path}.activity_milli", request.activity_milli, most=WHOLE_DEVICE_MILLI, show=format_gpu)
        self.amount(f"{path}.cpu_milli", request.cpu_milli, most=MOST_ASKED)
        self.amount(f"{path}.memory_mib", request.memory_mib, most=MOST_ASKED)
        names = [name for name, _ in request.accelerators]
        if names != sorted(set(names)):
            self.add(f"{path}.accelerators", "must be sorted by name, each once")
        for name, count in request.accelerators:
            self.amount(f"{path}.accelerators.{name}", count, least=1, most=LARGEST if is_counter(name) else MOST_ASKED)
