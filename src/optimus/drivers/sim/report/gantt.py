"""Gantt: one row per job, its waiting as a thin line and its runs as bars. For traces small enough to read it."""

from __future__ import annotations

import numpy as np

from optimus.drivers.sim.measuring.metrics import Measured
from optimus.drivers.sim.measuring.timelines import window
from optimus.drivers.sim.report.numbers import duration
from optimus.drivers.sim.report.svg import Frame, drawing, line, time_ticks, titled, words, x_axis

MOST_JOBS = 60
_ROW = 11


def gantt(measured: Measured, *, end_ms: int, colours: dict[str, str]) -> str:
    """`end_ms`: where the axis ends, the same for all schedulers so that they can be laid side by side."""
    table, asked = measured.columns, measured.columns.asked
    begin = window(table)[0]
    order = np.lexsort((asked.submit_ms, asked.queue))
    frame = Frame(height=len(order) * _ROW + 50, left=92, right=10, top=8, bottom=38)
    x = frame.x(0, max(end_ms - begin, 1))
    ticks = time_ticks(end_ms - begin, 6)
    parts = [line(x(value), frame.top, x(value), frame.height - frame.bottom, "grid") for value, _ in ticks]
    for row, i in enumerate(order.tolist()):
        y = frame.top + row * _ROW
        queue = asked.queues[asked.queue[i]]
        state = (
            "refused"
            if table.rejected[i]
            else duration(float(table.jct_ms[i]))
            if table.finished[i]
            else "not finished"
        )
        tip = f"{asked.names[i]} · {asked.gpus[i]:g} GPU · {queue} · {state}"
        parts.append(words(frame.left - 6, y + 8.5, _fitted(asked.names[i]), "small", "end"))
        parts.append(line(x(asked.submit_ms[i] - begin), y + 5, x(table.left_ms[i] - begin), y + 5, "waits"))
        mine = np.flatnonzero(table.pieces.job == i)
        for k in mine.tolist():
            start, stop = x(table.pieces.start_ms[k] - begin), x(table.pieces.end_ms[k] - begin)
            parts.append(
                titled(
                    "rect",
                    tip,
                    x=start,
                    y=y + 1,
                    width=max(stop - start, 0.8),
                    height=_ROW - 3,
                    class_=f"band {colours[queue]}",
                )
            )
        if table.rejected[i]:
            parts.append(words(x(asked.submit_ms[i] - begin) + 3, y + 8.5, "refused", "small bad-name"))
    parts.append(x_axis(frame, x, ticks))
    return drawing(frame, f"Every job under {measured.name}", *parts)


def _fitted(name: str, most: int = 14) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"
