"""Expressions that select devices (CEL), as the API server reads them: compiled once, asked once for each device.

    device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].productName.startsWith("NVIDIA H100")
    device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("40Gi")) >= 0

Why: classes and claims say in expressions which devices they mean.
Owns: the variable `device`, quantities and versions, and what an error means: whatever has an attribute that is not
there, or does what nobody here can evaluate, is told to people (`SelectorError`), and selects nothing.
Must not: know claims, classes or nodes.

The language itself is a library's. What it lacks is put in before it reads an expression: `cel.bind`, and that a domain
nobody has named is there and empty. Quantities and versions are maps with one key; a map is equal to another if it says
the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Set
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from optimus.drivers.kube.device_objects import Attribute, Capacity, Device
from optimus.drivers.kube.quantities import QuantityError, exact

if TYPE_CHECKING:
    import cel  # read where the first claim comes: it brings a terminal's worth of modules with it

_QUANTITY, _VERSION = "~quantity", "~version"
_LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"|' + r"'(?:[^'\\]|\\.)*'")
_DOMAIN = re.compile(r'device\s*\.\s*(attributes|capacity)\s*\[\s*("(?:[^"\\]|\\.)*"|' + r"'(?:[^'\\]|\\.)*')\s*\]")
_SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z.-]+)?"
)
_MACROS = frozenset({"has", "all", "exists", "exists_one", "filter", "map", "in"})
_BUILT_IN = frozenset({"contains", "startsWith", "endsWith", "matches", "size", "min", "max", "type", "dyn"})
_CONVERSIONS = frozenset({"int", "uint", "double", "string", "bool", "bytes", "timestamp", "duration"})
_NAMESPACES = frozenset({"base64", "cidr", "format", "ip", "lists", "math", "optional", "regex", "sets", "url"})
"""Functions of Kubernetes' own that are called like this have not been needed yet."""
_ERRORS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What evaluating may end with. All of them mean that there is no answer."""
_WORD = re.compile(r"\w+")
_ITERATES = re.compile(r"\b(all|exists|exists_one|filter|map|size|string|type)\s*\(|[+{]")
"""Where an expression may look at more than what it names."""
_SOMETHING, _NO_VALUE = Attribute(whole=0), Attribute()
_MOST_KNOWN = 100_000
_MOST_READ = 1024
LONGEST, LONGEST_LOOP = 2048, 256
"""Characters of an expression; of one that goes through a list or binds names. It is asked of every device there is:
what it costs must be known from its text. Loops in each other multiply, and so do names that are bound to several times
another."""
_LOOP, _NAME = re.compile(r"\b(?:all|exists|exists_one|filter|map)\b"), re.compile(r"\bbind\b")
"""Wherever they stand: quotes and comments hide nothing."""
MOST_NAMES = 2
LOOP_WEIGHT = 8
"""An expression with a loop costs as much as so many plain ones."""
_LONGEST_TEXT, _MOST_PIECES = 256, 64
"""That a function makes. Texts of devices have 64 characters."""


class SelectorError(ValueError):
    """An expression cannot be read, or has no answer for a device; the message says why."""


class _Read(Struct, frozen=True):
    program: cel.Program
    domains: list[tuple[str, str]]
    """That it names, of attributes or capacity."""
    words: frozenset[str] | None
    """All that it says. What a device calls otherwise does not matter to it; None: everything may."""


class Selectors:
    """All expressions that anybody has asked for, with their answers: devices that are the same to an expression are
    asked once. Those of a cluster differ in hardly more than their numbers."""

    def __init__(self) -> None:
        self._read: dict[str, _Read | str] = {}
        self._answers: dict[tuple[str, bytes], bool | str] = {}

    def keep_only(self, expressions: Set[str]) -> None:
        self._read = {text: read for text, read in self._read.items() if text in expressions}
        self._answers = {key: answer for key, answer in self._answers.items() if key[0] in expressions}

    def trouble(self, expression: str) -> str:
        """Why it can be asked of no device at all; empty if it can."""
        found = self._reading(expression)
        return found if isinstance(found, str) else ""

    def accepts(self, expression: str, driver: str, device: Device) -> bool:
        """Raises SelectorError."""
        read = self._reading(expression)
        if isinstance(read, str):
            raise SelectorError(read)
        seen = device if read.words is None else _as_seen(device, driver, read.words)
        key = (expression, msgspec.json.encode((driver, seen.attributes, seen.capacity)))
        if (answer := self._answers.get(key)) is None:
            if len(self._answers) >= _MOST_KNOWN:
                self._answers.clear()
            answer = self._answers[key] = _ask(read, driver, seen)
        if isinstance(answer, str):
            raise SelectorError(answer)
        return answer

    def _reading(self, expression: str) -> _Read | str:
        if expression not in self._read:
            if len(self._read) >= _MOST_READ:
                self._read.clear()
            self._read[expression] = _compiled(expression)
        return self._read[expression]


def _ask(read: _Read, driver: str, device: Device) -> bool | str:
    import cel  # noqa: PLC0415 - see above

    context = cel.Context()
    for name, function in _FUNCTIONS.items():
        context.add_function(name, function)
    try:
        context.add_variable("device", described(driver, device, read.domains))
        answer = read.program.execute(context)
    except _ERRORS as error:
        return _told(error)
    return answer if isinstance(answer, bool) else f"gives {answer!r}, which is neither true nor false"


def _as_seen(device: Device, driver: str, words: frozenset[str]) -> Device:
    """With what the expression could ask for, and something in every domain that there is."""
    found: dict[str, Attribute] = {}
    for name, value in (device.attributes or {}).items():
        domain, word = qualified(name, driver)
        if word in words or value == _NO_VALUE:
            found[name] = value
        else:
            found.setdefault(f"{domain}/", _SOMETHING)
    sizes: dict[str, Capacity] = {}
    for name, size in (device.capacity or {}).items():
        domain, word = qualified(name, driver)
        sizes |= {name: size} if word in words else {f"{domain}/": Capacity()}
    return Device(
        name="", attributes=found, capacity=sizes, allow_multiple_allocations=device.allow_multiple_allocations
    )


def described(driver: str, device: Device, domains: list[tuple[str, str]] = []) -> dict[str, Any]:  # noqa: B006
    """As an expression sees it. `domains`: those that it names, of attributes or capacity. Raises SelectorError."""
    attributes: dict[str, dict[str, Any]] = {}
    for name, attribute in (device.attributes or {}).items():
        domain, word = qualified(name, driver)
        attributes.setdefault(domain, {})[word] = _value(name, attribute)
    capacity: dict[str, dict[str, Any]] = {}
    for name, amount in (device.capacity or {}).items():
        domain, word = qualified(name, driver)
        capacity.setdefault(domain, {})[word] = _quantity(amount.value)
    named = {"attributes": dict(attributes), "capacity": dict(capacity)}
    for kind, domain in domains:
        named[kind].setdefault(domain, {})
    return {
        "driver": driver,
        "allowMultipleAllocations": bool(device.allow_multiple_allocations),
        "attributes": attributes,
        "capacity": capacity,
        **{f"{kind}_named": found for kind, found in named.items()},
    }


def qualified(name: str, driver: str) -> tuple[str, str]:
    """A name without a domain is the driver's own."""
    domain, slash, word = name.partition("/")
    return (domain, word) if slash else (driver, name)


