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


def write() -> None:
    text = README.read_text(encoding="utf-8")
    for name, result, told in (("bench", "decide", block), ("first-job", "first_job", first_job)):
        found = RESULTS / f"{result}.json"
        if found.exists():
            text = _replaced(text, name, told(json.loads(found.read_text(encoding="utf-8"))))
    README.write_text(text, encoding="utf-8")


def _replaced(text: str, name: str, told: str) -> str:
    start, end = f"<!-- {name}:start -->\n", f"<!-- {name}:end -->"
    before, _, rest = text.partition(start)
    return f"{before}{start}{told}{end}{rest.partition(end)[2]}"


def first_job(result: dict[str, Any]) -> str:
    machine, seconds = result["machine"], result["seconds"]
    *setup, job = seconds.values()
    where = f"{machine['cores']} cores of {machine['cpu']}, load {machine['load_when_started']} when it started"
    parts = (
        f"{sum(setup):.0f} s until the scheduler answers, {job:.1f} s for the job; {result['cpu_seconds']:.0f} s of CPU"
    )
    return (
        f"From a fresh clone to the output of `optimus run -- python -c 'print(1)'`: {result['total_seconds']:.0f} s\n"
        f"with a warm package cache ({parts}; {where}; `make first-job`).\n"
    )


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
