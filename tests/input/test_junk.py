"""Whatever a file says, loading answers with errors and a valid rest; it never raises."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from optimus.api import reading
from optimus.api.errors import LoadError
from optimus.api.loading import Loaded, load_text
from optimus.api.specs.scenarios import ScenarioSpec
from optimus.model.validation import node_problems, pool_problems, queue_problems, workload_problems
from tests.input.bad_inputs import ALL
from tests.input.stories import COMPLETE


def words() -> list[str]:
    """Every key of the format, so that junk gets past the first door."""
    found: set[str] = set()

    def walk(schema: object) -> None:
        if isinstance(schema, dict):
            found.update(schema.get("properties", {}))
            for inner in schema.values():
                walk(inner)
        elif isinstance(schema, list):
            for inner in schema:
                walk(inner)

    walk(ScenarioSpec.model_json_schema(mode="validation"))
    return sorted(found)


KEYS = st.one_of(st.sampled_from([*words(), "a", "n-0", "n-*", "<<", "kind", "nodes"]), st.text(max_size=4))
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 20),
    st.integers(),
    st.floats(),
    st.sampled_from(
        ["a", "n", "q", "default", "-5m", "2h", "16Gi", "0.5", "250m", "any", "n-*", "rack", "powersOfTwo"]
    ),
    st.sampled_from(
        ["running", "NoRoom", "never", "1e999999999", "14:20", "2026-01-05", "a/b", "key=value:NoSchedule"]
    ),
    st.text(max_size=6),
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=5)),
    max_leaves=40,
)
RECORD = st.dictionaries(st.sampled_from(words()), TREES, max_size=8)


def check(text: str) -> Loaded:
    loaded = load_text(text, "junk.yaml")
    assert all(error.line >= 1 and error.column >= 1 and error.message for error in loaded.errors)
    scenario = loaded.scenario
    assert [p for node in scenario.nodes for p in node_problems(node)] == []
    assert [p for pool in scenario.pools for p in pool_problems(pool)] == []
    assert [p for queue in scenario.queues for p in queue_problems(queue)] == []
    assert [p for workload in scenario.workloads for p in workload_problems(workload)] == []
    assert [cycle.at_ms for cycle in scenario.cycles] == sorted(cycle.at_ms for cycle in scenario.cycles)
    if loaded.unexpected:
        with pytest.raises(LoadError) as caught:
            loaded.or_raise()
        assert caught.value.errors == loaded.unexpected
    assert load_text(text, "junk.yaml") == loaded
    return loaded


@given(st.text(max_size=200))
@example("\x00")
@example("\ud800")
@example("a: &a [*a, *a]")
@example("? {a: 1}\n: 2")
@example("%YAML 9.9\n---\na: 1")
@example("--- !!set {a, b}\n...\n---\n")
@example("queues: [" * 3000)
def test_any_text(text: str) -> None:
    check(text)


def test_aliases_that_explode_are_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_VALUES", 10_000)
    nines = "\n".join(f"b{i}: &b{i} [{', '.join([f'*b{i - 1}'] * 9)}]" for i in range(1, 9))
    loaded = check(f"b0: &b0 [x, x, x, x, x, x, x, x, x]\n{nines}")
    assert "holds more than" in loaded.errors[0].message


def test_aliases_that_nest_deeper_and_deeper_are_stopped() -> None:
    nested = "\n".join(f"b{i}: &b{i} {'[' * 20}*b{i - 1}{']' * 20}" for i in range(1, 400))
    loaded = check(f"b0: &b0 x\n{nested}")
    assert "levels deep" in loaded.errors[0].message


@given(st.dictionaries(st.sampled_from(sorted(ScenarioSpec.model_json_schema()["properties"])), TREES, max_size=6))
def test_any_tree_under_the_right_sections(tree: dict[str, object]) -> None:
    check(yaml.safe_dump(tree, allow_unicode=True))


@given(
    st.lists(RECORD, max_size=3),
    st.lists(RECORD, max_size=3),
    st.lists(RECORD, max_size=3),
    st.lists(RECORD, max_size=3),
)
def test_any_records(nodes: list[object], queues: list[object], workloads: list[object], cycles: list[object]) -> None:
    check(yaml.safe_dump({"cluster": nodes, "queues": queues, "workloads": workloads, "cycles": cycles}))


@given(st.data())
def test_a_good_file_with_damage(data: st.DataObject) -> None:
    lines = data.draw(st.sampled_from([COMPLETE, *ALL.values()])).splitlines()
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(lines) - 1))
        damage = data.draw(st.sampled_from(["drop", "twice", "indent", "value", "cut"]))
        line = lines[position]
        if damage == "drop":
            lines[position] = ""
        elif damage == "twice":
            lines.insert(position, line)
        elif damage == "indent":
            lines[position] = " " * data.draw(st.integers(0, 6)) + line.lstrip()
        elif damage == "cut":
            lines[position] = line[: data.draw(st.integers(0, len(line)))]
        else:
            key = line.partition(":")[0]
            lines[position] = f"{key}: {yaml.safe_dump(data.draw(SCALARS), default_flow_style=True).splitlines()[0]}"
    check("\n".join(lines))