def _value(name: str, attribute: Attribute) -> Any:
    if attribute.version is not None:
        return _version(attribute.version)
    for value in (attribute.whole, attribute.truth, attribute.text):
        if value is not None:
            return value
    raise SelectorError(f"attribute {name} has a value of a kind that is not known")


# -- reading an expression --------------------------------------------------------------------------------------------


def _compiled(expression: str) -> _Read | str:
    if trouble := _too_much(expression):
        return trouble
    import cel  # noqa: PLC0415 - see above

    try:
        named, domains = _with_domains(_without_binds(expression))
        program = cel.compile(named)
        unknown = sorted(_NAMESPACES & set(program.variables()))
        unknown += sorted(set(program.functions()) - _MACROS - _BUILT_IN - _CONVERSIONS - _FUNCTIONS.keys())
    except _ERRORS as error:
        return _told(error)
    unknown = [name for name in unknown if name[:1].isalpha()]
    if unknown:
        return f"the function {unknown[0]} is not known"
    everything = _ITERATES.search(expression) is not None
    return _Read(program, domains, None if everything else frozenset(_WORD.findall(expression)))


def _too_much(expression: str) -> str:
    """Why it could cost too much; empty if it cannot."""
    if len(expression) > LONGEST:
        return f"it has {len(expression)} characters, and at most {LONGEST} are read"
    loops, names = len(_LOOP.findall(expression)), len(_NAME.findall(expression))
    if loops > 1 or names > MOST_NAMES or (loops and names):
        return (
            f"it goes through a list or binds a name {loops + names} times: one loop, or {MOST_NAMES} names, are read"
        )
    if (loops or names) and len(expression) > LONGEST_LOOP:
        told = f"it goes through a list or binds names, and has {len(expression)} characters"
        return f"{told}: at most {LONGEST_LOOP} are read of such a one"
    return ""


