"""An installation on the real server, and controllers that run as its service account."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hack.charting import HELM
from hack.controlplane import ControlPlane
from hack.controlplane.programs import missing_toolchain, program
from tests.kube.operating.installed import Installed, install


@pytest.fixture(scope="session")
def installed(plane: ControlPlane) -> Installed:
    return install(plane)


@pytest.fixture
def stand(installed: Installed, namespace_name: str) -> Iterator[Installed]:
    """The installation, with a namespace and nodes of this story. Those of others are closed meanwhile: they would lend
    room, and be counted."""
    made = Installed(installed.plane, namespace_name[:40].strip("-"), installed.token)
    others = made.open_nodes()
    made.close_nodes(others)
    yield made
    made.stop()
    made.close_nodes(others, closed=False)


@pytest.fixture(scope="session")
def helm() -> str:
    if why := missing_toolchain(HELM):
        pytest.skip(why)
    return str(program("helm", HELM))
