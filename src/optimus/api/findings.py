"""Errors on their way to the reader: a path, a sentence, and whether the record can stay.

Why: text, fields and records are checked by different code, but all of it is reported in one way.
Owns: the finding, pydantic's errors in our words, and the suggestions for keys nobody knows.
Must not: know where in the file a path is; `loading` adds that.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

from pydantic import ValidationError

from optimus.api.marks import Loc, Mark
from optimus.api.specs.fields import Spec, nearest, shown


class Finding(NamedTuple):
    loc: Loc
    message: str
    hint: str = ""
    keep: bool = False
    """The record takes part all the same: the scheduler itself answers it with a reason."""
    at_key: bool = False
    mark: Mark | None = None
    """Where it was written, if not at `loc`."""


_KINDS = {
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "dict_type": "a mapping",
    "mapping_type": "a mapping",
    "tuple_type": "a list",
    "list_type": "a list",
}


def explain(error: ValidationError, root: type[Spec], above: Loc = ()) -> Iterator[Finding]:
    """Every error of pydantic as a finding; `above` is the path to the value that was validated."""
    for detail in error.errors(include_url=False):
        loc = tuple(part for part in detail["loc"] if part != "[key]")
        kind = detail["type"]
        context = detail.get("ctx", {})
        if kind == "optimus":
            yield Finding((*above, *loc), str(context["message"]), str(context["hint"]))
        elif kind == "missing":
            yield Finding((*above, *loc), "is missing")
        elif kind == "extra_forbidden":
            hint = _instead_of(str(loc[-1]), detail["input"], known_keys(root, loc[:-1]))
            yield Finding((*above, *loc), f"unknown key {shown(loc[-1])}", hint, at_key=True)
        elif kind in _KINDS:
            yield Finding((*above, *loc), f"must be {_KINDS[kind]}, not {shown(detail['input'])}")
        else:
            yield Finding((*above, *loc), detail["msg"])


def _instead_of(key: str, value: object, known: list[str]) -> str:
    hint = nearest(key, known)
    if isinstance(value, dict) and "accelerators" in known and not hint.startswith("did you mean"):
        return f"a named accelerator stands under accelerators: {{{key}: …}}"
    return hint


def known_keys(root: type[Spec], loc: Loc) -> list[str]:
    """The keys that may be written in the mapping at `loc`."""
    model, waiting = root, 0
    for part in loc:
        if waiting:  # a list position, or a key of a free mapping
            waiting -= 1
            continue
        field = next((field for field in model.model_fields.values() if field.alias == part), None)
        if field is None:
            return []
        found = _spec_inside(field.annotation)
        if found is None:
            return []
        model, waiting = found
    return [str(field.alias) for field in model.model_fields.values()]


def _spec_inside(annotation: Any, containers: int = 0) -> tuple[type[Spec], int] | None:
    """The spec that a field holds, and how many lists or mappings are around it."""
    if isinstance(annotation, type) and issubclass(annotation, Spec):
        return annotation, containers
    origin = get_origin(annotation)
    inside = get_args(annotation)
    if origin is Annotated:
        return _spec_inside(inside[0], containers)
    if origin in (Union, UnionType):
        return next((found for arg in inside if (found := _spec_inside(arg, containers))), None)
    if origin in (tuple, list):
        return _spec_inside(inside[0], containers + 1)
    return _spec_inside(inside[1], containers + 1) if origin is dict else None
