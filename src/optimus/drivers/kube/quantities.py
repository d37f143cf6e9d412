"""Quantities of Kubernetes as integers: `500m`, `2Gi`, `1e3`, 4.

Why: the brain counts in integers; the API server writes amounts in a notation of its own.
Owns: the notation, and what to say about text that is none.
Must not: know resources (`requests`, `nodes`).

Whole numbers are rounded up, as Kubernetes does when it compares; only memory, which the brain counts in MiB, is
rounded against whoever would gain: up where it is asked for, down where it is there.
"""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from optimus.drivers.kube.objects import Quantity
from optimus.model.units import LARGEST, MIB

_WRITTEN = re.compile(r"([+-]?)([0-9]+\.?[0-9]*|\.[0-9]+)(?:([KMGTPE]i|[numkMGTPE])|[eE]([+-]?[0-9]{1,3}))?", re.ASCII)
_SCALE = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    **{suffix: Fraction(10 ** (3 * power)) for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": Fraction(1 << (10 * power)) for power, suffix in enumerate("KMGTPE", start=1)},
}
_LARGEST_POWER = 60
_LONGEST_TEXT = 80


class QuantityError(ValueError):
    """Text that is no quantity; the message says which, and how one looks."""

    def __init__(self, message: str, *, too_large: bool = False) -> None:
        super().__init__(message)
        self.too_large = too_large


def whole(quantity: Quantity) -> int:
    """Pieces or bytes, rounded up."""
    return _rounded(quantity, 1)


def milli(quantity: Quantity) -> int:
    """Thousandths, rounded up."""
    return _rounded(quantity, 1000)


def mib_up(size: int) -> int:
    """Bytes that are asked for."""
    return -(-size // MIB)


def mib_down(size: int) -> int:
    """Bytes that are there."""
    return size // MIB


@lru_cache(maxsize=8192)
def _rounded(quantity: Quantity, times: int) -> int:
    number = exact(quantity) * times
    if abs(number) > LARGEST:
        raise QuantityError(f"{_shown(quantity)} is too large: at most 2^53", too_large=number > 0)
    return -(-number.numerator // number.denominator)


def exact(quantity: Quantity) -> Fraction:
    """Not rounded."""
    if isinstance(quantity, bool) or not isinstance(quantity, str):
        return Fraction(Decimal(repr(quantity))) if isinstance(quantity, float) else Fraction(int(quantity))
    found = _WRITTEN.fullmatch(quantity) if len(quantity) <= _LONGEST_TEXT else None
    if found is None:
        raise QuantityError(f"{_shown(quantity)} is no quantity: write 2, 500m or 4Gi")
    sign, digits, suffix, power = found.groups()
    number = Fraction(Decimal(digits)) * _SCALE[suffix or ""]
    if power and number:
        if abs(int(power)) > _LARGEST_POWER:
            raise QuantityError(f"{quantity!r} is too large or too small to count", too_large=power[0] != "-")
        number *= Fraction(10) ** int(power)
    return -number if sign == "-" else number


def _shown(quantity: Quantity) -> str:
    text = repr(quantity)
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"
