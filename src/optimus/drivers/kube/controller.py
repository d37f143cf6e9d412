"""The controller: one process that watches a cluster, stands for election, and leads when it is elected.

Why: everything of this package is put together here, and nowhere else.
Owns: the order in which things start and end.
Must not: know what anything means.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

from aiohttp import web
from msgspec import Struct

from optimus.drivers.kube.acting import Acting
from optimus.drivers.kube.extender.answering import Answering, loopback
from optimus.drivers.kube.extender.offers import Offering, Offers
from optimus.drivers.kube.grouping import Kinds, shipped_kinds
from optimus.drivers.kube.leading import Leading
from optimus.drivers.kube.metrics import Metrics, TimedEngine
from optimus.drivers.kube.mirror import SCHEDULER_NAME, Mirror
from optimus.drivers.kube.objects import Pod
from optimus.drivers.kube.pod_group_status import PodGroupStatus
from optimus.drivers.kube.queues import SetUp, watch_queues
from optimus.drivers.kube.repairing import Repairing
from optimus.drivers.kube.reporting import Reporting
from optimus.drivers.kube.rights import LEASE
from optimus.drivers.kube.status import Status
from optimus.drivers.kube.watching import Watching
from optimus.kube import Client, Cluster, Election, Times, Writer
from optimus.kube.errors import NotFound
from optimus.kube.events import Recorder
from optimus.kube.resources import PODS
from optimus.model.reasons import Code
from optimus.telemetry.serving import Checks, serving

LOG = logging.getLogger(__name__)
CONTROLLER = "optimus.dev/scheduler"
HANGS_S = 120.0
"""A loop that has not turned for so long does not turn any more. The longest decisions take seconds."""


class Settings(Struct, frozen=True, kw_only=True):
    scheduler_name: str = SCHEDULER_NAME
    policy: str = "default"
    lease_namespace: str = "kube-system"
    elect: bool = True
    times: Times = Times()
    respect_budgets: bool = False
    in_flight: int = 48
    extender: str = ""
    """The address at which kube-scheduler asks; binds are then its own."""
    listen: str = ""
    """`host:port` of /healthz, /readyz and /metrics; empty: nobody is answered."""


class Controller:
    def __init__(self, cluster: Cluster, settings: Settings, kinds: Kinds | None = None) -> None:
        self.settings = settings
        self.mirror = Mirror(kinds or shipped_kinds(), scheduler_name=settings.scheduler_name)
        self.leading: Leading | None = None
        self.metrics = Metrics(self.mirror)
        self.synced = asyncio.Event()
        self._cluster = cluster
        self._set_up = SetUp()
        self._beat = time.monotonic()
        self._kinds = kinds or shipped_kinds()
        self._lead = asyncio.Event()
        self._offers = Offers()
        self._answering = Answering(self._offers, lambda name: name == settings.scheduler_name, self._why)

    async def run(self, stop: asyncio.Event) -> None:
        """Raises OSError if it cannot listen where it is told to."""
        async with AsyncExitStack() as opened:
            if self.settings.listen:
                host, _, port = self.settings.listen.rpartition(":")
                door = serving(
                    host.strip("[]"),
                    int(port),
                    alive=self.alive_checks,
                    ready=self.ready_checks,
                    metrics=self.metrics.families,
                )
                LOG.info("health and metrics at %s", await opened.enter_async_context(door))
            await opened.enter_async_context(self._asked())
            client = await opened.enter_async_context(Client(self._cluster))
            self.metrics.counters.append(client.counters)
            watching = Watching(client, self.mirror, self._kinds, self._wake)
            opened.push_async_callback(watching.close)
            self.metrics.reflectors, watching.heard = watching.reflectors, self.metrics.heard
            await self._while(stop, self._sync(watching))
            if not stop.is_set():
                await self._stand(client, watching, stop)

    async def _sync(self, watching: Watching) -> None:
        gc.disable()  # tens of thousands of objects that stay: searching them again and again takes seconds
        try:
            await watching.start()
            self._set_up = await watch_queues(watching, self.mirror)
        finally:
            gc.freeze()
            gc.enable()
        self.synced.set()
        self.metrics.synced = True
        self._alive()
        LOG.info("synced: %d nodes, %d pods", len(self.mirror.nodes), len(self.mirror.pods))

    # -- health -------------------------------------------------------------------------------------------------------

    def alive_checks(self) -> Checks:
        """The loop turns. Before the first sync it waits for the server, and a restart would not help."""
        quiet_s = time.monotonic() - self._beat
        hangs = self.synced.is_set() and quiet_s > HANGS_S
        return [("loop", f"no turn for {quiet_s:.0f} s" if hangs else "")]

    def ready_checks(self) -> Checks:
        """Everything is known; it leads, or can stand for election."""
        election = self.metrics.election
        return [
            ("sync", "" if self.synced.is_set() else "not everything has been read yet"),
            ("lease", election.trouble if election is not None else ""),
        ]

    def _alive(self) -> None:
        self._beat = time.monotonic()
        if self.metrics.election is not None:
            self.metrics.election.alive()

    @contextlib.asynccontextmanager
    async def _asked(self) -> AsyncIterator[None]:
        """By kube-scheduler, if it is to be."""
        if not self.settings.extender:
            yield
            return
        runner = web.AppRunner(self._answering.application(), access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, *loopback(self.settings.extender)).start()
            yield
        finally:
            await runner.cleanup()

    def _why(self, uid: str) -> str:
        """A pod of ours has no place; empty for pods of others."""
        pod = self.mirror.pods.get(uid)
        if pod is None or self.leading is None:
            return str(Code.NOT_READY) + ": it has not been looked at yet"
        if not self.mirror.is_ours(pod):
            return ""
        why = self.leading.waiting.get(self.mirror.groups.group_of(uid) or "")
        return f"{why.code}: {why.text()}" if why else str(Code.NOT_READY) + ": it is being looked at"

    def _wake(self) -> None:
        if self.leading is not None:
            self.leading.wake()

    async def _stand(self, client: Client, watching: Watching, stop: asyncio.Event) -> None:
        """For election, again and again, until it is told to stop."""
        if not self.settings.elect:
            await self._while(stop, self._lead_on(client, watching, None, lambda: True, self._alive))
            return
        loop = asyncio.get_running_loop()

        def told(term: int | None) -> None:
            loop.call_soon_threadsafe(self._lead.set if term is not None else self._lead.clear)

        election = Election(
            self._cluster, LEASE, namespace=self.settings.lease_namespace, times=self.settings.times, told=told
        )
        self.metrics.election = election.start()
        self.metrics.counters.append(election.counters)
        try:
            while not stop.is_set():
                self._alive()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._lead.wait(), 1.0)
                    await self._while(stop, self._lead_a_term(client, watching, election))
        finally:
            await asyncio.to_thread(election.stop)
            if election.trouble:
                LOG.warning("the lease could not be given back, and runs out by itself: %s", election.trouble)

    async def _lead_a_term(self, client: Client, watching: Watching, election: Election) -> None:
        """One term, not one more: whoever led in between has decided on what we do not know."""
        if (term := election.term) is None:
            self._lead.clear()  # it is over already; the next one is told
            return
        LOG.info("leading, term %d", term)
        await self._lead_on(client, watching, term, lambda: election.term == term, self._alive)
        LOG.info("not leading any more")

    async def _lead_on(
        self,
        client: Client,
        watching: Watching,
        term: int | None,
        still_leader: Callable[[], bool],
        alive: Callable[[], object],
    ) -> None:
        async def fetch(pod: Pod) -> Pod | None:
            try:
                return await client.get(PODS, pod.metadata.name, Pod, namespace=pod.metadata.namespace)
            except NotFound:
                return None

        writer = Writer(client, guard=still_leader, in_flight=self.settings.in_flight)
        binder = writer
        if self.settings.extender:
            self._answering.binder = writer
            binder = Offering(client, self._offers, guard=still_leader, in_flight=self.settings.in_flight)
        recorder = Recorder(writer, controller=CONTROLLER, instance=self._cluster.namespace or "local")
        acting = Acting(
            self.mirror,
            binder,
            fetch,
            watching.discovery.known,
            self._wake,
            time.monotonic,
            respect_budgets=self.settings.respect_budgets,
            term=term,
            chooses_volumes=not self.settings.extender,
        )
        preparing = acting.preparing
        reporting = Reporting(
            self.mirror,
            writer,
            recorder,
            time.monotonic,
            self.metrics.decided,
            (lambda: preparing.reasons) if preparing is not None else dict,
        )
        repairing = Repairing(self.mirror, acting, reporting.undone, time.monotonic, term)
        status = Status(self._set_up, writer, lambda: self.metrics.standing)
        pod_groups = PodGroupStatus(
            self.mirror, writer, watching.discovery.known, lambda: reporting.waiting, time.monotonic
        )
        engine = TimedEngine(policy=self.settings.policy)
        self.leading = Leading(self.mirror, engine, acting, reporting, repairing)
        self.metrics.lead(engine, acting, recorder, still_leader)
        beside = [
            asyncio.create_task(work) for work in (recorder.run(), reporting.run(), status.run(), pod_groups.run())
        ]
        for task in beside:
            task.add_done_callback(_told_if_failed)
        try:
            await self.leading.run(still_leader, alive, watching.read_owners)
        finally:
            self.leading = self._answering.binder = None
            self._offers.withdraw()
            self.metrics.lead_over()
            for task in beside:
                task.cancel()
            await asyncio.gather(acting.close(), *beside, return_exceptions=True)

    async def _while(self, stop: asyncio.Event, work: Awaitable[None]) -> None:
        """Until it is over, or told to stop."""
        both = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        for one in both:
            one.cancel()
        results = await asyncio.gather(*both, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result


def _told_if_failed(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        LOG.error("events, conditions or status are not written any more", exc_info=error)
