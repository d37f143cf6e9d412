"""Quantities as people write them, turned into exact integers and back.

Why: every layer counts in integers (thousandths of a device, MiB, milliseconds); people write `0.5`, `16Gi`, `2h30m`.
Owns: the notations, their limits, and the sentence that says what is wrong with a bad one.
Must not: calculate with floats. A float that arrives is read as the shortest decimal that names it, so 0.1 is 0.1.
"""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from typing import NoReturn

LARGEST = 2**53
"""Every quantity stays below this, so that sums of many still fit 64 bits and JSON readers keep every digit."""

Written = int | float | Decimal | str
"""What a file or a caller may give for a number."""

_NUMBER = re.compile(r"([+-]?)([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE]([+-]?[0-9]+))?", re.ASCII)
_STEP = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ms|[wdhms])", re.ASCII)
_LONGEST_TEXT = 80

_BYTES = {
    "": 1,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "P": 10**15,
    "E": 10**18,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
    "Pi": 2**50,
    "Ei": 2**60,
}
MIB = 2**20
_DURATION_MS = {"w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}


class UnitError(ValueError):
    """A quantity that cannot be read. `hint` says what to write instead."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


# ------------------------------------------------------------------------------------------------------ reading


def parse_gpu(value: Written) -> int:
    """`2`, `0.5`, `"250m"` -> thousandths of a device."""
    return _milli(value, "GPU", "write 2, 0.5 or 500m")


def parse_cpu(value: Written) -> int:
    """`4`, `0.5`, `"500m"` -> thousandths of a core."""
    return _milli(value, "CPU", "write 4, 0.5 or 500m")


def parse_memory(value: Written, *, round_up: bool = True) -> int:
    """`"16Gi"`, `"2G"`, plain bytes -> MiB. What is asked for is rounded up, what is there is rounded down."""
    number, suffix = _split(value, "memory", "write 16Gi, 512Mi or 2G")
    if suffix not in _BYTES:
        _refuse_memory_suffix(value, suffix)
    _refuse_negative(value, number)
    mib = number * _BYTES[suffix] / MIB
    whole = -(-mib // 1) if round_up else mib // 1
    return _exact(value, Fraction(whole), "MiB")


def parse_duration(value: Written) -> int:
    """`"30s"`, `"2h30m"`, `"1d"`, plain seconds -> milliseconds."""
    milliseconds = parse_offset(value)
    if milliseconds < 0:
        raise UnitError(f"a duration cannot be negative: {_shown(value)}")
    return milliseconds


def parse_offset(value: Written) -> int:
    """A duration with a sign, as in `"-10m"`: ten minutes ago."""
    hint = "write 30s, 5m, 2h30m, 1d, or a number of seconds"
    if not isinstance(value, str) or _NUMBER.fullmatch(value.strip()):
        number, _ = _split(value, "a duration", hint)
        return _exact(value, number * 1000, "milliseconds")
    text = value.strip()
    body = text.lstrip("+-") if text[:1] in ("+", "-") else text
    steps = _STEP.findall(body) if len(body) <= _LONGEST_TEXT else []
    if not steps or "".join(number + unit for number, unit in steps) != body or len(text) - len(body) > 1:
        raise UnitError(f"cannot be read as a duration: {_shown(value)}", hint)
    order = [list(_DURATION_MS).index(unit) for _, unit in steps]
    if order != sorted(set(order)):
        raise UnitError(f"units of a duration go from large to small, each once: {_shown(value)}", hint)
    total = sum((Fraction(number) * _DURATION_MS[unit] for number, unit in steps), Fraction(0))
    return _exact(value, -total if text[0] == "-" else total, "milliseconds")


def parse_percent(value: Written) -> int:
    """A ratio: `1.5`, `"1.5x"` and `"150%"` are all 150."""
    return _ratio(value, 100, "hundredths")


def parse_share(value: Written) -> int:
    """A part of a whole: `0.4` and `"40%"` are 400 thousandths; more than all of it is refused."""
    share = _ratio(value, 1000, "thousandths")
    if share > 1000:
        raise UnitError(f"a share cannot be more than the whole: {_shown(value)}", "write 0.4 or 40%")
    return share


def parse_count(value: Written) -> int:
    """A whole number of things, not negative."""
    number = parse_integer(value)
    if number < 0:
        raise UnitError(f"must not be negative: {_shown(value)}")
    return number


def parse_integer(value: Written) -> int:
    """A whole number that may be negative."""
    number, suffix = _split(value, "this", "write a whole number such as 4")
    if suffix or number.denominator != 1:
        raise UnitError(f"must be a whole number: {_shown(value)}")
    return _exact(value, number, "whole numbers")


def _milli(value: Written, what: str, hint: str) -> int:
    number, suffix = _split(value, what, hint)
    if suffix not in ("", "m"):
        raise UnitError(f"unknown unit {suffix!r} for {what}: {_shown(value)}", hint)
    _refuse_negative(value, number)
    return _exact(value, number if suffix else number * 1000, f"thousandths of a {what}")


def _ratio(value: Written, scale: int, what: str) -> int:
    number, suffix = _split(value, "a ratio", "write 1.5, 1.5x or 150%")
    if suffix not in ("", "x", "%"):
        raise UnitError(f"unknown unit {suffix!r} for a ratio: {_shown(value)}", "write 1.5, 1.5x or 150%")
    _refuse_negative(value, number)
    return _exact(value, number * scale / (100 if suffix == "%" else 1), what)


def _split(value: Written, what: str, hint: str) -> tuple[Fraction, str]:
    """The number, exactly as written, and what follows it."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        raise UnitError(f"{what} must be a number, not {_kind(value)}", hint)
    if isinstance(value, int):
        if abs(value) > LARGEST:
            _refuse_size(value)
        return Fraction(value), ""
    text = value.strip() if isinstance(value, str) else repr(value) if isinstance(value, float) else str(value)
    if text.lower().lstrip("+-.") in ("nan", "inf", "infinity", "snan"):
        raise UnitError(f"{what} must be a finite number, not {text}", hint)
    match = _NUMBER.match(text) if len(text) <= _LONGEST_TEXT else None
    if match is None:
        if len(text) > _LONGEST_TEXT and text.lstrip("+-").isdigit():
            _refuse_size(text)
        raise UnitError(f"{what} must be a number: {_shown(value)}", hint)
    number = Fraction(match[1] + match[2])
    if number and match[3]:
        exponent = int(match[3])
        if exponent > 60:
            _refuse_size(value)
        if exponent < -60:
            raise UnitError(f"is too small to count: {_shown(value)}", hint)
        number *= Fraction(10) ** exponent
    return number, text[match.end() :].strip()


def _refuse_negative(value: Written, number: Fraction) -> None:
    if number < 0:
        raise UnitError(f"must not be negative: {_shown(value)}")


def _exact(value: Written, number: Fraction, unit: str) -> int:
    if abs(number) > LARGEST:
        _refuse_size(value)
    if number.denominator != 1:
        raise UnitError(f"is finer than {unit}: {_shown(value)}", f"only {unit} are counted")
    return int(number)


def _refuse_size(value: Written) -> NoReturn:
    raise UnitError(f"is too large: {_shown(value)}", "the largest quantity is 2^53 in the smallest unit")


def _refuse_memory_suffix(value: Written, suffix: str) -> NoReturn:
    known = {name.lower(): name for name in _BYTES}
    close = known.get(suffix.lower()) or known.get(suffix.lower().removesuffix("b")) or ""
    number = str(value).strip().removesuffix(suffix).strip()
    hint = f"did you mean {number}{close}?" if close else "units are Ki, Mi, Gi, Ti (or k, M, G, T), or none for bytes"
    if suffix == "m":
        hint = f"m is thousandths; did you mean {number}Mi?"
    raise UnitError(f"unknown unit {suffix!r} for memory: {_shown(value)}", hint)


def _kind(value: object) -> str:
    names: dict[type, str] = {bool: "true or false", type(None): "nothing", dict: "a mapping", list: "a list"}
    return next((name for kind, name in names.items() if isinstance(value, kind)), type(value).__name__)


def _shown(value: object) -> str:
    text = str(value) if not isinstance(value, int) or abs(value) < 10**40 else "a number of more than 40 digits"
    if not text.strip():
        return "''"
    return text if len(text) <= 40 else text[:37] + "..."


# ------------------------------------------------------------------------------------------------------ showing


def format_gpu(gpu_milli: int) -> str:
    """2500 -> `2.5`."""
    return _decimal(gpu_milli, 1000)


def format_cpu(cpu_milli: int) -> str:
    return _decimal(cpu_milli, 1000)


def format_memory(mib: int) -> str:
    """16384 -> `16Gi`; the largest unit that needs no fraction."""
    units = ("Mi", "Gi", "Ti", "Pi", "Ei")
    step = 0
    while mib and mib % 1024 == 0 and step < len(units) - 1:
        mib //= 1024
        step += 1
    return f"{mib}{units[step]}" if mib else "0"


def format_resource(resource: str, amount: int) -> str:
    """An amount in the unit that its resource is counted in: thousandths, MiB or pieces."""
    if resource in ("gpu", "cpu"):
        return _decimal(amount, 1000)
    return format_memory(amount) if resource == "memory" else str(amount)


def format_ratio(percent: int) -> str:
    """150 -> `1.5x`."""
    return f"{_decimal(percent, 100)}x"


def format_duration_ms(milliseconds: int) -> str:
    """9000000 -> `2h30m`; exact, so that it can be read back."""
    if milliseconds == 0:
        return "0s"
    rest = abs(milliseconds)
    parts = ["-"] if milliseconds < 0 else []
    for unit, size in list(_DURATION_MS.items())[1:]:  # weeks read worse than days
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)


