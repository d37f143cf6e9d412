"""Where a replica goes so that the work to come can use most of what is left."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from optimus.decide.packing import Room, idle_by_model, learn
from optimus.decide.placement.block_table import BlockTable
from optimus.decide.placement.usable import CHUNK, Ask, CompiledTables, Gains, best_devices, gain
from optimus.model.packing import Block, MixEntry, PackingTables

GPU = 1000
MODELS = ("A100", "T4", "V100")
PLENTY_CPU, PLENTY_MEMORY = 96_000, 800_000


class Cluster:
    """Nodes by what is free on their devices, and tables learned from a mix on them."""

    def __init__(
        self,
        gpus: Sequence[Sequence[int]],
        *,
        mix: Sequence[MixEntry] = (),
        models: Sequence[str] | None = None,
        cpu: Sequence[int] | None = None,
    ) -> None:
        width = max(1, *(len(node) for node in gpus))
        names = models or ["A100"] * len(gpus)
        self.gpus = np.array([[*node, *[0] * (width - len(node))] for node in gpus], dtype=np.int64)
        self.device_model = np.array(
            [
                [MODELS.index(name)] * len(node) + [-1] * (width - len(node))
                for node, name in zip(gpus, names, strict=True)
            ],
            dtype=np.int64,
        )
        self.cpu = np.array(cpu or [PLENTY_CPU] * len(gpus), dtype=np.int64)
        self.memory = np.full(len(gpus), PLENTY_MEMORY, dtype=np.int64)
        self.room = Room(self.gpus, self.device_model, self.cpu, self.memory, MODELS)
        self.tables = CompiledTables(learn(mix, idle_by_model(self.room), self.room), MODELS)

    def ask(self, gpus: int, milli: int = GPU, cpu: int = 1000, models: Sequence[str] = ()) -> Ask:
        return self.tables.ask(
            gpu_count=gpus,
            gpu_milli=milli,
            cpu_milli=cpu,
            memory_mib=1024,
            allowed=[model in models for model in MODELS] if models else None,
        )

    def gains(self, ask: Ask) -> Gains:
        return gain(self.tables, ask, self.gpus, self.device_model, self.cpu, self.memory)

    def best(self, ask: Ask) -> int:
        return int(self.gains(ask).gain.argmax())


def one_gpu(milli: int, count: int = 10, cpu: int = 4000, models: tuple[str, ...] = ()) -> MixEntry:
    return MixEntry(count, cpu, 8192, 1, milli, models)


class TestGaps:
    PAIRS = (one_gpu(470, 10), one_gpu(530, 12))

    def test_a_470_share_goes_where_it_leaves_530_for_another(self) -> None:
        cluster = Cluster([[600], [GPU]], mix=self.PAIRS)
        assert cluster.best(cluster.ask(1, 470)) == 1

    def test_an_exact_gap_is_better_than_a_free_device(self) -> None:
        cluster = Cluster([[GPU], [470]], mix=self.PAIRS)
        assert cluster.best(cluster.ask(1, 470)) == 1

    def test_equal_halves_fill_broken_devices_first(self) -> None:
        cluster = Cluster([[GPU, GPU], [GPU, 500], [GPU, GPU]], mix=[one_gpu(500)])
        gains = cluster.gains(cluster.ask(1, 500))
        assert gains.gain.argmax() == 1
        assert gains.device[1] == 1

    def test_small_shares_gather_where_nothing_large_fits_any_more(self) -> None:
        cluster = Cluster([[GPU], [190], [530]], mix=[one_gpu(810), one_gpu(530), one_gpu(470), one_gpu(90, 3)])
        assert cluster.best(cluster.ask(1, 90)) == 1

    def test_the_device_inside_the_node_is_chosen_likewise(self) -> None:
        cluster = Cluster([[600, GPU, 470, 900]], mix=self.PAIRS)
        assert cluster.gains(cluster.ask(1, 470)).device.tolist() == [2]
        assert cluster.gains(cluster.ask(1, 530)).device.tolist() == [0]

    def test_whole_devices_name_no_device(self) -> None:
        cluster = Cluster([[GPU, GPU]], mix=[one_gpu(470)])
        assert cluster.gains(cluster.ask(1)).device.tolist() == [-1]

    def test_nothing_learned_yet_the_tightest_device_is_taken(self) -> None:
        cluster = Cluster([[GPU, 800, 500], [GPU, GPU, GPU], [480, GPU, 0]])
        gains = cluster.gains(cluster.ask(1, 470))
        assert gains.gain.argmax() == 2
        assert gains.device.tolist() == [2, 0, 0]


class TestStranding:
    MIX = (one_gpu(GPU, cpu=12_000), one_gpu(500, cpu=6000))

    def test_a_cpu_only_pod_avoids_stranding_gpus(self) -> None:
        cluster = Cluster([[GPU, GPU], [0, 0]], mix=self.MIX, cpu=[24_000, 24_000])
        assert cluster.gains(cluster.ask(0, cpu=8000)).gain.tolist()[1] == 0
        assert cluster.best(cluster.ask(0, cpu=8000)) == 1

    def test_a_cpu_only_pod_is_welcome_where_cpu_is_left_over(self) -> None:
        cluster = Cluster([[GPU, GPU], [GPU, GPU]], mix=self.MIX, cpu=[24_000, 64_000])
        assert cluster.best(cluster.ask(0, cpu=8000)) == 1

    def test_a_cpu_hungry_share_goes_where_cpu_is_left_over(self) -> None:
        cluster = Cluster([[500, GPU], [500, GPU]], mix=self.MIX, cpu=[18_000, 64_000])
        assert cluster.best(cluster.ask(1, 500, cpu=12_000)) == 1

    def test_a_gpu_whose_cpu_is_gone_is_the_cheapest_for_who_needs_none(self) -> None:
        cluster = Cluster([[GPU], [GPU]], mix=self.MIX, cpu=[24_000, 100])
        assert cluster.best(cluster.ask(1, cpu=100)) == 1

    def test_where_nobody_asks_for_cpu_nothing_is_stranded(self) -> None:
        mix = [MixEntry(10, 0, 0, 1, 500)]
        rich, poor = (Cluster([[500], [GPU]], mix=mix, cpu=cpu) for cpu in ([PLENTY_CPU] * 2, [0, 0]))
        gains = [cluster.gains(cluster.ask(1, 500, cpu=0)).gain.tolist() for cluster in (rich, poor)]
        assert gains[0] == gains[1]


class TestBlocks:
    EIGHTS = (one_gpu(GPU, 50), MixEntry(10, 64_000, 65_536, 8, GPU))

    def test_an_intact_node_is_kept_for_eight_gpu_work(self) -> None:
        cluster = Cluster([[GPU] * 8, [GPU] * 7 + [0]], mix=self.EIGHTS)
        assert cluster.best(cluster.ask(1)) == 1
        assert cluster.best(cluster.ask(2)) == 1

    def test_a_share_does_not_break_it_either(self) -> None:
        mix = (*self.EIGHTS, one_gpu(500, 50))
        cluster = Cluster([[GPU] * 8, [GPU] * 7 + [0]], mix=mix)
        assert cluster.best(cluster.ask(1, 500)) == 1

    def test_cpu_work_does_not_take_the_cpu_of_an_intact_node(self) -> None:
        cluster = Cluster([[GPU] * 8, [GPU] * 7 + [0]], mix=self.EIGHTS, cpu=[64_000, 64_000])
        assert cluster.best(cluster.ask(0, cpu=1000)) == 1

    def test_without_the_cpu_for_it_a_node_is_no_place_for_it(self) -> None:
        cluster = Cluster([[GPU] * 8, [GPU] * 8], mix=self.EIGHTS, cpu=[96_000, 63_000])
        assert cluster.best(cluster.ask(1, cpu=0)) == 1

    def test_with_very_many_classes_a_place_may_count_late_but_never_early(self) -> None:
        classes = [Block(2, 1000 + 37 * i, 2048 + 41 * i, (), 1.0 + i % 5) for i in range(150)]
        table = BlockTable(classes, MODELS, 1.0)
        chance = np.random.default_rng(3)
        free, cpu, memory = chance.integers(0, 9, 200), chance.integers(0, 30_000, 200), chance.integers(0, 40_000, 200)
        found = table.value(free.astype(np.float64), cpu, memory, np.zeros(200, dtype=np.int64))
        exact = sum(
            b.value * np.minimum(np.minimum(free // 2, cpu // b.cpu_milli), memory // b.memory_mib) for b in classes
        )
        assert (found <= exact + 1e-6).all()
        assert (found >= 0.8 * exact - 40).all()


class TestModels:
    MIX = (one_gpu(GPU, 50), one_gpu(500, 20), one_gpu(500, 20, models=("T4",)))

    def test_a_model_that_others_need_is_left_to_them(self) -> None:
        cluster = Cluster([[GPU], [GPU]], models=["T4", "A100"], mix=self.MIX)
        assert cluster.best(cluster.ask(1)) == 1
        assert cluster.best(cluster.ask(1, 500)) == 1

    def test_a_share_takes_an_allowed_device_of_a_mixed_node(self) -> None:
        cluster = Cluster([[500, 700, GPU, GPU]], mix=self.MIX)
        cluster.device_model[0] = [0, 1, 2, 1]
        assert cluster.gains(cluster.ask(1, 500)).device.tolist() == [0]
        assert cluster.gains(cluster.ask(1, 500, models=["V100"])).device.tolist() == [2]
        assert int(cluster.gains(cluster.ask(1, 500, models=["T4"])).device[0]) in {1, 3}


class TestSeveralShares:
    def test_each_goes_to_a_device_of_its_own(self) -> None:
        cluster = Cluster([[500, GPU, 500, 300]], mix=[one_gpu(500)])
        ask = cluster.ask(2, 500)
        assert best_devices(ask, cluster.gpus, cluster.device_model).tolist() == [[0, 2]]
        assert cluster.gains(ask).device.tolist() == [0]

    def test_the_node_with_two_fitting_gaps_is_better_than_free_devices(self) -> None:
        cluster = Cluster([[GPU, GPU], [500, 500], [500, GPU]], mix=[one_gpu(500), one_gpu(GPU)])
        gains = cluster.gains(cluster.ask(2, 500)).gain
        assert gains.argmax() == 1
        assert gains.argmin() == 0


class TestEveryNodeGetsANumber:
    @pytest.mark.parametrize("learned", [True, False])
    @pytest.mark.parametrize(("gpus", "milli"), [(0, 0), (1, 470), (1, GPU), (8, GPU), (3, 500)])
    def test_also_where_it_does_not_fit(self, gpus: int, milli: int, learned: bool) -> None:
        nodes = [[], [0, 0], [-300, 100], [GPU] * 20]
        cluster = Cluster(nodes, mix=[*TestBlocks.EIGHTS, *TestModels.MIX] if learned else [], cpu=[0, -50, 10, 1])
        for models in ((), ("T4",)):
            gains = cluster.gains(cluster.ask(gpus, milli, cpu=90_000, models=models))
            assert gains.gain.dtype == np.int64
            assert gains.gain.shape == gains.device.shape == (4,)
            assert (abs(gains.gain) < 10**11).all()

    def test_a_cluster_without_devices(self) -> None:
        tables = CompiledTables(PackingTables(), ())
        ask = tables.ask(gpu_count=0, gpu_milli=0, cpu_milli=1, memory_mib=1)
        nothing = np.zeros((2, 0), dtype=np.int64)
        gains = gain(tables, ask, nothing, nothing, np.array([5, 6]), np.array([5, 6]))
        assert gains.gain.tolist() == [0, 0]

    def test_no_nodes_at_all(self) -> None:
        cluster = Cluster([[GPU]], mix=TestModels.MIX)
        none = np.zeros(0, dtype=np.int64)
        for ask in (cluster.ask(1, 470), cluster.ask(1), cluster.ask(0), cluster.ask(2, 300)):
            gains = gain(cluster.tables, ask, cluster.gpus[:0], cluster.device_model[:0], none, none)
            assert len(gains.gain) == len(gains.device) == 0


ALL_KINDS = (
    one_gpu(470, 30),
    one_gpu(530, 20, cpu=9000),
    one_gpu(220, 20, models=("T4", "V100")),
    one_gpu(GPU, 40, cpu=12_000),
    MixEntry(5, 16_000, 65_536, 2, GPU),
    MixEntry(3, 32_000, 131_072, 4, GPU, ("A100", "V100")),
    MixEntry(4, 64_000, 262_144, 8, GPU),
    MixEntry(1, 88_000, 300_000, 8, GPU, ("A100",)),
)
REQUESTS = (
    (0, 0, 5000, ()),
    (1, 470, 4000, ()),
    (1, 220, 4000, ("T4", "V100")),
    (1, GPU, 8000, ()),
    (4, GPU, 32_000, ()),
)


def random_cluster(seed: int, nodes: int) -> Cluster:
    chance = np.random.default_rng(seed)
    free = [0, 130, 470, 530, 780, GPU, GPU, GPU, GPU, GPU]
    gpus = [
        [GPU] * 8 if chance.random() < 0.3 else chance.choice(free, chance.choice([1, 2, 4, 8])) for _ in range(nodes)
    ]
    models = [MODELS[i] for i in chance.integers(0, 3, nodes)]
    return Cluster(
        [list(map(int, g)) for g in gpus], mix=ALL_KINDS, models=models, cpu=chance.integers(0, 96_000, nodes).tolist()
    )


def value_of(tables: PackingTables, free: list[int], model: str, cpu: int, memory: int) -> float:
    """Usable capacity of one node, straight from its definition."""
    gaps = sum(tables.gap_value[each // 10] for each in free)
    fed = sum(
        b.weight * min(gaps, cpu / b.cpu_per_gpu_milli, memory / b.memory_per_gpu_milli) for b in tables.stranding
    )
    whole = sum(each == GPU for each in free)
    places = sum(
        b.value * min(whole // b.gpu_count, cpu // b.cpu_milli, memory // b.memory_mib)
        for b in tables.blocks
        if not b.models or model in b.models
    )
    return gaps + fed + places + tables.model_price.get(model, 0.0) * sum(free)


class TestFastIsRight:
    @pytest.mark.parametrize("seed", range(4))
    @pytest.mark.parametrize(("gpus", "milli", "cpu", "models"), REQUESTS)
    def test_gain_is_the_change_of_value_with_the_best_device(
        self, seed: int, gpus: int, milli: int, cpu: int, models: tuple[str, ...]
    ) -> None:
        cluster = random_cluster(seed, 60)
        tables = learn(ALL_KINDS, idle_by_model(cluster.room), cluster.room)
        gains = cluster.gains(cluster.ask(gpus, milli, cpu, models))
        compared = 0
        for node in range(60):
            free = [int(g) for g in cluster.gpus[node]]
            model = MODELS[cluster.device_model[node, 0]]
            fitting = [i for i, g in enumerate(free) if g >= milli] if gpus else []
            if cluster.cpu[node] < cpu or len(fitting) < gpus or (models and model not in models):
                continue
            choices = [[i] for i in fitting] if milli < GPU and gpus else [fitting[:gpus]]
            left = [[g - milli * (i in chosen) for i, g in enumerate(free)] for chosen in choices]
            have = int(cluster.cpu[node]), int(cluster.memory[node])
            before = value_of(tables, free, model, *have)
            changes = [value_of(tables, after, model, have[0] - cpu, have[1] - 1024) - before for after in left]
            assert gains.gain[node] == pytest.approx(max(changes) / 10, abs=0.5001)
            if gpus and milli < GPU:
                chosen = choices.index([int(gains.device[node])])
                assert changes[chosen] == pytest.approx(max(changes), abs=1e-6)
            compared += 1
        assert compared > 3

    @pytest.mark.parametrize(("gpus", "milli", "cpu", "models"), [*REQUESTS, (2, 300, 2000, ())])
    def test_a_few_nodes_get_the_same_numbers_as_in_the_full_row(
        self, gpus: int, milli: int, cpu: int, models: tuple[str, ...]
    ) -> None:
        cluster = random_cluster(9, 2 * CHUNK + 7)
        ask = cluster.ask(gpus, milli, cpu, models)
        row = cluster.gains(ask)
        for some in ([0], [5, 2, CHUNK, CHUNK + 1], list(range(CHUNK - 3, 2 * CHUNK + 7, 17))):
            few = gain(
                cluster.tables,
                ask,
                cluster.gpus[some],
                cluster.device_model[some],
                cluster.cpu[some],
                cluster.memory[some],
            )
            assert few.gain.tolist() == row.gain[some].tolist()
            assert few.device.tolist() == row.device[some].tolist()
