"""Concave curves for growth and sizing: the second of two doublings is worth no more than the first.

Made of + - x / and the square root alone, which give the same bits on every machine.
"""

from __future__ import annotations

import numpy as np

from optimus.decide.policies.columns import FloatArray

_LN2 = 0.6931471805599453


def root(values: FloatArray) -> FloatArray:
    root: FloatArray = np.sqrt(values)
    return root


def log(values: FloatArray) -> FloatArray:
    """Natural logarithm by + x / alone: numpy's own differs in the last bit between machines and even rows."""
    mantissa, exponent = np.frexp(values)
    z = (mantissa - 0.75) / (mantissa + 0.75)  # |z| <= 1/5: ten terms reach the last bits
    square = z * z
    series = np.zeros_like(z)
    for odd in range(21, 0, -2):
        series = series * square + 1.0 / odd
    return exponent * _LN2 + 2.0 * z * series - 0.2876820724517809  # ln(3/4)
