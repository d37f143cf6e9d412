"""A fake of NVIDIA's management library, below its real Python binding: GPUs that are only said to be there."""

# ruff: noqa: N802 - the names are the library's

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pynvml  # type: ignore[import-untyped]

OK, NOT_SUPPORTED, DRIVER_NOT_LOADED, LOST = 0, 3, 9, 15


class FakeNvml:
    """The functions of the library that are asked for, in its own manner: a number is returned, the rest written."""

    def __init__(self, gpus: int, *, lost: Collection[int] = (), driver: bool = True, own_memory: bool = True) -> None:
        self.gpus, self.lost, self.driver, self.own_memory = gpus, lost, driver, own_memory
        self._asked = 0
        """The number of the device whose handle was given last."""

    def nvmlInitWithFlags(self, _: Any) -> int:
        return OK if self.driver else DRIVER_NOT_LOADED

    def nvmlShutdown(self) -> int:
        return OK

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:
        count._obj.value = self.gpus
        return OK

    def nvmlDeviceGetHandleByIndex_v2(self, index: Any, _: Any) -> int:
        self._asked = index.value
        return LOST if self._asked in self.lost else OK

    def nvmlDeviceGetName(self, _: Any, name: Any, __: Any) -> int:
        name.value = b"NVIDIA A100-SXM4 80GB"
        return OK

    def nvmlDeviceGetUUID(self, _: Any, uuid: Any, __: Any) -> int:
        uuid.value = b"GPU-fake-%d" % self._asked
        return OK

    def nvmlDeviceGetMemoryInfo(self, _: Any, memory: Any) -> int:
        memory._obj.total = 80 << 30
        return OK if self.own_memory else NOT_SUPPORTED


def put_in_place(library: FakeNvml) -> None:
    """Of the one that the binding would load; for a process that ends with it."""
    pynvml.nvmlLib = library
    pynvml._nvmlGetFunctionPointer_cache = {}
