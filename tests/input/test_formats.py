"""The formats cover the model, and mean the same however they are written."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from optimus.api.loading import load_text
from optimus.api.specs.queues import QueueSpec
from optimus.api.specs.scenarios import BudgetSpec, ScenarioSpec, SettingsSpec
from optimus.api.specs.workloads import WorkloadSpec
from optimus.model.plans import Budget
from optimus.model.pools import Strategy
from optimus.model.queues import QueuePolicy
from optimus.model.settings import Settings
from optimus.model.workloads import ModelSpeed, OnLoss, Preemptible, Request, Workload, WorkloadClass


def test_a_full_cluster() -> None:
    scenario = load_text("""
nodes:
  - name: a
    count: 4
    pool: fast
    gpus: {count: 4, model: A100, memory: 80Gi, nvlinkGroups: 2, numaNodes: 2, unhealthy: [3]}
    cpu: 96
    memory: 1Ti
    racks: 2
    blocks: 1
    labels: {zone: east}
    taints: ["dedicated=ml:NoExecute", {key: spot}]
    foreign: {cpu: 500m, memory: 1Gi, gpu: {0: 0.25}}
  - {name: b, gpus: {devices: [{model: H100, memory: 40Gi, nvlinkGroup: 3, mig: {1g.5gb: 7}}]}, assignable: false}
pools: [{name: fast, placement: {inference: spread}, interferenceLimit: 80%}]
""").scenario
    node = scenario.nodes[3]
    assert (node.name, node.cpu_milli, node.memory_mib) == ("a-3", 96_000, 1_048_576)
    assert node.labels == {"optimus.dev/pool": "fast", "rack": "a-rack-1", "block": "a-block-0", "zone": "east"}
    assert [device.nvlink_group for device in node.devices] == [0, 0, 1, 1]
    assert [device.healthy for device in node.devices] == [True, True, True, False]
    assert [(taint.key, taint.value, taint.effect) for taint in node.taints] == [
        ("dedicated", "ml", "NoExecute"),
        ("spot", "", "NoSchedule"),
    ]
    assert node.foreign.gpu_milli == {0: 250}
    assert scenario.nodes[4].devices[0].mig == {"1g.5gb": 7}
    assert not scenario.nodes[4].assignable
    fast, default = scenario.pools
    assert fast.levels == ("zone", "block", "rack")
    assert fast.selector == {"optimus.dev/pool": "fast"}
    assert fast.strategy == {"inference": Strategy.SPREAD}
    assert (default.name, default.selector) == ("default", {})


def test_a_full_workload() -> None:
    (workload,) = load_text(
        """
queues: [{name: q}]
cluster: [{name: n, racks: 1}]
workloads:
  - name: w
    namespace: team
    queue: q
    class: inference
    priority: -5
    preemptible: surplus
    replicas: {min: 2, max: 9, sizes: powersOfTwo}
    gpu: {count: 2, fraction: {request: 0.25, limit: 50%}, models: [A100, {H100: 1.5x}], activity: 40%}
    cpu: 500m
    memory: 1.5Gi
    accelerators: {tpu: 1, fpga: 2, none: 0}
    topology: {required: rack, preferred: host}
    nodeSelector: {b: "2", a: "1"}
    tolerations: ["*", "spot:NoSchedule"]
    checkpoint: {interval: 10m}
    restartCost: 2m
    onLoss: restart
    lossGrace: 5s
    maxRuntime: 1d
    family: bert
    speedup: [1, 1.9, "270%"]
    suspend: true
""".replace("50%}", "0.5}")
    ).scenario.workloads
    role = workload.gang.roles[0]
    assert (workload.id, workload.workload_class, workload.priority) == ("team/w", WorkloadClass.INFERENCE, -5)
    assert workload.preemptible == Preemptible.SURPLUS
    assert (role.min, role.max, role.sizes) == (2, 8, (2, 4, 8))
    assert role.request == Request(
        gpu_count=2,
        gpu_milli=250,
        gpu_limit_milli=500,
        models=(ModelSpeed("A100"), ModelSpeed("H100", 150)),
        activity_milli=400,
        cpu_milli=500,
        memory_mib=1536,
        accelerators=(("fpga", 2), ("tpu", 1)),
    )
    assert (workload.gang.topology.required, workload.gang.topology.preferred) == ("rack", "host")
    assert workload.node_selector == (("a", "1"), ("b", "2"))
    assert workload.tolerations[0].key == ""
    assert workload.checkpoint is not None
    assert workload.checkpoint.interval_ms == 600_000
    assert (workload.on_loss, workload.loss_grace_ms, workload.restart_cost_ms) == (OnLoss.RESTART, 5_000, 120_000)
    assert workload.speedup_percent == (100, 190, 270)
    assert workload.suspended


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("gpu: 2", Request(gpu_count=2)),
        ("gpu: 0", Request()),
        ("gpu: 0.5", Request(gpu_count=1, gpu_milli=500)),
        ("gpu: 250m", Request(gpu_count=1, gpu_milli=250)),
        ("gpu: {memory: 20Gi}", Request(gpu_count=1, gpu_memory_mib=20_480)),
        (
            "gpu: {models: {A100: 1, H100: 2}}",
            Request(gpu_count=1, models=(ModelSpeed("A100"), ModelSpeed("H100", 200))),
        ),
        ("cpu: 2", Request(cpu_milli=2000)),
        ("accelerators: {mig-1g.5gb: 1}", Request(accelerators=(("mig-1g.5gb", 1),))),
    ],
)
def test_short_requests(written: str, expected: Request) -> None:
    (workload,) = load_text(f"workloads: [{{name: w, {written}}}]").scenario.workloads
    assert workload.gang.roles[0].request == expected


def test_yaml_words_keep_their_meaning() -> None:
    loaded = load_text("""
