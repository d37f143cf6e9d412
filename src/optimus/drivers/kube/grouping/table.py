"""The table of kinds as people write it: the shipped one, and files of users that merge over it key by key.

    kinds, errors = load_kinds("ours.yaml")  # or a folder of such files
    for error in errors: print(error)        # ours.yaml:7:12: kind acme.io/Sweep: stop: is no …

Why: a kind nobody here has heard of is a few lines of YAML, not a release.
Owns: the format; every error with its line, and what is wrong left out of the table.
Must not: look at any object.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from pathlib import Path as File
from typing import Annotated, Any

from pydantic import Field, PlainValidator, ValidationError

from optimus.api.errors import FileError
from optimus.api.findings import Finding, explain
from optimus.api.marks import Fault, Mark, MarkedList, MarkedMap, dotted, faults_below, find_mark
from optimus.api.reading import read_documents, read_file
from optimus.api.specs.fields import Spec, Text, Texts, choice, complain, shown
from optimus.drivers.kube.grouping.expressions import (
    Expression,
    ExpressionError,
    First,
    Path,
    read_expression,
    read_first,
    read_path,
)
from optimus.drivers.kube.grouping.kinds import (
    Fragile,
    FromPod,
    Kind,
    Kinds,
    Over,
    PodRules,
    RoleRule,
    RoleWhen,
    StopHow,
)
from optimus.model.workloads import WorkloadClass

SHIPPED = File(__file__).with_name("kinds.yaml")
_KIND = re.compile(r"(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?/)?[A-Z][A-Za-z0-9]*")
_PLURAL = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?")
_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")


def _read(reader: Any) -> PlainValidator:
    def read(value: Any) -> Any:
        try:
            return reader(value)
        except ExpressionError as error:
            raise complain(error.message, error.hint) from None

    return PlainValidator(read)


def _kind(value: Any) -> str:
    if not isinstance(value, str) or not _KIND.fullmatch(value):
        raise complain(f"is no kind: {shown(value)}", "write group/Kind, such as batch/Job; without the version")
    return value


def _plural(value: Any) -> str:
    if not isinstance(value, str) or not _PLURAL.fullmatch(value):
        raise complain(f"is no plural: {shown(value)}", "write spec.names.plural of its CRD, such as studies")
    return value


def _from_pod(value: Any) -> FromPod:
    words = value.split() if isinstance(value, str) else []
    if words == ["name"]:
        return FromPod("name")
    if len(words) == 2 and words[0] in ("label", "annotation") and _KEY.fullmatch(words[1]):
        return FromPod(words[0], words[1])
    raise complain(f"is no word on a pod: {shown(value)}", "write label KEY, annotation KEY or name")


def _role_of_pod(value: Any) -> tuple[FromPod, ...] | RoleWhen:
    if isinstance(value, Mapping):
        if set(value) != {"when", "is", "then", "else"} or not all(isinstance(one, str) for one in value.values()):
            raise complain("must have when, is, then and else, each of them text")
        return RoleWhen(_from_pod(value["when"]), value["is"], value["then"], value["else"])
    parts = [part.strip() for part in value.split("|")] if isinstance(value, str) else []
    if not parts:
        raise complain(f"must be text, not {shown(value)}", "write label KEY, or label KEY | a role")
    *before, last = parts
    fixed = len(last.split()) == 1 and last != "name" and bool(_KEY.fullmatch(last))
    return (*map(_from_pod, before), FromPod("fixed", last) if fixed else _from_pod(last))


def _gang(value: Any) -> str | FromPod:
    return value if value in ("whole", "pod") else _from_pod(value)


def _stop(value: Any) -> tuple[StopHow, str]:
    if value in ("suspend", "pods", "target"):
        return StopHow(value), ""
    if isinstance(value, Mapping) and set(value) == {"never"} and isinstance(value["never"], str):
        return StopHow.NEVER, value["never"]
    raise complain(f"is no way to stop: {shown(value)}", "write suspend, pods, or {never: why}")


def _firsts(value: Any) -> tuple[tuple[str, int], ...]:
    if isinstance(value, Mapping) and all(isinstance(one, int) for one in value.values()):
        return tuple(sorted((str(role), int(index)) for role, index in value.items()))
    raise complain("must be a mapping of roles to numbers", "such as {worker: 1}")


def _templates(value: Any) -> tuple[Path, ...]:
    found = read_first(value)
    if not all(isinstance(part, Path) for part in found.of):
        raise ExpressionError(f"is no path: {value}", "a template stands in the object")
    return tuple(part for part in found.of if isinstance(part, Path))


Asked = Annotated[Any, _read(read_expression)]
Located = Annotated[Any, _read(read_path)]
OnPod = Annotated[Any, PlainValidator(_from_pod)]
OnPods = Annotated[
    Any, PlainValidator(lambda value: tuple(map(_from_pod, value if isinstance(value, list) else [value])))
]


class RoleSpec(Spec):
    name: Text = ""
    at: Located = None
    each: Located = None
    count: Asked = First((1,))
    min: Asked = None
    max: Asked = None
    copies: Asked = None
    min_copies: Asked = None
    max_copies: Asked = None
    total: Asked = None
    template: Annotated[Any, _read(_templates)] = ()


class PodSpec(Spec):
    owner: OnPod = None
    role: Annotated[Any, PlainValidator(_role_of_pod)] = ()
    copy_: OnPods = Field(default=(), alias="copy")
    index: OnPods = ()
    first: Annotated[Any, PlainValidator(_firsts)] = ()


class FragileSpec(Spec):
    when: Annotated[Any, _read(read_first)]
    is_: Any = Field(alias="is")
    why: Text


class OverSpec(Spec):
    conditions: Texts = ()
    path: Located = None
    values: Texts = ()


class KindSpec(Spec):
    kind: Annotated[str, PlainValidator(_kind)]
    plural: Annotated[str, PlainValidator(_plural)] = ""
    about: Text = ""
    gang: Annotated[Any, PlainValidator(_gang)] = "whole"
    class_: Annotated[WorkloadClass, PlainValidator(choice(WorkloadClass))] = Field(
        default=WorkloadClass.UNATTENDED, alias="class"
    )
    roles: tuple[RoleSpec, ...] = ()
    roles_from: Annotated[str, PlainValidator(_kind)] = ""
    pods: PodSpec = PodSpec()
    min_members: Asked = None
    suspend: Located = None
    stop: Annotated[Any, PlainValidator(_stop)] = (StopHow.PODS, "")
    fragile: FragileSpec | None = None
    over: OverSpec = OverSpec()


def load_kinds(*paths: str | File) -> tuple[Kinds, tuple[FileError, ...]]:
    """The shipped table with files of users over it, or with all files of a folder. What is wrong in them is left out,
    and told."""
    table, errors = _Table(), []
    for path in (SHIPPED, *paths):
        files = files_at(path)
        if not files:
            hint = "its files must end in .yaml or .yml"
            errors.append(_told(Mark(str(path), 0, 0), "", Finding((), "holds no table of kinds", hint)))
        for file in files:
            errors += table.take(*read_file(file), str(file))
    return table.kinds(), tuple(errors)


def files_at(path: str | File) -> list[File]:
    """The file itself, or those of a folder by name. Hidden ones, as a mounted ConfigMap has, are left out."""
    found = File(path)
    if not found.is_dir():
        return [found]
    return sorted(one for one in found.iterdir() if one.suffix in (".yaml", ".yml") and not one.name.startswith("."))


def load_text(text: str, name: str = "<text>") -> tuple[Kinds, tuple[FileError, ...]]:
    """The same for one text, such as that of a ConfigMap."""
    table = _Table()
    table.take(*read_file(SHIPPED), str(SHIPPED))
    errors = table.take(*read_documents(text, name), name)
    return table.kinds(), tuple(errors)


@functools.cache
def shipped_kinds() -> Kinds:
    kinds, errors = load_kinds()
    assert not errors, "\n".join(map(str, errors))
    return kinds


class _Table:
    def __init__(self) -> None:
        self.written: dict[str, MarkedMap] = {}
        self.read: dict[str, Kind] = {}

    def kinds(self) -> Kinds:
        return Kinds(dict(self.read))

    def take(self, documents: list[Any], faults: list[Fault], file: str) -> list[FileError]:
        errors = [_told(fault.mark, "", Finding((), fault.message, fault.hint)) for fault in faults]
        for document in documents:
            if document is None:
                continue
            listed = document.get("kinds") if isinstance(document, MarkedMap) else None
            if not isinstance(document, MarkedMap) or not isinstance(listed, MarkedList) or set(document) != {"kinds"}:
                mark = document.mark if isinstance(document, MarkedMap | MarkedList) else Mark(file, 1, 1)
                errors.append(_told(mark, "", Finding((), "must have `kinds:` with a list below it, and nothing else")))
                continue
            for number, entry in enumerate(listed):
                errors += self._take_entry(entry, listed.marks[number], f"kinds[{number}]")
        return errors

    def _take_entry(self, entry: Any, mark: Mark, place: str) -> list[FileError]:
        if not isinstance(entry, MarkedMap):
            return [_told(mark, place, Finding((), f"must be a mapping, not {shown(entry)}"))]
        name = entry.get("kind")
        if name is None:
            return [_told(mark, place, Finding((), "kind is missing", "write kind: group/Kind"))]
        place = f"kind {shown(name)}"
        merged = MarkedMap(entry.mark)
        for source in (entry, self.written.get(str(name), MarkedMap(mark))):
            for key in source:
                if key not in merged:
                    merged.take_from(source, key)
        findings = [Finding(loc, fault.message, fault.hint, mark=fault.mark) for loc, fault in faults_below(entry)]
        kind: Kind | None = None
        try:
            kind = _build(KindSpec.model_validate(merged), findings)
        except ValidationError as error:
            findings += explain(error, KindSpec)
        if findings or kind is None:
            return [_told(one.mark or find_mark(merged, one.loc, key=one.at_key), place, one) for one in findings]
        self.written[kind.name], self.read[kind.name] = merged, kind
        return []


def _told(mark: Mark, place: str, finding: Finding) -> FileError:
    inside = dotted(finding.loc)
    return FileError(
        path=mark.file,
        line=mark.line,
        column=mark.column,
        place=": ".join(part for part in (place, inside) if part),
        message=finding.message,
        hint=finding.hint,
        set_aside=place if place.startswith("kind ") else "",
    )


def _build(spec: KindSpec, findings: list[Finding]) -> Kind:
    how, why = spec.stop
    alone = spec.gang == "pod"
    if how is StopHow.SUSPEND and spec.suspend is None:
        findings.append(
            Finding(("stop",), "cannot be suspend: nothing says which field suspends it", "write suspend: path")
        )
    if not alone and not spec.roles and not spec.roles_from and how is not StopHow.TARGET:
        hint = "write roles: [{name: worker, count: spec.replicas, template: spec.template}], or gang: pod"
        findings.append(Finding(("roles",), "are missing: its pods would have none", hint))
    for number, role in enumerate(spec.roles):
        if role.at is not None and role.each is not None:
            findings.append(
                Finding(("roles", number), "has at and each", "at: one item; each: all items of a list or a map")
            )
        elif not role.name and role.each is None:
            findings.append(
                Finding(("roles", number), "has no name", "name: worker; with each, the key or name: item.name")
            )
    return Kind(
        name=spec.kind,
        plural=spec.plural,
        about=spec.about,
        gang=spec.gang if isinstance(spec.gang, FromPod) else None,
        alone=alone,
        workload_class=spec.class_,
        roles=tuple(_role(role, number, findings) for number, role in enumerate(spec.roles)),
        roles_from=spec.roles_from,
        pods=PodRules(
            owner=spec.pods.owner,
            role=spec.pods.role,
            copy=spec.pods.copy_,
            index=spec.pods.index,
            first=spec.pods.first,
        ),
        min_members=spec.min_members,
        suspend=spec.suspend,
        stop=how,
        never_why=why,
        fragile=Fragile(spec.fragile.when, spec.fragile.is_, spec.fragile.why) if spec.fragile else None,
        over=Over(conditions=spec.over.conditions, path=spec.over.path, values=spec.over.values),
    )


def _role(spec: RoleSpec, number: int, findings: list[Finding]) -> RoleRule:
    name, name_at = spec.name, None
    if "." in name:
        try:
            name, name_at = "", read_path(name)
        except ExpressionError as error:
            findings.append(Finding(("roles", number, "name"), error.message, error.hint))
    asked: dict[str, Expression | None] = {
        "min": spec.min,
        "max": spec.max,
        "copies": spec.copies,
        "min_copies": spec.min_copies,
        "max_copies": spec.max_copies,
        "total": spec.total,
    }
    return RoleRule(
        name=name, name_at=name_at, at=spec.at, each=spec.each, count=spec.count, template=spec.template, **asked
    )
