"""The table of kinds for people: the rows in docs/reference/grouping.md follow from kinds.yaml.

python -m tests.kube.grouping.telling        writes them anew
"""

from __future__ import annotations

from pathlib import Path

from optimus.drivers.kube.grouping import Kind, shipped_kinds
from optimus.drivers.kube.grouping.kinds import StopHow

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "grouping.md"
START, END = "<!-- kinds:start -->", "<!-- kinds:end -->"


def rows() -> str:
    lines = [
        "| kind | what is one gang | class | queued while suspended | stopped by |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += [f"| {' | '.join(_cells(kind))} |" for kind in shipped_kinds()]
    return "\n".join(lines)


def _cells(kind: Kind) -> list[str]:
    stop = {
        StopHow.SUSPEND: f"`{kind.suspend}: true`",
        StopHow.PODS: "evicting its pods",
        StopHow.TARGET: "`targetReplicas`, which its controller follows",
        StopHow.NEVER: f"never: {kind.never_why}",
    }[kind.stop]
    return [f"`{kind.name}`", kind.about, str(kind.workload_class), f"`{kind.suspend}`" if kind.suspend else "–", stop]


def written() -> str:
    """What the page has now."""
    return PAGE.read_text().split(START)[1].split(END)[0].strip()


if __name__ == "__main__":
    before, rest = PAGE.read_text().split(START)
    PAGE.write_text(f"{before}{START}\n{rows()}\n{END}{rest.split(END)[1]}")
