"""One entry: what a file is, is seen from its columns."""

from __future__ import annotations

from pathlib import Path

import pytest

from optimus.drivers.sim.traces.formats import FORMATS, detect, load
from optimus.drivers.sim.traces.trace import TraceError
from tests.sim.traces.lists import GAVEL, ITP, PHILLY, RATES, THROUGHPUTS, written


@pytest.mark.parametrize("name", [name for name, form in FORMATS.items() if form.columns])
def test_a_list_is_recognised_by_its_columns(tmp_path: Path, name: str) -> None:
    header = ",".join(reversed(FORMATS[name].columns))
    assert detect(written(tmp_path, "jobs.csv", header + ",something_else\n")).name == name


def test_options_that_only_one_format_has_decide(tmp_path: Path) -> None:
    path = written(tmp_path, "jobs.csv", ITP)
    assert detect(path).name == "itp2021"
    assert detect(path, {"throughputs": "t.csv"}).name == "elasticflow"
    assert detect(path, {"mapping": "m.yaml"}).name == "csv"


def test_a_folder_with_a_journal_is_one(tmp_path: Path) -> None:
    written(tmp_path, "00000000000000000000.journal", b"")
    assert detect(tmp_path).name == "journal"


def test_an_unknown_list_says_which_are_known(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"found who, what; expected one of philly: job_id, .*give a mapping file"):
        load(written(tmp_path, "jobs.csv", "who,what\n"))


def test_every_format_has_a_line_and_knows_its_options() -> None:
    assert all(form.doc and len(form.doc) < 80 for form in FORMATS.values())
    assert FORMATS["philly"].options == ("cluster_gpus", "gpus_per_node")
    assert FORMATS["journal"].options == ()


def test_unknown_names_are_refused_with_the_known_ones(tmp_path: Path) -> None:
    path = written(tmp_path, "jobs.csv", PHILLY)
    with pytest.raises(TraceError, match="slurm is no format; formats are philly, itp2021"):
        load(path, format="slurm")
    with pytest.raises(TraceError, match="philly has no option colour; it has cluster_gpus, gpus_per_node"):
        load(path, colour="red")


def test_options_may_be_text_as_on_a_command_line(tmp_path: Path) -> None:
    written(tmp_path, "t.csv", THROUGHPUTS)
    path = str(written(tmp_path, "jobs.csv", ITP))
    trace = load(path, throughputs=str(tmp_path / "t.csv"), cluster_gpus="8", told="false")
    assert (trace.jobs[0].speedup_percent, trace.jobs[0].most) == ((), 4)
    with pytest.raises(TraceError, match="cluster_gpus is eight; write a whole number"):
        load(path, cluster_gpus="eight")
    with pytest.raises(TraceError, match="deadlines is maybe; write true or false"):
        load(path, deadlines="maybe")


def test_none_stands_for_the_default(tmp_path: Path) -> None:
    written(tmp_path, "throughputs_simulation.csv", RATES)
    assert len(load(written(tmp_path, "jobs.csv", GAVEL), throughputs=None, reference=None).jobs) == 2