def weight(expression: str) -> int:
    """What it costs, in plain expressions."""
    return LOOP_WEIGHT if _LOOP.search(expression) else 1


def _with_domains(expression: str) -> tuple[str, list[tuple[str, str]]]:
    """`device.attributes["d"]` names a domain: it is there, if empty. `"d" in device.attributes` asks whether it is."""
    domains: list[tuple[str, str]] = []

    def named(found: re.Match[str]) -> str:
        domains.append((found[1], found[2][1:-1]))
        return f"device.{found[1]}_named[{found[2]}]"

    return _DOMAIN.sub(named, expression), domains


def _without_binds(expression: str) -> str:
    """`cel.bind(x, e, body)` is `[e].map(x, body)[0]`."""
    while (at := _found_bind(expression)) is not None:
        start, opened = at
        parts, end = _arguments(expression, opened)
        if len(parts) != 3:
            raise SelectorError(f"cel.bind takes a name, a value and an expression, not {len(parts)}")
        name, value, body = (part.strip() for part in parts)
        expression = f"{expression[:start]}[{value}].map({name}, {body})[0]{expression[end:]}"
    return expression


_BIND = re.compile(r"\bcel\s*\.\s*bind\s*\(")


def _found_bind(expression: str) -> tuple[int, int] | None:
    blank = _LITERAL.sub(lambda found: "_" * len(found[0]), expression)
    found = _BIND.search(blank)
    return (found.start(), found.end()) if found else None


def _arguments(expression: str, opened: int) -> tuple[list[str], int]:
    """Of a call whose bracket has just been opened; where it is closed."""
    blank = _LITERAL.sub(lambda found: "_" * len(found[0]), expression)
    parts: list[str] = []
    depth, begun = 0, opened
    for at in range(opened, len(blank)):
        if blank[at] in "([{":
            depth += 1
        elif blank[at] in ")]}" and depth:
            depth -= 1
        elif blank[at] == ")":
            return [*parts, expression[begun:at]], at + 1
        elif blank[at] == "," and not depth:
            parts.append(expression[begun:at])
            begun = at + 1
    raise SelectorError("a bracket is not closed")


