"""The table of the README, made from the result file, so that the two never disagree.

`python -m benchmarks readme` writes it again without measuring.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.measuring import RESULTS
from optimus.measuring.decide import ROWS

README = Path(__file__).parents[1] / "README.md"
START, END = "<!-- bench:start -->\n", "<!-- bench:end -->"


def write() -> None:
    text = README.read_text(encoding="utf-8")
    before, _, rest = text.partition(START)
    result = json.loads((RESULTS / "decide.json").read_text(encoding="utf-8"))
    README.write_text(f"{before}{START}{block(result)}{END}{rest.partition(END)[2]}", encoding="utf-8")


def block(result: dict[str, Any]) -> str:
    rows = [result["rows"][name] for name in ROWS]
    growth, machine = result["growth"], result["machine"]
    lines = ["| | measured | target |", "| --- | --- | --- |"]
    for row in rows:
        missed = " (missed)" if row["seconds"] > row["target_seconds"] else ""
        lines.append(f"| {row['title']} | {row['seconds']:.2f} s | {row['target_seconds']} s{missed} |")
    costs = [f"{name}^{growth[name]['exponent']:.2f} {_range(growth[name]['sizes'])}" for name in ("nodes", "pending")]
    memory = max(row["peak_mib"] for row in rows)
    where = f"{machine['cpu']}, Python {machine['python']}, load {machine['load_when_started']} when it started"
    lines += ["", f"Cost grows like {' and '.join(costs)}; memory at the largest {memory} MiB."]
    lines.append(f"Measured on {where}.")
    return "\n".join(lines) + "\n"


def _range(sizes: list[int]) -> str:
    return f"({sizes[0]:,} to {sizes[-1]:,})"
