"""Stories of the client are coroutines: each runs in an event loop of its own."""

from __future__ import annotations

import asyncio
import inspect
import re
import zlib

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    asyncio.run(pyfuncitem.obj(**wanted))
    return True


@pytest.fixture
def namespace_name(request: pytest.FixtureRequest) -> str:
    """Of this story alone; long sentences that begin alike are told apart by a number."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).removeprefix("test-")
    return f"{name[:40].strip('-')}-{zlib.crc32(request.node.name.encode()):08x}"
