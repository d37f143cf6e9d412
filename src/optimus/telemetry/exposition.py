"""Samples as the text that Prometheus reads.

    WAITING = Metric("optimus_workloads_waiting", Kind.GAUGE, "Workloads that wait.", ("queue", "reason"))
    text_of([Family(WAITING, {("vision", "NoRoom"): 3})])

Why: most of what is told here is known anyway (tables, counters of a client); it is read when somebody asks. A registry
that is told every change would be a second copy of the truth.
Owns: the text format, and histograms, since nobody keeps those anyway.
Must not: know what a metric means.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Labels = tuple[str, ...]
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
LONG_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 86400.0)
"""For waiting, which may take a day."""


class Kind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Metric(Struct, frozen=True):
    name: str
    kind: Kind
    help: str
    labels: Labels = ()


class Histogram:
    """How often a value was at most each bound."""

    def __init__(self, bounds: tuple[float, ...] = SECONDS) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def add(self, counts: Sequence[int], total: float) -> None:
        """What somebody else has counted, with the same bounds."""
        self.counts = [mine + theirs for mine, theirs in zip(self.counts, counts, strict=True)]
        self.sum += total


Sample = float | Histogram


class Family(Struct, frozen=True):
    """One metric with its samples, by the values of its labels."""

    metric: Metric
    samples: Mapping[Labels, Sample]


def text_of(families: Iterable[Family]) -> str:
    lines: list[str] = []
    for family in families:
        metric = family.metric
        lines.append(f"# HELP {metric.name} {_escaped(metric.help)}")
        lines.append(f"# TYPE {metric.name} {metric.kind}")
        for values, sample in sorted(family.samples.items(), key=lambda pair: pair[0]):
            assert len(values) == len(metric.labels), f"{metric.name} has labels {metric.labels}, not {values}"
            lines += _lines(metric.name, list(zip(metric.labels, values, strict=True)), sample)
    return "\n".join(lines) + "\n"


def _lines(name: str, labels: list[tuple[str, str]], sample: Sample) -> list[str]:
    match sample:
        case Histogram():
            found, total = [], 0
            for bound, count in zip((*sample.bounds, math.inf), sample.counts, strict=True):
                total += count
                found.append(f"{name}_bucket{_braces([*labels, ('le', _number(bound))])} {total}")
            return [
                *found,
                f"{name}_sum{_braces(labels)} {_number(sample.sum)}",
                f"{name}_count{_braces(labels)} {total}",
            ]
        case _:
            return [f"{name}{_braces(labels)} {_number(sample)}"]


def _braces(labels: list[tuple[str, str]]) -> str:
    told = ",".join(f'{name}="{_escaped(value, quoted=True)}"' for name, value in labels)
    return f"{{{told}}}" if told else ""


def _escaped(text: str, *, quoted: bool = False) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quoted else text


def _number(value: float) -> str:
    if value == math.inf:
        return "+Inf"
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))
