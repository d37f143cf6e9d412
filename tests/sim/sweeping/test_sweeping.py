"""A sweep plays every scene under everybody, once, in any number of processes, and remembers what is done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import structs

from optimus.drivers.sim.setup import SharedDevice
from optimus.drivers.sim.sweeping import (
    Failed,
    Finished,
    Shelf,
    Wishes,
    cluster_of_file,
    cluster_of_nodes,
    contenders,
    runs_of,
    scenes,
    source_of,
    studies,
)
from optimus.drivers.sim.sweeping.running import setup_for
from optimus.drivers.sim.sweeping.scenes import _scene
from tests.sim.sweeping.small import TINY, listed, rows, swept, tiny


def test_scenes_are_traces_times_loads_times_seeds_and_each_is_played_by_everybody() -> None:
    found, runs = tiny("native", "qssf", loads=(0.5, 1.0), seeds=(1, 2))
    assert [(scene.load, scene.setup.seed) for scene in found] == [(0.5, 1), (0.5, 2), (1.0, 1), (1.0, 2)]
    assert [(run.scene, run.contender.asked) for run in runs] == [(i, n) for i in range(4) for n in ("native", "qssf")]


def test_the_same_jobs_come_at_every_load_only_faster_or_slower() -> None:
    (slow, fast), _ = tiny("native", loads=(0.5, 1.0))
    assert [job.work for job in slow.trace.jobs] == [job.work for job in fast.trace.jobs]
    spans = [scene.trace.jobs[-1].submit_ms - scene.trace.jobs[0].submit_ms for scene in (slow, fast)]
    assert spans[0] == pytest.approx(2 * spans[1], rel=1e-3)


def test_who_shares_devices_without_being_asked_to_pays_for_it_and_nobody_else_does() -> None:
    (scene,), runs = tiny("lucid", "native")
    assert [setup_for(scene, run.contender).neighbours for run in runs] == [SharedDevice(), None]
    known = structs.replace(scene, setup=structs.replace(scene.setup, neighbours=SharedDevice(800)))
    assert [setup_for(known, run.contender).neighbours for run in runs] == [SharedDevice(800)] * 2
    results, _ = swept((scene,), runs)
    assert all(isinstance(result, Finished) for result in results.values())


def test_two_processes_find_what_one_finds() -> None:
    found, runs = tiny("native", "qssf", "tiresias", seeds=(1, 2))
    alone, _ = swept(found, runs)
    together, watcher = swept(found, runs, processes=2)
    assert sorted(watcher.over) == sorted(watcher.begun) == [run.number for run in runs]
    assert watcher.told
    assert [msgspec.json.encode(alone[run.number]) for run in runs] == [
        msgspec.json.encode(together[run.number]) for run in runs
    ]


def test_what_is_kept_is_not_played_again(tmp_path: Path) -> None:
    found, runs = tiny("native", "qssf")
    first, watcher = swept(found, runs, shelf=Shelf(tmp_path))
    assert watcher.begun == [0, 1]
    again, watcher = swept(found, runs, shelf=Shelf(tmp_path))
    assert watcher.begun == [] and watcher.over == [0, 1]
    assert msgspec.json.encode(again) == msgspec.json.encode(first)


def test_a_sweep_that_grows_plays_only_what_is_new(tmp_path: Path) -> None:
    found, runs = tiny("native", seeds=(1,))
    swept(found, runs, shelf=Shelf(tmp_path))
    found, runs = tiny("native", "qssf", seeds=(1, 2))
    _, watcher = swept(found, runs, shelf=Shelf(tmp_path))
    assert [(runs[i].contender.asked, runs[i].scene) for i in watcher.begun] == [
        ("qssf", 0),
        ("native", 1),
        ("qssf", 1),
    ]


def test_another_load_or_prediction_or_policy_text_is_another_run(tmp_path: Path) -> None:
    policy = tmp_path / "mine.py"
    shelf = Shelf(tmp_path / "kept")
    played = []
    tries: list[tuple[str, dict[str, Any]]] = [
        ("def mine(jobs): return jobs.submitted_ms", {}),
        ("def mine(jobs): return -jobs.submitted_ms", {}),
        ("def mine(jobs): return -jobs.submitted_ms", {"loads": (2.0,)}),
        ("def mine(jobs): return -jobs.submitted_ms", {"sigma": 0.5}),
        ("def mine(jobs): return -jobs.submitted_ms", {}),
    ]
    for text, wishes in tries:
        policy.write_text(text, encoding="utf-8")
        found, runs = tiny(f"{policy}:mine", text="synthetic:jobs=5,gpus=8", **wishes)
        _, watcher = swept(found, runs, shelf=shelf)
        played.append(bool(watcher.begun))
    assert played == [True, True, True, True, False]


def test_a_file_on_the_shelf_that_cannot_be_read_is_as_good_as_none(tmp_path: Path) -> None:
    found, runs = tiny("native")
    swept(found, runs, shelf=Shelf(tmp_path))
    (kept,) = tmp_path.iterdir()
    kept.write_bytes(kept.read_bytes()[:100])
    results, watcher = swept(found, runs, shelf=Shelf(tmp_path))
    assert watcher.begun == [0] and isinstance(results[0], Finished)


def test_one_that_fails_is_told_and_the_others_are_compared() -> None:
    found, runs = tiny("native", "qssf", "tiresias")
    broken = structs.replace(runs[1], contender=structs.replace(runs[1].contender, reference="nobody"))
    results, _ = swept(found, (runs[0], broken, runs[2]))
    assert isinstance(results[1], Failed)
    (told,) = studies(found, runs, results, reference="native-gang", command="")
    assert told.study is not None
    assert [m.name for m in told.study.measured] == ["native-gang", "tiresias"]
    assert "qssf on synthetic-0: broke down" in told.failures[0] and "in no table" in told.failures[1]


def test_without_the_reference_the_next_one_takes_its_place() -> None:
    found, runs = tiny("native", "qssf")
    results, _ = swept(found, runs)
    (told,) = studies(found, runs, {**results, 0: Failed("no")}, reference="native-gang", command="")
    assert told.study is not None and told.study.measured[0].name == "qssf"
    assert "qssf takes its place" in told.failures[-1]


def test_a_process_that_dies_costs_its_run_and_no_other(tmp_path: Path) -> None:
    deadly = tmp_path / "deadly.py"
    deadly.write_text(
        "import multiprocessing, os\n"
        "def mine(jobs):\n"
        "    if multiprocessing.parent_process(): os._exit(7)\n"
        "    return jobs.submitted_ms\n",
        encoding="utf-8",
    )
    found, runs = tiny("native", f"{deadly}:mine", "qssf", "tiresias")
    results, _ = swept(found, runs, processes=2)
    assert [isinstance(results[i], Finished) for i in range(4)] == [True, False, True, True]
    died = results[1]
    assert isinstance(died, Failed) and "code 7" in died.why


def test_a_job_that_would_wait_for_ever_does_not_hold_up_the_simulation(tmp_path: Path) -> None:
    spec = tmp_path / "cluster.yaml"
    spec.write_text("cluster: [{name: n, gpus: 8}]\nqueues: [{name: x, gpu: {limit: 2}}]\n", encoding="utf-8")
    path = listed(tmp_path, *rows(3), "wide,2017-09-04 10:30:00,600,4,x")
    found = scenes([source_of(str(path))], Wishes(cluster=cluster_of_file(spec)))
    results, _ = swept(found, runs_of(found, contenders(["fifo"])))
    result = results[0]
    assert isinstance(result, Finished)
    assert [bool(job.rejected) for job in result.record.jobs] == [False, False, False, True]
    assert "1 jobs wait for ever" in result.notes[0] and "queue x may have 2" in result.notes[0]


def test_a_policy_that_breaks_on_the_way_is_noted(tmp_path: Path) -> None:
    fragile = tmp_path / "fragile.py"
    fragile.write_text(
        "def mine(jobs):\n    if jobs.now_ms > 0: raise ValueError('too late')\n    return jobs.submitted_ms\n",
        encoding="utf-8",
    )
    found, runs = tiny(f"{fragile}:mine", text="synthetic:jobs=5,gpus=8")
    results, _ = swept(found, runs)
    result = results[0]
    assert isinstance(result, Finished)
    assert "the default decided instead" in result.notes[0] and "too late" in result.notes[0]


def test_jobs_that_never_end_are_watched_for_an_hour_after_the_last() -> None:
    found, _ = tiny("native")
    endless = structs.replace(found[0].trace, endless=True)
    assert found[0].until_ms is None
    scene = _scene(endless, found[0].setup, Wishes(), None, "")
    assert scene.until_ms == endless.jobs[-1].submit_ms + 3_600_000


def test_peers_keep_their_published_rhythm_unless_one_is_named() -> None:
    found, runs = tiny("tiresias", "native")
    assert [setup_for(found[0], run.contender).interval_ms for run in runs] == [60_000, 0]
    found, runs = tiny("tiresias", "native", interval_ms=30_000)
    assert [setup_for(found[0], run.contender).interval_ms for run in runs] == [30_000, 30_000]


def test_a_synthetic_mix_is_drawn_for_the_cluster_that_is_named() -> None:
    found = scenes([source_of("synthetic:jobs=50")], Wishes(cluster=cluster_of_nodes(["2x4:t4"])))
    assert max(job.total_gpus for job in found[0].trace.jobs) <= 4
    assert {node.devices[0].model for node in found[0].setup.nodes} == {"t4"}
    assert source_of(TINY).drawn
