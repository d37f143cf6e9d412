"""Jobs as a small table for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

COLOURS = {"Running": "#188038", "Failed": "#c5221f", "Pending": "#b06000", "Preempted": "#b06000"}
MOST_ROWS = 100


def table(views: Sequence[dict[str, Any]]) -> str:
    if not views:
        return "<p>No jobs.</p>"
    head = "".join(f"<th>{name}</th>" for name in ("job", "queue", "phase", "replicas", "GPUs", "why"))
    rows = "".join(f"<tr>{_row(view)}</tr>" for view in views[:MOST_ROWS])
    more = f"<p>and {len(views) - MOST_ROWS} more</p>" if len(views) > MOST_ROWS else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"


def _row(view: dict[str, Any]) -> str:
    name = view["name"] if view["namespace"] == "default" else f"{view['namespace']}/{view['name']}"
    phase = f'<span style="color:{COLOURS.get(view["phase"], "inherit")}">{escape(view["phase"])}</span>'
    why = (view["reason"] or {}).get("text", "")
    cells = [escape(name), escape(view["queue"]), phase, _replicas(view), _gpus(view), escape(why)]
    return "".join(f"<td>{cell}</td>" for cell in cells)


def _replicas(view: dict[str, Any]) -> str:
    if view["counts"]:
        return f"{view['counts'].get('Succeeded', 0)} of {sum(view['counts'].values())} parts"
    least, most = view["minReplicas"], view["maxReplicas"]
    wanted = str(most) if least == most else f"{least}–{most}"
    return wanted if view["final"] else f"{view['runningReplicas']} of {wanted}"


def _gpus(view: dict[str, Any]) -> str:
    return "–" if view["final"] else f"{view['gpuMilli'] / 1000:g}"