def _told(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"{error.args[0]} is not there; ask for it with has() first"
    return " ".join(str(error).split())[:300] or type(error).__name__


# -- quantities and versions ------------------------------------------------------------------------------------------


def _quantity(written: Any) -> dict[str, str]:
    try:
        return {_QUANTITY: str(exact(written))}
    except QuantityError as error:
        raise SelectorError(str(error)) from None


def _version(written: str) -> dict[str, str]:
    found = _SEMVER.fullmatch(written)
    if found is None:
        raise SelectorError(f"{written!r} is no version: write 1.2.3")
    return {_VERSION: written.partition("+")[0]}


def _is(read: Callable[[str], object]) -> Callable[[str], bool]:
    def answer(written: str) -> bool:
        try:
            read(written)
        except SelectorError:
            return False
        return True

    return answer


def _compare(one: Mapping[str, str], other: Mapping[str, str]) -> int:
    if _QUANTITY in one and _QUANTITY in other:
        left, right = Fraction(one[_QUANTITY]), Fraction(other[_QUANTITY])
        return (left > right) - (left < right)
    if _VERSION in one and _VERSION in other:
        ours, theirs = _rank(one[_VERSION]), _rank(other[_VERSION])
        return (ours > theirs) - (ours < theirs)
    raise SelectorError("only two quantities, or two versions, can be compared")


def _rank(version: str) -> tuple[Any, ...]:
    """By the rules of semantic versions: what comes before a release is less than it, numbers are less than words."""
    numbers, _, before = version.partition("-")
    words = before.split(".") if before else []
    parts = tuple((0, int(word), "") if word.isdigit() else (1, 0, word) for word in words)
    return (*map(int, numbers.split(".")), not before, parts)


def _part(number: int) -> Callable[[Mapping[str, str]], int]:
    return lambda version: int(version[_VERSION].partition("-")[0].split(".")[number])


def _sum(sign: int) -> Callable[[Mapping[str, str], Any], dict[str, str]]:
    def total(one: Mapping[str, str], other: Any) -> dict[str, str]:
        more = Fraction(other[_QUANTITY]) if isinstance(other, Mapping) else Fraction(other)
        return {_QUANTITY: str(Fraction(one[_QUANTITY]) + sign * more)}

    return total


def _sign(one: Mapping[str, str]) -> int:
    amount = Fraction(one[_QUANTITY])
    return (amount > 0) - (amount < 0)


def _as_integer(one: Mapping[str, str]) -> int:
    amount = Fraction(one[_QUANTITY])
    if amount.denominator != 1:
        raise SelectorError("the quantity is no whole number")
    return int(amount)


def _replace(text: str, old: str, new: str) -> str:
    if len(text) + text.count(old) * max(len(new) - len(old), 0) > _LONGEST_TEXT:
        raise SelectorError(f"replace() makes a text of more than {_LONGEST_TEXT} characters")
    return text.replace(old, new)


def _split(text: str, by: str) -> list[str]:
    if text.count(by) >= _MOST_PIECES:
        raise SelectorError(f"split() makes more than {_MOST_PIECES} pieces")
    return text.split(by)


def _substring(text: str, start: int, end: int | None = None) -> str:
    return text[start:end]


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "quantity": _quantity,
    "isQuantity": _is(_quantity),
    "semver": _version,
    "isSemver": _is(_version),
    "compareTo": _compare,
    "isGreaterThan": lambda one, other: _compare(one, other) > 0,
    "isLessThan": lambda one, other: _compare(one, other) < 0,
    "add": _sum(1),
    "sub": _sum(-1),
    "sign": _sign,
    "isInteger": lambda one: Fraction(one[_QUANTITY]).denominator == 1,
    "asInteger": _as_integer,
    "asApproximateFloat": lambda one: float(Fraction(one[_QUANTITY])),
    "major": _part(0),
    "minor": _part(1),
    "patch": _part(2),
    "lowerAscii": lambda text: text.lower(),
    "upperAscii": lambda text: text.upper(),
    "trim": lambda text: text.strip(),
    "replace": _replace,
    "split": _split,
    "substring": _substring,
    "indexOf": lambda text, part: text.find(part),
    "lastIndexOf": lambda text, part: text.rfind(part),
}
