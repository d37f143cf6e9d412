"""The page: one file that opens anywhere, without a network, and tells the whole study.

Why: a result is shared as a file. Whoever opens it sees the claim, what supports it, who pays, and how to do it again.
Owns: the order of things and the provenance.
Must not: fetch anything, read a clock, or depend on a library in the browser. The same study gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from optimus.drivers.sim.measuring.study import Study
from optimus.drivers.sim.report import overview, sections, versus
from optimus.drivers.sim.report.html import described, html_table, scheduler_mark, section
from optimus.drivers.sim.report.look import STYLE
from optimus.drivers.sim.report.numbers import count, duration
from optimus.drivers.sim.report.script import SCRIPT

_ICON = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg'/%3E"
MOST_PROBLEMS = 20

_WORDS = (
    ("JCT", "completion − submission, of all jobs that finished; the simulation runs until nothing is left."),
    ("waiting", "all time without resources between submission and end, also after a preemption."),
    ("slowdown", "JCT / ideal time: undisturbed, as its owner asked for it."),
    ("ρ", "JCT / T alone. T alone = ideal time × max(1, GPUs asked for × N / GPUs of the cluster)."),
    ("N", "the average number of jobs that were present between the submission and the end of a job, itself included."),
    (
        "allocated",
        "GPU time that jobs held, left or had kept for them, as part of what was up in that time.",
    ),
    ("useful", "allocated without starts, restarts, leaving, and work that was lost and done again."),
    ("goodput", "GPU time that the finished work would have taken undisturbed, as part of the same whole."),
    ("due", "guarantees first, the rest by weight among queues whose jobs ask for more, at every moment."),
    ("Jain", "(Σx)² / (n Σx²) over queues, x = GPU-hours held / GPU-hours due."),
    ("starved", "not finished though the reference did, or a wait more than twice the longest under the reference."),
)


class Tab(NamedTuple):
    """A report on a page with several."""

    title: str
    at: str
    """Its address on the page."""


def page(study: Study) -> str:
    """The whole HTML file."""
    return document(study.provenance.trace, study.optimus, report(study))


def document(title: str, version: str, *reports: str) -> str:
    """One file around one report or several."""
    told = escape(title)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<title>{told} · Optimus simulation</title><link rel="icon" href="{_ICON}"><style>{STYLE}</style></head>'
        f"<body>{''.join(reports)}<footer>Optimus {escape(version)} · {told}</footer>"
        f'<div id="tip"></div><script>{SCRIPT}</script></body></html>\n'
    )


def report(study: Study, *, tabs: Sequence[Tab] = (), at: str = "") -> str:
    return titled_report(
        study.provenance.trace,
        scene(study),
        [m.name for m in study.measured],
        versus.claims(study),
        html_table(overview.completion(study)),
        versus.forest(study),
        html_table(overview.utilisation(study)),
        html_table(overview.disturbance(study)),
        html_table(overview.by_trace(study)) if len(study.each) > 1 else "",
        sections.completion(study),
        sections.over_time(study),
        sections.by_queue(study),
        sections.fairness(study),
        sections.sizes(study),
        sections.fragmentation(study),
        versus.winners_and_losers(study),
        provenance(study),
        tabs=tabs,
        at=at,
    )


def titled_report(
    title: str, told: str, schedulers: Sequence[str], *body: str, tabs: Sequence[Tab] = (), at: str = ""
) -> str:
    """A title, what it is about, the schedulers that can be hidden, and the rest."""
    address = f' id="{escape(at)}"' if at else ""
    return (
        f'<div class="report"{address}><header class="top"><h1>{escape(title)}</h1>'
        f'<p class="scene">{escape(told)}</p></header>{_bar(schedulers, tabs, at)}<main>{"".join(body)}</main></div>'
    )


def scene(study: Study) -> str:
    told, cluster = study.measured[0].metrics, study.cluster
    queues = len(told.queues)
    parts = [
        f"{count(told.jobs)} jobs of {queues} queue{'s' * (queues != 1)}",
        f"{count(cluster.gpus)} GPUs on {count(cluster.nodes)} node{'s' * (cluster.nodes != 1)}",
        f"{duration(told.makespan_ms)} under {told.scheduler}",
    ]
    if study.comparisons and study.comparisons[0].traces > 1:
        parts.append(f"tables over {study.comparisons[0].traces} traces, curves of the first")
    return " · ".join(parts)


def _bar(schedulers: Sequence[str], tabs: Sequence[Tab], at: str) -> str:
    turns = "".join(
        f'<a class="tab" href="#{escape(tab.at)}"{" aria-current=page" if tab.at == at else ""}>{escape(tab.title)}</a>'
        for tab in tabs
    )
    chips = "".join(
        f'<button class="chip" aria-pressed="true" data-mark="{scheduler_mark(i)[1:]}">'
        f'<span class="swatch {scheduler_mark(i)}"><i></i></span>{escape(name)}</button>'
        for i, name in enumerate(schedulers)
    )
    row = f'<div class="tabs">{turns}</div>' if turns else ""
    return f'<nav>{row}<div>{chips}<span class="hint">click to hide, point at a chart to read it</span></div></nav>'


def provenance(study: Study) -> str:
    told, cluster, from_ = study.measured[0].metrics, study.cluster, study.provenance
    rhythm = f"every {duration(cluster.interval_ms)}" if cluster.interval_ms else "whenever something happens"
    takes = f"each takes {duration(cluster.decision_ms)}" if cluster.decision_ms else "they take no time"
    queues = ", ".join(cluster.queues) or "none named"
    pairs = [
        ("Trace", escape(from_.trace) + (f" ({escape(from_.source)})" if from_.source else "")),
        *([("Traces", escape(", ".join(from_.traces)))] * bool(from_.traces)),
        ("Jobs", f"{count(told.jobs)}; {_problems(study)}"),
        ("Cluster", escape(f"{count(cluster.gpus)} GPUs: {', '.join(cluster.shapes)}")),
        ("Queues", escape(queues)),
        ("Decisions", escape(f"{rhythm}; {takes} on the clock of the simulation")),
        ("Outages", count(cluster.outages)),
        ("Neighbours", escape(cluster.neighbours or "do not disturb each other")),
        *((f"Assumed: {what}", escape(cost)) for what, cost in from_.assumptions),
        ("Seeds", f"simulation {cluster.seed}, intervals {study.seed}"),
        *((f"Scheduler {name}", escape(about)) for name, about in from_.policies),
        ("Version", f"Optimus {escape(study.optimus)}, metrics {study.version}"),
    ]
    pairs += [(f"File {name}", f"<code>SHA-256 {escape(digest)}</code>") for name, digest in from_.files]
    pairs += [(f"Played {name}", f"<code>SHA-256 {escape(digest)}</code>") for name, digest in from_.played]
    pairs += [("Command", f"<code>{escape(from_.command)}</code>")] * bool(from_.command)
    pairs += [("Created", escape(from_.created))] * bool(from_.created)
    pairs += [("Note", escape(note)) for note in from_.notes]
    words = (
        "<details><summary>What the words mean</summary>"
        + described([(a, escape(b)) for a, b in _WORDS])
        + "</details>"
    )
    return section("Settings and provenance", "Everything that is needed to do this again.", described(pairs), words)


def _problems(study: Study) -> str:
    problems = study.provenance.problems
    if not problems:
        return "no problems in the trace"
    shown = "".join(f"<br>{escape(problem)}" for problem in problems[:MOST_PROBLEMS])
    more = f"<br>and {count(len(problems) - MOST_PROBLEMS)} more" if len(problems) > MOST_PROBLEMS else ""
    return f"{count(len(problems))} problem{'s' * (len(problems) != 1)} in the trace:{shown}{more}"
