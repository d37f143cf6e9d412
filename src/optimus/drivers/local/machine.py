"""This machine: the nodes that work can be put on.

Why: real GPUs where there are any; else virtual ones, so that queues, gangs and preemption can be lived anywhere.
Owns: what a machine offers, from NVML, from numbers on the command line, or from a cluster file.
Must not: run anything.

A virtual node is this machine under another name: its GPUs are numbers that are never given twice, its CPU and memory
are what the file says. Both are counted when work is placed; nobody has them because of that.
"""

from __future__ import annotations

import os
import socket
from importlib import import_module
from pathlib import Path
from typing import Any

from msgspec import Struct

from optimus.model.nodes import Device, Node
from optimus.model.reasons import counted

VIRTUAL_CPU_MILLI = 64_000
VIRTUAL_MEMORY_MIB = 512 * 1024
VIRTUAL_MODEL = "virtual"
DEVICE_FILE = Path("/dev/nvidia0")
"""Of the first GPU: its kernel module has seen it."""


def this_machine() -> tuple[Node, str]:
    """One node with what is really there, and what is wrong with its GPUs."""
    name = socket.gethostname().split(".")[0].lower() or "local"
    found = real_devices()
    return Node(name=name, cpu_milli=_cores() * 1000, memory_mib=_memory_mib(), devices=found.devices), found.trouble


def what_is_here() -> str:
    """`2 cores, 7.8 GiB`: for whoever is shown nodes that claim more."""
    return f"{counted(_cores(), 'core')}, {_memory_mib() / 1024:.3g} GiB"


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def _memory_mib() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // (1 << 20)


def virtual_nodes(count: int, gpus: int) -> tuple[Node, ...]:
    devices = tuple(Device(index=index, model=VIRTUAL_MODEL, memory_mib=80 * 1024) for index in range(gpus))
    return tuple(
        Node(
            name=f"node-{number}",
            cpu_milli=VIRTUAL_CPU_MILLI,
            memory_mib=VIRTUAL_MEMORY_MIB,
            devices=devices,
            labels={"rack": f"rack-{number // 4}"},
        )
        for number in range(count)
    )


class Found(Struct, frozen=True, kw_only=True):
    """GPUs that NVML knows, and why there are no more of them; empty if nothing is wrong."""

    devices: tuple[Device, ...] = ()
    trouble: str = ""


def real_devices() -> Found:
    """One that does not answer is left out, with a word. No driver is no trouble where there is no GPU."""
    nvml: Any = import_module("pynvml")
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        there = DEVICE_FILE.exists()
        return Found(trouble=f"{DEVICE_FILE} is there, but its driver does not answer: {error}" if there else "")
    devices: list[Device] = []
    troubles: list[str] = []
    try:
        for index in range(nvml.nvmlDeviceGetCount()):
            try:
                devices.append(_device(nvml, index))
            except nvml.NVMLError as error:
                troubles.append(f"GPU {index} is left out, it does not answer: {error}")
    except nvml.NVMLError as error:
        troubles.append(f"the driver does not say how many GPUs there are: {error}")
    finally:
        nvml.nvmlShutdown()
    return Found(devices=tuple(devices), trouble="; ".join(troubles))


def _device(nvml: Any, index: int) -> Device:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    try:
        memory_mib = int(nvml.nvmlDeviceGetMemoryInfo(handle).total) >> 20
    except nvml.NVMLError_NotSupported:  # it has that of the machine
        memory_mib = _memory_mib()
    return Device(
        index=index,
        model=str(nvml.nvmlDeviceGetName(handle)).removeprefix("NVIDIA ").replace(" ", "-"),
        memory_mib=memory_mib,
        uuid=str(nvml.nvmlDeviceGetUUID(handle)),
    )
