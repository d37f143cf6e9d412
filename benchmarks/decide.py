"""How fast a cycle is: the targets of the decision core, one row each, and how cost grows.

    python -m benchmarks decide

Every row runs in a process of its own, so that memory is its own. Times are CPU seconds of one core. "x limit" is the
ratio to writing the same plan down when its seats are already known, measured in the same process.
"""

from __future__ import annotations

import json
from typing import Any

from benchmarks.measuring import RESULTS, growth_exponent, machine, write
from optimus.measuring.decide import MEASURED, ROWS, in_own_process

NODE_SIZES = [500, 1_000, 2_000, 4_000, 8_000]
PENDING_SIZES = [250, 500, 1_000, 2_000, 4_000]


def run() -> bool:
    """All rows; prints a table and writes the results. True if every target is met."""
    rows: dict[str, Any] = {}
    print(f"{'':72} {'measured':>9} {'target':>7} {'x limit':>8} {'peak':>9}")
    for row, (title, target) in ROWS.items():
        found = in_own_process(row)
        rows[row] = {"title": title, "target_seconds": target, **found}
        good = "" if found["seconds"] <= target else "  MISSED"
        ratio = found.get("times_writing_the_plan_down", "-")
        print(f"{title:72} {found['seconds']:8.3f}s {target:6.1f}s {ratio:>8} {found['peak_mib']:5d} MiB{good}")
    growth: dict[str, Any] = {}
    for name, sizes in (("nodes", NODE_SIZES), ("pending", PENDING_SIZES)):
        seconds = [in_own_process(f"{name}-{size}")["seconds"] for size in sizes]
        exponent = growth_exponent(sizes, seconds)
        growth[name] = {"sizes": sizes, "seconds": seconds, "exponent": round(exponent, 3)}
        points = ", ".join(f"{size}: {each * 1000:.0f} ms" for size, each in zip(sizes, seconds, strict=True))
        print(f"cost grows like {name}^{exponent:.2f}   ({points})")
    memory = max(row["peak_mib"] for row in rows.values())
    met = all(row["seconds"] <= row["target_seconds"] for row in rows.values()) and memory <= 1024
    met = met and all(each["exponent"] <= 1.15 for each in growth.values())
    path = write("decide", {"machine": machine(), "rows": rows, "growth": growth, "targets_met": met})
    ship()
    print(f"memory at the largest: {memory} MiB; results in {path.name}; targets {'met' if met else 'MISSED'}")
    return met


def ship() -> None:
    """The rows and the machine go into the package, where `optimus bench` shows them beside those of its user."""
    MEASURED.write_text(shipped(), encoding="utf-8")


def shipped() -> str:
    found = json.loads((RESULTS / "decide.json").read_text(encoding="utf-8"))
    rows = {
        name: {"seconds": round(row["seconds"], 3), "peakMib": row["peak_mib"]} for name, row in found["rows"].items()
    }
    return json.dumps({"machine": found["machine"], "rows": rows}, indent=2, sort_keys=True) + "\n"
