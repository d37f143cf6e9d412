"""What the packing tables say after they have seen a mix of requests."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimus.decide.cutting_stock import MAX_SIZES, best_fill_values, most_asked, share_prices
from optimus.decide.packing import Room, blocks, idle_by_model, learn, model_prices, random_fill_milli, stranding_bins
from optimus.model.packing import GAP_STEPS, MixEntry, PackingTables

GPU = 1000
MODELS = ("A100", "T4")


def one_gpu(milli: int, count: int = 1, cpu: int = 4000, memory: int = 8192, models: tuple[str, ...] = ()) -> MixEntry:
    return MixEntry(count, cpu, memory, 1, milli, models)


def whole(gpus: int, count: int = 1, cpu: int = 64_000, models: tuple[str, ...] = ()) -> MixEntry:
    return MixEntry(count, cpu, 65_536, gpus, GPU, models)


def nodes_of(*free: list[int], model: int = 0, cpu: int = 96_000) -> Room:
    """Nodes with eight devices each; what is not named is in use."""
    gpus = np.array([each + [0] * (8 - len(each)) for each in free], dtype=np.int64)
    size = np.ones(len(free), dtype=np.int64)
    return Room(gpus, np.full_like(gpus, model), size * cpu, size * 500_000, MODELS)


def fully_free(nodes: int, **kinds: int) -> Room:
    return nodes_of(*[[GPU] * 8] * nodes, **kinds)


demands = st.dictionaries(st.integers(1, GAP_STEPS), st.floats(0.01, 100), min_size=1, max_size=30)


class TestGaps:
    def test_nothing_is_learned_from_cpu_work_alone(self) -> None:
        tables = learn([MixEntry(500, 4000, 8192, 0, 0)], {"A100": 8000}, fully_free(1))
        assert tables == PackingTables(arrivals=500)

    def test_where_all_ask_for_whole_devices_a_broken_one_is_worth_little(self) -> None:
        values = learn([one_gpu(GPU, 9), whole(8)], {"A100": 8000}, fully_free(1)).gap_value
        assert values[GAP_STEPS] > 800
        assert values[GAP_STEPS - 1] < 0.05 * values[GAP_STEPS]

    def test_a_gap_is_worth_what_fits_into_it(self) -> None:
        values = best_fill_values({47: 1.0, 53: 1.0})
        assert values[46] == 0
        assert values[47] + values[53] == pytest.approx(1.0)
        assert values[52] == values[47]

    def test_a_size_that_fills_up_others_is_worth_the_room_it_finds_there(self) -> None:
        """Two of 40 leave 20 empty; with two of 30 beside one of 40 nothing is."""
        alone, two_of_40 = share_prices({30: 10.0, 40: 1.0}), share_prices({30: 1.0, 40: 10.0})
        assert alone == pytest.approx([1 / 3, 1 / 3])
        assert two_of_40 == pytest.approx([1 / 4, 1 / 2])

    def test_three_shares_of_333_fill_a_device(self) -> None:
        values = learn([one_gpu(333)], {"A100": 8000}, fully_free(1)).gap_value
        assert values[0] < values[33] < values[66] < values[99]
        assert values[100] - values[99] < 0.01 * values[100]

    @given(demands)
    def test_a_larger_gap_is_never_worth_less(self, demand: dict[int, float]) -> None:
        mix = [one_gpu(size * 10, max(1, round(count))) for size, count in demand.items()]
        values = learn(mix, {"A100": 8000}, fully_free(1)).gap_value
        assert len(values) == GAP_STEPS + 1
        assert list(values) == sorted(values)
        assert values[0] == 0 < values[GAP_STEPS]

    @given(demands)
    def test_no_way_to_cut_a_device_is_worth_more_than_a_device(self, demand: dict[int, float]) -> None:
        sizes = sorted(demand)
        price = dict(zip(sizes, share_prices(demand).tolist(), strict=True))
        best = [0.0]
        for gap in range(1, GAP_STEPS + 1):
            best.append(max([best[-1], *(best[gap - s] + price[s] for s in sizes if s <= gap)]))
        assert best[GAP_STEPS] == pytest.approx(1.0, abs=1e-6)

    @given(demands)
    def test_only_the_proportions_count(self, demand: dict[int, float]) -> None:
        tenfold = {size: count * 16 for size, count in demand.items()}
        assert best_fill_values(demand) == pytest.approx(best_fill_values(tenfold), abs=1e-6)

    @given(demands)
    def test_chance_fills_no_more_than_there_is(self, demand: dict[int, float]) -> None:
        filled = random_fill_milli(demand)
        assert (filled <= np.arange(GAP_STEPS + 1) * 10).all()
        assert (filled >= 0).all()

    def test_a_mix_of_very_many_sizes_keeps_those_that_take_up_most(self) -> None:
        demand = dict.fromkeys(range(1, GAP_STEPS + 1), 1.0) | {25: 1000.0}
        kept = most_asked(demand)
        assert len(kept) <= MAX_SIZES
        assert {25, GAP_STEPS} <= set(kept)
        assert sum(kept.values()) == pytest.approx(sum(demand.values()))


class TestStranding:
    def test_bins_run_from_little_cpu_to_much_and_weigh_the_same(self) -> None:
        bins = stranding_bins([one_gpu(GPU, 50, cpu=2000), one_gpu(GPU, 50, cpu=16_000)])
        assert [each.weight for each in bins] == pytest.approx([1 / len(bins)] * len(bins))
        assert bins[0].cpu_per_gpu_milli == pytest.approx(2.0)
        assert bins[-1].cpu_per_gpu_milli == pytest.approx(16.0)

    def test_a_share_counts_its_cpu_per_device(self) -> None:
        bins = stranding_bins([one_gpu(250, cpu=2000, memory=4000)])
        assert {each.cpu_per_gpu_milli for each in bins} == {8.0}
        assert {each.memory_per_gpu_milli for each in bins} == {16.0}

    def test_without_one_gpu_work_the_others_stand_in(self) -> None:
        assert {each.cpu_per_gpu_milli for each in stranding_bins([whole(8, cpu=64_000)])} == {8.0}


class TestModelPrices:
    def test_a_model_that_nobody_names_has_no_price(self) -> None:
        assert model_prices([one_gpu(GPU, 100)], {"A100": 8000, "T4": 8000}) == {}

    def test_a_named_model_gets_dearer_as_it_runs_out(self) -> None:
        asked = [one_gpu(GPU, 90), one_gpu(GPU, 10, models=("T4",))]
        plenty = model_prices(asked, {"A100": 8000, "T4": 8000})["T4"]
        little = model_prices(asked, {"A100": 8000, "T4": 2000})["T4"]
        none = model_prices(asked, {"A100": 8000, "T4": 0})["T4"]
        assert plenty == pytest.approx(0.1 * 2)
        assert plenty < little < none == 2.0

    def test_who_takes_either_counts_for_each_by_what_is_idle(self) -> None:
        prices = model_prices([one_gpu(GPU, 10, models=("A100", "T4"))], {"A100": 6000, "T4": 2000})
        assert prices == {"A100": pytest.approx(1.0), "T4": pytest.approx(1.0)}


class TestBlocks:
    def test_a_place_gets_dearer_as_places_vanish(self) -> None:
        asked = [one_gpu(GPU, 90), whole(8, 2)]
        idle = 100_000
        many, some, none = (
            blocks(asked, idle, room)[0].value for room in (fully_free(90), fully_free(5), nodes_of([]))
        )
        assert many < some <= none

    def test_a_place_needs_cpu_too(self) -> None:
        asked = [one_gpu(GPU, 90), whole(8, 2, cpu=64_000)]
        enough, short = (blocks(asked, 100_000, fully_free(30, cpu=cpu))[0].value for cpu in (64_000, 63_999))
        assert enough < short

    def test_a_place_must_be_of_an_allowed_model(self) -> None:
        asked = [one_gpu(GPU, 90), whole(8, 2, models=("T4",))]
        wrong, right = (blocks(asked, 100_000, fully_free(30, model=model))[0].value for model in (0, 1))
        assert right < wrong

    def test_classes_of_one_width_share_its_value(self) -> None:
        rare, common = blocks([whole(8, 1, cpu=32_000), whole(8, 3, cpu=64_000)], 8000, fully_free(1))
        assert common.value == pytest.approx(3 * rare.value)

    def test_shares_of_several_devices_need_no_free_ones(self) -> None:
        assert blocks([MixEntry(5, 4000, 8192, 2, 500)], 8000, fully_free(1)) == ()


MIX = [
    one_gpu(470, 40),
    one_gpu(530, 20, models=("T4",)),
    one_gpu(GPU, 9, cpu=16_000),
    whole(8, 2),
    whole(2, 5, cpu=16_000),
]


class TestTheWhole:
    def test_tables_survive_serialisation(self) -> None:
        room = fully_free(4)
        tables = learn(MIX, idle_by_model(room), room)
        assert msgspec.json.decode(msgspec.json.encode(tables), type=PackingTables) == tables
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(tables), type=PackingTables) == tables

    def test_the_order_of_the_mix_is_irrelevant(self) -> None:
        room = fully_free(4)
        tables = learn(MIX, idle_by_model(room), room)
        assert learn(MIX[::-1], idle_by_model(room), room) == tables
        assert learn(MIX, idle_by_model(room), room) == tables

    def test_idle_counts_what_is_left_of_each_model(self) -> None:
        room = nodes_of([GPU, 470], [-200, 30], model=1)
        assert idle_by_model(room) == {"A100": 0, "T4": 1500}

    def test_an_empty_cluster_teaches_without_trouble(self) -> None:
        devices, nodes = np.zeros((0, 8), dtype=np.int64), np.zeros(0, dtype=np.int64)
        room = Room(devices, devices, nodes, nodes, MODELS)
        tables = learn(MIX, idle_by_model(room), room)
        assert all(np.isfinite(block.value) for block in tables.blocks)
        assert all(np.isfinite(price) for price in tables.model_price.values())
