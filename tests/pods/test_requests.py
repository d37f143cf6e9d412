"""What a pod takes: quantities, containers in their order, ports, parts of GPUs."""

from __future__ import annotations

from typing import Any

import pytest

from optimus.drivers.kube.quantities import QuantityError, milli, whole
from optimus.drivers.kube.requests import effective, read_request
from optimus.model.workloads import ModelSpeed
from tests.pods.writing import asking, pod


@pytest.mark.parametrize(
    ("written", "pieces", "thousandths"),
    [
        ("2", 2, 2000),
        ("500m", 1, 500),
        (".5", 1, 500),
        ("1e3", 1000, 1_000_000),
        ("2Ki", 2048, 2_048_000),
        ("1500n", 1, 1),
        ("12E2", 1200, 1_200_000),
        (4, 4, 4000),
        (0.1, 1, 100),
        ("-1", -1, -1000),
    ],
)
def test_quantities_are_read_as_kubernetes_writes_them(written: str | float, pieces: int, thousandths: int) -> None:
    assert (whole(written), milli(written)) == (pieces, thousandths)


@pytest.mark.parametrize("nonsense", ["", "2GiB", "two", "1e999", "nan", "0x10", " 1", "1_0"])
def test_nonsense_is_refused_in_words(nonsense: str) -> None:
    with pytest.raises(QuantityError, match=r"no quantity|too large or too small"):
        whole(nonsense)


def test_containers_add_up_and_memory_is_rounded_up_once() -> None:
    request = read_request(
        pod(containers=[asking("a", cpu="250m", memory="1"), asking("b", cpu=1, memory="1Mi")])
    ).request
    assert (request.cpu_milli, request.memory_mib) == (1250, 2)


def test_init_containers_run_alone_and_sidecars_stay() -> None:
    """i0 runs alone; the sidecar stays from then on; i2 runs beside it; the main container, too."""
    sidecar = {**asking("side", cpu="300m"), "restartPolicy": "Always"}
    order = [asking("i0", cpu="900m"), sidecar, asking("i2", cpu="800m")]
    assert effective(pod(containers=[asking(cpu="500m")], initContainers=order))["cpu"] == 300 + 800
    assert effective(pod(containers=[asking(cpu="1")], initContainers=order))["cpu"] == 300 + 1000
    assert effective(pod(containers=[asking(cpu="100m")], initContainers=order[:1]))["cpu"] == 900


def test_overhead_comes_on_top_and_the_pod_as_a_whole_takes_the_place_of_the_sum() -> None:
    written = pod(
        containers=[asking(cpu="1", memory="1Gi")],
        resources={"requests": {"cpu": "3", "ephemeral-storage": "1Gi"}},
        overhead={"cpu": "250m", "memory": "1Mi"},
    )
    assert effective(written) == {"cpu": 3250, "memory": (1 << 30) + (1 << 20)}


