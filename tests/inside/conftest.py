"""Each test begins as a new process outside of Optimus would."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from optimus.inside.asking import REQUEST
from optimus.inside.loops import FINISHED, NESTING
from optimus.inside.status import STATUS


@pytest.fixture(autouse=True)
def new_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in [name for name in os.environ if name.startswith("OPTIMUS_")]:
        monkeypatch.delenv(name)
    yield
    while REQUEST.listening:
        REQUEST.stop_listening()
    REQUEST.forget()
    STATUS.forget()
    FINISHED.clear()
    NESTING.running.clear()
