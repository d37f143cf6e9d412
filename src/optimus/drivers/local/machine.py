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
from importlib.util import find_spec
from typing import Any

from optimus.model.nodes import Device, Node
from optimus.model.reasons import counted

VIRTUAL_CPU_MILLI = 64_000
VIRTUAL_MEMORY_MIB = 512 * 1024
VIRTUAL_MODEL = "virtual"


def this_machine() -> Node:
    """One node with what is really there."""
    name = socket.gethostname().split(".")[0].lower() or "local"
    return Node(name=name, cpu_milli=_cores() * 1000, memory_mib=_memory_mib(), devices=real_devices())


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


def real_devices() -> tuple[Device, ...]:
    """GPUs that NVML knows; none where it is not installed or finds no driver."""
    if find_spec("pynvml") is None:
        return ()
    nvml: Any = import_module("pynvml")
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return ()
    try:
        return tuple(_device(nvml, index) for index in range(nvml.nvmlDeviceGetCount()))
    finally:
        nvml.nvmlShutdown()


def _device(nvml: Any, index: int) -> Device:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    return Device(
        index=index,
        model=str(nvml.nvmlDeviceGetName(handle)).removeprefix("NVIDIA ").replace(" ", "-"),
        memory_mib=int(nvml.nvmlDeviceGetMemoryInfo(handle).total) >> 20,
        uuid=str(nvml.nvmlDeviceGetUUID(handle)),
    )
