"""The page of an explanation: one page that reads from top to bottom.

Why: a terminal, a pipe, a notebook and whoever asks over HTTP read the same words in the same order.
Owns: these words, and what stands beside what. Styles are words that a terminal knows; `PHASE` is that of its phase.
Must not: print, or know how wide a terminal is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.cells import cell_len

from optimus.drivers.sim.forecasting.grounds import AT_LEAST, DOUBTS, GUESS
from optimus.drivers.sim.wording import count, fold_counted, list_nodes, moment, short, shorten
from optimus.engine.journal_past import SETTLED_MS
from optimus.explaining.explanation import OVER, RUNNING, Explanation, QueueTold
from optimus.explaining.starts import FORECAST, NEVER, NOW, StartTold
from optimus.explaining.suggestion import Suggestion
from optimus.explaining.trying import Outcome
from optimus.lives import in_words
from optimus.model.reasons import counted, named
from optimus.model.units import format_about_ms as about
from optimus.model.units import format_gpu, format_moment_ms

AHEAD = 5
INDENT = 2
GAP = 2
PHASE = "phase"


class Words(NamedTuple):
    text: str
    style: str = ""


class Line(NamedTuple):
    words: tuple[Words, ...] = ()


class Paragraph(NamedTuple):
    """May be wrapped."""

    words: Words
    indent: int = 0


class Columns(NamedTuple):
    rows: tuple[tuple[Words, ...], ...]
    header: tuple[str, ...] = ()


class WithPage(Explanation, frozen=True, kw_only=True, rename="camel"):
    """For whoever wants both."""

    page: str


def plain(told: Explanation) -> str:
    """As it is printed where there is neither colour nor an edge."""
    return "\n".join(line for part in page(told) for line in _lines(part))


def page(told: Explanation, *, wide: bool = False) -> Iterator[Line | Paragraph | Columns]:
    name = told.job + (f", part {told.part}" if told.part else "")
    yield Line((Words(name, "bold"), Words(f"  {told.phase}", PHASE)))
    facts: list[tuple[str, str]] = [("queue", f"{told.queue}, {told.job_class}, priority {told.priority}")]
    if told.counts:
        facts.append(("parts", ", ".join(f"{number} {phase}" for phase, number in told.counts.items())))
    facts += _where(told)
    if told.why is not None:
        facts.append(("why", shorten(f"{told.why.code}: {told.why.text}")))
    if told.size is not None:
        facts.append(("size", f"{counted(len(told.replicas), 'replica')}: {told.size.code}: {shorten(told.size.text)}"))
    facts += [("in use", _queue(told.queue, one)) for one in told.queue_gpus]
    if told.ahead is not None:
        facts.append(("ahead", _ahead(told, AHEAD if not wide else len(told.ahead))))
    if told.start is not None:
        facts += _start(told.start, told.at_ms)
    yield Columns(tuple((Words(key, "dim"), Words(value)) for key, value in facts))
    for note in told.notes:
        yield Paragraph(Words(note, "yellow"), INDENT)
    if told.start is None or told.start.state == NOW:
        return
    yield Line()
    if not told.suggestions:
        yield Paragraph(Words("No single change that was tried would start it now.", "dim"))
        return
    yield Line((Words("What would start it now", "bold"),))
    yield Columns(tuple(map(_suggestion, told.suggestions)), header=("change", "write", "what follows"))
    yield Paragraph(Words(_how(told), "dim"), INDENT)


def _lines(part: Line | Paragraph | Columns) -> Iterator[str]:
    match part:
        case Line(words):
            yield "".join(word.text for word in words)
        case Paragraph(words, indent):
            yield " " * indent + words.text
        case Columns(rows, header):
            table = [header] * bool(header) + [tuple(word.text for word in row) for row in rows]
            widths = [max(map(cell_len, column)) for column in zip(*table, strict=True)]
            for row in table:
                cells = [cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)]
                yield (" " * INDENT + (" " * GAP).join(cells)).rstrip()


def _where(told: Explanation) -> list[tuple[str, str]]:
    if told.state == OVER:
        return [("ended", format_moment_ms(told.ended_ms, told.at_ms))] if told.ended_ms is not None else []
    if told.state != RUNNING and not told.replicas:
        return [("waits", f"for {about(max(told.at_ms - told.submitted_ms, 0))}")]
    facts = [("runs", list_nodes(one.node for one in told.replicas))] if told.replicas else []
    since = told.since_ms
    if since is not None:
        facts.append(("since", f"{format_moment_ms(since, told.at_ms)} ({about(max(told.at_ms - since, 0))})"))
    return facts


def _queue(queue: str, one: QueueTold) -> str:
    limit = f", limit {format_gpu(one.limit_milli)}" if one.limit_milli is not None else ""
    return (
        f"queue {queue} has {format_gpu(one.in_use_milli)} of {format_gpu(one.wanted_milli)} GPUs it asks for in pool "
        f"{one.pool}; due {format_gpu(one.share_milli)}, guarantee {format_gpu(one.guarantee_milli)}{limit}"
    )


def _ahead(told: Explanation, most: int) -> str:
    if not told.ahead:
        return f"nobody: it is the first in queue {told.queue}"
    return f"{named([short(name) for name in told.ahead], most=most)} in queue {told.queue}"


def _start(start: StartTold, now_ms: int) -> list[tuple[str, str]]:
    if start.state == NOW:
        return [("starts", "now: with the next decision")]
    if start.state == NEVER:
        return [("starts", "never, as it is")]
    if start.state != FORECAST:
        return [*([("starts", f"not forecast: {start.note}")] if start.note else []), *_reserved(start, now_ms)]
    beyond = f"beyond {about(start.horizon_ms)}"
    p50 = moment(start.p50.at_ms, start.p50.in_ms, now_ms) if start.p50 else beyond
    p90 = moment(start.p90.at_ms, start.p90.in_ms, now_ms) if start.p90 else beyond
    said = f"{p50} (P50) to {p90} (P90)" if p50 != p90 else p50
    if start.claim == AT_LEAST:
        said += f", or later: {DOUBTS[AT_LEAST]}"
    elif start.claim == GUESS:
        earliest = moment(start.earliest.at_ms, start.earliest.in_ms, now_ms) if start.earliest else beyond
        said = f"hardly before {earliest}; a guess is {said}: {DOUBTS[GUESS]}"
    facts = [("starts", said), *_reserved(start, now_ms)]
    if start.behind:
        facts.append(("behind", named([short(name) for name in start.behind], most=AHEAD)))
    based = ", ".join(f"{number} {basis}" for basis, number in start.rests_on.items())
    running = f"; run times of what runs: {based}" if based else ""
    seen = f"{count(start.samples, 'future')} from {format_moment_ms(now_ms - now_ms % 1000, now_ms)} on"
    facts.append(("rests on", f"{seen}, {newcomers(start)}{running}"))
    return [*facts, *([("", start.note)] if start.note else [])]


def newcomers(start: StartTold) -> str:
    rate = start.arrivals_per_hour
    if not rate:
        return "nobody else comes"
    often = f"{rate:.2g}" if rate < 10 else f"{rate:,.0f}"
    young = start.arrivals_known_ms < SETTLED_MS
    return f"{often} newcomers an hour" + (f" as in the last {about(start.arrivals_known_ms)}" if young else "")


def _reserved(start: StartTold, now_ms: int) -> list[tuple[str, str]]:
    """Beside the forecast, which knows more: it says what the two have to do with each other."""
    if start.reserved is None:
        return []
    when = moment(start.reserved.at_ms, start.reserved.in_ms, now_ms)
    if start.p90 is not None and start.p90.at_ms <= start.reserved.at_ms:
        return [("reserved", f"{when} at the latest, counted cautiously; it starts as soon as there is room")]
    return [("reserved", f"{when}, if what it waits for ends as expected; it is later where that runs longer")]


def _suggestion(one: Suggestion) -> tuple[Words, ...]:
    whose = "" if one.of == "job" else f" ({one.of})"
    style = "yellow" if one.outcome.held else "green"
    return Words(one.words), Words(one.field + whose, "cyan"), Words(_follows(one.outcome), style)


def _follows(outcome: Outcome) -> str:
    where = f" in pool {outcome.pool}" if outcome.pool != "default" else ""
    if not outcome.held:
        return f"starts at once{where} with {count(outcome.replicas, 'replica')}"
    done = [
        f"{verb} {fold_counted([short(name) for name in names])}{_price(outcome, names)}"
        for verb, names in (("stopping", outcome.stopped), ("moving", outcome.moved), ("shrinking", outcome.shrunk))
        if names
    ]
    if done:
        return f"starts{where} by {', '.join(done)}"
    return f"starts{where} when {named([short(name) for name in outcome.waits_for])} left"


def _price(outcome: Outcome, names: Sequence[str]) -> str:
    """What those lose who would be stopped or moved."""
    said = in_words([loss for loss in outcome.losses if loss.workload in names])
    return f", which {said}" if said and len(names) == 1 else f" ({said})" if said else ""


def _how(told: Explanation) -> str:
    if any(one.kind == "resume" for one in told.suggestions):
        return f"Resume it:  optimus resume job {short(told.job)}"
    return (
        f"Each was tried alone, on a copy. A job is changed by submitting it anew: optimus get job {short(told.job)} "
        f"-o yaml, optimus cancel job {short(told.job)}, optimus submit. A queue is submitted again."
    )
