"""YAML text into marked data, one document after the other, without ever giving up on the file.

Why: the usual loaders stop at the first error, forget lines, and run into aliases that explode.
Owns: syntax errors, keys that are there twice, tags, aliases, and the bounds on depth and size.
Must not: know any noun of the domain, construct anything but text, numbers, booleans, lists and mappings, or raise.

A document that is not YAML is left out with its error; reading goes on at the next `---`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml
from yaml import events

from optimus.api.marks import Fault, Mark, MarkedList, MarkedMap
from optimus.api.scalars import resolve

DEEPEST = 64
MOST_VALUES = 2_000_000
_TAG = "tag:yaml.org,2002:"
_NEXT_DOCUMENT = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_SKIPPED = "\0skipped"


class _Stop(Exception):  # noqa: N818 - it ends one document, nobody outside sees it
    def __init__(self, mark: Mark, message: str, hint: str = "") -> None:
        self.fault = Fault(mark, "", message, hint)


def read_file(path: str | Path) -> tuple[list[Any], list[Fault]]:
    """All documents of a file that can be read, and what is wrong with the others or with the file."""
    start = Mark(str(path), 1, 1)
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        return [], [Fault(start, "", f"cannot be read: {error.strerror or error}", "")]
    try:
        return read_documents(content.decode("utf-8-sig"), str(path))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        return [], [Fault(Mark(str(path), line, 1), "", "is not UTF-8 text", "save the file as UTF-8")]


def read_documents(text: str, file: str) -> tuple[list[Any], list[Fault]]:
    """All documents of a text that can be read, and what is wrong with the others."""
    documents: list[Any] = []
    faults: list[Fault] = []
    bad = _unreadable_character(text, file)
    if bad is not None:
        return [], [bad]
    start, first_line = 0, 0
    while True:
        builder = _Builder(file, first_line)
        try:
            for event in yaml.parse(text[start:], Loader=_LOADER):
                builder.take(event)
            documents.extend(builder.documents)
        except _Stop as stop:
            faults.append(stop.fault)
        except yaml.YAMLError as error:
            faults.append(_explain(error, text[start:], file, first_line))
        else:
            return documents, faults
        documents.extend(builder.documents)
        resume = _next_document(text, start, faults[-1].mark.line)
        if resume is None:
            return documents, faults
        start, first_line = resume, text.count("\n", 0, resume)


class _Frame:
    """A mapping or list that is not finished yet."""

    __slots__ = ("anchor", "key", "key_mark", "merged", "value")

    def __init__(self, value: MarkedMap | MarkedList, anchor: str | None) -> None:
        self.value = value
        self.anchor = anchor
        self.key: str | None = None
        self.key_mark = value.mark
        self.merged: list[MarkedMap] = []


class _Builder:
    def __init__(self, file: str, first_line: int) -> None:
        self.file = file
        self.first_line = first_line
        self.documents: list[Any] = []
        self.stack: list[_Frame] = []
        self.anchors: dict[str, Any] = {}
        self.values = 0

    def take(self, event: yaml.Event) -> None:
        if isinstance(event, events.ScalarEvent):
            self.scalar(event)
        elif isinstance(event, events.MappingStartEvent | events.SequenceStartEvent):
            self.open(event)
        elif isinstance(event, events.MappingEndEvent | events.SequenceEndEvent):
            self.close()
        elif isinstance(event, events.AliasEvent):
            self.alias(event)
        elif isinstance(event, events.DocumentStartEvent):
            self.anchors = {}

    def mark(self, event: yaml.Event) -> Mark:
        position = event.start_mark
        if position is None:
            return Mark(self.file, self.first_line + 1, 1)
        return Mark(self.file, position.line + 1 + self.first_line, position.column + 1)

    def count(self, mark: Mark, values: int = 1) -> None:
        self.values += values
        if self.values > MOST_VALUES:
            raise _Stop(mark, f"holds more than {MOST_VALUES:,} values", "aliases count as often as they are used")

    def scalar(self, event: events.ScalarEvent) -> None:
        mark = self.mark(event)
        self.count(mark)
        frame = self.stack[-1] if self.stack else None
        if frame is not None and isinstance(frame.value, MarkedMap) and frame.key is None:
            if event.anchor:
                self.anchors[event.anchor] = event.value
            frame.key, frame.key_mark = event.value, mark
            return
        tag = (event.tag or "").removeprefix(_TAG)
        if tag in ("", "!"):
            value = resolve(event.value) if event.implicit[0] else event.value
        elif tag in ("int", "float", "bool", "null"):
            value = resolve(event.value)
        else:
            value = event.value
            if tag != "str":
                self.fault(mark, f"tag {event.tag} is not allowed", "only plain data is read: leave the tag out")
        if event.anchor:
            self.anchors[event.anchor] = value
        self.attach(value, mark)

    def open(self, event: events.MappingStartEvent | events.SequenceStartEvent) -> None:
        mark = self.mark(event)
        self.count(mark)
        if len(self.stack) >= DEEPEST:
            raise _Stop(mark, f"is nested more than {DEEPEST} levels deep")
        if event.tag and event.tag not in (_TAG + "map", _TAG + "seq", "!"):
            self.fault(mark, f"tag {event.tag} is not allowed", "only plain data is read: leave the tag out")
        value = MarkedMap(mark) if isinstance(event, events.MappingStartEvent) else MarkedList(mark)
        self.stack.append(_Frame(value, event.anchor))

    def close(self) -> None:
        frame = self.stack.pop()
        if isinstance(frame.value, MarkedMap):
            for source in frame.merged:
                for key in source:
                    if key not in frame.value:
                        frame.value.take_from(source, key)
        if frame.anchor:
            self.anchors[frame.anchor] = frame.value
        self.attach(frame.value, frame.value.mark)

    def alias(self, event: events.AliasEvent) -> None:
        mark = self.mark(event)
        if any(frame.anchor == event.anchor for frame in self.stack):
            self.fault(mark, f"alias *{event.anchor} contains itself")
            self.attach(None, mark)
        elif event.anchor not in self.anchors:
            self.fault(mark, f"alias *{event.anchor} stands for nothing", f"write &{event.anchor} where it is defined")
            self.attach(None, mark)
        else:
            self.attach(self.copy(self.anchors[event.anchor], mark, len(self.stack)), mark)

    def copy(self, value: Any, mark: Mark, depth: int) -> Any:
        """An alias is a copy, so that setting aside one use leaves the others whole."""
        self.count(mark)
        if depth > DEEPEST:
            raise _Stop(mark, f"is nested more than {DEEPEST} levels deep")
        if isinstance(value, MarkedMap):
            twin = MarkedMap(value.mark)
            for key, inner in value.items():
                twin.put(key, self.copy(inner, mark, depth + 1), value.key_marks[key], value.value_marks[key])
            return twin
        if isinstance(value, MarkedList):
            copies = MarkedList(value.mark)
            for inner, place in zip(value, value.marks, strict=True):
                copies.put(self.copy(inner, mark, depth + 1), place)
            return copies
        return value

    def attach(self, value: Any, mark: Mark) -> None:
        if not self.stack:
            self.documents.append(value)
            return
        frame = self.stack[-1]
        if isinstance(frame.value, MarkedList):
            frame.value.put(value, mark)
        elif frame.key is None:  # a list, a mapping or an alias where a key belongs
            if isinstance(value, dict | list) or value is None:
                self.fault(mark, "a key must be text", "quote it if it contains braces or brackets")
                frame.key, frame.key_mark = _SKIPPED, mark
            else:
                frame.key, frame.key_mark = str(value), mark
        else:
            self.put(frame, frame.value, frame.key, value, mark)
            frame.key = None

    def put(self, frame: _Frame, target: MarkedMap, key: str, value: Any, mark: Mark) -> None:
        if key == _SKIPPED:
            return
        if key == "<<":
            sources = value if isinstance(value, MarkedList) else [value]
            if all(isinstance(source, MarkedMap) for source in sources):
                frame.merged.extend(sources)
            else:
                target.faults.append(Fault(mark, key, "<< takes a mapping, or a list of mappings", ""))
        elif key in target:
            message = f"key {key} is there twice; first in line {target.key_marks[key].line}"
            target.faults.append(Fault(frame.key_mark, key, message, "keep one of the two"))
        else:
            target.put(key, value, frame.key_mark, mark)

    def fault(self, mark: Mark, message: str, hint: str = "") -> None:
        if not self.stack:
            raise _Stop(mark, message, hint)
        frame = self.stack[-1]
        frame.value.faults.append(Fault(mark, frame.key or "", message, hint))


def _unreadable_character(text: str, file: str) -> Fault | None:
    match = re.search("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", text)
    if match is None:
        return None
    line = text.count("\n", 0, match.start()) + 1
    column = match.start() - text.rfind("\n", 0, match.start())
    return Fault(Mark(file, line, column), "", f"contains the character U+{ord(match[0]):04X}, which YAML forbids", "")


def _explain(error: yaml.YAMLError, text: str, file: str, first_line: int) -> Fault:
    problem = getattr(error, "problem", None) or str(error).split("\n", maxsplit=1)[0]
    context = getattr(error, "context", None)
    position = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    line, column = (position.line, position.column) if position is not None else (0, 0)
    lines = text.split("\n")
    written = lines[line] if line < len(lines) else ""
    hint = ""
    if "\t" in written[: max(column + 1, len(written) - len(written.lstrip()))]:
        hint = "indent with spaces, not with tabs"
    elif "mapping values are not allowed" in problem:
        hint = "text that contains a colon needs quotes; a nested key needs deeper indentation"
    message = f"is not YAML: {problem}" + (f" {context}" if context else "")
    return Fault(Mark(file, line + 1 + first_line, column + 1), "", message, hint)


def _next_document(text: str, start: int, line: int) -> int | None:
    """Where to go on after an error in `line` (from 1): at the next `---`, but never where we began."""
    offset = 0
    for _ in range(line - 1):
        offset = text.find("\n", offset) + 1
    match = _NEXT_DOCUMENT.search(text, max(offset, start))
    if match is not None and match.start() == start:
        match = _NEXT_DOCUMENT.search(text, start + 3)
    return match.start() if match is not None else None
