"""Each story has a namespace of its own."""

from __future__ import annotations

import re
import zlib

import pytest


@pytest.fixture
def namespace_name(request: pytest.FixtureRequest) -> str:
    """Of this story alone; long sentences that begin alike are told apart by a number."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).removeprefix("test-")
    return f"{name[:40].strip('-')}-{zlib.crc32(request.node.name.encode()):08x}"
