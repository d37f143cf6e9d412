"""Any CSV: a mapping file says which column is what, and in which unit."""

from __future__ import annotations

from pathlib import Path

import pytest

from optimus.drivers.sim.traces.formats import load
from optimus.drivers.sim.traces.mapping import load_mapping
from optimus.drivers.sim.traces.trace import Trace, TraceError, Verdict
from optimus.model.workloads import WorkloadClass
from tests.sim.traces.lists import said, steady, written

MAPPING = """\
name: lab
columns:
  name: JobID
  submit: {column: Submitted, format: "%d.%m.%Y %H:%M"}
  duration: {column: Minutes, unit: min}
  gpus: GPUs
  queue: {column: Team, default: nobody}
  class: {column: Kind, values: {nb: interactive, batch: unattended}}
  memory: {column: Memory, unit: GiB}
constants:
  family: all
  cpu: 4
cluster: {gpus: 32, perNode: 8}
delimiter: ";"
encoding: latin-1
"""
JOBS = """\
JobID;Submitted;Minutes;GPUs;Team;Kind;Memory
a;01.02.2025 09:00;1.5;12;größe;nb;16
b;01.02.2025 10:00;60;1;;batch;0.5
"""


def mapped(folder: Path, mapping: str, jobs: str | bytes) -> Trace:
    return load(written(folder, "jobs.csv", jobs), mapping=written(folder, "mapping.yaml", mapping))


def test_columns_units_dates_words_and_constants(tmp_path: Path) -> None:
    trace = mapped(tmp_path, MAPPING, JOBS.encode("latin-1"))
    a, b = trace.jobs
    assert trace.name == "lab"
    assert (a.name, a.submit_ms, a.replicas, a.gpus, a.queue) == ("a", 0, 2, 6, "größe")
    assert (a.workload_class, a.memory_mib, a.cpu_milli, a.family) == (WorkloadClass.INTERACTIVE, 16_384, 4_000, "all")
    assert (b.submit_ms, b.queue, b.memory_mib) == (3_600_000, "nobody", 512)
    assert [steady(trace, name).duration_ms for name in "ab"] == [90_000, 3_600_000]
    assert trace.setup is not None
    assert len(trace.setup.nodes) == 4
    assert trace.problems == ()


def test_start_and_end_make_a_duration_and_slurm_writes_times_by_the_clock(tmp_path: Path) -> None:
    mapping = """\
columns:
  submit: {column: Submit, format: iso}
  start: {column: Start, format: iso}
  end: {column: End, format: iso}
  expected: {column: Limit, unit: clock}
"""
    jobs = """\
Submit,Start,End,Limit
2025-02-01T09:00:00,2025-02-01T09:05:00,2025-02-01T10:05:00,1-02:03:04
2025-02-01T09:00:00+00:00,2025-02-01T09:05:00+00:00,,00:30:00
2025-02-01T09:00:00,2025-02-01T09:05:00,2025-02-01T09:04:00,00:30:00
2025-02-01T09:00:00,2025-02-01T09:05:00,2025-02-01T09:06:00,soon
"""
    trace = mapped(tmp_path, mapping, jobs)
    (job,) = trace.jobs
    assert (job.name, steady(trace, job.name).duration_ms) == ("line-2", 3_600_000)
    assert job.expected_ms == (26 * 3600 + 3 * 60 + 4) * 1000
    assert {line: text.partition(";")[0] for line, text in said(trace, Verdict.LEFT_OUT).items()} == {
        3: "its duration is empty, or its start or end",
        4: "end - start is -60 s",
        5: "expected (Limit) is 'soon'",
    }


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        ("a;01.02.2025;1;1;x;nb;1", "expected a date since 1970 written as %d.%m.%Y %H:%M"),
        ("a;01.02.2025 09:00;long;1;x;nb;1", "duration (Minutes) is 'long'"),
        ("a;01.02.2025 09:00;0;1;x;nb;1", "duration is 0"),
        ("a;01.02.2025 09:00;1;64;x;nb;1", "the cluster has 32"),
        ("a;01.02.2025 09:00;1;2.5;x;nb;1", "write a whole number"),
        ("a;01.02.2025 09:00;1;-1;x;nb;1", "fewer than no GPUs"),
        ("a;01.02.2025 09:00;1;1;x;sleep;1", "class is 'sleep'; it is one of interactive, unattended, inference"),
        ("a;;1;1;x;nb;1", "the time of submission is empty"),
    ],
)
def test_bad_cells_name_field_and_column(tmp_path: Path, cells: str, why: str) -> None:
    trace = mapped(tmp_path, MAPPING, JOBS.splitlines()[0] + "\n" + cells + "\n")
    assert why in said(trace, Verdict.LEFT_OUT)[2]


