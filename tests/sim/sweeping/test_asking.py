"""What people ask for: who schedules, on which nodes, and what is said when it makes no sense."""

from __future__ import annotations

from pathlib import Path

import pytest

from optimus.drivers.sim.peers.registry import PEERS
from optimus.drivers.sim.sweeping import (
    SweepError,
    Wishes,
    cluster_of_file,
    cluster_of_nodes,
    contenders,
    scenes,
    source_of,
)
from optimus.drivers.sim.traces.trace import Verdict
from tests.sim.sweeping.small import listed, rows


def wrong(error: pytest.ExceptionInfo[SweepError]) -> list[tuple[str, str]]:
    return [(complaint.option, complaint.message) for complaint in error.value.complaints]


# -- who schedules --------------------------------------------------------------------------------------------------


def test_a_name_is_a_policy_first_and_then_a_peer() -> None:
    found = contenders(["fifo", "peer:fifo", "tiresias", "native", "fifo"])
    assert [(one.label, one.peer) for one in found] == [
        ("fifo", False),
        ("fifo (peer)", True),
        ("tiresias", True),
        ("native-gang", True),
    ]


def test_whoever_knows_what_nobody_can_know_is_marked() -> None:
    for one in contenders([f"peer:{name}" for name in PEERS]):
        marked = "oracle" in one.label or "error" in one.label
        assert marked == PEERS[one.reference].oracle, one.label


def test_run_times_that_are_told_are_marked_too() -> None:
    names = ["default", "srtf-told", "native"]
    assert [one.label for one in contenders(names, 0.0)] == [
        "default (oracle)",
        "srtf (as told) (oracle)",
        "native-gang",
    ]
    assert contenders(["default"], 0.3)[0].label == "default (told with error 0.3)"
    assert contenders(["default"])[0].label == "default"


