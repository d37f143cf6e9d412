"""Nodes: what they have, who else takes it, and the names of their GPUs."""

from __future__ import annotations

import pytest

from optimus.drivers.kube.nodes import memory_of, model_of, read_node, taken_beside
from optimus.drivers.kube.requests import read_request
from optimus.model.nodes import Taint
from optimus.model.workloads import Request
from tests.pods.writing import asking, node, pod

HAS = {
    "cpu": "7920m",
    "memory": "1025Ki",
    "pods": "3",
    "nvidia.com/gpu": "2",
    "amd.com/gpu": "1",
    "nvidia.com/mig-1g.5gb": "4",
    "ephemeral-storage": "10",
}


def test_what_a_node_has_by_the_names_of_the_brain() -> None:
    read = read_node(node(has=HAS), attach_limits={"~attach/d": 2})
    assert (read.cpu_milli, read.memory_mib, read.assignable) == (7920, 1, False)
    assert [device.model for device in read.devices] == ["nvidia", "nvidia", "amd"]
    assert read.accelerators == {
        "~nvidia.com/gpu": 2,
        "~amd.com/gpu": 1,
        "mig-1g.5gb": 4,
        "~ephemeral-storage": 10,
        "~attach/d": 2,
        "~pods": 3,
    }


def test_pods_of_others_take_their_part_and_the_last_devices() -> None:
    others = [read_request(pod(containers=[asking(cpu="1", memory="1Mi", nvidia_com__gpu=1)])).request] * 3
    foreign = read_node(node(has=HAS), others).foreign
    assert (foreign.cpu_milli, foreign.memory_mib, foreign.gpu_milli) == (3000, 3, {1: 1000, 0: 1000})
    assert foreign.accelerators == {"~nvidia.com/gpu": 3, "~pods": 3}, "more than there are is told as it is"


def test_counters_that_the_brain_does_not_know_of_are_counted_beside() -> None:
    known = Request(accelerators=(("~near/1", 1), ("~near/2", 1), ("~pods", 1)))
    beside = taken_beside([(known, ("~near/1", "~near/3")), (known, ("~near/3",))])
    assert beside == {"~near/3": 2, "~near/2": -2, "~near/1": -1}
    others = [Request(accelerators=(("~near/2", 1),))] * 3
    foreign = read_node(node(), others, beside=beside).foreign
    assert foreign.accelerators == {"~near/2": 1, "~near/3": 2}, "less than nobody is nobody"


@pytest.mark.parametrize(
    ("product", "model"),
    [
        ("NVIDIA-A100-SXM4-80GB", "a100"),
        ("Tesla-V100-SXM2-16GB", "v100"),
        ("NVIDIA-H100-80GB-HBM3", "h100"),
        ("NVIDIA-GeForce-RTX-4090", "rtx-4090"),
        ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "a100-mig-1g.5gb"),
        ("NVIDIA-L40S-SHARED", "l40s-shared"),
        ("", "nvidia"),
    ],
)
def test_models_are_named_as_people_name_them(product: str, model: str) -> None:
    assert model_of("nvidia.com/gpu", {"nvidia.com/gpu.product": product}) == model


def test_models_and_memory_of_both_vendors() -> None:
    assert model_of("amd.com/gpu", {"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"}) == "mi300x"
    assert memory_of("amd.com/gpu", {"amd.com/gpu.vram": "192Gi"}) == 192 * 1024
    assert memory_of("nvidia.com/gpu", {"nvidia.com/gpu.memory": "81920"}) == 81_920
    assert memory_of("nvidia.com/gpu", {"nvidia.com/gpu.memory": "much"}) == 0
    assert model_of("intel.com/gpu", {}) == "intel"


def test_whether_a_node_takes_work() -> None:
    assert read_node(node()).ready and not read_node(node(ready=False)).ready
    assert read_node(node(unschedulable=True)).cordoned
    tainted = read_node(
        node(taints=[{"key": "spot", "effect": "NoSchedule"}, {"key": "a", "value": "b", "effect": "x"}])
    )
    assert tainted.taints == (Taint("spot", "", "NoSchedule"), Taint("a", "b", "x"))


def test_a_node_that_cannot_be_read_has_nothing() -> None:
    assert read_node(node(has={"cpu": "plenty"})).cpu_milli == 0
    assert read_node(node(has=None)).accelerators == {"~pods": 0}
