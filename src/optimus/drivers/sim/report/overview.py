"""Overview: what a study shows, as tables.

Why: terminal and page must agree to the last digit, so both take their tables from here.
Owns: which metric stands where, in which unit and with which note.
Must not: compute metrics, or know how a table is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from optimus.drivers.sim.measuring.bootstrap import Difference, Over, Verdict
from optimus.drivers.sim.measuring.columns import SIZES
from optimus.drivers.sim.measuring.comparing import Changed, Comparison
from optimus.drivers.sim.measuring.metrics import Metrics
from optimus.drivers.sim.measuring.spreads import Spread
from optimus.drivers.sim.measuring.study import Study
from optimus.drivers.sim.report.cells import Cell, Column, Table, Tone
from optimus.drivers.sim.report.numbers import (
    NONE,
    Unit,
    count,
    duration,
    fixed,
    grouped,
    interval,
    percent,
    signed_duration,
    signed_percent,
    unit_for,
)

_TONES = {Verdict.LESS: Tone.GOOD, Verdict.MORE: Tone.BAD, Verdict.OPEN: Tone.FAINT}


def tables(study: Study) -> Iterator[Table]:
    """All but who won and who lost."""
    yield completion(study)
    yield utilisation(study)
    yield disturbance(study)
    yield by_size(study)
    if len(study.mean[0].queues) > 1:
        yield by_queue(study)
    fragments = fragmentation(study)
    if fragments is not None:
        yield fragments
    if len(study.each) > 1:
        yield by_trace(study)


def completion(study: Study) -> Table:
    told = study.mean
    jct, wait = unit_for(m.jct_ms.average for m in told), unit_for(m.wait_ms.average for m in told)
    against = {c.other: c for c in study.comparisons}
    rows = []
    for m in told:
        change = against.get(m.scheduler)
        rows.append(
            (
                Cell(m.scheduler, Tone.STRONG),
                *(Cell(jct.show(x)) for x in (m.jct_ms.average, m.jct_ms.median, m.jct_ms.p90, m.jct_ms.p99)),
                *change_cells(change.jct_ms if change else None),
                Cell(wait.show(m.wait_ms.average)),
                *change_cells(change.wait_ms if change else None),
                Cell(fixed(m.slowdown.average, 2)),
                left_over(m),
            )
        )
    return Table(
        title="Completion and waiting",
        columns=(
            Column("scheduler", right=False),
            Column("JCT", jct.name, about="average completion time, from submission to end, of the jobs that finished"),
            Column("median", jct.name),
            Column("p90", jct.name),
            Column("p99", jct.name),
            Column("change", about="of the average against the reference, over the jobs that both finished"),
            Column("95 % interval", about=how_drawn(study)),
            Column("waiting", wait.name, about="average time without resources, also between runs"),
            Column("change"),
            Column("95 % interval"),
            Column("slowdown", about="average of completion time / ideal time"),
            Column("not finished", about="refused or not finished; they are in no average"),
        ),
        rows=tuple(rows),
        note=how_drawn(study),
        marks=tuple(range(len(rows))),
    )


def change_cells(change: Difference | None) -> tuple[Cell, Cell]:
    if change is None:
        return Cell("reference", Tone.FAINT), Cell("", Tone.FAINT)
    if change.relative is None:  # the reference has none of it, so there is no part of it
        shown = NONE if change.low is None else f"{signed_duration(change.low)} to {signed_duration(change.high)}"
        return Cell(signed_duration(change.mean), _TONES[change.verdict]), Cell(shown, Tone.FAINT)
    shown = interval(change.relative_low, change.relative_high)
    return Cell(signed_percent(change.relative), _TONES[change.verdict]), Cell(shown, Tone.FAINT)


def left_over(m: Metrics) -> Cell:
    if not m.rejected and not m.unfinished:
        return Cell("0", Tone.FAINT)
    parts = [f"{count(m.rejected)} refused"] * bool(m.rejected) + [f"{count(m.unfinished)} open"] * bool(m.unfinished)
    return Cell(", ".join(parts), Tone.BAD)


def how_drawn(study: Study) -> str:
    """Which kind of interval it is, and what it can say."""
    if not study.comparisons:
        return ""
    first = study.comparisons[0]
    means = f"Means over {first.traces} traces. " if first.traces > 1 else ""
    if first.jct_ms.over is Over.TRACES:
        return f"{means}Intervals: 95 % bootstrap over {first.traces} traces, paired."
    which = "one trace" if first.traces == 1 else f"{first.traces} traces"
    return (
        f"{means}Intervals: 95 % bootstrap over the jobs of {which}, paired. They tell how evenly a difference is "
        "spread over jobs; only ten traces or more can tell whether it would come again."
    )


def utilisation(study: Study) -> Table:
    told = study.mean
    span = unit_for(m.makespan_ms for m in told)
    rows = tuple(
        (
            Cell(m.scheduler, Tone.STRONG),
            *(Cell(percent(x)) for x in (m.use.allocated, m.use.allocated_while_waiting, m.use.useful, m.use.goodput)),
            *(Cell(fixed(x, 1)) for x in (m.use.gpu_hours, m.use.paused_gpu_hours, m.use.lost_gpu_hours)),
            Cell(fixed(m.use.leaving_gpu_hours + m.use.kept_gpu_hours, 1)),
            Cell(fixed(m.gpu_hours_per_job.average, 2)),
            Cell(span.show(m.makespan_ms)),
        )
        for m in told
    )
    return Table(
        title="Use of the cluster",
        columns=(
            Column("scheduler", right=False),
            Column("allocated", about="GPU time that somebody held, as part of all there was"),
            Column("while waiting", about="the same, only while at least one job waited"),
            Column("useful", about="without starts, restarts and work that was lost"),
            Column("goodput", about="GPU time the work would have taken undisturbed, as part of all there was"),
            Column("held", "GPU h"),
            Column("paused", "GPU h", about="of what was held: starts and restarts"),
            Column("lost", "GPU h", about="of what was held: work that had to be done again"),
            Column(
                "blocked", "GPU h", about="beyond what was held: replicas that leave, and gangs that are not complete"
            ),
            Column("per job", "GPU h", about="average over the jobs that finished"),
            Column("makespan", span.name, about="from the first submission to the last completion"),
        ),
        rows=rows,
        marks=tuple(range(len(rows))),
    )


def disturbance(study: Study) -> Table:
    told = study.mean
    longest = unit_for(m.longest_wait_ms for m in told)
    deadlines, decisions = any(m.deadlines for m in told), any(m.decision_ms for m in told)
    rows = []
    for m in told:
        took = m.decision_ms
        rows.append(
            (
                Cell(m.scheduler, Tone.STRONG),
                *(Cell(count(n)) for n in (m.preemptions, m.restarts, m.resizes, m.failures + m.losses)),
                *(Cell(fixed(x, 2)) for x in (m.rho.spread.median, m.rho.spread.p99, m.rho.spread.max)),
                Cell(percent(m.rho.above)),
                Cell(fixed(m.jain, 3)),
                Cell(longest.show(m.longest_wait_ms)),
                *([Cell(f"{count(m.deadlines_met)} / {count(m.deadlines)}")] * deadlines),
                *([Cell(f"{grouped(took.median)} / {grouped(took.p99)}" if took else NONE)] * decisions),
            )
        )
    columns = [
        Column("scheduler", right=False),
        Column("preempted", about="times that a running job was stopped"),
        Column("restarted"),
        Column("resized", about="changes of size or place while running"),
        Column("failed", about="failures of jobs, and places lost with a node"),
        Column("ρ median", about="completion time / time on an equal share of the cluster"),
        Column("ρ p99"),
        Column("ρ max"),
        Column("ρ > 1.05", about="part of the finished jobs that sharing cost more than 5 %"),
        Column("Jain", about="evenness of what queues had against what they were due; 1 is even"),
        Column("longest wait", longest.name, about="of any job, at a stretch"),
    ]
    columns += [Column("deadlines met")] * deadlines
    columns += [Column("decision p50 / p99", "ms", about="time a decision took on the machine of this run")] * decisions
    return Table(
        title="Disturbance and fairness",
        columns=tuple(columns),
        rows=tuple(rows),
        marks=tuple(range(len(rows))),
    )


def by_size(study: Study) -> Table:
    told = study.mean
    sizes = [size for size in SIZES if size in told[0].jct_ms_by_size]
    unit = unit_for(m.jct_ms_by_size[size].average for m in told for size in sizes)
    rows = []
    for size in sizes:
        for i, m in enumerate(told):
            jct, slow = m.jct_ms_by_size[size], m.slowdown_by_size[size]
            jobs = Cell(count(jct.count), Tone.FAINT)
            name = Cell(sized(size) if i == 0 else "", Tone.STRONG)
            rows.append((name, Cell(m.scheduler), jobs, *_spread(jct, unit), *_ratios(slow)))
    return Table(
        title="",
        columns=(
            Column("size", right=False),
            Column("scheduler", right=False),
            Column("finished"),
            Column("JCT", unit.name),
            Column("median", unit.name),
            Column("p99", unit.name),
            Column("slowdown", about="average of completion time / ideal time"),
            Column("median"),
            Column("p99"),
        ),
        rows=tuple(rows),
        marks=tuple(range(len(told))) * len(sizes),
    )


def sized(size: str) -> str:
    """`9-64` is shown as 9–64 GPUs."""
    return f"{size.replace('-', '–')} GPU{'s' * (size != '1')}"


def _spread(spread: Spread, unit: Unit) -> tuple[Cell, ...]:
    return tuple(Cell(unit.show(x)) for x in (spread.average, spread.median, spread.p99))


def _ratios(spread: Spread) -> tuple[Cell, ...]:
    return tuple(Cell(fixed(x, 2)) for x in (spread.average, spread.median, spread.p99))


def by_queue(study: Study) -> Table:
    told = study.mean
    jct = unit_for(q.jct_ms.average for m in told for q in m.queues)
    rows = []
    for number in range(len(told[0].queues)):
        for i, m in enumerate(told):
            q = m.queues[number]
            rows.append(
                (
                    Cell(q.queue if i == 0 else "", Tone.STRONG),
                    Cell(m.scheduler),
                    Cell(f"{count(q.finished)} / {count(q.jobs)}", Tone.PLAIN if q.finished < q.jobs else Tone.FAINT),
                    Cell(fixed(q.gpu_hours, 1)),
                    Cell(percent(q.share)),
                    Cell(percent(q.due_share), Tone.FAINT),
                    Cell(jct.show(q.jct_ms.average)),
                    Cell(jct.show(q.jct_ms.p99)),
                    Cell(duration(q.wait_ms.average)),
                )
            )
    return Table(
        title="",
        columns=(
            Column("queue", right=False),
            Column("scheduler", right=False),
            Column("finished"),
            Column("GPU h"),
            Column("share", about="average GPUs held, as part of the cluster"),
            Column("due", about="what a fair division by need would have given it, at every moment"),
            Column("JCT", jct.name),
            Column("p99", jct.name),
            Column("waiting", about="one queue may wait for days and another not at all, so each has its own unit"),
        ),
        rows=tuple(rows),
        marks=tuple(range(len(told))) * len(told[0].queues),
    )


def by_trace(study: Study) -> Table:
    """Average completion time of each, and its change against the reference."""
    unit = unit_for(m.jct_ms.average for row in study.each for m in row)
    names = study.provenance.traces or tuple(f"trace {i + 1}" for i in range(len(study.each)))
    rows = []
    for name, row in zip(names, study.each, strict=True):
        base = row[0].jct_ms.average
        cells = [Cell(name, Tone.STRONG), Cell(count(row[0].jobs), Tone.FAINT), Cell(unit.show(base))]
        for m in row[1:]:
            change = m.jct_ms.average / base - 1 if base and m.jct_ms.average is not None else None
            tone = Tone.PLAIN if not change else Tone.GOOD if change < 0 else Tone.BAD
            cells += [Cell(unit.show(m.jct_ms.average)), Cell(signed_percent(change), tone)]
        rows.append(tuple(cells))
    columns = [Column("trace", right=False), Column("jobs"), Column(study.mean[0].scheduler, unit.name)]
    for m in study.mean[1:]:
        columns += [Column(m.scheduler, unit.name), Column("change")]
    return Table(title="Average completion time of each trace", columns=tuple(columns), rows=tuple(rows))


def fragmentation(study: Study) -> Table | None:
    """None where nobody watched."""
    told = [(i, m.scheduler, m.fragmentation) for i, m in enumerate(study.mean) if m.fragmentation]
    if not told:
        return None
    rows = tuple(
        (
            Cell(name, Tone.STRONG),
            Cell(percent(seen.of_idle)),
            Cell(percent(seen.of_all)),
            Cell(grouped(seen.largest_gpus)),
        )
        for _, name, seen in told
    )
    return Table(
        title="Fragmentation",
        columns=(
            Column("scheduler", right=False),
            Column("of what is idle", about="free GPUs that the typical job cannot use because they are scattered"),
            Column("of all GPUs"),
            Column(
                "could start", "GPUs", about="the largest job of the trace that could start at once, average over time"
            ),
        ),
        rows=rows,
        marks=tuple(i for i, _, _ in told),
    )


# -- comparisons ----------------------------------------------------------------------------------------------------


def balances(comparison: Comparison) -> Table:
    groups = (comparison.all_jobs, *comparison.by_size, *comparison.by_queue)
    names = ["all", *(sized(b.name) for b in comparison.by_size), *(b.name for b in comparison.by_queue)]
    rows = tuple(
        (
            Cell(name, Tone.STRONG),
            Cell(count(b.won)),
            Cell(count(b.lost)),
            Cell(count(b.even), Tone.FAINT),
            Cell(signed_duration(b.mean_ms)),
            Cell(signed_percent(b.relative)),
        )
        for name, b in zip(names, groups, strict=True)
    )
    return Table(
        title=f"Who won and who lost: {comparison.other} against {comparison.reference}",
        columns=(
            Column("jobs", right=False),
            Column("sooner"),
            Column("later"),
            Column("even", about="less than a second or one percent apart"),
            Column("mean change"),
            Column("of JCT"),
        ),
        rows=rows,
    )


def changes(title: str, changed: Sequence[Changed], comparison: Comparison) -> Table:
    rows = tuple(
        (
            Cell(c.job, Tone.STRONG),
            Cell(c.queue),
            Cell(f"{c.gpus:g}"),
            Cell(duration(c.reference_ms)),
            Cell(duration(c.other_ms)),
            Cell(signed_percent(c.other_ms / c.reference_ms - 1 if c.reference_ms else None, 0)),
        )
        for c in changed
    )
    return Table(
        title=title,
        columns=(
            Column("job", right=False),
            Column("queue", right=False),
            Column("GPUs"),
            Column(comparison.reference),
            Column(comparison.other),
            Column("change"),
        ),
        rows=rows,
    )


def standard(comparison: Comparison) -> tuple[tuple[bool, str], ...]:
    """What a claim needs, and whether it is there."""
    s, starved = comparison.standard, comparison.starvation
    ratio = fixed(comparison.p99_ratio, 3)
    nobody = f"nobody starved (longest wait {duration(starved.worst_ms)})"
    somebody = f"{count(starved.waited)} waited far longer than anybody under {comparison.reference}"
    if starved.unfinished:
        somebody += f", {count(starved.unfinished)} never finished"
    return (
        (s.completes_sooner, f"completes sooner: {interval_of(comparison.jct_ms)}"),
        (s.waits_less, f"waits less: {interval_of(comparison.wait_ms)}"),
        (s.tail_kept, f"p99 at most 5 % worse: ratio {ratio}"),
        (s.nobody_starved, nobody if s.nobody_starved else f"starved: {somebody}"),
        (s.enough_traces, f"at least ten traces: {comparison.traces}"),
    )


def interval_of(change: Difference) -> str:
    """In percent of the reference, or in time where the reference has none."""
    if change.relative is None:
        return f"{signed_duration(change.mean)} ({signed_duration(change.low)} to {signed_duration(change.high)})"
    return f"{signed_percent(change.relative)} ({interval(change.relative_low, change.relative_high)})"