def test_a_resize_under_way_takes_the_largest_and_an_impossible_one_asks_for_nothing() -> None:
    status = {"name": "main", "resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "2"}}
    resized = {"containerStatuses": [status]}
    assert effective(pod(containers=[asking(cpu="4")], status=resized))["cpu"] == 4000
    assert effective(pod(containers=[asking(cpu="500m")], status=resized))["cpu"] == 2000
    pending = {**resized, "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]}
    assert effective(pod(containers=[asking(cpu="4")], status=pending))["cpu"] == 2000


def test_gpus_are_counted_by_vendor_and_other_devices_by_name() -> None:
    amounts: dict[str, Any] = {
        "nvidia_com__gpu": 2,
        "nvidia_com__mig-1g_5gb": 1,
        "example_com__fpga": 3,
        "hugepages-2Mi": "4Mi",
    }
    request = read_request(pod(containers=[asking(**amounts, **{"ephemeral-storage": "1Gi"}, storage="5")])).request
    assert request.gpu_count == 2
    assert dict(request.accelerators) == {
        "~nvidia.com/gpu": 2,
        "~pods": 1,
        "mig-1g.5gb": 1,
        "example.com/fpga": 3,
        "~hugepages-2Mi": 4 << 20,
        "~ephemeral-storage": 1 << 30,
    }


def test_which_resources_are_gpus_can_be_said() -> None:
    request = read_request(pod(containers=[asking(intel_com__gpu=1)]), ("intel.com/gpu",)).request
    assert (request.gpu_count, dict(request.accelerators)["~intel.com/gpu"]) == (1, 1)


def test_a_port_of_all_addresses_takes_all_of_it_and_one_address_its_own() -> None:
    ports = [{"hostPort": 80}, {"hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"}, {"containerPort": 7}]
    sidecar = {"name": "s", "restartPolicy": "Always", "ports": [{"hostPort": 81, "hostIP": "0.0.0.0"}]}
    short = {"name": "i", "ports": [{"hostPort": 82}]}
    written = pod(containers=[{"name": "main", "ports": ports}], initContainers=[sidecar, short])
    assert {name: n for name, n in read_request(written).request.accelerators if "port" in name} == {
        "~port/TCP/80": 1000,
        "~port/TCP/81": 1000,
        "~port/UDP/53": 1,
        "~port/UDP/53/10.0.0.1": 1000,
    }


def test_annotations_ask_for_parts_of_a_gpu_and_for_models() -> None:
    half = read_request(
        pod(notes={"optimus.dev/gpu-fraction": "0.5", "optimus.dev/gpu-models": "A100, h100=2.5x"})
    ).request
    assert (half.gpu_count, half.gpu_milli) == (1, 500)
    assert half.models == (ModelSpeed("a100"), ModelSpeed("h100", 250))
    assert read_request(pod(notes={"optimus.dev/gpu-memory": "10Gi"})).request.gpu_memory_mib == 10_240


@pytest.mark.parametrize(
    ("notes", "words"),
    [
        ({"optimus.dev/gpu-fraction": "half"}, "optimus.dev/gpu-fraction: GPU must be a number"),
        ({"optimus.dev/gpu-fraction": "1.5"}, "is no part of a GPU; write 0.5"),
        ({"optimus.dev/gpu-fraction": "0"}, "is no part of a GPU"),
        ({"optimus.dev/gpu-memory": "10GiB"}, "optimus.dev/gpu-memory: unknown unit"),
        ({"optimus.dev/gpu-memory": "0"}, "is no amount of memory"),
        ({"optimus.dev/gpu-memory": "1Gi", "optimus.dev/gpu-fraction": "0.5"}, "ask for one of them"),
        ({"optimus.dev/gpu-models": "a100=fast"}, "optimus.dev/gpu-models: a100=fast"),
        ({"optimus.dev/gpu-models": "=2"}, "write a100, or h100=2.5x"),
    ],
)
def test_annotations_that_make_no_sense_are_told(notes: dict[str, str], words: str) -> None:
    asked = read_request(pod(containers=[asking(cpu="2")], notes=notes))
    assert words in asked.problem
    assert (asked.request.cpu_milli, asked.request.gpu_count) == (2000, 0), "what its containers ask for counts"


def test_whole_gpus_and_a_part_of_one_are_too_much() -> None:
    asked = read_request(pod(containers=[asking(nvidia_com__gpu=8)], notes={"optimus.dev/gpu-fraction": "0.5"}))
    assert "whole GPUs as well" in asked.problem
    assert (asked.request.gpu_count, asked.request.gpu_milli) == (8, 1000), "and it has them"


@pytest.mark.parametrize(
    "notes", [{"gpu-fraction": "0.1"}, {"gpu-fraction": "x"}, {"gpu-memory": "1Gi"}, {"gpu-models": "="}]
)
def test_a_note_on_a_pod_that_runs_changes_nothing_that_is_counted(notes: dict[str, str]) -> None:
    told = {f"optimus.dev/{name}": text for name, text in notes.items()}
    plain, noted = (pod(containers=[asking(nvidia_com__gpu=8)], nodeName="n", notes=one) for one in ({}, told))
    assert read_request(noted) == read_request(plain)


def test_what_is_too_large_to_count_hides_nothing_else() -> None:
    asked = read_request(pod(containers=[asking("a", memory="1e18", nvidia_com__gpu=8), asking("b", cpu="?")]))
    assert "too large" in asked.problem
    assert (asked.request.gpu_count, asked.request.memory_mib) == (8, 2**53 // 2**20)
