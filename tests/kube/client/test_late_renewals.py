"""A renewal that is answered when its time is over, without a server: the term ends, and the next one is told.

Whoever asks at that moment hears that nobody leads, and waits to be told otherwise; if nobody told it, the lease would
be renewed for ever by a process that does not lead.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from optimus.kube import Election, Times, election
from optimus.kube.config import Cluster
from optimus.kube.credentials import Fixed, Identity
from optimus.kube.errors import NotFound


class Slow(Election):
    """The server is a dictionary, the clock is set by hand, and each answer takes as long as it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.takes_s, self.version, self.heard = 1000.0, 0.0, 0, list[int | None]()
        self.spec: dict[str, Any] | None = None
        monkeypatch.setattr(election, "now", lambda: self.now)
        times = Times(lease_s=3, renew_s=2.0, retry_s=0.5)
        super().__init__(
            Cluster(server="http://127.0.0.1:1", credentials=Fixed(Identity())),
            "lease",
            namespace="a",
            times=times,
            told=self.heard.append,
        )

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> bytes:
        self.now += self.takes_s
        if body is not None:
            self.spec = {**(self.spec or {}), **body["spec"]}
            self.version += 1
        elif self.spec is None:
            raise NotFound(404, "NotFound", "there is none")
        meta = {"name": "lease", "uid": "u", "resourceVersion": str(self.version)}
        return json.dumps({"metadata": meta, "spec": self.spec}).encode()

    def turn(self, after_s: float = 0.5) -> None:
        """As its thread takes them."""
        self.now += after_s
        self._turn()
        if self._term is not None and not self.still_leader():
            self._lose()


def test_a_renewal_in_time_goes_on_with_the_term(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Slow(monkeypatch)
    one.turn()
    one.takes_s = 1.0
    one.turn()
    assert one.heard == [0] and one.term == 0


def test_a_renewal_that_is_answered_too_late_ends_the_term_and_the_next_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = Slow(monkeypatch)
    one.turn()
    one.takes_s = 1.9
    one.turn()
    assert one.heard == [0, None] and one.term is None, "in between, whoever asked was told that we do not lead"
    one.takes_s = 0.0
    one.turn()
    assert one.heard == [0, None, 1] and one.term == 1