def test_a_job_without_gpus_must_ask_for_cpus(tmp_path: Path) -> None:
    mapping = "columns: {name: id, submit: t, duration: d, gpus: g, cpu: c}\ncluster: {gpus: 8}"
    trace = mapped(tmp_path, mapping, "id,t,d,g,c\na,0,100,1,\nb,5,100,0,\nc,6,100,0,4\nd,7,100,1,-4\n")
    assert [(job.name, job.gpus, job.cpu_milli) for job in trace.jobs] == [("a", 1, 0), ("c", 0, 4_000)]
    told = said(trace, Verdict.LEFT_OUT)
    assert "gpus is 0 and no cpu is asked for; leave the job out, give it a GPU" in told[3]
    assert "cpu is negative" in told[5]
    assert (trace.rows, trace.left_out) == (4, 2)


def test_replicas_can_be_given_and_jobs_can_be_elastic(tmp_path: Path) -> None:
    mapping = """\
columns: {submit: t, duration: d, gpus: g, replicas: r, minReplicas: least, maxReplicas: most, models: models}
cluster: {gpus: 16, perNode: 4}
"""
    jobs = "t,d,g,r,least,most,models\n0,10,8,4,2,8,a100|h100\n1,10,8,3,,,\n2,10,8,1,,,\n3,10,8,2,3,4,\n"
    trace = mapped(tmp_path, mapping, jobs)
    (job,) = trace.jobs
    assert (job.replicas, job.gpus, job.least, job.most) == (4, 2, 2, 8)
    assert [speed.model for speed in job.models] == ["a100", "h100"]
    told = said(trace, Verdict.LEFT_OUT)
    assert "cannot be split into 3 equal replicas" in told[3]
    assert "fits on no node of 4" in told[4]
    assert "minReplicas is 3" in told[5]


@pytest.mark.parametrize(
    ("mapping", "why"),
    [
        ("columns: {submit: t}", "duration is missing; name its column, or those of start and end"),
        ("columns: {duration: d}", "submit is missing"),
        ("columns: {submit: t, duration: d, colour: c}", "colour is no field of a job; fields are name, queue"),
        ("columns: {submit: t, duration: {column: d, unit: weeks}}", "unit of duration is weeks; it is one of ms, s"),
        ("columns: {submit: t, duration: {column: d, format: iso}}", "only submit, start, end, deadline can be dates"),
        ("columns: {submit: t, duration: d, gpus: {column: g, unit: s}}", "this field has none"),
        ("columns: {submit: t, duration: d}\nconstants: {submit: 0}", "submit is a column and a constant"),
        ("columns: {submit: t, duration: d}\ndelimiter: ' , '", "write one character"),
        ("columns: {submit: t, duration: {colum: d}}", "an entry of columns has no key colum (did you mean column?)"),
        (
            "columns: {submit: t, duration: d}\ncluster: {pernode: 4}",
            "no key pernode (did you mean perNode?)",
        ),
        ("columns: {submit: t, duration: d}\nfoo: 1", "foo is no key; keys are columns, constants, name, cluster"),
        ("columns: {submit: t, duration: d}\ncluster: 8", "cluster: expected keys and values, got int"),
        ("colums: {submit: t}", "colums is no key (did you mean columns?)"),
        ("colums: {submit: t}", "the mapping needs the key columns"),
        ("columns: {submit: t, duraton: d}\nfoo: 1", "foo is no key"),
        ("columns: {submit: t, duraton: d}\nfoo: 1", "duraton is no field of a job (did you mean duration?)"),
        ("just words", "no mapping; expected columns:"),
        ("columns: {submit: t", "cannot be read as YAML"),
    ],
)
def test_a_mapping_that_makes_no_sense_says_what_to_write(tmp_path: Path, mapping: str, why: str) -> None:
    with pytest.raises(TraceError, match=r"mapping\.yaml") as error:
        mapped(tmp_path, mapping, "t,d\n0,1\n")
    assert why in str(error.value)


def test_a_column_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no column d; expected t, d; found 't', 'x'"):
        mapped(tmp_path, "columns: {submit: t, duration: d}", "t,x\n0,1\n")
    with pytest.raises(TraceError, match="no encoding"):
        mapped(tmp_path, "columns: {submit: t, duration: d}\nencoding: klingon", "t,d\n0,1\n")


def test_constants_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"gpus \(constant\) is 'many'; write a number"):
        mapped(tmp_path, "columns: {submit: t, duration: d}\nconstants: {gpus: many}", "t,d\n0,1\n")


def test_the_mappings_of_the_documentation_can_be_used(tmp_path: Path) -> None:
    text = (Path(__file__).parents[3] / "docs/reference/traces.md").read_text(encoding="utf-8")
    blocks = [block.partition("```")[0] for block in text.split("```yaml\n")[1:]]
    assert len(blocks) == 2
    for block in blocks:
        mapping = load_mapping(written(tmp_path, "mapping.yaml", block))
        assert {"submit", "duration", "gpus"} <= set(mapping.columns)


def test_the_mapping_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"none\.yaml: there is no such file"):
        load(written(tmp_path, "jobs.csv", "t,d\n"), mapping=tmp_path / "none.yaml")
    with pytest.raises(TraceError, match="csv needs the option mapping"):
        load(tmp_path / "jobs.csv", format="csv")
