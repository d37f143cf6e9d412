from __future__ import annotations

import zlib
from collections.abc import Iterator

import pytest

from hack.controlplane import ControlPlane
from tests.kube.faults.front import Front
from tests.kube.faults.worlds import World


@pytest.fixture
def world(plane: ControlPlane, namespace_name: str, request: pytest.FixtureRequest) -> Iterator[World]:
    short = namespace_name.removeprefix("test-")[:28].strip("-")
    made = World(plane, f"{short}-{zlib.crc32(request.node.name.encode()):08x}")
    yield made
    made.stop()


@pytest.fixture
def front(plane: ControlPlane) -> Iterator[Front]:
    with Front(plane) as made:
        yield made