base: &base {queue: q, gpu: 1}
queues: [{name: q, namespaces: [on, no, yes, "1"]}]
workloads: [{<<: *base, name: w, preemptible: no, cpu: 0x10, family: 1:30}]
""")
    assert [error.message for error in loaded.errors] == ["unknown key base"]
    assert loaded.scenario.queues[0].namespaces == ("on", "no", "yes", "1")
    (workload,) = loaded.scenario.workloads
    assert (workload.preemptible, workload.family) == (Preemptible.NO, "1:30")
    assert workload.gang.roles[0].request.cpu_milli == 16_000


def camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(part.title() for part in tail)


def test_every_knob_of_the_model_can_be_written() -> None:
    def names(fields: tuple[str, ...]) -> set[str]:
        suffixes = ("_ms", "_percent", "_milli")
        return {next((name.removesuffix(s) for s in suffixes if name.endswith(s)), name) for name in fields}

    assert names(Settings.__struct_fields__) == set(SettingsSpec.model_fields)
    assert names(Budget.__struct_fields__) == set(BudgetSpec.model_fields)
    policy = names(QueuePolicy.__struct_fields__) - {"max_gpu_milli_per_workload"}
    assert policy <= set(QueueSpec.model_fields)
    workload = names(Workload.__struct_fields__) - {"id", "gang", "submitted", "suspended", "avoids", "obstacle"}
    assert workload <= set(WorkloadSpec.model_fields)


def test_defaults_are_those_of_the_model() -> None:
    (workload,) = load_text("workloads: [{name: w}]").scenario.workloads
    plain = Workload(id="default/w", queue="default", gang=workload.gang, submitted_ms=workload.submitted_ms)
    assert workload == plain
    assert SettingsSpec().to_settings() == Settings()
    assert BudgetSpec().to_budget() == Budget()


def test_a_schema_can_be_made() -> None:
    schema = ScenarioSpec.model_json_schema()
    assert {"cluster", "queues", "workloads", "cycles", "expect"} <= schema["properties"].keys()
    assert "class" in schema["$defs"]["ScenarioWorkloadSpec"]["properties"]


QUANTITY = st.one_of(
    st.integers(0, 100), st.integers(1, 9999).map(lambda n: n / 1000), st.integers(1, 99).map("{}m".format)
)
QUOTA = st.fixed_dictionaries({}, optional={"guarantee": QUANTITY, "limit": QUANTITY, "weight": st.integers(0, 9)})
QUEUES = st.lists(
    st.fixed_dictionaries(
        {}, optional={"gpu": QUOTA, "cpu": QUOTA, "rank": st.integers(-3, 3), "maxWait": st.integers(1, 99)}
    ),
    min_size=1,
    max_size=4,
)
WORKLOADS = st.lists(
    st.fixed_dictionaries(
        {"replicas": st.integers(1, 9)},
        optional={
            "gpu": st.one_of(st.integers(0, 8), st.integers(1, 999).map(lambda n: n / 1000)),
            "cpu": QUANTITY,
            "priority": st.integers(-9, 9),
            "class": st.sampled_from([str(name) for name in WorkloadClass]),
            "preemptible": st.sampled_from([True, False, "surplus"]),
            "expectedDuration": st.sampled_from(["5m", "1h30m", 90]),
        },
    ),
    max_size=5,
)


@given(QUEUES, WORKLOADS, st.integers(0, 5))
def test_style_does_not_matter(queues: list[dict[str, Any]], workloads: list[dict[str, Any]], count: int) -> None:
    """The same world as block YAML, flow YAML, JSON, and in two documents."""
    queues = [{"name": f"q{i}", **queue} for i, queue in enumerate(queues)]
    workloads = [{"name": f"w{i}", "queue": "q0", **workload} for i, workload in enumerate(workloads)]
    nodes = [{"name": "n", "count": count, "gpus": 8}]
    world = {"cluster": {"nodes": nodes}, "queues": queues, "workloads": workloads}
    block = load_text(yaml.safe_dump(world))
    assert block.errors == ()
    assert len(block.scenario.workloads) == len(workloads)
    documents = yaml.safe_dump_all([{"nodes": nodes}, {"queues": queues}, {"workloads": workloads}])
    for text in (yaml.safe_dump(world, default_flow_style=True), json.dumps(world), documents):
        assert load_text(text) == structs.replace(block)


@given(st.lists(st.integers(1, 999), min_size=2, max_size=2))
def test_written_shares_add_up_exactly(thousandths: list[int]) -> None:
    a, b = thousandths
    text = f"workloads: [{{name: a, gpu: {a / 1000!r}}}, {{name: b, gpu: {b / 1000!r}}}]"
    shares = [workload.gang.roles[0].request.gpu_milli for workload in load_text(text).scenario.workloads]
    assert sum(shares) == a + b
