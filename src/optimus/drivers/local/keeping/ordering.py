"""A request as the nursery takes it."""

from __future__ import annotations

import os
from pathlib import Path

from optimus.drivers.local.keeping import wire
from optimus.drivers.local.keeping.events import Request
from optimus.drivers.local.keeping.limiting import Limiting


def order_of(request: Request, folder: Path, serial: bytes, limiting: Limiting | None) -> wire.Order:
    cgroups, settings = ([], []) if limiting is None else limiting.asked_for(request.attempt, request.limits)
    return wire.Order(
        serial=serial,
        job=os.fsencode(request.job),
        folder=os.fsencode(folder),
        workdir=os.fsencode(request.workdir),
        argv=[os.fsencode(word) for word in request.argv],
        env=[os.fsencode(f"{name}={value}") for name, value in request.env.items()],
        cgroups=cgroups,
        settings=settings,
    )
