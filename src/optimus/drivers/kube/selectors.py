"""Which pods somebody speaks of: label selectors and the namespaces they reach into.

Why: rules about neighbours, node affinity and spreading select by labels; equal selectors must be recognised as equal,
so that they share a counter.
Owns: what matches, and how a selector is told to people.
Must not: know what is done with those that match (`counting`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from optimus.drivers.kube.objects import LabelSelector
from optimus.drivers.kube.requests import MalformedError
from optimus.model.rules import Operator

Labels = Mapping[str, str]
_OPERATORS = {str(one): one for one in (Operator.IN, Operator.NOT_IN, Operator.EXISTS, Operator.DOES_NOT_EXIST)}


class Requirement(Struct, frozen=True, order=True):
    key: str
    operator: str
    values: tuple[str, ...] = ()

    def accepts(self, labels: Labels) -> bool:
        found = labels.get(self.key)
        match self.operator:
            case Operator.IN:
                return found in self.values
            case Operator.NOT_IN:
                return found not in self.values
            case Operator.EXISTS:
                return found is not None
        return found is None

    def told(self) -> str:
        match self.operator, self.values:
            case Operator.IN, (only,):
                return f"{self.key}={only}"
            case Operator.NOT_IN, (only,):
                return f"{self.key}!={only}"
            case Operator.IN, _:
                return f"{self.key} in ({', '.join(self.values)})"
            case Operator.NOT_IN, _:
                return f"{self.key} not in ({', '.join(self.values)})"
            case Operator.EXISTS, _:
                return self.key
        return f"no {self.key}"


class Selector(Struct, frozen=True, order=True):
    """All requirements must hold; without any, everything matches."""

    requirements: tuple[Requirement, ...] = ()

    def accepts(self, labels: Labels) -> bool:
        return all(one.accepts(labels) for one in self.requirements)

    def told(self) -> str:
        return ", ".join(one.told() for one in self.requirements) or "all pods"


class Whom(Struct, frozen=True):
    """The pods that a term is about."""

    selector: Selector | None
    """None matches nobody."""
    namespaces: tuple[str, ...] = ()
    among: Selector | None = None
    """By labels of namespaces, beside those that are named; None: no more."""
    staying: bool = False
    """Without those that are being deleted."""

    def includes(self, namespace: str, namespace_labels: Labels, labels: Labels, *, leaving: bool) -> bool:
        if self.selector is None or (leaving and self.staying):
            return False
        reached = namespace in self.namespaces or (self.among is not None and self.among.accepts(namespace_labels))
        return reached and self.selector.accepts(labels)

    def label_keys(self) -> set[str]:
        """Labels that make a difference."""
        return {one.key for one in self.selector.requirements} if self.selector else set()

    def told(self) -> str:
        return "nobody" if self.selector is None else self.selector.told()


def read_selector(written: LabelSelector | None, also: Iterable[Requirement] = ()) -> Selector | None:
    """None selects nothing, an empty one everything. `also`: more requirements. Raises MalformedError."""
    if written is None:
        return None
    found = {Requirement(key, Operator.IN, (value,)) for key, value in (written.match_labels or {}).items()}
    for one in written.match_expressions or ():
        if one.operator not in _OPERATORS:
            known = ", ".join(_OPERATORS)
            raise MalformedError(f"label selector: unknown operator {one.operator!r} for {one.key}; known are {known}")
        found.add(Requirement(one.key, one.operator, tuple(sorted(set(one.values or ())))))
    return Selector(tuple(sorted({*found, *also})))
