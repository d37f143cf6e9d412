"""Placement rules on clusters of one or two nodes."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import packing_peers
from optimus.drivers.sim.peers.placement import NO_ROOM, BestFit, Cluster, Fgd, Placer, Pod, RandomFit

HALF, WHOLE, CPU_ONLY = Pod(1000, 0, 1, 500), Pod(1000, 0, 1, 1000), Pod(1000, 0, 0, 0)


def cluster(*gpus: list[int], cpu: int = 100_000, models: tuple[str, ...] = ()) -> Cluster:
    count = len(gpus)
    return Cluster(np.array(gpus), np.full(count, cpu), np.full(count, 1 << 20), models or ("a",) * count)


def test_fragmentation_is_what_nobody_can_use() -> None:
    """Half of the pods want half a device, half a whole one. A free half serves the first only."""
    nodes = cluster([1000, 500])
    fgd = Fgd(nodes, {HALF: 1, WHOLE: 1})
    assert fgd.fragmentation(nodes.gpus, nodes.cpu, nodes.model).tolist() == [0.5 * 0 + 0.5 * 500]


def test_free_gpus_without_cpu_are_all_fragmented() -> None:
    nodes = cluster([1000, 1000], cpu=999)
    assert Fgd(nodes, {HALF: 1}).fragmentation(nodes.gpus, nodes.cpu, nodes.model).tolist() == [2000]


def test_pods_without_gpu_make_every_free_gpu_a_fragment() -> None:
    nodes = cluster([1000])
    assert Fgd(nodes, {HALF: 3, CPU_ONLY: 1}).fragmentation(nodes.gpus, nodes.cpu, nodes.model).tolist() == [250]


def test_gpus_of_a_model_nobody_wants_are_fragmented() -> None:
    nodes = cluster([1000], [1000], models=("a", "b"))
    picky = Pod(1000, 0, 1, 1000, ("b",))
    assert Fgd(nodes, {picky: 1}).fragmentation(nodes.gpus, nodes.cpu, nodes.model).tolist() == [1000, 0]


def test_fgd_fills_the_broken_device_and_best_fit_the_fuller_node() -> None:
    """The second node is fuller, but has no broken device: FGD goes to the first, best-fit to the second."""
    for rule, node in (("fgd", 0), ("best-fit", 1)):
        nodes = cluster([1000, 1000, 1000, 500], [1000, 1000, 0, 0])
        chosen = Fgd(nodes, {HALF: 1, WHOLE: 9}) if rule == "fgd" else BestFit()
        assert Placer(nodes, chosen).place(HALF)
        assert nodes.changed == [node]


def test_best_fit_takes_the_fullest_device_that_has_room() -> None:
    nodes = cluster([1000, 600, 400])
    Placer(nodes, BestFit()).place(HALF)
    assert nodes.gpus.tolist() == [[1000, 100, 400]]


def test_random_takes_any_node_and_any_device_with_room() -> None:
    seen = set()
    for seed in range(40):
        nodes, random = cluster([1000, 1000], [400, 500]), np.random.default_rng(seed)
        Placer(nodes, RandomFit(random), random_ties=random).place(HALF)
        seen.add(tuple(nodes.gpus.ravel().tolist()))
    assert seen == {(500, 1000, 400, 500), (1000, 500, 400, 500), (1000, 1000, 400, 0)}


def test_equal_nodes_are_taken_by_name_unless_told_otherwise() -> None:
    nodes = cluster([1000], [1000], [1000])
    Placer(nodes, BestFit()).place(HALF)
    assert nodes.changed == [0]
    random = [cluster([1000], [1000], [1000]) for _ in range(20)]
    for seed, each in enumerate(random):
        Placer(each, BestFit(), random_ties=np.random.default_rng(seed)).place(HALF)
    assert {each.changed[0] for each in random} == {0, 1, 2}


def test_a_pod_that_fits_nowhere_is_dropped() -> None:
    nodes = cluster([500, 500])
    placer = Placer(nodes, Fgd(nodes, {WHOLE: 1}))
    assert not placer.place(WHOLE)
    assert placer.place(HALF)
    assert placer.place(HALF)
    assert not placer.place(HALF)
    assert not nodes.gpus.any()


def test_remembered_scores_are_those_worked_out_anew() -> None:
    """A placer that remembers, and one that starts afresh for every pod, do the same."""
    random = np.random.default_rng(3)
    pods = [
        (HALF, WHOLE, CPU_ONLY, Pod(2000, 10, 2, 1000), Pod(500, 5, 1, 300))[i] for i in random.integers(5, size=40)
    ]
    mix = {pod: pods.count(pod) for pod in pods}
    one, other = (cluster(*[[1000] * 4] * 5, cpu=9_000) for _ in range(2))
    remembering = Placer(one, Fgd(one, mix))
    for pod in pods:
        assert remembering.place(pod) == Placer(other, Fgd(other, mix)).place(pod)
    assert one.gpus.tolist() == other.gpus.tolist()
    assert NO_ROOM < 0


def test_too_much_on_a_node_is_refused() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        cluster([400]).put(HALF, 0, 0)


def test_the_benchmark_says_when_the_lists_are_missing(
    tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    assert packing_peers.main(["--traces", str(tmp_path_factory.mktemp("empty"))]) == 2
    assert "--traces" in capsys.readouterr().err
