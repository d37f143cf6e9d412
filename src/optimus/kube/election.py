"""One leader among rivals, by a Lease (coordination.k8s.io/v1), and a guard that every write asks.

Why: two schedulers may run for safety; two that decide at once give one GPU away twice.
Owns: the Lease, the time until which we lead, the count of terms, a thread that renews.
Must not: trust the clock of others or the time of day, wait for anything else this process does, or lead one moment
          longer than it can prove.

                 nobody holds it, released, or unchanged for its whole duration on our own clock
    follower ──────────────────────────────────────────────────────────────────────────────► leader (term + 1)
        ▲                                                                                       │
        └──── not renewed for `renew_s`, taken by another, `alive` not called, stopped ──────────┘

How it holds. A renewal counts from the moment *before* it was sent: we lead until then plus `renew_s`. A rival counts
from the moment *after* it saw the change, and waits `lease_s`. Both use clocks that only go forward, so a leader has
stopped at least `lease_s - renew_s` before the next begins, however long either was frozen. Writes have a time-out
below that (`Times.write_s`). The clock goes on while a machine sleeps.

Terms only grow. Should somebody delete the Lease, whoever has seen it goes on from there; a process that has not begins
at `first_term`, which its caller makes larger than any term there can have been.

What remains: a process that is frozen after its guard said yes and before the bytes left sends these bytes when it
wakes up: one request, the one it was sending. Nothing on the client's side can prevent it; the server refuses it
where the object has changed (fences in `writing`), and the term on it tells the successor, who sees it in its watch
and repairs.

Why a thread: a decision may take a second, and a Lease that is renewed by the same event loop is lost just when there
is most to do. The interpreter gives a thread its turn every 5 ms. Not a process: one that renews while ours hangs
would keep a dead leader in office. For the same reason the loop must call `alive` now and then, at least every
`patience_s`.
"""

from __future__ import annotations

import os
import random
import socket
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Self

import msgspec

from optimus.kube.blocking import BlockingClient
from optimus.kube.client import JSON, MERGE, USER_AGENT
from optimus.kube.config import Cluster
from optimus.kube.decoding import Meta, decode
from optimus.kube.errors import Conflict, KubeError, NotFound
from optimus.kube.resources import LEASES

PATIENCE_S = 60.0
LEAST_REQUEST_S = 0.5
WRITE_S, WRITE_SHARE = 4.0, 0.8
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Times(msgspec.Struct, frozen=True):
    """`lease_s`: for how long rivals respect a lease nobody renews. `renew_s`: for how long we lead after a renewal.
    `retry_s`: how often we renew, and rivals look."""

    lease_s: int = 15
    renew_s: float = 10.0
    retry_s: float = 2.0

    def __post_init__(self) -> None:
        if not 0 < self.retry_s < self.renew_s < self.lease_s:
            raise ValueError(f"retry {self.retry_s} s < renew {self.renew_s} s < lease {self.lease_s} s must hold")

    @classmethod
    def of(cls, lease_s: int) -> Times:
        """For a lease of so many seconds, with time for a write between two leads."""
        renew_s = min(lease_s * 2 / 3, max(lease_s - WRITE_S / WRITE_SHARE, lease_s / 2))
        return cls(lease_s=lease_s, renew_s=renew_s, retry_s=min(2.0, lease_s / 6))

    @property
    def write_s(self) -> float:
        """The time-out of a write: less than what is between the end of a lead and the beginning of the next."""
        return min(WRITE_S, (self.lease_s - self.renew_s) * WRITE_SHARE)


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    lease_transitions: int | None = None


class _Lease(msgspec.Struct):
    metadata: Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)