def format_about_ms(milliseconds: int) -> str:
    """Two units are enough for what nobody knows better: `2h10m`, `3d4h`, `40s`."""
    for above, unit in ((86_400_000, 3_600_000), (3_600_000, 60_000), (60_000, 60_000)):
        if milliseconds >= above:
            return format_duration_ms(round(milliseconds / unit) * unit)
    return format_duration_ms(round(milliseconds / 1000) * 1000)


def format_clock_ms(milliseconds: int) -> str:
    """Time of day (UTC) of a moment since 1970: `14:20`, with seconds where they are not zero."""
    seconds = milliseconds // 1000 % 86_400
    hours, minutes, seconds = seconds // 3600, seconds // 60 % 60, seconds % 60
    return f"{hours:02}:{minutes:02}" + (f":{seconds:02}" if seconds else "")


def format_moment_ms(milliseconds: int, now_ms: int) -> str:
    """A moment as seen from now: `14:20` today, `2026-01-06 14:20` on another day (UTC)."""
    clock = format_clock_ms(milliseconds)
    days = milliseconds // 86_400_000
    return clock if days == now_ms // 86_400_000 else f"{_date(days)} {clock}"


def format_time_ms(milliseconds: int) -> str:
    """Date and time for programs: `2026-01-05T14:20:00Z`, with milliseconds where they are not zero."""
    seconds, rest = divmod(milliseconds % 86_400_000, 1000)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}" + (f".{rest:03}" if rest else "")
    return f"{_date(milliseconds // 86_400_000)}T{clock}Z"


def _date(days: int) -> str:
    """Days since 1970 as a civil date (the proleptic Gregorian calendar, in integers)."""
    days += 719_468
    era, day_of_era = divmod(days, 146_097)
    year_of_era = (day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    return f"{year_of_era + era * 400 + (month <= 2):04}-{month:02}-{day:02}"


def _decimal(amount: int, scale: int) -> str:
    """Exact, without a trailing zero or point."""
    sign = "-" if amount < 0 else ""
    whole, part = divmod(abs(amount), scale)
    digits = len(str(scale)) - 1
    return f"{sign}{whole}.{part:0{digits}}".rstrip("0") if part else f"{sign}{whole}"
