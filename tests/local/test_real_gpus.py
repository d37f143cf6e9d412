"""Which GPUs this machine has. Below the real binding of NVML is a fake library: nobody needs GPUs to run this."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pynvml  # type: ignore[import-untyped]
import pytest

from optimus.drivers.local import machine
from optimus.drivers.local.clusters import looked_at, real_machine
from optimus.model.nodes import Device
from tests.local.fake_nvml import FakeNvml
from tests.local.machines import Up

FAKED = """
import sys
sys.path.insert(0, {root!r})
from tests.local.fake_nvml import FakeNvml, put_in_place
put_in_place(FakeNvml(2))
"""


def has(fake: FakeNvml, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(pynvml, "nvmlLib", fake)
    patch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})


def test_the_binding_is_part_of_every_installation() -> None:
    assert version("nvidia-ml-py")


def test_each_is_known_by_its_model_memory_and_uuid(monkeypatch: pytest.MonkeyPatch) -> None:
    has(FakeNvml(2), monkeypatch)
    found = machine.real_devices()
    assert not found.trouble
    assert found.devices == tuple(
        Device(index=index, model="A100-SXM4-80GB", memory_mib=80 << 10, uuid=f"GPU-fake-{index}") for index in (0, 1)
    )
    assert looked_at() == real_machine() and looked_at().told.endswith(" with 2 GPUs")


def test_one_that_does_not_answer_is_left_out_with_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    has(FakeNvml(3, lost={1}), monkeypatch)
    cluster = looked_at()
    assert [device.index for device in cluster.nodes[0].devices] == [0, 2]
    assert cluster.told.endswith(" with 2 GPUs (GPU 1 is left out, it does not answer: GPU is lost)")


def test_one_without_memory_of_its_own_has_that_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    has(FakeNvml(1, own_memory=False), monkeypatch)
    (device,) = machine.real_devices().devices
    assert device.memory_mib == real_machine().nodes[0].memory_mib


def test_a_gpu_without_a_driver_is_told_and_no_gpu_is_no_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    has(FakeNvml(0, driver=False), monkeypatch)
    monkeypatch.setattr(machine, "DEVICE_FILE", tmp_path / "nvidia0")
    assert machine.real_devices() == machine.Found()
    (tmp_path / "nvidia0").touch()
    told = looked_at().told
    assert f"no GPU found here ({tmp_path / 'nvidia0'} is there, but its driver does not answer: " in told
    assert "Driver Not Loaded" in told and "2 virtual nodes" in told


def test_jobs_of_a_real_scheduler_get_them_by_uuid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text(FAKED.format(root=str(Path(__file__).parents[2])))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    up = Up(tmp_path / "store", "--keep-jobs", "10")
    try:
        ran = up.cli("run", "--gpus", "2", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES")
        assert ran.stdout == "GPU-fake-0,GPU-fake-1\n", ran.stderr
    finally:
        up.end()
