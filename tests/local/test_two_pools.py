"""Two pools: what is said of a queue is said of the pool it is about."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.local.machines import Up, until

CLUSTER = """
nodes: [{name: a, gpus: 4, pool: a}, {name: b, gpus: 4, pool: b}]
queues:
  - {name: v, pools: [{name: a, gpu: {guarantee: 1}}, {name: b, gpu: {guarantee: 2, limit: 3}}]}
"""


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    folder = tmp_path_factory.mktemp("pools")
    (folder / "cluster.yaml").write_text(CLUSTER)
    up = Up(folder / "store", "--cluster", str(folder / "cluster.yaml"))
    yield up
    up.end()


def queue_of(spec: str, name: str = "v") -> str:
    return f"kind: Queue\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n"


def guarantees(up: Up) -> dict[str, int]:
    (view,) = (one for one in up.api.get("/v1/queues") if one["name"] == "v")
    return {one["pool"]: one["guaranteeMilli"] for one in view["gpu"]}


@pytest.mark.parametrize(
    ("spec", "pool"),
    [("gpu: {guarantee: 4}", "default"), ("pools: [{name: c, gpu: {guarantee: 4}}]", "c")],
)
def test_a_quota_in_a_pool_that_nobody_has_is_refused(up: Up, spec: str, pool: str) -> None:
    ran = up.cli("submit", "-", stdin=queue_of(spec))
    assert ran.returncode == 1
    assert f"queue v has a quota in the pool {pool}, which nobody has; name the pool under pools: a, b" in ran.stderr
    assert guarantees(up) == {"a": 1000, "b": 2000}, "nothing has changed"


def test_a_pool_may_come_with_the_queue(up: Up) -> None:
    pool = "kind: NodePool\nmetadata: {name: c}\nspec: {selector: {zone: c}}\n"
    ran = up.cli("submit", "-", stdin=f"{pool}---\n{queue_of('pools: [{name: c, gpu: {guarantee: 1}}]', 'w')}")
    assert ran.returncode == 0, ran.stderr
    assert up.cli("delete", "queue", "w").returncode == 0
    assert up.cli("delete", "pool", "c").returncode == 0


def test_what_runs_is_counted_in_the_pool_it_runs_in(up: Up) -> None:
    assert up.cli("submit", "-", stdin=job("there", "b", 1)).returncode == 0
    up.reaches("there", "Running")
    until(lambda: running(up) == {"a": 0, "b": 1}, "one runs, in b")
    lines = [line.split() for line in up.cli("get", "queues").stdout.splitlines()]
    column = lines[0].index("running") - 1  # "in use" is one
    assert {line[1]: line[column] for line in lines if line[0] == "v"} == {"a": "0", "b": "1"}
    up.cli("cancel", "there")


def running(up: Up) -> dict[str, int]:
    (view,) = (one for one in up.api.get("/v1/queues") if one["name"] == "v")
    return {one["pool"]: one["running"] for one in view["gpu"]}


def job(name: str, pool: str, gpus: int) -> str:
    spec = f"{{queue: v, pools: [{pool}], gpu: {gpus}, preemptible: false, command: [sleep, '1000']}}"
    return f"kind: UnifiedJob\nmetadata: {{name: {name}}}\nspec: {spec}\n"


def test_advice_that_is_followed_does_what_it_says(up: Up) -> None:
    assert up.cli("submit", "-", stdin=job("waits", "a", 4)).returncode == 0
    until(lambda: up.job("waits")["reason"], "it is told why it waits")
    told = json.loads(up.cli("explain", "waits", "--no-forecast", "-o", "json").stdout)
    (advice,) = (one["field"] for one in told["suggestions"] if one["kind"] == "guarantee")
    assert up.cli("submit", "-", stdin=queue_of(advice)).returncode == 0
    up.reaches("waits", "Running")
    assert guarantees(up) == {"a": 4000, "b": 2000}
    up.cli("cancel", "waits")
