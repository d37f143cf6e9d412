"""A request as the nursery takes it."""

from __future__ import annotations

import os
from pathlib import Path

from optimus.drivers.local.keeping import cgroups, wire
from optimus.drivers.local.keeping.events import Limits, Request


def order_of(request: Request, folder: Path, serial: bytes, cgroup_root: Path | None) -> wire.Order:
    limits = request.limits or Limits()
    return wire.Order(
        serial=serial,
        job=os.fsencode(request.job),
        folder=os.fsencode(folder),
        workdir=os.fsencode(request.workdir),
        argv=[os.fsencode(word) for word in request.argv],
        env=[os.fsencode(f"{name}={value}") for name, value in request.env.items()],
        cgroup=b"" if cgroup_root is None else os.fsencode(cgroup_root / request.attempt),
        memory_max=b"" if limits.memory_bytes is None else b"%d" % limits.memory_bytes,
        cpu_max=b"" if limits.cpu_milli is None else cgroups.cpu_max(limits.cpu_milli),
    )
