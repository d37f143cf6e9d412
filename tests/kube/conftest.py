"""One real control plane for all stories of a test process; each story has a namespace of its own. Operators start
when a story first needs them."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.controlplane import ControlPlane, missing_toolchain
from hack.operators import JOBSET, MPI_OPERATOR, TRAINER, TRAINING_OPERATOR, Operator, start

# What service accounts were answered: for stories about rights.
AUDIT = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - {level: Metadata, userGroups: ["system:serviceaccounts"]}
  - {level: None}
"""
USERS = {"alice": "team-vision", "bob": "team-speech", "nobody": "guests"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.kube)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Stories that are coroutines run in an event loop of their own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    asyncio.run(pyfuncitem.obj(**wanted))
    return True


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    if why := missing_toolchain():
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("plane")
    policy = folder / "audit.yaml"
    policy.write_text(AUDIT)
    flags = (f"--audit-policy-file={policy}", f"--audit-log-path={folder / 'audit.log'}")
    with ControlPlane(folder, controllers=True, kwok=True, users=USERS, api_server_flags=flags) as started:
        yield started


@pytest.fixture
def namespace_name(request: pytest.FixtureRequest) -> str:
    """Of this story alone, as Kubernetes writes names."""
    return re.sub(r"[^a-z0-9]+", "-", request.node.name.lower())[:60].strip("-")


@pytest.fixture(scope="session")
def training_operator(plane: ControlPlane) -> None:
    _start(plane, TRAINING_OPERATOR)


@pytest.fixture(scope="session")
def jobset_controller(plane: ControlPlane) -> None:
    _start(plane, JOBSET)


@pytest.fixture(scope="session")
def trainer_controller(plane: ControlPlane, jobset_controller: None) -> None:
    _start(plane, TRAINER)


@pytest.fixture(scope="session")
def mpi_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A plane of its own: its MPIJob has the same name as that of the training-operator, and another version."""
    if why := missing_toolchain(MPI_OPERATOR.module):
        pytest.skip(why)
    with ControlPlane(tmp_path_factory.mktemp("mpi"), controllers=True, kwok=True) as plane:
        start(plane, MPI_OPERATOR)
        yield plane


def _start(plane: ControlPlane, operator: Operator) -> None:
    if why := missing_toolchain(operator.module):
        pytest.skip(why)
    start(plane, operator)
