"""`optimus simulate` plays traces under policies and peers, compares them, and says what is wrong with its input."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import COMMAND, ROOT, Ran, assert_refused, environment, on_terminal, optimus

TINY = "synthetic:jobs=20,gpus=8,tenants=2"
MINE = "def mine(jobs):\n    return -jobs.submitted_ms\n"


def simulate(*words: str | Path, processes: str = "1", **more: Any) -> Ran:
    """In one process unless it matters: starting another takes longer than playing twenty jobs."""
    return optimus("simulate", *words, OPTIMUS_PROCESSES=processes, **more)


def listed(folder: Path, *rows: str) -> Path:
    path = folder / "jobs.csv"
    path.write_text("\n".join(["job_id,submit_time,duration_s,num_gpus,vc", *rows]) + "\n", encoding="utf-8")
    return path


# -- comparing ------------------------------------------------------------------------------------------------------


def test_a_policy_of_ours_one_of_your_own_and_a_peer_are_compared(tmp_path: Path) -> None:
    (tmp_path / "my.py").write_text(MINE, encoding="utf-8")
    ran = simulate(TINY, "--policy", "default", "--policy", "my.py:mine", "--policy", "sjf", cwd=tmp_path)
    assert ran.code == 0, ran.err
    assert "synthetic-0  20 jobs on 8 GPUs" in ran.out
    rows = [line.split("  ")[0] for line in ran.out.splitlines()]
    assert rows.count("default") == rows.count("my.py:mine") == rows.count("sjf (oracle)") == 3
    assert "Who won and who lost: my.py:mine against default" in ran.out


def test_the_number_of_processes_changes_no_byte(tmp_path: Path) -> None:
    told = []
    for number in ("1", "2"):
        folder = tmp_path / number
        folder.mkdir()
        files = ("--report", "a.html", "--json", "a.json", "--csv", "a.csv", "--jobs-csv", "jobs.csv")
        ran = simulate(
            *(TINY, "--seed", "1", "--seed", "2", "--policy", "fifo", "--policy", "native"),
            *("--policy", "tiresias", "--processes", number, *files),
            cwd=folder,
        )
        assert ran.code == 0, ran.err
        told.append((ran.out, {path.name: path.read_bytes() for path in sorted(folder.iterdir())}))
    assert set(told[0][1]) == {"a.html", "a.json", "a.csv", "jobs.csv"}
    assert told[0] == told[1]
    made = json.loads(told[0][1]["a.json"])
    assert [name for name, _ in made["provenance"]["played"]] == ["synthetic-1", "synthetic-2"]
    assert made["provenance"]["traces"] == ["synthetic-1", "synthetic-2"]
    assert made["provenance"]["command"].endswith("--policy fifo --policy native --policy tiresias")


def test_every_published_baseline_can_be_named() -> None:
    """Gangs, whole nodes and no run times told: none of them may need more than its name."""
    names = ("lucid", "fgd", "best-fit", "sia", "pollux", "optimus-eurosys", "afs", "themis", "elasticflow", "kai")
    ran = simulate(TINY, *(word for name in names for word in ("--policy", name)))
    assert ran.code == 0, ran.err
    rows = {line.split(" ")[0] for line in ran.out.splitlines()}
    assert set(names) <= rows


def test_another_reference_turns_the_comparison_round() -> None:
    ran = simulate(TINY, "--policy", "native", "--policy", "qssf", "--reference", "qssf", "-o", "json")
    told = ran.json()
    assert told["reference"] == "qssf"
    assert [(c["reference"], c["other"]) for c in told["comparisons"]] == [("qssf", "native-gang")]


def test_every_load_has_a_study_of_its_own_and_a_row_in_the_end(tmp_path: Path) -> None:
    ran = simulate(
        *(TINY, "--load", "0.5", "--load", "2", "--policy", "native", "--policy", "qssf"),
        *("--html", tmp_path / "report.html", "--json", tmp_path / "report.json"),
    )
    assert ran.code == 0, ran.err
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "report-load-0.5.json",
        "report-load-2.json",
        "report.html",
    ]
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert 'id="load-0.5"' in html and 'id="load-2"' in html
    table = ran.out[ran.out.index("Completion and waiting by load") :].splitlines()
    assert [line.split()[0] for line in table[2:6]] == ["0.5", "qssf", "2", "qssf"]
    assert re.search(r"qssf +[\d.]+ +[−+±][\d.]+ % +[−+][\d.]+ to [−+][\d.]+ %", table[3])
    assert "synthetic-0 at load 0.5" in ran.out


def test_files_are_there_also_when_nobody_reads_the_tables_to_their_end(tmp_path: Path) -> None:
    """As with `| head`: the reader hangs up before the first line."""
    ours, theirs = os.pipe()
    os.close(ours)
    files = ("--html", "a.html", "--json", "a.json", "--csv", "a.csv", "--jobs-csv", "jobs.csv")
    ran = subprocess.run(
        [*COMMAND, "simulate", TINY, "--policy", "native", "--processes", "1", "--quiet", *files],
        cwd=tmp_path,
        env=environment(),
        stdout=theirs,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    os.close(theirs)
    assert ran.stderr == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "a.html", "a.json", "jobs.csv"]


def test_a_file_that_cannot_be_written_does_not_take_the_tables_with_it() -> None:
    ran = simulate(TINY, "--policy", "native", "--csv", "/dev/full")
    assert_refused(ran, 1, "/dev/full: cannot be written: No space left on device")
    assert "Completion and waiting" in ran.out


def test_run_times_are_told_only_when_it_is_asked_for() -> None:
    def notes(*more: str) -> list[str]:
        ran = simulate(TINY, "--policy", "srtf-told", "--policy", "fifo", *more, "-o", "json", "--jobs", "8")
        return [row["scheduler"] for row in ran.json()["metrics"]]

    assert notes() == ["srtf (as told)", "fifo"]
    assert notes("--predict", "0") == ["srtf (as told) (oracle)", "fifo (oracle)"]
    assert notes("--predict", "0.5") == ["srtf (as told) (told with error 0.5)", "fifo (told with error 0.5)"]


def test_what_is_assumed_is_told_on_the_terminal_and_in_the_files(tmp_path: Path) -> None:
    given = ("--restart", "1m", "--checkpoint", "30m", "--checkpoint-cost", "20s", "--job-failures", "0.5")
    more = ("--node-failures", "mtbf=2d,repair=1h", "--racks", "1", "--neighbours", "devices")
    files = ("--json", tmp_path / "a.json", "--html", tmp_path / "a.html")
    ran = simulate(TINY, "--policy", "default", "--policy", "lucid", *given, *more, *files)
    assert ran.code == 0, ran.err
    assert "restart, new size or place: 1m; checkpoint: every 30m, 20s each" in ran.out
    told = dict(json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["provenance"]["assumptions"])
    assert told["node failures"] == "every 2d for each node, 1h of repair, both on average"
    assert "Assumed: job failures" in (tmp_path / "a.html").read_text(encoding="utf-8")


def test_a_cluster_spec_brings_nodes_queues_and_settings(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(
        "cluster: [{name: n, count: 2, gpus: 4, cpu: 64, memory: 1Ti}]\n"
        "queues: [{name: tenant-1, gpu: {guarantee: 4}}, {name: tenant-2, gpu: {guarantee: 4}}]\n",
        encoding="utf-8",
    )
    ran = simulate("synthetic:jobs=15,tenants=2", "--cluster", tmp_path / "cluster.yaml", "-o", "json")
    assert ran.code == 0, ran.err
    cluster = ran.json()["cluster"]
    assert (cluster["nodes"], cluster["gpus"], cluster["queues"]) == (2, 8, ["tenant-1", "tenant-2"])


def test_decisions_of_our_policies_can_be_recorded_and_replayed(tmp_path: Path) -> None:
    ran = simulate(TINY, "--policy", "fifo", "--policy", "native", "--journal", tmp_path / "j")
    assert ran.code == 0, ran.err
    (journal,) = (tmp_path / "j").iterdir()
    assert journal.name == "synthetic-0-fifo"
    assert optimus("replay", journal).code == 0
    assert_refused(simulate(TINY, "--journal", tmp_path / "j"), 2, "there already")


def test_a_journal_of_a_simulation_has_days_and_no_dates(tmp_path: Path) -> None:
    assert simulate(TINY, "--policy", "default", "--journal", tmp_path / "J").code == 0
    ran = optimus("replay", tmp_path / "J" / "synthetic-0-default")
    assert ", day 1, " in ran.out and "1970" not in ran.out
    moment = optimus("replay", tmp_path / "J" / "synthetic-0-default", "--at", "3")
    assert "day 1, " in moment.out and "1970" not in moment.out


def test_what_there_is_can_be_listed() -> None:
    ran = simulate("--list")
    assert ran.code == 0
    names = {line.split()[0] for line in ran.out.splitlines() if line.startswith("  ")}
    assert {"synthetic", "philly", "csv", "default", "FILE.py:NAME", "tiresias", "peer:fifo", "native"} <= names


# -- going on -------------------------------------------------------------------------------------------------------


def test_an_interrupted_sweep_goes_on_where_it_was(tmp_path: Path) -> None:
    seeds = [word for seed in range(1, 4) for word in ("--seed", str(seed))]
    command = ("simulate", "synthetic:jobs=50,gpus=16", *seeds, "--policy", "native", "--policy", "default")
    ran = on_terminal(*command, "--keep", tmp_path, interrupt_at="1/6")  # of the runs; those of jobs end in /50
    assert ran.code == 130
    said = re.search(r"Stopped: (\d) of 6 runs are done and kept in .*the same command goes on", ran.out, re.DOTALL)
    assert said is not None, ran.out[-500:]
    kept = sorted(tmp_path.glob("*.run"))
    assert len(kept) >= int(said[1]) >= 1
    before = {path: path.stat().st_mtime_ns for path in kept}
    again = simulate(*command[1:4], "--policy", "native", "--keep", tmp_path, "-q")  # a smaller one uses what is there
    assert again.code == 0, again.err
    assert {path: path.stat().st_mtime_ns for path in kept} == before


def test_without_a_folder_an_interrupt_says_how_it_could_go_on() -> None:
    ran = on_terminal(
        *("simulate", "synthetic:jobs=80,gpus=16", "--seed", "1", "--seed", "2", "--policy", "default"),
        interrupt_at="/80",
    )
    assert ran.code == 130 and "--keep DIR" in ran.out and "Traceback" not in ran.out


# -- what is wrong --------------------------------------------------------------------------------------------------


def test_problems_of_a_trace_are_counted_by_kind_and_are_all_in_the_files(tmp_path: Path) -> None:
    path = listed(
        tmp_path,
        "a,2017-09-04 10:00:00,600,1,x",
        "b,2017-09-04 10:01:00,600,64,x",
        "c,2017-09-04 10:02:00,600,128,x",
        "d,2017-09-04 10:03:00,-5,1,x",
        "e,2017-09-04 10:04:00,600,2,y",
    )
    ran = simulate(path, "--nodes", "2x4", "--policy", "native", "--json", tmp_path / "out.json")
    assert ran.code == 0, ran.err
    assert "Problems of the traces: 3, 3 jobs are left out" in ran.out
    assert re.search(r"2 +left out +jobs\.csv:3,4 +asks for 64 GPUs, and the cluster has 8", ran.out)
    told = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["provenance"]
    assert told["files"] == [["jobs.csv", hashlib.sha256(path.read_bytes()).hexdigest()]]
    assert len(told["problems"]) == 3 and "5 rows read, 3 left out" in told["source"]
    quiet = simulate(path, "--nodes", "2x4", "--policy", "native", "--quiet")
    assert "Problems" not in quiet.out and quiet.err == ""


def test_kinds_beyond_the_first_are_counted_and_can_be_seen(tmp_path: Path) -> None:
    rows = [
        "a,x,600,1,x",
        "b,2017-09-04 10:00:00,x,1,x",
        "c,2017-09-04 10:00:00,600,x,x",
        "d,2017-09-04 10:00:00,600,0,x",
        "e,2017-09-04 10:00:00,0,1,x",
        "f,2017-09-04 10:00:00,-1,1,x",
        ",2017-09-04 10:00:00,600,1,x",
        "k,2017-09-04 10:00:00,600,1,x",
        "g,2017-09-04 10:00:00,600,-1,x",
        "h,2017-09-04 10:00:00,600,1",
    ]
    path = listed(tmp_path, "k,2017-09-04 10:00:00,600,1,x", *rows)
    ran = simulate(path, "--nodes", "1x4", "--policy", "native")
    assert "and 2 more of 2 other kinds; -o wide shows every kind, --json FILE every line" in ran.out
    wide = simulate(path, "--nodes", "1x4", "--policy", "native", "-o", "wide")
    assert "other kind" not in wide.out and "4 cells, and the header has 5" in wide.out


def test_queues_that_are_not_in_the_cluster_spec_fail(tmp_path: Path) -> None:
    path = listed(tmp_path, "a,2017-09-04 10:00:00,600,1,visoin")
    (tmp_path / "c.yaml").write_text("cluster: [{name: n, gpus: 8}]\nqueues: [{name: vision}]\n", encoding="utf-8")
    ran = simulate(path, "--cluster", tmp_path / "c.yaml")
    assert_refused(ran, 1, "1 job in queue visoin", "did you mean vision?")


def test_places_that_cannot_be_written_are_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    ran = simulate(TINY, "--policy", "native", "--keep", tmp_path / "file" / "below")
    assert_refused(ran, 1, "below: cannot be made: Not a directory")


def test_files_that_cannot_be_used_fail(tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    assert_refused(simulate(tmp_path / "other.csv"), 1, "of no known format", "mapping file")
    (tmp_path / "bad.yaml").write_text("cluster: [{name: n, gpus: -8}]\nqeues: []\n", encoding="utf-8")
    ran = simulate(TINY, "--cluster", tmp_path / "bad.yaml")
    assert_refused(ran, 1, "bad.yaml:1:27", "must not be negative", "bad.yaml:2:1", "did you mean queues?")
    assert_refused(simulate(listed(tmp_path), "--nodes", "1x8"), 1, "jobs.csv")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "name a file, or synthetic"),
        (("nowhere.csv",), "there is no such file"),
        ((TINY, "--policy", "tiresas", "--policy", "no.py:x"), "tiresias is close"),
        ((TINY, "--policy", "default", "--reference", "fifo"), "add --policy fifo"),
        ((TINY, "--format", "philly"), "is for files"),
        ((TINY, "--option", "load=2"), "synthetic:jobs=2000,load=0.9"),
        ((TINY, "--option", "load"), "KEY=VALUE"),
        ((TINY, "--nodes", "8"), "such as 60x8"),
        ((TINY, "--nodes", "1x8", "--cluster", "c.yaml"), "named twice"),
        ((TINY, "--cluster", "nowhere.yaml"), "there is no such file"),
        ((TINY, "--interval", "often"), "30s"),
        ((TINY, "--tick", "0"), "write 5m"),
        ((TINY, "--tick", "1ms"), "too often; write at least 1s"),
        ((TINY, "--interval", "1ms"), "too often; write at least 1s"),
        ((TINY, "--load", "0"), "such as 0.8"),
        ((TINY, "--load", "1e-300"), "0.001 to 1000"),
        ((TINY, "--load", "inf"), "0.001 to 1000"),
        ((TINY, "--predict", "1e9"), "is no prediction; write 0 to 10"),
        ((TINY, "--nodes", "999999x999"), "write at most 1000000"),
        ((TINY, "--seed", "-1"), "0 or more"),
        ((TINY, "--restart", "soon"), "write 30s"),
        ((TINY, "--checkpoint", "1ms"), "0 (always up to date) or never"),
        ((TINY, "--checkpoint-cost", "20s"), "--checkpoint 30m"),
        ((TINY, "--job-failures", "2"), "--job-failures"),
        ((TINY, "--node-failures", "mtbf=30d"), "write both"),
        ((TINY, "--node-failures", "mtbf=30d,repairs=2h"), "did you mean repair?"),
        ((TINY, "--spreading", "racks=0.5"), "add --racks 4"),
        ((TINY, "--spreading", "nodes=2"), "write a part, 0 to 1"),
        ((TINY, "--neighbours", "devices=2"), "devices has no value"),
        ((TINY, "--neighbours", "network"), "network needs a value"),
        ((TINY, "--jobs", "0"), "--jobs"),
        ((TINY, "--html", "no/such/folder.html"), "there is no folder"),
        ((TINY, "--load", "1", "--load", "2", "-o", "json"), "--json FILE"),
    ],
)
def test_wrong_usage_is_said_before_anything_is_played(words: tuple[str, ...], says: str) -> None:
    assert_refused(simulate(*words), 2, says)


def test_a_run_that_fails_is_told_and_the_others_are_shown(tmp_path: Path) -> None:
    (tmp_path / "deadly.py").write_text(
        "import multiprocessing, os\n\ndef mine(jobs):\n"
        "    if multiprocessing.parent_process(): os._exit(3)\n    return jobs.submitted_ms\n",
        encoding="utf-8",
    )
    ran = simulate(TINY, "--policy", "native", "--policy", "deadly.py:mine", cwd=tmp_path, processes="2")
    assert ran.code == 1
    assert "native-gang" in ran.out
    assert "deadly.py:mine on synthetic-0: its process ended without a word (code 3)" in ran.err


def test_the_reference_page_has_every_option() -> None:
    lines = re.findall(r"^\s+(?:-\w, )?(--[a-z-]+(?:, ?--[a-z-]+)*)", simulate("--help").out, flags=re.MULTILINE)
    offered = {name for line in lines for name in re.split(r", ?", line)}
    page = (ROOT / "docs" / "reference" / "simulate.md").read_text(encoding="utf-8")
    told = set(re.findall(r"`(--[a-z-]+)", page)) | {"--help", "--output"}
    assert "--policy" in offered and offered - told == set()
    assert set(re.findall(r"`(--[a-z-]+)", page)) - offered == set()
