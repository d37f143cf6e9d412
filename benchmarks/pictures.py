"""The pictures of docs/results.md, drawn from the result files beside this module.

    python -m benchmarks.pictures     # draws all of them again, measures nothing

A test compares: a picture that is older than its result file does not pass.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.dot_chart import Axis, Dot, Row, dot_chart
from benchmarks.measuring import RESULTS

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
POLLUX_ROWS = (
    ("history", "tiresias", "rigid, history", 0.80),
    ("online", "tiresias", "rigid, learns", 0.86),
    ("elastic", "pollux", "elastic, learns", 0.96),
    ("elastic-blind", "pollux", "elastic, no history", 1.0),
    ("elastic-unnamed", "pollux", "elastic, no history, default", 1.0),
)


def pollux(result: dict[str, Any]) -> str:
    cases = {(c["who"], c["load"], c["workload"]): c["average_s"] for c in result["cases"]}
    loads = sorted({load for _, load, _ in cases}, key=float)
    rows = []
    for load in loads:
        for who, rival, label, target in POLLUX_ROWS:
            pairs = [(cases[who, load, w], cases[rival, load, w]) for w in range(1, 5) if (who, load, w) in cases]
            if not pairs:
                continue
            ratio = sum(ours for ours, _ in pairs) / sum(theirs for _, theirs in pairs)
            dots = [*(Dot(ours / theirs, 1, small=True) for ours, theirs in pairs), Dot(ratio, 0)]
            goal = target if load == "1.0" else 1.0
            rows.append(Row(f"{label}, {load}" if len(loads) > 1 else label, dots, goal, f"{ratio:.3f}"))
    about = "Average completion time by load, ours by Tiresias (rigid) and Pollux (elastic). Tick: what is asked."
    return dot_chart("Pollux workloads", about, Axis(0.5, 1.1, 0.1, 1.0), ("all four workloads", "each"), rows)


def packing(result: dict[str, Any]) -> str:
    rows = [
        Row(
            name, [Dot(loads[at]["gain"], i) for i, at in enumerate(("100", "130"))], 0.8 if name == "default" else None
        )
        for name, loads in result["lists"].items()
    ]
    about = "Allocated GPUs in points of 6,212 above the published FGD, mean of ten seeds: right of 0 is more."
    return dot_chart("openb: ten lists of pods", about, Axis(-0.5, 2.5, 0.5, 0.0, 1), ("demand 100 %", "130 %"), rows)


def gavel(result: dict[str, Any]) -> str:
    cases = {(c["who"], c["list"]): c for c in result["cases"]}
    rows = []
    for (who, name), ours in cases.items():
        if who == "ours":
            dots = [
                Dot(ours["average_s"] / cases[rival, name]["average_s"], i)
                for i, rival in enumerate(("las", "las-filled"))
            ]
            rows.append(Row(name, dots, 0.95))
    about = "Average completion time, ours divided by least attained service: left of 1 is shorter."
    return dot_chart(
        "Gavel: mixed GPU models", about, Axis(0.7, 1.1, 0.1, 1.0), ("as published", "shares filled"), rows
    )


def tenants(result: dict[str, Any]) -> str:
    rows = [
        Row(
            f"{one['case']}, {one['best native']}",
            [Dot(one[key], i) for i, key in enumerate(("average", "wait", "p99"))],
            0.6,
        )
        for one in result["against the best native row"]
    ]
    names = ("average completion", "waiting", "p99 of completion")
    about = "Ours divided by the best native row of each case: left of 1 is shorter. The tick: asked of the averages."
    return dot_chart("Tenants with fair shares, load 0.9", about, Axis(0.0, 1.5, 0.25, 1.0), names, rows)


DRAWN: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
    "pollux": ("pollux", pollux),
    "packing": ("packing_openb", packing),
    "gavel": ("gavel", gavel),
    "tenants": ("tenants", tenants),
}


def draw(name: str) -> str:
    result, drawing = DRAWN[name]
    return drawing(json.loads((RESULTS / f"{result}.json").read_text(encoding="utf-8")))


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    for name, (result, _) in DRAWN.items():
        if (RESULTS / f"{result}.json").is_file():
            (PICTURES / f"{name}.svg").write_text(draw(name), encoding="utf-8")
            print(f"docs/pictures/{name}.svg")


if __name__ == "__main__":
    main()
