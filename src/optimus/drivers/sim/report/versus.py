"""Sections about comparisons: the claims on top, and who won and who lost."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from optimus.drivers.sim.measuring.bootstrap import Verdict
from optimus.drivers.sim.measuring.comparing import Balance, Comparison
from optimus.drivers.sim.measuring.metrics import Measured
from optimus.drivers.sim.measuring.study import Study
from optimus.drivers.sim.report import overview
from optimus.drivers.sim.report.html import figure, html_table, pair, scheduler_mark, section
from optimus.drivers.sim.report.numbers import count, signed_percent
from optimus.drivers.sim.report.rows import Dot, Split, dots, histogram, splits
from optimus.drivers.sim.report.svg import Ticks, change_ticks

_RATIOS = tuple(2.0 ** ((k - 0.5) / 4) for k in range(-18, 20))
_RATIO_TICKS: Ticks = tuple((2.0**k, f"{2**k}×" if k >= 0 else f"1/{2**-k}×") for k in range(-4, 5))
MOST_CHANGE = 1.0
"""Where the axis of changes ends at most; beyond it stands an arrow with the number."""
_WORDS = {Verdict.LESS: "good", Verdict.MORE: "bad", Verdict.OPEN: "faint"}


def claims(study: Study) -> str:
    cards = []
    for i, c in enumerate(study.comparisons, start=1):
        tone = _WORDS[c.jct_ms.verdict]
        checks = "".join(f"<li{'' if met else ' class=no'}>{escape(text)}</li>" for met, text in overview.standard(c))
        b = c.all_jobs
        said = f"{count(b.won)} job{'s' * (b.won != 1)} sooner, {count(b.lost)} later, {count(b.even)} even"
        cards.append(
            f'<div class="claim {scheduler_mark(i)}"><div><p class="vs">'
            f'<b class="{scheduler_mark(i)}">{escape(c.other)}</b> against {escape(c.reference)}</p>'
            f'<p class="big {tone}">{signed_percent(c.jct_ms.relative)}<small>average completion time</small></p>'
            f'<p class="said">{said}</p></div><ul class="checks">{checks}</ul></div>'
        )
    return f'<div class="claims">{"".join(cards)}</div>' if cards else ""


def forest(study: Study) -> str:
    """Differences and their intervals side by side; with one comparison its card says it all."""
    if len(study.comparisons) < 2:
        return ""
    rows = []
    for title, field in (("completion", "jct_ms"), ("waiting", "wait_ms")):
        for i, c in enumerate(study.comparisons, start=1):
            d = getattr(c, field)
            rows.append(
                Dot(
                    group=title,
                    name=c.other,
                    mark=scheduler_mark(i),
                    value=d.relative,
                    low=d.relative_low,
                    high=d.relative_high,
                    text=overview.interval_of(d),
                )
            )
    low, high = _limits(rows)
    drawn = dots(
        "Differences with intervals",
        rows,
        (low, high),
        change_ticks(low, high),
        left=230,
        right=240,
        width=1120,
        zero=0.0,
        show=signed_percent,
    )
    reference = study.measured[0].name
    return figure("Change against " + reference, "With 95 % intervals. Left of the line is better.", drawn)


def _limits(rows: Sequence[Dot]) -> tuple[float, float]:
    """Everything up to twice the reference, so that one large change does not press the others into a point."""
    ends = [0.0, *(x for row in rows for x in (row.low, row.value, row.high) if x is not None)]
    low, high = min(ends), min(max(ends), MOST_CHANGE)
    pad = max((high - low) * 0.06, 0.005)
    return low - pad, high + pad


def winners_and_losers(study: Study) -> str:
    parts = []
    for i, c in enumerate(study.comparisons, start=1):
        inside = _versus(study.measured[0], study.measured[i], c)
        title = f"{escape(c.other)} against {escape(c.reference)}"
        summary = f'<summary><b class="{scheduler_mark(i)}">{title}</b></summary>'
        parts.append(f"<details{' open' if i == 1 else ''}>{summary}{inside}</details>")
    about = "A job is sooner or later when its completion time changes by more than a second and one percent."
    return section("Winners and losers", about, *parts) if parts else ""


def _versus(reference: Measured, other: Measured, c: Comparison) -> str:
    rows = [_split("all jobs", c.all_jobs)]
    rows += [_split(overview.sized(b.name), b) for b in c.by_size]
    queues = sorted(c.by_queue, key=lambda b: -(b.won + b.lost + b.even))[:10] if len(c.by_queue) > 1 else []
    rows += [_split(b.name, b) for b in queues]
    missing = [
        f"{count(n)} {text}"
        for n, text in (
            (c.only_reference, f"finished only under {c.reference}"),
            (c.only_other, f"finished only under {c.other}"),
            (c.neither, "finished under neither"),
        )
        if n
    ]
    note = f'<p class="note bad">{escape("; ".join(missing))}. They are in no average.</p>' if missing else ""
    return (
        note
        + pair(
            figure(
                "Change of each job",
                f"Completion time under {c.other} / under {c.reference}.",
                _ratios(reference, other),
            ),
            figure(
                "Who they are",
                "Part of the jobs that completed sooner and later; mean change at the right.",
                _drawn(rows),
            ),
        )
        + pair(
            html_table(overview.changes("Largest winners", c.winners, c)),
            html_table(overview.changes("Largest losers", c.losers, c)),
        )
    )


def _split(name: str, b: Balance) -> Split:
    return Split(name=name, good=b.won, even=b.even, bad=b.lost, text=signed_percent(b.relative))


def _drawn(rows: Sequence[Split]) -> str:
    return splits("Winners and losers by size and queue", rows)


def _ratios(reference: Measured, other: Measured) -> str:
    """Of the first trace; what lies outside the axis is counted at its ends. The bin in the middle is around 1."""
    both = reference.columns.finished & other.columns.finished & (reference.columns.jct_ms > 0)
    ratio = other.columns.jct_ms[both] / reference.columns.jct_ms[both]
    edges = np.array(_RATIOS)
    counts, _ = np.histogram(np.clip(ratio, edges[0], edges[-1]), edges)
    tips = [f"{count(int(n))} jobs at {edges[i]:.2f}× to {edges[i + 1]:.2f}×" for i, n in enumerate(counts)]
    return histogram(
        "Change of completion times",
        [int(n) for n in counts],
        edges.tolist(),
        _RATIO_TICKS,
        title="completion time, ratio",
        tips=tips,
    )
