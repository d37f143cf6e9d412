from __future__ import annotations

from collections.abc import Iterator

import pytest

from hack.controlplane import ControlPlane
from tests.kube.body.clusters import Stand


@pytest.fixture
def stand(plane: ControlPlane, namespace_name: str) -> Iterator[Stand]:
    made = Stand(plane, namespace_name[:40].strip("-"))
    yield made
    made.stop()
