"""Losing: what work loses that is stopped now, in numbers and in words.

Why: whoever suspends a job, or is told that another would be stopped for it, must know the price beforehand, and read
the same words wherever it is asked.
Owns: the words. The numbers are those by which the brain chooses whom it stops (`decide.holdings.lost_ms`).
Must not: promise more than was said: who has told of no checkpoint may have none.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from optimus.model.units import format_about_ms
from optimus.model.workloads import Workload
from optimus.state.workload_table import WorkloadTable


class Loss(Struct, frozen=True, kw_only=True, rename="camel"):
    workload: str
    lost_ms: int
    """Run time that has to be repeated, at most."""
    checkpoint_ms: int | None = None
    """When its last checkpoint was written, as it said; null: it has told of none in this attempt."""
    anew: bool = False
    """It saves nothing and begins from the start."""
    text: str
    """`saves nothing: 12m of work are lost`."""


def loss_of(table: WorkloadTable, name: str, now_ms: int, step: int | None = None) -> Loss | None:
    """As the brain knows it; None: it does not run, so nothing can be lost. `step`: of its last checkpoint."""
    row = table.row_of.get(name)
    if row is None or table.columns.started[row] < 0:
        return None
    columns = table.columns
    started, saved = int(columns.started[row]), int(columns.checkpoint_at[row])
    if columns.saves_in_time[row]:
        told = saved if saved >= started else None
        return Loss(workload=name, lost_ms=0, checkpoint_ms=told, text="saves first and loses nothing")
    if saved < started:
        return unheard(table.spec(row), max(now_ms - started, 0))
    lost_ms = max(now_ms - saved, 0)
    where = f" (step {step})" if step is not None else ""
    text = f"resumes from its checkpoint of {format_about_ms(lost_ms)} ago{where}, or a newer one"
    return Loss(workload=name, lost_ms=lost_ms, checkpoint_ms=saved, text=text)


def unheard(workload: Workload, ran_ms: int) -> Loss:
    """Of work that has run for so long and told of no checkpoint: by what was written about it."""
    saves = workload.checkpoint
    if saves is None:
        return Loss(workload=workload.id, lost_ms=ran_ms, anew=True, text=f"saves nothing: {_work(ran_ms)} lost")
    if saves.interval_ms:
        lost = min(saves.interval_ms, ran_ms)
        text = f"saves every {format_about_ms(saves.interval_ms)}: at most {_work(lost)} lost"
        return Loss(workload=workload.id, lost_ms=lost, text=text)
    within = format_about_ms(workload.grace_ms)
    text = f"has told of no checkpoint: {_work(ran_ms)} lost unless it saves within its {within}"
    return Loss(workload=workload.id, lost_ms=ran_ms, text=text)


def when_resumed(losses: Sequence[Loss]) -> str:
    """For whoever suspends it: `it saves nothing: 12m of work are lost, and it begins anew when it is resumed`."""
    if not losses:
        return ""
    if len(losses) == 1:
        (one,) = losses
        where = "begins anew" if one.anew else "" if one.lost_ms else "goes on from there"
        return f"it {one.text}" + (f", and it {where} when it is resumed" if where else "")
    anew = "; those begin anew when they are resumed" if any(one.anew for one in losses) else ""
    return f"of its parts that run, {in_words(losses)}{anew}"


def in_words(losses: Sequence[Loss]) -> str:
    """Of one, its own words; of several, all together. Empty for nobody."""
    if len(losses) <= 1:
        return losses[0].text if losses else ""
    lost = sum(one.lost_ms for one in losses)
    anew = sum(one.anew for one in losses)
    who = f"{anew} of {len(losses)} {'saves' if anew == 1 else 'save'} nothing"
    who = f"all {anew} save nothing" if anew == len(losses) else who
    if not lost:
        return f"all {len(losses)} save first and lose nothing"
    return f"{who if anew else 'they save'}: {'' if anew == len(losses) else 'at most '}{_work(lost)} lost in all"


def _work(lost_ms: int) -> str:
    return f"{format_about_ms(lost_ms)} of work are"
