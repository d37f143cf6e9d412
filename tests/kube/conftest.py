"""One real control plane for all stories of a test process; each story has a namespace of its own."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.controlplane import ControlPlane, missing_toolchain

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
