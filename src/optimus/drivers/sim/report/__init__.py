"""Reports: what a study shows, on a terminal, in files for programs, and on one page to share.

Why: a number nobody can look behind convinces nobody; a report shows the claim, who pays, and how to do it again.
Owns: tables, JSON, CSV and the page.
Must not: compute metrics, fetch anything or read a clock. The same study gives the same bytes.

    Study ─┬─ print_study ──► terminal
           ├─ as_json, metrics_csv, jobs_csv ──► text for programs
           └─ page ──► one HTML file
    Study at each load ── by_load, loads_page ──► one table, one HTML file
"""

from optimus.drivers.sim.report.files import as_json, jobs_csv, metrics_csv
from optimus.drivers.sim.report.loads import AtLoad, by_load, loads_page
from optimus.drivers.sim.report.page import page
from optimus.drivers.sim.report.terminal import print_study

__all__ = [
    "AtLoad",
    "as_json",
    "by_load",
    "jobs_csv",
    "loads_page",
    "metrics_csv",
    "page",
    "print_study",
]
