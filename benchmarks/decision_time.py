"""Whether the time that decisions take matters: the same jobs, with decisions that take none, 150 ms and a second.

Each row is `optimus simulate` with `--decision-ms`, default policy, three seeds; means over the seeds. Beside them,
what decisions really take on this machine.

    python -m benchmarks.decision_time              # some minutes on one core
"""

from __future__ import annotations

import json
import subprocess
import sys
from statistics import fmean
from typing import Any

from benchmarks import measuring

TRACE = "synthetic:jobs=300,gpus=64,load=1.3,tenants=3"
SEEDS = (0, 1, 2)
TAKES_MS = (0, 150, 1000)


def row(takes_ms: int) -> dict[str, Any]:
    words = ["simulate", TRACE, "--policy", "default", "--decision-ms", str(takes_ms), "--decision-times", "-o", "json"]
    seeds = [word for seed in SEEDS for word in ("--seed", str(seed))]
    ran = subprocess.run([sys.executable, "-m", "optimus", *words, *seeds], check=True, capture_output=True, text=True)
    found = json.loads(ran.stdout)["metrics"]
    really = [one["decisionMs"] for one in found]
    return {
        "decision_ms": takes_ms,
        "decisions": [one["decisions"] for one in found],
        "average_s": round(fmean(one["jctMs"]["average"] for one in found) / 1000, 1),
        "waiting_s": round(fmean(one["waitMs"]["average"] for one in found) / 1000, 1),
        "p99_s": round(fmean(one["jctMs"]["p99"] for one in found) / 1000),
        "really_ms": {name: [round(one[name], 1) for one in really] for name in ("median", "p99", "max")},
    }


def main(arguments: list[str] | None = None) -> int:
    parser = measuring.parser("decision_time", __doc__)
    parser.parse_args(arguments)
    here, rows = measuring.machine(), []
    for takes_ms in TAKES_MS:
        rows.append(row(takes_ms))
        print(json.dumps(rows[-1]), flush=True)
    measuring.write("decision_time", {"machine": here, "trace": TRACE, "seeds": SEEDS, "rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
