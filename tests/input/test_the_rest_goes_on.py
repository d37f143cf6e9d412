"""A bad record is set aside with its errors; everything else takes part."""

from __future__ import annotations

from pathlib import Path

import pytest

from optimus.api.errors import LoadError
from optimus.api.loading import Loaded, load_files, load_text


def ids(loaded: Loaded) -> list[str]:
    return [workload.id for workload in loaded.scenario.workloads]


def test_one_bad_record_of_each_kind() -> None:
    loaded = load_text("""
cluster:
  nodes: [{name: good, gpus: 8}, {name: bad, gpus: -8}]
pools: [{name: good}, {name: bad, placement: sideways}]
queues: [{name: good}, {name: bad, rank: x}]
workloads: [{name: good, queue: good}, {name: bad, queue: good, gpu: x}]
budget: {passes: 3, starts: -1}
cycles: [{submit: [{name: late, queue: good}, {name: bad-late, gpu: x}]}, {advance: x}, {note: third}]
expect: {workloads: {good: running, late: sideways}, plan: emty}
""")
    scenario = loaded.scenario
    assert [node.name for node in scenario.nodes] == ["good"]
    assert [pool.name for pool in scenario.pools] == ["good", "default"]
    assert [queue.name for queue in scenario.queues] == ["good"]
    assert ids(loaded) == ["default/good"]
    assert (scenario.budget.passes, scenario.budget.starts) == (3, 1_000_000)
    assert [len(cycle.events) for cycle in scenario.cycles] == [1, 0, 0]
    assert scenario.cycles[2].note == "third"
    assert [expected.written for expected in scenario.expect.workloads] == ["good"]
    assert {(piece.kind, piece.name) for piece in loaded.set_aside} == {
        ("node group", "bad"),
        ("pool", "bad"),
        ("queue", "bad"),
        ("workload", "bad"),
        ("setting", "starts"),
        ("workload", "bad-late"),
        ("event", "advance"),
        ("expectation", "late"),
        ("expectation", "plan"),
    }
    assert len(loaded.errors) == 9


def test_who_names_a_set_aside_record_is_told_why() -> None:
    loaded = load_text("""
cluster: [{name: n, count: 2, gpus: x}]
queues: [{name: q, rank: x}, {name: r}]
workloads:
  - {name: a, queue: q}
  - {name: b, queue: r, running: {on: n-1}}
expect: {workloads: {b: invalid}}
""")
    messages = [error.message for error in loaded.errors]
    assert "queue q was set aside because of its own errors" in messages
    assert "node n-1 was set aside because of its own errors" in messages
    assert ids(loaded) == ["default/a"]
    assert loaded.scenario.expect.workloads[0].workloads == ()


def test_dead_ends_stay_in_the_world_for_the_scheduler_to_answer() -> None:
    loaded = load_text("""
queues: [{name: a, parent: b}, {name: b, parent: a}, {name: orphan, parent: ghost}]
workloads: [{name: w, queue: ghost, pools: [nowhere], topology: rack}]
""")
    assert [queue.name for queue in loaded.scenario.queues] == ["a", "b", "orphan"]
    assert ids(loaded) == ["default/w"]
    assert [error.set_aside for error in loaded.errors] == [""] * 6
    assert loaded.set_aside == ()


def test_several_errors_of_one_record_come_together() -> None:
    loaded = load_text("queues: [{name: q, rank: x, parent: ghost, gpu: {guarantee: -1, limt: 2}, maxWait: soon}]")
    assert [error.place for error in loaded.errors] == [
        "queue q: rank",
        "queue q: parent",
        "queue q: gpu.guarantee",
        "queue q: gpu.limt",
        "queue q: maxWait",
    ]
    assert {error.set_aside for error in loaded.errors} == {"queue q"}


def test_a_file_may_announce_its_errors() -> None:
    loaded = load_text(
        "workloads: [{name: w, gpu: -1}]\nexpect: {errors: [must not be negative], workloads: {w: invalid}}\n"
    )
    assert [error.expected for error in loaded.errors] == [True]
    assert loaded.unexpected == ()
    assert loaded.or_raise() is loaded.scenario


def test_errors_can_be_raised_together() -> None:
    with pytest.raises(LoadError) as caught:
        load_text("queues: [{name: q, rank: x}, {name: r, rank: y}]").or_raise()
    assert len(caught.value.errors) == 2
    assert str(caught.value).count("\n") == 1


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"queues: []\nname: caf\xe9\n")
    (tmp_path / "good.yaml").write_text("queues: [{name: q}]\n", encoding="utf-8")
    paths = [tmp_path / "missing.yaml", tmp_path / "latin.yaml", tmp_path / "good.yaml", tmp_path]
    loaded = load_files(*paths)
    found = {Path(error.path).name: (error.line, error.message) for error in loaded.errors}
    assert found["missing.yaml"] == (1, "cannot be read: No such file or directory")
    assert found["latin.yaml"] == (2, "is not UTF-8 text")
    assert found[tmp_path.name][1].startswith("cannot be read")
    assert [queue.name for queue in loaded.scenario.queues] == ["q"]


def test_several_files_are_one_world_and_errors_name_theirs(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text("nodes: [{name: n, gpus: 8}]\nqueues: [{name: q}]\n", encoding="utf-8")
    (tmp_path / "story.yaml").write_text(
        "workloads:\n  - {name: w, queue: q}\n  - {name: v, gpu: x}\n", encoding="utf-8"
    )
    loaded = load_files(tmp_path / "cluster.yaml", tmp_path / "story.yaml")
    assert loaded.scenario.name == "story"
    assert ids(loaded) == ["default/w"]
    assert [(Path(error.path).name, error.line) for error in loaded.errors] == [("story.yaml", 3)]


def test_nothing_at_all_is_an_empty_world() -> None:
    for text in ("", "---\n", "# only a comment\n", "~"):
        loaded = load_text(text)
        assert loaded.errors == ()
        assert len(loaded.scenario.cycles) == 1
        assert [queue.name for queue in loaded.scenario.queues] == ["default"]