def test_a_file_is_named_without_its_folder(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def first(jobs): return jobs.submitted_ms\n", encoding="utf-8")
    (one,) = contenders([f"{tmp_path}/mine.py:first"])
    assert one.label == "mine.py:first" and one.code


def test_all_unknown_names_are_told_at_once_with_what_is_close(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("def mine(jobs): return jobs.nonsense\n", encoding="utf-8")
    with pytest.raises(SweepError) as error:
        contenders(["tiresas", "default", "peer:siia", f"{tmp_path}/bad.py:mine"])
    (first, one), (second, two), (third, three) = wrong(error)
    assert {first, second, third} == {"--policy"}
    assert "tiresias is close" in one and "peer:sia" in two
    assert "in every decision" in three and "nonsense" in three


# -- on what --------------------------------------------------------------------------------------------------------


def test_nodes_in_a_few_words() -> None:
    cluster = cluster_of_nodes(["2x8:a100", "1x4"])
    assert (len(cluster.nodes), cluster.gpus, cluster.uniform) == (3, 20, False)
    for text in ("8", "0x8", "2x", "2x8:", "axb"):
        with pytest.raises(SweepError) as error:
            cluster_of_nodes([text])
        assert "60x8" in wrong(error)[0][1]
    with pytest.raises(SweepError) as error:
        cluster_of_nodes(["2x8", "1x4"])
    assert "twice" in wrong(error)[0][1]


def test_a_cluster_spec_is_the_language_of_scenarios(tmp_path: Path) -> None:
    spec = tmp_path / "cluster.yaml"
    spec.write_text(
        "cluster: [{name: n, count: 2, gpus: 8}]\nqueues: [{name: x, gpu: {guarantee: 8}}]\n"
        "settings: {hold: 5m}\nworkloads: [{name: w, queue: x, gpu: 1}]\npolicy: fifo\n",
        encoding="utf-8",
    )
    cluster = cluster_of_file(spec)
    assert (cluster.gpus, cluster.queues[0].name, cluster.settings.hold_ms) == (16, "x", 300_000)
    assert ["not used" in note for note in cluster.notes] == [True, True]


def test_errors_of_a_cluster_spec_are_told_with_their_lines(tmp_path: Path) -> None:
    spec = tmp_path / "cluster.yaml"
    spec.write_text("cluster: [{name: n, gpus: -8}]\nqeues: []\n", encoding="utf-8")
    with pytest.raises(SweepError) as error:
        cluster_of_file(spec)
    assert [(option, text.partition(": ")[0].rpartition("yaml:")[2]) for option, text in wrong(error)] == [
        ("", "1:27"),
        ("", "2:1"),
    ]


def test_a_cluster_without_gpus_is_none(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("cluster: [{name: n, cpu: 8}]\n", encoding="utf-8")
    with pytest.raises(SweepError, match="no node with GPUs"):
        cluster_of_file(tmp_path / "c.yaml")


# -- with which jobs ------------------------------------------------------------------------------------------------


def test_jobs_that_fit_nowhere_are_left_out_and_told_with_their_line(tmp_path: Path) -> None:
    path = listed(tmp_path, *rows(2), "large,2017-09-04 11:00:00,600,64,x")
    for nodes in (["2x4"], ["2x4", "1x2:b"]):  # known to the loader, and found afterwards
        (scene,) = scenes([source_of(str(path))], Wishes(cluster=cluster_of_nodes(nodes)))
        assert [job.name for job in scene.trace.jobs] == ["job-0", "job-1"]
        (problem,) = scene.trace.problems
        assert (problem.verdict, problem.line) == (Verdict.LEFT_OUT, 4)
        assert "could never start" in problem.message


def test_queues_that_the_cluster_does_not_have_are_told_with_their_jobs(tmp_path: Path) -> None:
    path = listed(tmp_path, *rows(3, queue="visoin"))
    (tmp_path / "c.yaml").write_text(
        "cluster: [{name: n, gpus: 8}]\nqueues: [{name: vision}, {name: speech}]\n", encoding="utf-8"
    )
    with pytest.raises(SweepError) as error:
        scenes([source_of(str(path))], Wishes(cluster=cluster_of_file(tmp_path / "c.yaml")))
    text = str(error.value)
    assert "3 jobs in queue visoin" in text and "did you mean vision?" in text and "add the others" in text


def test_a_list_without_a_cluster_asks_for_one(tmp_path: Path) -> None:
    path = listed(tmp_path, *rows(2))
    with pytest.raises(SweepError) as error:
        scenes([source_of(str(path))], Wishes())
    assert wrong(error)[0][0] == "TRACE" and "--nodes 60x8" in wrong(error)[0][1]


def test_several_seeds_of_one_list_are_no_proof(tmp_path: Path) -> None:
    path = listed(tmp_path, *rows(2))
    cluster = cluster_of_nodes(["1x8"])
    with pytest.raises(SweepError, match="no more proof"):
        scenes([source_of(str(path))], Wishes(cluster=cluster, seeds=(1, 2)))
    told = scenes([source_of(str(path))], Wishes(cluster=cluster, seeds=(1, 2), sigma=0.5))
    assert [scene.name for scene in told] == ["jobs, seed 1", "jobs, seed 2"]
    assert told[0].trace.jobs[0].expected_ms != told[1].trace.jobs[0].expected_ms


def test_nothing_left_to_play_is_said_with_the_first_reasons(tmp_path: Path) -> None:
    path = listed(tmp_path, "a,never,600,1,x", "b,2017-09-04 10:00:00,600,99,x")
    with pytest.raises(SweepError) as error:
        scenes([source_of(str(path))], Wishes(cluster=cluster_of_nodes(["1x8"])))
    assert "no job is left of 2 rows" in str(error.value) and "jobs.csv:2" in str(error.value)


@pytest.mark.parametrize(
    ("text", "option", "says"),
    [
        ("synthetic:jbos=3", "TRACE", "did you mean jobs?"),
        ("synthetic:jobs=few", "TRACE", "whole number"),
        ("synthetic:jobs", "TRACE", "has no value"),
        ("synthetc", "TRACE", "did you mean synthetic?"),
    ],
)
def test_a_trace_that_cannot_be_understood(text: str, option: str, says: str) -> None:
    with pytest.raises(SweepError) as error:
        source_of(text)
    assert wrong(error)[0][0] == option and says in wrong(error)[0][1]


@pytest.mark.parametrize(
    ("form", "options", "option", "says"),
    [
        ("phily", {}, "--format", "did you mean philly?"),
        ("", {"cluster_gpu": "8"}, "--option", "did you mean cluster_gpus?"),
        ("", {"target_load": "2"}, "--option", "--load 2"),
        ("", {"from_ms": "soon"}, "--option", "milliseconds"),
    ],
)
def test_options_are_checked_before_the_file_is_read(
    tmp_path: Path, form: str, options: dict[str, str], option: str, says: str
) -> None:
    with pytest.raises(SweepError) as error:
        source_of(str(listed(tmp_path, *rows(2))), form, options)
    assert wrong(error)[0][0] == option and says in wrong(error)[0][1]
