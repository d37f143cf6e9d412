"""One control plane with two real nodes for all stories of a test process; each story has a namespace of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from hack.controlplane import ControlPlane, missing_toolchain
from hack.controlplane.real_nodes import RealNodes, why_not
from optimus.drivers.kube.opting_in import opting_in
from tests.kube.body.clusters import Stand
from tests.kube.real_nodes.ground import Ground


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and "containers" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def containers() -> None:
    """Containers run on this machine. That is tried, not guessed; where they do not, the reason is said."""
    if why := missing_toolchain() or why_not():
        pytest.skip(why)


@pytest.fixture(scope="session")
def real_nodes(containers: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealNodes]:
    folder = tmp_path_factory.mktemp("real")
    with ControlPlane(folder, controllers=True, real_nodes=True) as plane, RealNodes(plane) as nodes:
        first = Stand(plane, "first")
        first.serve_queues()
        first.apply(yaml.safe_dump_all(opting_in(name="optimus-scheduler", scheduler="optimus", home="optimus-system")))
        yield nodes


@pytest.fixture
def ground(real_nodes: RealNodes, namespace_name: str, tmp_path: Path) -> Iterator[Ground]:
    made = Ground(real_nodes.plane, real_nodes, namespace_name[:40].strip("-"), tmp_path)
    made.start()
    yield made
    made.stop()