class Election:
    def __init__(
        self,
        cluster: Cluster,
        name: str,
        *,
        namespace: str = "",
        identity: str = "",
        times: Times | None = None,
        patience_s: float | None = PATIENCE_S,
        told: Callable[[int | None], object] | None = None,
        first_term: int = 0,
    ) -> None:
        """`identity`: how people know us; a part that no other process has is added. `told` is called in the thread of
        the election with the term that begins, or None when it ends; in asyncio:
        `lambda term: loop.call_soon_threadsafe(changed, term)`. `patience_s`: None if the loop cannot hang."""
        # Two processes of one name would each take the other's lease for its own.
        self.identity = f"{identity or socket.gethostname()}_{os.urandom(4).hex()}"
        self.times = times or Times()
        self.trouble = ""
        """Why the lease cannot be read or renewed right now; empty while it can."""
        self._namespace = namespace or cluster.namespace
        self._name = name
        self._path = LEASES.path(self._namespace, name)
        self._wire = BlockingClient(cluster, USER_AGENT)
        self.counters = self._wire.counters
        self._told = told
        self._next_term = first_term
        """At least; where the lease says more, that."""
        self._patience_s = patience_s
        self._alive_at = now()
        self._until = 0.0
        self._term: int | None = None
        self._mine = ""
        """The version of the lease that we wrote last."""
        self._seen = ("", "")
        self._seen_at = 0.0
        self._seen_for_s = 0.0
        self._stopping = threading.Event()
        self._release = True
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)

    # -- what others ask ------------------------------------------------------------------------------------------

    def still_leader(self) -> bool:
        """To be asked before every write, by `Writer` at its very last moment. Never waits."""
        return now() < self._until

    @property
    def term(self) -> int | None:
        """How often the lease has changed hands, counting ours; None while we do not lead."""
        return self._term if self.still_leader() else None

    def holder(self) -> str:
        """Who held it when we looked last; empty if nobody did."""
        return self._seen[0]

    def alive(self) -> None:
        """The loop of the caller still turns. Without this for `patience_s`, the lead is given up."""
        self._alive_at = now()

    def start(self) -> Self:
        self.alive()
        self._thread.start()
        return self

    def stop(self, *, release: bool = True) -> None:
        """Leads no more when this returns, which may take a request (in asyncio: `to_thread`). With `release`, a rival
        follows at once: first wait for writes in flight."""
        self._release = release
        self._stopping.set()
        self._until = 0.0
        if self._thread.ident is not None:
            self._thread.join()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    # -- the thread -----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopping.is_set():
            failed = False
            try:
                self._turn()
                self.trouble = ""
            except KubeError as error:
                self.trouble, failed = str(error), True
            if self._term is not None and not self.still_leader():
                self._lose()
            self._stopping.wait(self._pause_s(failed))
        if self._term is not None:
            self._lose()
        if self._release and self._seen[0] == self.identity:
            self._give_back()
        self._wire.close()

    def _pause_s(self, failed: bool) -> float:
        wait = self.times.retry_s * random.uniform(0.8, 1.2)  # noqa: S311 - spreads load, keeps no secret
        if self._term is None:
            return wait
        # A failed renewal is tried again sooner; the end of our time is never slept through.
        return max(min(wait / 4 if failed else wait, self._until - now()), 0.0)

    def _turn(self) -> None:
        hangs = self._patience_s is not None and now() - self._alive_at > self._patience_s
        if self._term is not None:
            if hangs or not self.still_leader():
                self._lose()
            else:
                self._renew()
                return
        if not hangs:
            self._try()

    def _renew(self) -> None:
        assert self._term is not None
        begun = now()
        try:
            self._renewed(self._write(self._mine, {}), begun)
        except Conflict:
            lease = self._read()
            if lease is None or lease.spec.holder_identity != self.identity:
                self._lose()
                return
            # Ours: an answer of before was lost, or somebody put a label on it.
            begun = now()
            self._renewed(self._write(lease.metadata.resource_version, {}), begun)
        except NotFound:
            begun = now()
            self._renewed(self._create(self._term), begun)

    def _try(self) -> None:
        lease = self._read()
        if lease is None:
            # Whoever held it before it was deleted may still lead.
            if self._seen[0] and now() < self._seen_at + self._seen_for_s:
                return
            begun = now()
            self._win(self._create(self._next_term), begun)
            return
        holder = lease.spec.holder_identity or ""
        if holder and holder != self.identity and now() < self._seen_at + self._seen_for_s:
            return
        term = (lease.spec.lease_transitions or 0) + 1
        change = {"holderIdentity": self.identity, "acquireTime": _wall_clock(), "leaseTransitions": term}
        begun = now()
        try:
            self._win(self._write(lease.metadata.resource_version, change), begun)
        except Conflict:
            self._read()  # a rival was faster: its time counts from here

    def _see(self, holder: str, lease: _Lease) -> None:
        """From now on our own clock says when it has run out."""
        self._seen, self._seen_at = (holder, lease.metadata.resource_version), now()
        self._next_term = max(self._next_term, (lease.spec.lease_transitions or 0) + 1)
        self._seen_for_s = float(max(lease.spec.lease_duration_seconds or 0, 0) or self.times.lease_s)

    def _wrote(self, lease: _Lease, begun: float) -> None:
        self._mine = lease.metadata.resource_version
        self._see(self.identity, lease)
        if not self._stopping.is_set():
            self._until = begun + self.times.renew_s

    def _renewed(self, lease: _Lease, begun: float) -> None:
        """An answer that comes when our time is over ends the term, though the lease is ours: whoever has asked in
        between was told that we do not lead. The next turn takes it anew, and says so."""
        if self.still_leader():
            self._wrote(lease, begun)
            return
        self._mine = lease.metadata.resource_version
        self._see(self.identity, lease)
        self._lose()

    def _win(self, lease: _Lease, begun: float) -> None:
        self._wrote(lease, begun)
        if not self.still_leader():
            return  # the answer took longer than it is good for: it is ours, and the next turn takes it anew
        self._term = lease.spec.lease_transitions or 0
        if self._told is not None:
            self._told(self._term)

    def _lose(self) -> None:
        self._until = 0.0
        self._term = None
        if self._told is not None:
            self._told(None)

    def _give_back(self) -> None:
        body = {"metadata": {"resourceVersion": self._mine}, "spec": {"holderIdentity": None}}
        try:
            self._ask("PATCH", self._path, body)
        except KubeError as error:
            self.trouble = str(error)  # a rival waits a little longer

    # -- the wire -------------------------------------------------------------------------------------------------

    def _read(self) -> _Lease | None:
        try:
            lease = decode(self._ask("GET", self._path), _Lease)
        except NotFound:
            return None
        holder = lease.spec.holder_identity or ""
        if self._seen != (holder, lease.metadata.resource_version):
            self._see(holder, lease)
        return lease

    def _write(self, version: str, change: dict[str, Any]) -> _Lease:
        """Only if it still has this version. What others put on it stays."""
        spec = {**change, **self._stamp()}
        body = {"metadata": {"resourceVersion": version}, "spec": spec}
        return decode(self._ask("PATCH", self._path, body), _Lease)

    def _create(self, term: int) -> _Lease:
        spec = {"holderIdentity": self.identity, "acquireTime": _wall_clock(), "leaseTransitions": term}
        meta = {"name": self._name, "namespace": self._namespace}
        body = {"apiVersion": LEASES.api_version, "kind": "Lease", "metadata": meta, "spec": {**spec, **self._stamp()}}
        return decode(self._ask("POST", LEASES.path(self._namespace), body), _Lease)

    def _stamp(self) -> dict[str, Any]:
        """For people and other tools: no rival of ours reads the time."""
        return {"leaseDurationSeconds": self.times.lease_s, "renewTime": _wall_clock()}

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> bytes:
        left = self._until - now() if self._term is not None else self.times.renew_s
        timeout_s = max(min(left, self.times.renew_s / 2), LEAST_REQUEST_S)
        raw = msgspec.json.encode(body) if body is not None else b""
        return self._wire.ask(method, path, raw, form=MERGE if method == "PATCH" else JSON, timeout_s=timeout_s)


def now() -> float:
    """Seconds on a clock that only goes forward, also while the machine sleeps."""
    return time.clock_gettime(_CLOCK)


def _wall_clock() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"
