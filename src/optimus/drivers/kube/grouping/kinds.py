"""What is known about kinds of work: one record for each, as the table says it.

Why: the code below works on these records and has no list of kinds of its own.
Owns: the shapes of the table.
Must not: read files (`table` does).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum

from msgspec import Struct

from optimus.drivers.kube.grouping.expressions import Expression, First, Path
from optimus.model.workloads import WorkloadClass


class StopHow(StrEnum):
    SUSPEND = "suspend"  # its controller takes the pods away, and counts none of them as failed
    PODS = "pods"  # the pods are evicted, and their controller creates them again
    TARGET = "target"  # the number of its replicas is written, and its controller follows it
    NEVER = "never"


class FromPod(Struct, frozen=True):
    """A word on a pod: in a label, in an annotation, at the end of its name, or the same for all."""

    where: str
    """`label`, `annotation`, `name` or `fixed`."""
    key: str = ""


class RoleWhen(Struct, frozen=True):
    """The role of pods on which a word is this one, and of all others."""

    asks: FromPod
    value: str
    then: str
    otherwise: str


class PodRules(Struct, frozen=True, kw_only=True):
    owner: FromPod | None = None
    """Names the owner where the chain of owners does not lead to it."""
    role: tuple[FromPod, ...] | RoleWhen = ()
    copy: tuple[FromPod, ...] = ()
    index: tuple[FromPod, ...] = ()
    first: tuple[tuple[str, int], ...] = ()
    """Role -> the index of its first pod, where that is not 0."""


class RoleRule(Struct, frozen=True, kw_only=True):
    name: str = ""
    """Empty where `name_at` says it, or the key of the item does."""
    name_at: Path | None = None
    at: Path | None = None
    each: Path | None = None
    count: Expression = First((1,))
    """Pods of one copy that its controller creates."""
    min: Expression | None = None
    max: Expression | None = None
    copies: Expression | None = None
    min_copies: Expression | None = None
    max_copies: Expression | None = None
    total: Expression | None = None
    """How many pods have to end well, where that is not how many run at a time."""
    template: tuple[Path, ...] = ()


class Fragile(Struct, frozen=True):
    asks: First
    value: str | int | bool
    why: str


class Over(Struct, frozen=True, kw_only=True):
    """How its status says that it has ended."""

    conditions: tuple[str, ...] = ()
    path: Path | None = None
    values: tuple[str, ...] = ()


class Kind(Struct, frozen=True, kw_only=True):
    name: str
    """`group/Kind`; without a group for those of the core."""
    plural: str = ""
    """As it is called in paths; empty: the kind in small letters, with an s."""
    about: str = ""
    gang: FromPod | None = None
    """The pods of one object are one gang for each value of this word on them."""
    alone: bool = False
    """Each pod is by itself."""
    workload_class: WorkloadClass = WorkloadClass.UNATTENDED
    roles: tuple[RoleRule, ...] = ()
    roles_from: str = ""
    """A kind of object that it creates and that has the roles."""
    pods: PodRules = PodRules()
    min_members: Expression | None = None
    suspend: Path | None = None
    stop: StopHow = StopHow.PODS
    never_why: str = ""
    fragile: Fragile | None = None
    over: Over = Over()

    @property
    def group(self) -> str:
        return self.name.rpartition("/")[0]

    @property
    def resource(self) -> str:
        return self.plural or f"{self.name.rpartition('/')[2].lower()}s"

    @property
    def whole(self) -> bool:
        """One object is one gang, which is there before its pods are."""
        return not self.alone and self.gang is None


class Kinds(Struct, frozen=True):
    by_name: Mapping[str, Kind]

    def get(self, name: str) -> Kind | None:
        return self.by_name.get(name)

    def __iter__(self) -> Iterator[Kind]:
        return iter(self.by_name.values())


def kind_name(api_version: str, kind: str) -> str:
    """`kubeflow.org/v1`, `PyTorchJob` -> `kubeflow.org/PyTorchJob`; versions of a kind are one kind."""
    group, slash, _ = api_version.partition("/")
    return f"{group}/{kind}" if slash else kind


def short_names(kinds: Iterable[str]) -> dict[str, str]:
    """Kind -> the word in ids: `job`; with its group where an earlier kind has that word already."""
    short = {"Pod": "pod", "": "group"}
    for name in kinds:
        group, _, kind = name.rpartition("/")
        word = kind.lower()
        if name not in short:
            short[name] = f"{word}.{group}" if word in short.values() else word
    return short
